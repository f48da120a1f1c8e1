#include "xla_profiler/base/content_hash.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace meridian {
namespace {

absl::uint128 HashOf(std::initializer_list<absl::string_view> texts) {
  ContentHash hash;
  for (absl::string_view text : texts) hash.AddText(text);
  return hash.value();
}

// The first is the value that the specification of XXH3 gives for no input.
TEST(ContentHashTest, IsTheSameOnEveryMachineAndInEveryBuild) {
  EXPECT_EQ(HashDigits(HashOfText("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(HashDigits(HashOf({"all-reduce"})), "9b2590cd6e488898ea89826e4deb1425");
  EXPECT_EQ(HashDigits(HashOf({std::string(1000, 'x')})), "6d57cc07babd99f1a652ea50b5ad40b9");
}

TEST(ContentHashTest, EveryByteCountsInShortTextsAndInLongOnes) {
  for (const size_t size : {size_t{1}, size_t{16}, size_t{256}, size_t{257}, size_t{1000}}) {
    const std::string text(size, 'x');
    std::set<std::string> digits = {HashDigits(HashOf({text}))};
    for (size_t i = 0; i < size; ++i) {
      std::string other = text;
      other[i] = 'y';
      digits.insert(HashDigits(HashOf({other})));
    }
    EXPECT_EQ(digits.size(), size + 1);
  }
}

TEST(ContentHashTest, TextsAreKeptApart) {
  EXPECT_NE(HashOf({"ab", "c"}), HashOf({"a", "bc"}));
  EXPECT_NE(HashOf({"", "a"}), HashOf({"a", ""}));
  const std::string long_text(300, 'x');
  EXPECT_NE(HashOf({long_text, "x"}), HashOf({"x", long_text}));
}

TEST(ContentHashTest, NumbersAndHashesCount) {
  ContentHash one, two, hash;
  one.AddNumber(1);
  two.AddNumber(uint64_t{1} << 63);
  hash.AddHash(absl::MakeUint128(0, 1));
  EXPECT_NE(one.value(), two.value());
  EXPECT_NE(one.value(), hash.value());
}

}  // namespace
}  // namespace meridian
