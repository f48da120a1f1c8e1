// SPDX-License-Identifier: Apache-2.0
// Copies an XSpace with changes, from wire to wire: what is not changed is copied byte for byte,
// unknown fields included, so a rewrite without changes gives the same file. All that is copied is
// checked first, as a visitor would: what is written can be read.
//
// Lengths stand before content. Lines that fit a buffer are written there in one go; for a plane
// too large for that, the other lines are walked twice:
//
//   measure:  editor -> new length of the line -> length of the plane
//   write:    plane header -> line header -> editor -> events -> sink
//
// Memory is the buffer plus the times of one part of a line (LineEdit), whatever the file's size.
#ifndef XLA_PROFILER_XPLANE_XPLANE_REWRITER_H_
#define XLA_PROFILER_XPLANE_XPLANE_REWRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/xplane/metadata_table.h"
#include "xla_profiler/xplane/xplane_visitor.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {

namespace internal {
class PlaneWriter;
}  // namespace internal

// When an event is, relative to its line's timestamp_ns.
struct EventTimes {
  int64_t offset_ps = 0;
  int64_t duration_ps = 0;
  // Stands for several occurrences and has no start; its offset_ps means nothing.
  bool is_aggregated = false;
  // How the event is written (XEventVisitor::IsPlain): the rewriter's own, to be left as it is.
  bool is_plain = false;
};

// What becomes of a plane; by default it is kept as it is.
struct PlaneEdit {
  // Ask EditLine about each line.
  bool edit_lines = false;
  std::optional<std::string> name;
  // New payloads of stats or metadata entries, by the address of the old payload in the layout.
  absl::flat_hash_map<const char*, std::string> replacements;
  // A serialized XPlane whose stats and metadata entries are added.
  std::string additions;
};

// What the ids in a line's events become.
struct EventIds {
  // Metadata ids of the plane that the line goes to; null to keep them.
  const MetadataIds* metadata = nullptr;
  // New values for the integer stats of that metadata id (of the line's own plane); null for none.
  // A value that is not in the map stays.
  const absl::flat_hash_map<uint64_t, uint64_t>* values = nullptr;
  int64_t values_stat_id = 0;

  bool empty() const { return metadata == nullptr && values == nullptr; }
};

// What becomes of a line, or of a part of it; left alone, it is kept as it is.
//
// Long lines come in parts if all their events are in the order (start ascending, duration descending),
// in which what lies around an event stands before it.
struct LineEdit {
  // The line's position of the first event of the part: not 0 for a part that goes on with a line.
  uint64_t first_event = 0;
  // Those of the first part count.
  std::optional<int64_t> id;
  std::optional<int64_t> timestamp_ns;
  std::optional<std::string> display_name;
  // One per event of the part in file order, as they are: change what is to change.
  std::vector<EventTimes> times;
  EventIds ids;
  // When set: appends serialized XEvent fields (stats) to be added to the event at that position of
  // the part.
  std::function<void(size_t event, std::string* fields)> event_additions;
};

enum class RewritePass { kMeasure, kWrite };

// Decides what becomes of each part. A line may be asked about in both passes and must get the same
// answer; kWrite comes once for every line, so whoever counts, counts there. Lines are not asked
// about in file order: those that fit the buffer come first. The parts of a line come in order, with
// nothing between them.
class XSpaceEditor {
 public:
  virtual ~XSpaceEditor() = default;

  virtual absl::Status EditPlane(const XPlaneVisitor& plane, PlaneEdit* edit) = 0;

  virtual absl::Status EditLine(const XPlaneLayout& plane, const XLineHeader& line,
                                RewritePass pass, LineEdit* edit) = 0;
};

struct RewriteOptions {
  // Room for the lines of a plane that are written in one go.
  uint64_t buffer_bytes = uint64_t{40} << 20;
  // How many events a part of a line has.
  size_t part_events = size_t{1} << 19;
};

// A plane of some profile, and who says what becomes of it. Both must outlive the call.
struct EditedPlane {
  const XSpaceSource* source = nullptr;
  absl::string_view payload;
  XSpaceEditor* editor = nullptr;
  // The profile's, for errors of source and editor; empty for none.
  absl::string_view name;
};

// Writes an XSpace plane by plane, from any number of profiles. Errors of a source are
// InvalidArgument ("offset N: reason"); errors of the editors and the sink come back as they are.
// After an error nothing more may be written.
class XSpaceWriter {
 public:
  // The sink must outlive this.
  explicit XSpaceWriter(ByteSink* sink, const RewriteOptions& options = {});
  ~XSpaceWriter();

  // Copies the plane as its editor wants it.
  absl::Status WritePlane(const EditedPlane& plane);

  // Writes one plane that begins with `head`, a serialized XPlane without lines, and goes on with
  // the lines of all parts as their editors want them. EditPlane is not called.
  absl::Status WriteJoinedPlane(absl::string_view head, absl::Span<const EditedPlane> parts);

  // Writes serialized fields of an XSpace, e.g. hostnames or planes made elsewhere.
  absl::Status WriteFields(absl::string_view fields);

  // Hands everything to the sink; without it the end may be missing.
  absl::Status Finish();

 private:
  std::unique_ptr<internal::PlaneWriter> writer_;
};

// Copies a profile as the editor wants it. Errors as those of XSpaceWriter.
absl::Status RewriteXSpace(const XSpaceSource& source, XSpaceEditor& editor, ByteSink& sink,
                           const RewriteOptions& options = {});

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_XPLANE_REWRITER_H_
