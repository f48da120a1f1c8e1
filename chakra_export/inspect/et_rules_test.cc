#include "chakra_export/inspect/et_rules.h"

#include <set>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

EtProblem Problem(EtRule rule) {
  EtProblem problem;
  problem.rule = rule;
  return problem;
}

TEST(EtRulesTest, NamesAreUniqueAndParse) {
  std::set<std::string> names;
  for (size_t i = 0; i < kEtRuleCount; ++i) {
    const EtRule rule = static_cast<EtRule>(i);
    const std::string name(RuleInfo(rule).name);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_THAT(ParseRules(name), IsOkAndHolds(ElementsAre(rule)));
  }
  EXPECT_THAT(ParseRules(""), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(ParseRules("cycle,tag"), IsOkAndHolds(ElementsAre(EtRule::kCycle, EtRule::kTag)));
  EXPECT_THAT(ParseRules("cycle,tagg"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'tagg' is no rule")));
  EXPECT_THAT(ParseRules("cycle,"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(EtProblemsTest, CountsAllAndKeepsSome) {
  EtProblems problems({EtRule::kHostNode});
  for (int i = 0; i < 50; ++i) problems.Add(Problem(EtRule::kCycle));
  problems.Add(Problem(EtRule::kEarlyMessage));
  problems.Add(Problem(EtRule::kHostNode));
  EXPECT_EQ(problems.count(EtRule::kCycle), 50);
  EXPECT_EQ(problems.count(EtRule::kHostNode), 0);
  EXPECT_EQ(problems.errors(), 50);
  EXPECT_EQ(problems.warnings(), 1);
  EXPECT_EQ(problems.kept().size(), EtProblems::kKeptPerRule + 1);
}

}  // namespace
}  // namespace meridian
