// SPDX-License-Identifier: Apache-2.0
// What sort of work an event is, whichever profiler recorded it.
#ifndef XLA_PROFILER_EVENTS_EVENT_CATEGORY_H_
#define XLA_PROFILER_EVENTS_EVENT_CATEGORY_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace meridian {

class XEventVisitor;
class XLineVisitor;

enum class EventCategory : uint8_t {
  kUnknown,
  // On the host.
  kCpuOp,       // an operator of the framework
  kRuntimeApi,  // a call into the device's runtime or driver
  kAnnotation,  // a range that the program or the framework named
  kStep,        // a range that marks a training step (XLA has them on devices, too)
  kPython,
  kOverhead,  // the profiler's own
  // On a device.
  kKernel,
  kMemcpy,
  kMemset,
  kDeviceSync,        // a stream or event wait
  kDeviceAnnotation,  // a host annotation, stretched over the device work it launched
  kXlaModule,
  kXlaOp,
  kLast = kXlaOp,
};
inline constexpr int kNumEventCategories = static_cast<int>(EventCategory::kLast) + 1;

// Returns a name such as "kernel", for people.
absl::string_view EventCategoryName(EventCategory category);

// True for kernels, copies and fills.
bool IsDeviceWork(EventCategory category);

// Returns the category of an event by the `cat` and `name` that Kineto gives it; kUnknown for other
// writers' categories. Annotations named "ProfilerStep#<n>" are steps.
EventCategory KinetoCategory(absl::string_view cat, absl::string_view name);

// True for work that Kineto lists under a device (pid) and stream (tid).
bool IsKinetoDeviceCategory(EventCategory category);

// False for work that Kineto never gives a correlation id: no use to look for one.
bool MayHaveKinetoCorrelation(EventCategory category);

// Returns the category of an event of an XSpace. Lines and stats tell: XLA's own lines on devices,
// copies and sets by their details, driver calls by their line, steps by their number. `on_device`
// tells whether the line's plane is a device's.
EventCategory XSpaceEventCategory(bool on_device, const XLineVisitor& line,
                                  const XEventVisitor& event);

}  // namespace meridian

#endif  // XLA_PROFILER_EVENTS_EVENT_CATEGORY_H_
