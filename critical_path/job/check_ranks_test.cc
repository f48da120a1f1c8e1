#include "critical_path/job/job_analysis.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CheckRanksTest, AllRanksAreFine) {
  std::vector<std::string> notes;
  EXPECT_THAT(CheckRanks({0, 1, 2}, 3, {}, &notes), IsOk());
  EXPECT_THAT(notes, IsEmpty());
}

TEST(CheckRanksTest, SomeRanksAreNot) {
  std::vector<std::string> notes;
  const absl::Status status = CheckRanks({0, 2}, 5, {}, &notes);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("no trace has the work of rank 1, 3, 4 of 5")));
}

TEST(CheckRanksTest, OneRankMayBeAloneOrChosen) {
  std::vector<std::string> notes;
  EXPECT_THAT(CheckRanks({1}, 2, {}, &notes), IsOk());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("rank 0 of 2: waiting for them looks like")));
  JobOptions options;
  options.rank = 2;
  EXPECT_THAT(CheckRanks({0, 2}, 5, options, &notes), IsOk());
}

TEST(CheckRanksTest, OfManyMissingRanksSomeAreNamed) {
  std::vector<std::string> notes;
  EXPECT_THAT(CheckRanks({0}, int64_t{1} << 60, {}, &notes), IsOk());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("rank 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 of")));
}

}  // namespace
}  // namespace meridian
