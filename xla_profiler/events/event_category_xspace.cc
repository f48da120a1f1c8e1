#include "xla_profiler/events/event_category_xspace.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// XLA's Python tracer begins its names with it.
constexpr absl::string_view kPythonNamePrefix = "$";

EventCategory DeviceCategory(const XLineVisitor& line, const XEventVisitor& event) {
  if (line.Name() == kXlaModulesLineName) return EventCategory::kXlaModule;
  if (line.Name() == kXlaOpsLineName || line.Name() == kAsyncXlaOpsLineName) {
    return EventCategory::kXlaOp;
  }
  if (line.Name() == kStepsLineName) return EventCategory::kStep;
  if (!absl::StartsWith(line.Name(), kStreamLinePrefix)) return EventCategory::kUnknown;
  if (event.GetEventOrMetadataStat(StatType::kMemcpyDetails) != nullptr) {
    return EventCategory::kMemcpy;
  }
  if (event.GetEventOrMetadataStat(StatType::kMemsetDetails) != nullptr) {
    return EventCategory::kMemset;
  }
  return EventCategory::kKernel;
}

}  // namespace

EventCategory XSpaceEventCategory(bool on_device, const XLineVisitor& line,
                                  const XEventVisitor& event) {
  if (on_device) return DeviceCategory(line, event);
  if (absl::StartsWith(line.Name(), kApiLinePrefix)) return EventCategory::kRuntimeApi;
  if (event.GetEventOrMetadataStat(StatType::kStepNum) != nullptr) return EventCategory::kStep;
  return absl::StartsWith(event.Name(), kPythonNamePrefix) ? EventCategory::kPython
                                                           : EventCategory::kAnnotation;
}

}  // namespace meridian
