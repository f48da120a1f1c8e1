// The decoder of HLO modules against libprotobuf: on a module with one of everything, cut at every
// byte, and on thousands of damaged ones.
#include "xla_profiler/testing/hlo_comparison.h"

#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

HloVerdict Compare(absl::string_view bytes) {
  HloVerdict verdict = HloVerdict::kRefused;
  const absl::Status status = CompareHloWithLibprotobuf(bytes, &verdict);
  EXPECT_TRUE(status.ok()) << status;
  return verdict;
}

TEST(HloComparisonTest, AgreesOnOneOfEverything) {
  EXPECT_EQ(Compare(RichModule().Serialize()), HloVerdict::kAccepted);
  EXPECT_EQ(Compare(""), HloVerdict::kAccepted);
}

TEST(HloComparisonTest, AgreesOnEveryTruncation) {
  const std::string bytes = RichModule().Serialize();
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    // A copy of that size, so that sanitizers see a read beyond it.
    const std::string cut(bytes, 0, size);
    EXPECT_EQ(Compare(cut), size == 0 ? HloVerdict::kAccepted : HloVerdict::kRefused);
  }
}

TEST(HloComparisonTest, AgreesOnRandomDamage) {
  const std::string bytes = RichModule().Serialize();
  std::mt19937_64 random(20260101);
  std::map<HloVerdict, int> verdicts;
  for (int round = 0; round < 60000 && !HasFailure(); ++round) {
    ++verdicts[Compare(Damage(bytes, random))];
  }
  // The damage is such that each verdict occurs often.
  EXPECT_GT(verdicts[HloVerdict::kAccepted], 1000);
  EXPECT_GT(verdicts[HloVerdict::kRefused], 1000);
}

}  // namespace
}  // namespace meridian
