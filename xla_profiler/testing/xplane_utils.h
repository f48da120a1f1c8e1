// SPDX-License-Identifier: Apache-2.0
// Finds, adds and removes the planes of an XSpace in memory.
#ifndef XLA_PROFILER_TESTING_XPLANE_UTILS_H_
#define XLA_PROFILER_TESTING_XPLANE_UTILS_H_

#include "absl/strings/string_view.h"
#include "xla_profiler/testing/xplane_builder.h"

namespace meridian {

// Returns the first plane of that name, or nullptr if there is none.
const XPlaneProto* FindPlaneWithName(const XSpaceProto& space, absl::string_view name);
XPlaneProto* FindMutablePlaneWithName(XSpaceProto* space, absl::string_view name);

// Returns the first plane of that name, which is added at the end if there is none.
XPlaneProto* FindOrAddMutablePlaneWithName(XSpaceProto* space, absl::string_view name);

// Removes a plane of the space, named by its address. The others keep their order.
void RemovePlane(XSpaceProto* space, const XPlaneProto* plane);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_XPLANE_UTILS_H_
