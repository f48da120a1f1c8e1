// Copies an XSpace with changes, from wire to wire: what is not changed is copied byte for byte,
// unknown fields included, so a rewrite without changes gives the same file.
//
// A plane's length stands before its lines, so each plane that changes is walked twice:
//
//   measure:  editor -> new length of every line -> length of the plane
//   write:    editor -> plane header, line header, events ...  -> sink
//
// Memory is one line's times plus a buffer, whatever the file's size.
#ifndef XLA_PROFILER_XPLANE_XPLANE_REWRITER_H_
#define XLA_PROFILER_XPLANE_XPLANE_REWRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/util/byte_sink.h"
#include "xla_profiler/xplane/xplane_wire.h"

namespace meridian {

// When an event is, relative to its line's timestamp_ns.
struct EventTimes {
  int64_t offset_ps = 0;
  int64_t duration_ps = 0;
  // Stands for several occurrences and has no start; its offset_ps means nothing.
  bool is_aggregated = false;
};

// Replaces `times` by those of the line's events, in file order.
absl::Status ReadEventTimes(const XSpaceSource& source, const XLineHeader& line,
                            std::vector<EventTimes>* times);

// What becomes of a plane; by default it is kept as it is.
struct PlaneEdit {
  bool drop = false;
  // Ask EditLine about each line.
  bool edit_lines = false;
  std::optional<int64_t> id;
  std::optional<std::string> name;
  // A serialized XPlane whose stats and metadata entries are added.
  std::string additions;
};

// What becomes of a line; by default it is kept as it is.
struct LineEdit {
  std::optional<int64_t> id;
  std::optional<std::string> name;
  std::optional<int64_t> timestamp_ns;
  std::optional<int64_t> display_id;
  std::optional<std::string> display_name;
  // Empty to keep the events' times, else one per event in file order.
  std::vector<EventTimes> times;
};

enum class RewritePass { kMeasure, kWrite };

// Decides what becomes of each part. EditLine is asked in both passes and must answer the same;
// whoever counts, counts in one of them.
class XSpaceEditor {
 public:
  virtual ~XSpaceEditor() = default;

  virtual absl::Status EditPlane(const XPlaneLayout& plane, PlaneEdit* edit) = 0;

  // `edit` arrives as the default; its vector may have room from the line before.
  virtual absl::Status EditLine(const XPlaneLayout& plane, const XLineHeader& line,
                                RewritePass pass, LineEdit* edit) = 0;
};

// Errors of the source are InvalidArgument ("offset N: reason"); errors of the editor and the sink
// come back as they are.
absl::Status RewriteXSpace(const XSpaceSource& source, XSpaceEditor& editor, ByteSink& sink);

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_XPLANE_REWRITER_H_
