// SPDX-License-Identifier: Apache-2.0
// Ranks that do the same, told by their number, so that ranks of runs not yet made have a class, too:
//
//   all        all
//   first      first (rank 0), others
//   ends       first, middle, last
//   diagonal   diagonal, off-diagonal: of a square of ranks, those that talk to themselves when row and
//              column are exchanged
//   parity     even, odd
#ifndef WORKLOAD_MODEL_MEASUREMENTS_RANK_CLASSES_H_
#define WORKLOAD_MODEL_MEASUREMENTS_RANK_CLASSES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "workload_model/measurements/measurements.h"

namespace meridian {

// True for the names on the left above.
bool IsRankRule(absl::string_view rule);

// Returns the class of a rank; nullopt where the rule says nothing: of diagonals when the ranks are
// no square.
std::optional<std::string> RankClassOf(absl::string_view rule, int64_t rank, int64_t ranks);

// The root of a square number; nullopt for others.
std::optional<int64_t> SquareRoot(int64_t number);

// Finds the simplest rule under which the ranks of a class call the same, in every run, and writes
// their classes into the runs. Runs without single calls are of class "all". Returns the rule, or
// nullopt, with a note, when ranks do different things that no rule explains; all are then of one
// class.
std::optional<std::string> ClassifyRanks(std::vector<RunMeasurements>* runs,
                                         std::vector<std::string>* notes);

// Writes the classes of a rule into runs that have calls; what no rule says stays "all".
void AssignClasses(absl::string_view rule, std::vector<RunMeasurements>* runs);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MEASUREMENTS_RANK_CLASSES_H_
