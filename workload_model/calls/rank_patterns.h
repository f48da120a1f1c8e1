// SPDX-License-Identifier: Apache-2.0
// Which ranks a callsite communicates with, as a function of the rank and of how many there are, so
// that it is known for runs not yet made. Groups are rows of a mesh:
//
//   of 16 ranks, rank 6 in {4 5 6 7}     stride 1, length sqrt n
//   of 16 ranks, rank 6 in {2 6 10 14}   stride sqrt n, length sqrt n
//
// Messages go a number of steps along such a row, to the transposed place, or to rank xor a number;
// the number may grow from visit to visit.
#ifndef WORKLOAD_MODEL_CALLS_RANK_PATTERNS_H_
#define WORKLOAD_MODEL_CALLS_RANK_PATTERNS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "workload_model/measurements/measurements.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// Returns "3", "n", "sqrt n" or "n/4" for so many ranks; nullopt when it is no whole number, and for
// other texts.
std::optional<int64_t> RanksOf(absl::string_view expression, int64_t ranks);

// Returns the simplest expression that gives the second number of each pair for its first; nullopt
// when there is none.
std::optional<std::string> FindRanksExpression(const std::set<std::pair<int64_t, int64_t>>& pairs);

// What the callsites of runs of one class do, in their order. Runs have calls. Whom messages go to is
// told only where all ranks of the runs were traced, those of other classes too.
std::vector<CallsiteModel> LearnCallsites(absl::Span<const RunMeasurements* const> runs,
                                          bool all_traced);

// Returns the ranks of a collective's group, of which `rank` is one; FailedPrecondition when the
// callsite's numbers make no group of so many ranks.
absl::StatusOr<std::vector<int64_t>> GroupOf(const CallsiteModel& callsite, int64_t rank,
                                             int64_t ranks);

// Where a rule sends to, or where what it sends comes from; `visits` counts from 1.
struct Peer {
  // False when the rule says nothing for so many ranks, or no single rank.
  bool is_known = false;
  // Nullopt for nobody, at the end of a row that is no ring.
  std::optional<int64_t> rank;
};
Peer TargetOf(const PeerRule& rule, int64_t rank, int64_t ranks, int64_t visits);
Peer SourceOf(const PeerRule& rule, int64_t rank, int64_t ranks, int64_t visits);

// FailedPrecondition when the rule of a callsite does not tell whom the rank sends to or, where it also
// receives, from whom.
absl::Status CheckPeers(const CallsiteModel& callsite, int64_t rank, int64_t ranks, int64_t visits,
                        bool receives);

// Counts visits of callsites since the last visit of another: what `since` of a PeerRule means.
// Returns for each call the number of its visit, from 1; 0 for calls of other callsites.
std::vector<int64_t> VisitsSince(absl::Span<const int64_t> callsites, int64_t callsite,
                                 int64_t since);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_CALLS_RANK_PATTERNS_H_
