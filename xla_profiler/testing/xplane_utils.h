// Finding, removing, sorting and merging the parts of an XSpace in memory.
#ifndef XLA_PROFILER_TESTING_XPLANE_UTILS_H_
#define XLA_PROFILER_TESTING_XPLANE_UTILS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "xla_profiler/xplane/xplane_builder.h"

namespace meridian {

// Returns the first plane of that name, or nullptr if there is none.
const XPlaneProto* FindPlaneWithName(const XSpaceProto& space, absl::string_view name);
XPlaneProto* FindMutablePlaneWithName(XSpaceProto* space, absl::string_view name);

// Returns the first plane of that name, which is added at the end if there is none.
XPlaneProto* FindOrAddMutablePlaneWithName(XSpaceProto* space, absl::string_view name);

// Returns the planes whose names begin so, in the space's order.
std::vector<const XPlaneProto*> FindPlanesWithPrefix(const XSpaceProto& space,
                                                     absl::string_view prefix);

// Return the plane's first such line, or nullptr if there is none.
const XLineProto* FindLineWithId(const XPlaneProto& plane, int64_t id);
const XLineProto* FindLineWithName(const XPlaneProto& plane, absl::string_view name);

// Removing keeps the order and the addresses of what stays. Planes are named by address; one that
// is not in the space is ignored.
void RemovePlane(XSpaceProto* space, const XPlaneProto* plane);
void RemovePlanes(XSpaceProto* space, absl::Span<const XPlaneProto* const> planes);

// Removes the planes that say nothing: no lines, no stats and no event metadata. (The profiler's
// "/host:metadata" and "Task Environment" have no lines, but matter.)
void RemoveEmptyPlanes(XSpaceProto* space);

// Removes the lines without events.
void RemoveEmptyLines(XPlaneProto* plane);

// Sort the events of each line so that a parent precedes its children: by offset, of equal offsets
// the longer first, else as they were. Aggregated events, which have no start, count as offset 0.
// Lines and planes keep their order.
void SortXLine(XLineProto* line);
void SortXPlane(XPlaneProto* plane);
void SortXSpace(XSpaceProto* space);

// Adds the content of the planes, none of which may be `dst` itself, to `dst`. Ids are local to
// their plane; all that occur (of event and stat metadata, in references and in child_id) become
// dst's.
//
// - Stat metadata of the same name is the same.
// - Event metadata of the same name is the same, too, and dst's is given the stats, children,
//   display_name and metadata that it lacks; but where the two contradict each other, the plane's
//   becomes an entry of its own. A new entry keeps its id if that is free in dst, because some
//   writers put a program's fingerprint there.
// - Merging a plane again adds neither metadata entries nor stats to them. Entries without a name,
//   though, are never the same as another.
// - Of plane stats that both have, dst's is kept, as are dst's id and name.
// - Lines of the same id become one, based on the earlier timestamp_ns; events keep their absolute
//   times and are appended (see SortXPlane). Other lines are added.
//
// Returns InvalidArgument, and leaves `dst` as it is, if a plane or dst uses an id that it has no
// metadata for (the message names it; such an id could be neither kept nor translated without
// coming to mean something; readers accept it in plane stats, where some writers use ids as data:
// such planes cannot be merged), or if lines to join lie so far apart that an offset does not fit.
absl::Status MergePlanes(absl::Span<const XPlaneProto* const> planes, XPlaneProto* dst);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_XPLANE_UTILS_H_
