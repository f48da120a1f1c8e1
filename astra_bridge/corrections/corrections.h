// What calibration adds to an engine's times: real libraries differ from one bandwidth and one
// latency by kind and size.
//
//   {"all-reduce": [{"up_to_bytes": 8192, "overhead_ns": 41000, "efficiency": 0.71},
//                   {"up_to_bytes": null, "overhead_ns": 52000, "efficiency": 0.93}],
//    "p2p": [...]}
//
// A transfer alone on the network lasts overhead + engine time / efficiency, by the first segment
// of its kind that its bytes fit in (beside others: shared_correction.h). An overhead may be
// negative, as for a kind whose steps cost less than the engine charges for them.
#ifndef ASTRA_BRIDGE_CORRECTIONS_CORRECTIONS_H_
#define ASTRA_BRIDGE_CORRECTIONS_CORRECTIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/edges/timed_kind.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// No transfer lasts longer than this; an int64 holds it.
inline constexpr double kMaxCorrectedNs = static_cast<double>(int64_t{1} << 62);

struct CorrectionSegment {
  // Inclusive; of the bytes that one rank puts in. The last segment of a kind has no end.
  int64_t up_to_bytes = std::numeric_limits<int64_t>::max();
  double overhead_ns = 0;
  // Positive.
  double efficiency = 1;
};

struct Corrections {
  // By CollectiveKind, each ascending. Kinds without segments keep the engine's times.
  std::array<std::vector<CorrectionSegment>, kTimedKinds> segments;

  bool Has(CollectiveKind kind) const { return !segments[static_cast<size_t>(kind)].empty(); }

  // Returns how long a transfer alone on the network lasts that the engine gives engine_ns: whole
  // nanoseconds from 0 to kMaxCorrectedNs; engine_ns itself for a kind without segments.
  double CorrectedNs(CollectiveKind kind, int64_t bytes, double engine_ns) const;
};

// Parses the JSON object drawn above. Errors name the source, the kind and the segment.
absl::StatusOr<Corrections> ParseCorrections(absl::string_view json, absl::string_view source);

// Returns the JSON object that parses to these corrections.
std::string CorrectionsToJson(const Corrections& corrections);

// Reads a file of them, plain or gzip.
absl::StatusOr<Corrections> ReadCorrections(FileSystem& file_system, const std::string& path);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CORRECTIONS_CORRECTIONS_H_
