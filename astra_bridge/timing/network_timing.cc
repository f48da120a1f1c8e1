#include "astra_bridge/timing/network_timing.h"

#include <algorithm>

namespace meridian {

absl::string_view BatchRuleName(BatchRule rule) {
  switch (rule) {
    case BatchRule::kIndependent:
      return "independent";
    case BatchRule::kSimulatedTogether:
      return "simulated together";
    case BatchRule::kMakespanInflation:
      return "makespan inflation";
    case BatchRule::kSerialised:
      return "serialised";
  }
  return "";
}

void SummariseBatch(BatchEstimate* batch) {
  batch->makespan_seconds = 0;
  for (double seconds : batch->seconds) {
    batch->makespan_seconds = std::max(batch->makespan_seconds, seconds);
  }
  double longest = 0;
  for (const EdgeEstimate& edge : batch->isolated) longest = std::max(longest, edge.seconds);
  batch->inflation = longest > 0 ? batch->makespan_seconds / longest : 1;
}

double InflationOverSum(const BatchEstimate& batch) {
  double sum = 0;
  for (const EdgeEstimate& isolated : batch.isolated) sum += isolated.seconds;
  return sum > 0 ? batch.makespan_seconds / sum : 1;
}

}  // namespace meridian
