// SPDX-License-Identifier: Apache-2.0
// Where the parts of an XSpace lie in a file: spaces, planes and lines are cut into their parts in
// place, without copying and without libprotobuf's 2 GiB limit.
//
//   XSpace  | plane | plane | ... | hostnames            ReadXSpaceLayout: jumps over planes
//   XPlane  | name | line | line | metadata entry | ...  ReadXPlaneLayout: jumps over lines
//   XLine   | id | event | event | ... | display_name    ReadXLineHeader:  jumps over events
//
// Fields come in any order (a line's name may follow its events), so each level is scanned whole
// before its parts are looked at. Semantics are proto3's: the last of repeated singular fields
// counts, a field of an unexpected wire type is an unknown field.
#ifndef XLA_PROFILER_XPLANE_XPLANE_WIRE_H_
#define XLA_PROFILER_XPLANE_XPLANE_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/wire/wire_reader.h"

namespace meridian {

// Field numbers of xplane.proto.
struct XSpaceField {
  static constexpr uint32_t kPlanes = 1, kErrors = 2, kWarnings = 3, kHostnames = 4;
};
struct XPlaneField {
  static constexpr uint32_t kId = 1, kName = 2, kLines = 3, kEventMetadata = 4, kStatMetadata = 5,
                            kStats = 6;
};
struct XLineField {
  static constexpr uint32_t kId = 1, kName = 2, kTimestampNs = 3, kEvents = 4, kDisplayName = 11;
};
struct XEventField {
  static constexpr uint32_t kMetadataId = 1, kOffsetPs = 2, kDurationPs = 3, kStats = 4,
                            kNumOccurrences = 5;
};
struct XStatField {
  static constexpr uint32_t kMetadataId = 1, kDouble = 2, kUint64 = 3, kInt64 = 4, kStr = 5,
                            kBytes = 6, kRef = 7;
};
struct MapEntryField {
  static constexpr uint32_t kKey = 1, kValue = 2;
};
struct XEventMetadataField {
  static constexpr uint32_t kId = 1, kName = 2, kMetadata = 3, kDisplayName = 4, kStats = 5,
                            kChildId = 6;
};
struct XStatMetadataField {
  static constexpr uint32_t kId = 1, kName = 2, kDescription = 3;
};

// How many levels may nest below a message of each kind (see kMaxWireDepth).
inline constexpr int kXSpaceDepth = kMaxWireDepth;
inline constexpr int kXPlaneDepth = kXSpaceDepth - 1;
inline constexpr int kXLineDepth = kXPlaneDepth - 1;
inline constexpr int kXEventDepth = kXLineDepth - 1;

// What a hostile file may cost: tables are at most this long. An empty plane is two bytes in the
// file and a hundred in memory.
struct XSpaceLimits {
  size_t max_planes = size_t{1} << 16;
  // Lines of the whole file.
  size_t max_lines = size_t{1} << 18;
  size_t max_metadata_per_plane = size_t{1} << 22;
  // Of one event or plane, and of all metadata entries of a plane together.
  size_t max_stats_per_event = size_t{1} << 20;
  size_t max_metadata_stats_per_plane = size_t{1} << 22;
  // Errors, warnings and hostnames.
  size_t max_messages = size_t{1} << 16;
};

struct XLineHeader {
  int64_t id = 0;
  absl::string_view name;
  int64_t timestamp_ns = 0;
  absl::string_view display_name;
  uint64_t num_events = 0;
  // The whole line.
  absl::string_view payload;
};

// Headers of a source's long lines, which take a walk over all their events. Thread safe.
class XLineHeaders {
 public:
  std::optional<XLineHeader> Find(absl::string_view line) const;
  void Add(const XLineHeader& header);

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<const char*, XLineHeader> headers_;
};

// The bytes of a whole serialized XSpace; all views point into them.
struct XSpaceSource {
  absl::string_view bytes;
  XSpaceLimits limits;
  // Those that were read before; null to read each anew.
  std::shared_ptr<XLineHeaders> line_headers = nullptr;

  // As ForgetMapped; short parts stay.
  void Forget(absl::string_view part) const;

  // Errors count offsets from here.
  const char* origin() const { return bytes.data(); }
};

struct XSpaceLayout {
  // Payloads of the planes, in file order.
  std::vector<absl::string_view> planes;
  std::vector<absl::string_view> errors;
  std::vector<absl::string_view> warnings;
  std::vector<absl::string_view> hostnames;
};

struct XPlaneLayout {
  int64_t id = 0;
  absl::string_view name;
  // Payloads, in file order.
  std::vector<absl::string_view> lines;
  std::vector<absl::string_view> event_metadata;
  std::vector<absl::string_view> stat_metadata;
  std::vector<absl::string_view> stats;
  // The whole plane.
  absl::string_view payload;
};

// Errors are InvalidArgument: "offset N: reason".
absl::StatusOr<XSpaceLayout> ReadXSpaceLayout(const XSpaceSource& source);
absl::StatusOr<XPlaneLayout> ReadXPlaneLayout(const XSpaceSource& source, absl::string_view plane);
absl::StatusOr<XLineHeader> ReadXLineHeader(const XSpaceSource& source, absl::string_view line);

// Reads the header and, in the same walk, calls on_event(payload) for each event; on_event returns
// an absl::Status. The header is whole only after the walk.
template <typename OnEvent>
absl::Status WalkXLine(const XSpaceSource& source, absl::string_view line, XLineHeader* header,
                       OnEvent on_event);

// Stores the text of a string field; an error when it is not UTF-8.
absl::Status ReadText(absl::string_view bytes, const char* origin, absl::string_view* text);

// Implementation only below.

namespace internal {

// Takes over a field of a line that is not an event.
absl::Status ReadXLineField(const XSpaceSource& source, const WireField& field,
                            XLineHeader* header);

}  // namespace internal

template <typename OnEvent>
absl::Status WalkXLine(const XSpaceSource& source, absl::string_view line, XLineHeader* header,
                       OnEvent on_event) {
  *header = XLineHeader();
  header->payload = line;
  uint64_t num_events = 0;
  ForgettingWalk walk(line);
  WireReader reader(line, source.origin(), kXLineDepth);
  WireField field;
  while (reader.Next(&field)) {
    walk.Reach(field.raw.data());
    if (ABSL_PREDICT_TRUE(field.IsBytes(XLineField::kEvents))) {
      ++num_events;
      absl::Status status = on_event(field.bytes);
      if (ABSL_PREDICT_FALSE(!status.ok())) return status;
    } else {
      // A copy, so that the walk's own field can stay in registers.
      const WireField other = field;
      absl::Status status = internal::ReadXLineField(source, other, header);
      if (!status.ok()) return status;
    }
  }
  header->num_events = num_events;
  return reader.status();
}

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_XPLANE_WIRE_H_
