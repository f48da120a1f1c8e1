// What sort of work an event of an XSpace is.
#ifndef XLA_PROFILER_EVENTS_EVENT_CATEGORY_XSPACE_H_
#define XLA_PROFILER_EVENTS_EVENT_CATEGORY_XSPACE_H_

#include "xla_profiler/events/event_category.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {

// Lines and stats tell: XLA's own lines on devices, copies and sets by their details, driver calls
// by their line, steps by their number. `on_device` tells whether the line's plane is a device's.
EventCategory XSpaceEventCategory(bool on_device, const XLineVisitor& line,
                                  const XEventVisitor& event);

}  // namespace meridian

#endif  // XLA_PROFILER_EVENTS_EVENT_CATEGORY_XSPACE_H_
