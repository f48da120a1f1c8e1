#include "xla_profiler/base/wire/packed_bytes.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

enum class Colour { kRed, kGreen };

struct Everything {
  int64_t least = 0;
  uint64_t most = 0;
  bool is_true = false;
  Colour colour = Colour::kRed;
  double third = 0;
  std::string text;
  std::vector<std::optional<int32_t>> numbers;
  absl::uint128 wide = 0;
};

void Pack(PackedBytes& bytes, Everything& value) {
  bytes(value.least, value.most, value.is_true, value.colour, value.third, value.text,
        value.numbers, value.wide);
}

std::string Packed() {
  Everything value = {std::numeric_limits<int64_t>::min(),
                      std::numeric_limits<uint64_t>::max(),
                      true,
                      Colour::kGreen,
                      1.0 / 3,
                      std::string("a\0b", 3),
                      {-1, std::nullopt, 300},
                      absl::MakeUint128(7, ~uint64_t{0})};
  PackedBytes bytes;
  bytes(value);
  return bytes.bytes();
}

TEST(PackedBytesTest, ValuesComeBack) {
  const std::string packed = Packed();
  PackedBytes bytes(packed);
  Everything value;
  bytes(value);
  EXPECT_TRUE(bytes.Finish().ok());
  EXPECT_EQ(value.least, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(value.most, std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(value.is_true);
  EXPECT_EQ(value.colour, Colour::kGreen);
  EXPECT_EQ(value.third, 1.0 / 3);
  EXPECT_EQ(value.text, std::string("a\0b", 3));
  EXPECT_EQ(value.numbers, (std::vector<std::optional<int32_t>>{-1, std::nullopt, 300}));
  EXPECT_EQ(value.wide, absl::MakeUint128(7, ~uint64_t{0}));
}

TEST(PackedBytesTest, BytesThatAreCutOrTooManyAreAnError) {
  const std::string packed = Packed();
  for (size_t size = 0; size <= packed.size() + 1; ++size) {
    std::string cut = packed + "x";
    cut.resize(size);
    PackedBytes bytes(cut);
    Everything value;
    bytes(value);
    EXPECT_EQ(bytes.Finish().ok(), size == packed.size()) << size;
  }
}

}  // namespace
}  // namespace meridian
