// Stats to be added to a plane that is copied (PlaneEdit::additions).
#ifndef XLA_PROFILER_XPLANE_PLANE_ADDITIONS_H_
#define XLA_PROFILER_XPLANE_PLANE_ADDITIONS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "xla_profiler/xplane/xplane_builder.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {

class PlaneAdditions {
 public:
  explicit PlaneAdditions(const XPlaneVisitor& plane);

  // Defines a stat that the plane's events may use; returns its id.
  int64_t DefineStat(absl::string_view name);

  // Add a stat to the plane itself.
  void AddInt64(absl::string_view name, int64_t value);
  void AddDouble(absl::string_view name, double value);
  void AddString(absl::string_view name, absl::string_view value);

  std::string Serialize() const { return additions_.SerializeAsString(); }

 private:
  XStatProto* AddStat(absl::string_view name);

  XPlaneProto additions_;
  // Beyond all ids of the plane.
  int64_t next_id_ = 1;
};

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_PLANE_ADDITIONS_H_
