#include "xla_profiler/base/buckets.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(BucketsTest, ValuesStayInTheirOrder) {
  const std::vector<std::pair<int, char>> pairs = {{2, 'a'}, {0, 'b'}, {2, 'c'}, {2, 'a'}};
  const Buckets<char> buckets(4, [&](const auto& visit) {
    for (const auto& [bucket, value] : pairs) visit(bucket, value);
  });
  EXPECT_THAT(buckets.Of(0), ElementsAre('b'));
  EXPECT_THAT(buckets.Of(1), IsEmpty());
  EXPECT_THAT(buckets.Of(2), ElementsAre('a', 'c', 'a'));
  EXPECT_THAT(buckets.Of(3), IsEmpty());
}

}  // namespace
}  // namespace meridian
