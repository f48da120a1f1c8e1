#include "xla_profiler/util/stable_hash.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(StableHashTest, IsTheValueThatItWasBefore) {
  EXPECT_EQ(StableHash().value(), 0xCBF29CE484222325u);
  // FNV-1a of eight zero bytes: eight times the multiplication.
  uint64_t wanted = 0xCBF29CE484222325u;
  for (int i = 0; i < 8; ++i) wanted *= 0x100000001B3u;
  StableHash hash;
  hash.AddNumber(0);
  EXPECT_EQ(hash.value(), wanted);
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
