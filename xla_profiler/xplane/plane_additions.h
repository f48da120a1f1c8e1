// SPDX-License-Identifier: Apache-2.0
// Stats to be added to a plane that is copied (PlaneEdit::additions).
#ifndef XLA_PROFILER_XPLANE_PLANE_ADDITIONS_H_
#define XLA_PROFILER_XPLANE_PLANE_ADDITIONS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "xla_profiler/xplane/plane_metadata_builder.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {

// Returns the bytes of a plane or profile, the same for equal ones: libprotobuf's own order of maps
// changes from process to process.
std::string SerializeWithSortedMaps(const google::protobuf::MessageLite& message);

class PlaneAdditions {
 public:
  explicit PlaneAdditions(const XPlaneVisitor& plane);
  explicit PlaneAdditions(const XPlaneProto& plane);

  // Defines a stat that the plane's events may use; returns its id.
  int64_t DefineStat(absl::string_view name);

  // Add a stat to the plane itself.
  void AddInt64(absl::string_view name, int64_t value) { NewStat(name)->set_int64_value(value); }
  void AddString(absl::string_view name, absl::string_view value) {
    NewStat(name)->set_str_value(std::string(value));
  }
  // The stat's own id does not matter.
  void AddStat(absl::string_view name, XStatProto stat);

  std::string Serialize() const { return SerializeWithSortedMaps(additions_); }

 private:
  void AvoidId(int64_t id);
  XStatProto* NewStat(absl::string_view name);

  XPlaneProto additions_;
  // The next free metadata id, larger than all ids of the plane.
  int64_t next_id_ = 1;
};

}  // namespace meridian

#endif  // XLA_PROFILER_XPLANE_PLANE_ADDITIONS_H_
