#include "xla_profiler/testing/xplane_utils.h"

#include <string>

namespace meridian {

const XPlaneProto* FindPlaneWithName(const XSpaceProto& space, absl::string_view name) {
  for (const XPlaneProto& plane : space.planes()) {
    if (plane.name() == name) return &plane;
  }
  return nullptr;
}

XPlaneProto* FindMutablePlaneWithName(XSpaceProto* space, absl::string_view name) {
  return const_cast<XPlaneProto*>(FindPlaneWithName(*space, name));
}

XPlaneProto* FindOrAddMutablePlaneWithName(XSpaceProto* space, absl::string_view name) {
  XPlaneProto* plane = FindMutablePlaneWithName(space, name);
  if (plane == nullptr) {
    plane = space->add_planes();
    plane->set_name(std::string(name));
  }
  return plane;
}

void RemovePlane(XSpaceProto* space, const XPlaneProto* plane) {
  for (int i = 0; i < space->planes_size(); ++i) {
    if (&space->planes(i) != plane) continue;
    space->mutable_planes()->DeleteSubrange(i, 1);
    return;
  }
}

}  // namespace meridian
