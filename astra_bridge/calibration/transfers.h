// SPDX-License-Identifier: Apache-2.0
// How long the collectives of runs took to move their data: what calibration is measured against.
// Profiles of one folder are one run.
//
// Waiting for the last to arrive is no work of the network, so durations are never used; a transfer
// is last end - last start (skew.h).
//
// Transfers of the same kind, bytes and group are one cell, which has one vote: its median.
#ifndef ASTRA_BRIDGE_CALIBRATION_TRANSFERS_H_
#define ASTRA_BRIDGE_CALIBRATION_TRANSFERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "astra_bridge/edges/comm_edge.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/collective_table.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct TransferSample {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // What one rank puts in.
  int64_t bytes = 0;
  // Position in TransferSamples::groups.
  uint32_t group = 0;
  // How many pairs of a permute moved their data at once; 0 for other kinds. And whether one of
  // their ranks sends and receives.
  int32_t pairs = 0;
  bool is_both_ways = false;
  // When the last member had started, in nanoseconds from the table's base.
  int64_t start_ns = 0;
  double transfer_ns = 0;
  // A member took part in another collective meanwhile.
  bool overlapped = false;
};

struct TransferSamples {
  // How many ranks the run has.
  int32_t ranks = 0;
  // As CommEdge::participants: the members in the order of the program; of a permute, whose pairs
  // are all alike, the source and the target of the first pair.
  std::vector<std::vector<int32_t>> groups;
  // Transfers in the order of the table.
  std::vector<TransferSample> samples;

  // Instances that give no sample: members are missing; the kind has no model (broadcast, reduce,
  // barrier and the like); nothing is moved, since there are no bytes or nobody else.
  int64_t incomplete = 0;
  int64_t other_kinds = 0;
  int64_t without_transfer = 0;
};

// The table's clocks are to be right: see CheckHappensBefore.
TransferSamples TakeTransfers(const CollectiveTable& table);

struct CalibrationRun {
  // The folder of the profiles, for messages, and the paths of the profiles.
  std::string folder;
  std::vector<std::string> traces;
  TransferSamples transfers;
  // What the ranks are: "GPU", "TPU", "CPU".
  std::set<std::string> device_kinds;
  // Whether groups lie within one node, and whether they lie across several: different fabrics.
  bool within_nodes = false;
  bool across_nodes = false;
  // How many ranks each node has, where these are numbered node by node; 0 where they are not.
  int32_t ranks_per_node = 0;
  // The steps that the program marks: see WholeSteps.
  std::vector<int64_t> steps;
  // What a person should know before using the run.
  std::vector<std::string> notes;
};

// Returns how many ranks each node has; 0 unless ranks are numbered node by node, as many on each.
int32_t RanksPerNode(absl::Span<const uint32_t> node_of_rank);

// Returns the steps that events of every profile lie in, ascending; profiles that mark none do not
// count. Ranks do not begin and end profiling at the same step, nor between steps: of at least
// three steps that all have, the first and the last are left out. One or two are returned though
// they may be cut off, since nothing else is there to look at; none means that the run is one
// piece.
std::vector<int64_t> WholeSteps(const CollectiveRun& run);

struct CalibrationRunOptions {
  XSpaceReaderOptions reader;
  // Take transfers from clocks that show violations, too, with a note.
  bool allow_violations = false;
  // Called before each file with its position; may be null.
  std::function<void(size_t file)> progress;
};

// InvalidArgument when the profiles are not of one run, FailedPrecondition when their clocks show
// an end before a start that it waited for.
absl::StatusOr<CalibrationRun> MakeCalibrationRun(const std::string& folder,
                                                  const CollectiveRun& run,
                                                  const CalibrationRunOptions& options = {});

// Reads profiles; those of one folder are one run, in the order of their first files. Tables of
// nccl-tests are a run each (nccl_tests.h), and come first.
absl::StatusOr<std::vector<CalibrationRun>> ReadCalibrationRuns(
    FileSystem& file_system, const std::vector<std::string>& traces,
    const CalibrationRunOptions& options = {});

// What the transfers of a cell have in common.
struct CellKey {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // What one rank puts in.
  int64_t bytes = 0;
  // How many ranks the run has.
  int32_t ranks = 0;
  // Members, as an element of TransferSamples::groups.
  std::vector<int32_t> participants;
  // Pairs of a permute, and whether they go both ways, as in TransferSample.
  int32_t pairs = 0;
  bool is_both_ways = false;

  friend bool operator<(const CellKey& a, const CellKey& b) {
    return std::tie(a.kind, a.bytes, a.ranks, a.participants, a.pairs, a.is_both_ways) <
           std::tie(b.kind, b.bytes, b.ranks, b.participants, b.pairs, b.is_both_ways);
  }
};
CellKey KeyOf(const TransferSamples& run, const TransferSample& sample);

struct TransferCell : CellKey {
  // Measured transfers in nanoseconds, in the order in which they happened.
  std::vector<double> transfers_ns;
  // The value of the cell.
  double median_ns = 0;
};

// True for messages that go one way.
inline bool IsOneWay(const TransferCell& cell) {
  return cell.kind == CollectiveKind::kPointToPoint && !cell.is_both_ways;
}

// Sizes nearer to each other than this factor say the same, and hundreds of them, as training jobs
// have, would slow fits down: they are taken together.
inline constexpr double kSameSizeFactor = 1.25;

struct CellOptions {
  // How many repeats of a cell are left out in each run, from the first on: they warm up
  // connections and buffers. A cell that has no more keeps its last.
  int dropped_repeats = 1;
  // Use transfers that met another collective of the same rank, too.
  bool keep_overlapped = false;
};

// Returns the cells sorted by their keys. Runs of the same number of ranks share cells.
std::vector<TransferCell> MakeTransferCells(absl::Span<const CalibrationRun> runs,
                                            const CellOptions& options = {});

// Returns how far the medians of the odd and of the even repeats of a cell are apart, relative to
// one of them, in the mean over cells with several transfers: an error below it is no evidence.
// Nullopt when nothing was repeated.
std::optional<double> NoiseFloor(absl::Span<const TransferCell> cells);

// Returns the cell as a comm edge.
CommEdge EdgeOf(const TransferCell& cell);

// Returns e.g. "{0,1,2,3} of 4", "{64 ranks from 0 to 63} of 64", and for a permute of several
// pairs "4 pairs from {0,1} of 4", with ", one way" where no rank sends and receives.
std::string GroupText(const TransferCell& cell);

// Sets what reports say of a cell whatever it is held against.
template <typename Reported>
void DescribeCell(const TransferCell& cell, Reported* reported) {
  reported->set_kind(std::string(CollectiveKindName(cell.kind)));
  reported->set_bytes(cell.bytes);
  reported->set_group(GroupText(cell));
  reported->set_repeats(static_cast<int64_t>(cell.transfers_ns.size()));
  reported->set_measured_ns(cell.median_ns);
}

// Returns how many ranks send or receive in the cell. Pairs both ways are a ring of as many ranks.
int32_t MovingRanksOf(const TransferCell& cell);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_TRANSFERS_H_
