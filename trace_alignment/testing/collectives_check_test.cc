#include "trace_alignment/testing/collectives_check.h"

#include <map>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "trace_alignment/testing/cluster_profile.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

CollectivesVerdict Check(const std::string& bytes) {
  CollectivesVerdict verdict;
  EXPECT_OK(CheckCollectives(bytes, &verdict));
  return verdict;
}

TEST(CollectivesCheckTest, TellsWhatBecameOfTheBytes) {
  EXPECT_EQ(Check(""), CollectivesVerdict::kRefused);
  EXPECT_EQ(Check(SyntheticRun({})[0].SerializeAsString()), CollectivesVerdict::kMatched);
  // The same rank twice.
  EXPECT_EQ(Check(SyntheticRun({})[1].SerializeAsString()), CollectivesVerdict::kRefused);
  // Another program.
  SyntheticRunOptions options;
  options.ranks = 3;
  options.elements = 7;
  EXPECT_EQ(Check(SyntheticRun(options)[2].SerializeAsString()), CollectivesVerdict::kApart);
}

TEST(CollectivesCheckTest, HoldsWhateverIsDamaged) {
  ClusterOptions options;
  options.steps = 2;
  options.collectives = OneOfEach(2);
  const SyntheticCluster cluster(options);
  std::mt19937_64 random(17);
  std::map<CollectivesVerdict, int> verdicts;
  for (const std::string& good :
       {SyntheticRun({})[0].SerializeAsString(), RecordedProfile(cluster, 0).SerializeAsString()}) {
    for (int trial = 0; trial < 3000; ++trial) ++verdicts[Check(Damage(good, random))];
  }
  EXPECT_GT(verdicts[CollectivesVerdict::kRefused], 100);
  EXPECT_GT(verdicts[CollectivesVerdict::kApart], 100);
  EXPECT_GT(verdicts[CollectivesVerdict::kMatched], 100);
}

}  // namespace
}  // namespace meridian
