// SPDX-License-Identifier: Apache-2.0
// What commands say about the time of a simulated run, beside its measured one.
#ifndef ASTRA_BRIDGE_ENGINE_SIMULATED_TIMES_H_
#define ASTRA_BRIDGE_ENGINE_SIMULATED_TIMES_H_

#include <string>

#include "absl/types/span.h"
#include "chakra_export/graph/rank_activity.h"

namespace meridian {

class ActivityReport;  // simulated_times.proto
class SimulatedTimes;

// Returns the mean of what ranks do, and when the last is done. There is at least one rank.
ActivityReport ReportActivity(absl::Span<const RankActivity> ranks);

// Returns a table of what was measured and what is simulated.
std::string FormatTimes(const SimulatedTimes& times);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_SIMULATED_TIMES_H_
