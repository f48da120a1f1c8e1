#include "xla_profiler/base/string_pool.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(StringPoolTest, GivesEachStringOneId) {
  StringPool pool;
  EXPECT_EQ(pool.Intern("a"), 0);
  EXPECT_EQ(pool.Intern(""), 1);
  EXPECT_EQ(pool.Intern("a"), 0);
  EXPECT_EQ(pool.size(), 2);
  EXPECT_EQ(pool.Get(0), "a");
  EXPECT_EQ(pool.Get(1), "");
}

// What stands where a known text stood is another one.
TEST(StringPoolTest, APlaceMayHoldAnotherText) {
  StringPool pool;
  std::string text = "first";
  EXPECT_EQ(pool.Intern(text), 0);
  text = "other";
  EXPECT_EQ(pool.Intern(text), 1);
  EXPECT_EQ(pool.Intern(text), 1);
  text = "first";
  EXPECT_EQ(pool.Intern(text), 0);
  EXPECT_EQ(pool.size(), 2);
}

TEST(StringPoolTest, StringsStayWhereTheyAre) {
  StringPool pool;
  pool.Intern("short");
  const absl::string_view first = pool.Get(0);
  for (int i = 0; i < 10000; ++i) EXPECT_EQ(pool.Intern(absl::StrCat("name ", i)), i + 1);
  const StringPool moved = std::move(pool);
  EXPECT_EQ(moved.Get(0).data(), first.data());
  EXPECT_EQ(moved.Get(10000), "name 9999");
}

}  // namespace
}  // namespace meridian
