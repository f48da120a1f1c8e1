#include "xla_profiler/base/stable_hash.h"

#include <string>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(StableHashTest, IsTheValueThatItWasBefore) {
  EXPECT_EQ(StableHash().value(), 0xCBF29CE484222325u);
  StableHash number, text;
  number.AddNumber(1);
  EXPECT_EQ(number.value(), 0x5A8419103EBE48E4u);
  text.AddText("all-reduce");
  EXPECT_EQ(text.value(), 0xFB7A8316DE461A03u);
}

TEST(StableHashTest, EveryByteCounts) {
  const std::string text = "ncclDevKernel_AllReduce";
  StableHash whole;
  whole.AddText(text);
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = text;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      StableHash hash;
      hash.AddText(other);
      EXPECT_NE(hash.value(), whole.value()) << i << " " << bit;
    }
  }
}

TEST(StableHashTest, TextsAreKeptApart) {
  StableHash a, b;
  a.AddText("ab");
  a.AddText("c");
  b.AddText("a");
  b.AddText("bc");
  EXPECT_NE(a.value(), b.value());
}

}  // namespace
}  // namespace meridian
