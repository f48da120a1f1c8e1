// SPDX-License-Identifier: Apache-2.0
// What calibration adds to an engine's times: real libraries differ from one bandwidth and one
// latency by kind, size and number of ranks. A correction is a table of points for each kind,
//
//   {"overhead_ns": 12000,
//    "all-reduce": [{"bytes": 1024, "ratio": 1.31, "ranks": 2},
//                   {"bytes": 65536, "ratio": 0.94, "ranks": 2},
//                   {"bytes": 1024, "ratio": 0.71, "ranks": 4}, ...],
//    "p2p": [...], "p2p_one_way": [...]}
//
// (a message whose ranks send and receive at once, and one whose ranks do not: ports are shared by
// what goes both ways) and a transfer alone on the network lasts ratio x (engine time + overhead);
// kinds without points have a ratio of 1. The points of one number of ranks are a curve. Between
// two of its points the ratio lies on a straight line through them, logarithm of bytes against
// logarithm of ratio; beyond the first and the last it stays as it is there:
//
//   log ratio |      *--.
//             | ----*    `--.          .*----
//             |              `-*------'
//             |__________________________ log bytes
//
// Between the curves of two numbers of ranks it lies in the same way on a line, logarithm of ranks
// against logarithm of ratio; below the fewest and above the most it stays. A curve has no say
// about sizes that it does not come near to while another does.
#ifndef ASTRA_BRIDGE_CORRECTIONS_CORRECTIONS_H_
#define ASTRA_BRIDGE_CORRECTIONS_CORRECTIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/edges/comm_edge.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// No transfer lasts longer than this; an int64 holds it.
inline constexpr double kMaxCorrectedNs = static_cast<double>(int64_t{1} << 62);

// The engine counts whole nanoseconds and gives a few bytes on a network without latency none at
// all: a ratio is to at least this time.
inline constexpr double kLeastEngineNs = 1;

// From here on bandwidth decides how long a transfer takes.
inline constexpr int64_t kLargeBytes = int64_t{1} << 20;

// What corrections of messages one way are called.
inline constexpr absl::string_view kOneWayName = "p2p_one_way";

struct CorrectionPoint {
  // What one rank puts in. Positive.
  int64_t bytes = 0;
  // Measured time over the engine's and the overhead. Positive.
  double ratio = 1;
  // How many ranks move data. Positive; without meaning where all points have the same.
  double ranks = 1;
};

// Returns whether a comes first in the order of ranks, then of bytes.
bool IsBefore(const CorrectionPoint& a, const CorrectionPoint& b);

// Returns the ratio at that size and number of ranks, as drawn above. There is at least one point;
// they are in ascending order of ranks, then of bytes.
double RatioAt(const std::vector<CorrectionPoint>& points, int64_t bytes, double ranks);

// What the ratio of a transfer depends on.
struct TransferTraits {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // What one rank puts in.
  int64_t bytes = 0;
  // How many ranks move data at once.
  double ranks = 1;
  // Only messages go one way.
  bool is_one_way = false;
};

struct Corrections {
  // What every transfer costs once.
  double overhead_ns = 0;
  // By CollectiveKind, each in ascending order of ranks, then of bytes.
  std::array<std::vector<CorrectionPoint>, kTimedKinds> points;
  // Of messages whose source does not receive, and whose target does not send, meanwhile; those of
  // other messages where there are none.
  std::vector<CorrectionPoint> one_way;

  // Returns whether the kind has points, or all have an overhead.
  bool Has(CollectiveKind kind) const {
    return overhead_ns > 0 || !points[static_cast<size_t>(kind)].empty() ||
           (kind == CollectiveKind::kPointToPoint && !one_way.empty());
  }

  // Returns these without ratios. On links they have no meaning: there messages share what AstraSim's
  // shapes give to each.
  Corrections OnlyOverhead() const {
    Corrections overhead;
    overhead.overhead_ns = overhead_ns;
    return overhead;
  }

  // Returns how long a transfer alone on the network lasts that the engine gives engine_ns: whole
  // nanoseconds, at most kMaxCorrectedNs; engine_ns itself for a kind without corrections.
  double CorrectedNs(const TransferTraits& transfer, double engine_ns) const;
};

// Parses the JSON object drawn above. Errors name the source, the kind and the point: "p2p[1].bytes".
absl::StatusOr<Corrections> ParseCorrections(absl::string_view json, absl::string_view source);

// Returns the JSON object that parses to these corrections.
std::string CorrectionsToJson(const Corrections& corrections);

// Reads a file of them, plain or gzip.
absl::StatusOr<Corrections> ReadCorrections(FileSystem& file_system, const std::string& path);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_CORRECTIONS_H_
