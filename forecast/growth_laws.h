// SPDX-License-Identifier: Apache-2.0
// What a job does with its number of ranks: assumed, or measured by recording it with several.
//
//   computation of one rank in a step        ~ ranks^a    assumed: a = 0
//   bytes of collectives, by kind and group  ~ ranks^b    assumed: b = 0, but -1 for all-gathers of
//                                                         groups that grow, which divide shards
#ifndef FORECAST_GROWTH_LAWS_H_
#define FORECAST_GROWTH_LAWS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "forecast/job_on_network.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

struct GrowthLaws {
  double compute_power = 0;
  // The standard deviation of that power.
  double compute_deviation = 0;
  // By kind, and whether its groups grow with the job. What is not here is assumed.
  std::map<std::pair<CollectiveKind, bool>, double> bytes_powers;
  // How many times as long a step was as the recording before would have had it, as a logarithm for
  // each doubling of ranks: what no law above says, such as rings that go around all ranks.
  double rest_per_doubling = 0;
  // What was measured, one sentence each; empty: nothing was.
  std::vector<std::string> measured;
  // What differs between the recordings that no law describes, one sentence each.
  std::vector<std::string> notes;

  double BytesPower(CollectiveKind kind, bool grows) const;
};

// Fits the laws to recordings of one job, in ascending order of ranks, no two with as many. Those of
// one recording are assumed.
GrowthLaws MeasureGrowth(absl::Span<const JobOnNetwork* const> jobs);

}  // namespace meridian

#endif  // FORECAST_GROWTH_LAWS_H_
