// SPDX-License-Identifier: Apache-2.0
// Readings of a host's clock S and its device tracer's clock R at one instant, which tie the two
// together. They come as JSONL, as a SnapshotPairs message, or as the plane `/host:snapshots`:
//
//   {"meta":true,"node_id":2,"start_walltime_ns":W,"start_gpu_ns":G,"absolute":false}
//   {"sys_ns":1000000,"tracer_ns":1000250,"sys_before_ns":999000,"sys_after_ns":1001000}
//
// A profile stores device events as R pinned to the wall clock once, A = W + (R - G), and that is
// what every loader here hands out beside S:
//
//                        S            A
//   relative pair (s, r) W + s        W + r
//   absolute pair (s, r) s            W + (r - G)
#ifndef TRACE_ALIGNMENT_CLOCKS_SNAPSHOT_PAIRS_H_
#define TRACE_ALIGNMENT_CLOCKS_SNAPSHOT_PAIRS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/clocks/clock_map.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/jsonl_row.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

// The instant at which a node's tracer started, on the node's two clocks; absent where unknown.
struct ClockAnchors {
  // W, Unix time on the host's clock.
  std::optional<int64_t> start_walltime_ns;
  // G, on the tracer's clock.
  std::optional<int64_t> start_gpu_ns;
};

// Reads "start_walltime_ns" and "start_gpu_ns" of a header. A start_walltime_ns of 0 is how writers
// say that they know neither.
absl::StatusOr<ClockAnchors> ReadClockAnchors(const JsonlRow& row);

// The host's clock before and after the tracer's was read.
struct SnapshotBracket {
  int64_t sys_before_ns = 0;
  int64_t sys_after_ns = 0;
};

struct SnapshotPair {
  // S, Unix time on the host's clock.
  int64_t sys_ns = 0;
  // A, the Unix time that the profile gives to tracer events of this instant.
  int64_t tracer_ns = 0;
  // Absent when the file gives a single host reading.
  std::optional<SnapshotBracket> bracket;
};

// The snapshot pairs of one node.
struct SnapshotPairs {
  // At least one; from pair to pair both clocks increase.
  std::vector<SnapshotPair> pairs;
  // The file that they are from, for errors.
  std::string name;
  // The node that the file's header names; absent when it names none.
  std::optional<int64_t> node_id;
  // How many pairs were left out because the file repeats them.
  int64_t identical_dropped = 0;
};

// How far a host time may be off that was mapped from a tracer time: the largest distance from a
// reading to an end of its bracket. Between readings clocks may wander besides. Nullopt when a pair
// has no bracket.
std::optional<int64_t> ReadingUncertaintyNs(const SnapshotPairs& snapshots);

// Where W and G come from, beside the header of the pairs themselves: flags win over it, it wins
// over the offsets file.
struct SnapshotPairsOptions {
  ClockAnchors flags;
  ClockAnchors offsets_header;
  // W for relative pairs when nobody says: the Unix time of the earliest base of a tracer's line.
  std::optional<int64_t> earliest_tracer_base_ns;
};

// Loads JSONL or a SnapshotPairs message (whose readings are absolute), told by content. Unsorted
// pairs are sorted. InvalidArgument "file:line: reason; expected e.g. ..." for what cannot be read,
// for an S that does not increase with R and for contradictory pairs (both lines are named);
// FailedPrecondition when W or G is needed and unknown.
absl::StatusOr<SnapshotPairs> LoadSnapshotPairs(FileSystem& file_system, const std::string& path,
                                                const SnapshotPairsOptions& options = {});

// The same from the file's contents; `name` stands for the path in errors.
absl::StatusOr<SnapshotPairs> ParseSnapshotPairs(absl::string_view contents,
                                                 const std::string& name,
                                                 const SnapshotPairsOptions& options = {});

// From the events of the plane `/host:snapshots` of a profile: an event's start is S, its stat
// `rocm_ns` is R. Both are absolute, so that W and G are needed.
absl::StatusOr<SnapshotPairs> SnapshotPairsFromPlane(const XPlaneVisitor& plane,
                                                     const SessionClock& clock,
                                                     const std::string& name,
                                                     const SnapshotPairsOptions& options = {});

// Loads a profile's pairs from the file if its path is not empty, else from the profile's plane
// `/host:snapshots`; nullopt when there is neither. The profile also says what relative pairs count
// from when nobody else does, so that need not be in `options`.
absl::StatusOr<std::optional<SnapshotPairs>> LoadProfileSnapshots(FileSystem& file_system,
                                                                  const XSpaceReader& profile,
                                                                  const SessionClock& clock,
                                                                  const std::string& file,
                                                                  SnapshotPairsOptions options);

// The map A -> S, in ps from the run base.
absl::StatusOr<ClockMap> TracerToHostMap(const SnapshotPairs& snapshots, const RunClock& clock);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_CLOCKS_SNAPSHOT_PAIRS_H_
