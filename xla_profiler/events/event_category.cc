#include "xla_profiler/events/event_category.h"

#include <iterator>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xplane_visitor.h"

namespace meridian {
namespace {

constexpr absl::string_view kKinetoStepPrefix = "ProfilerStep#";

// Names of Kineto's activity types, with those of PyTorch before 1.12 in capitals.
EventCategory FindKinetoCategory(absl::string_view cat) {
  static const auto* const kCategories = new absl::flat_hash_map<absl::string_view, EventCategory>({
      {"cpu_op", EventCategory::kCpuOp},
      {"Operator", EventCategory::kCpuOp},
      {"cuda_runtime", EventCategory::kRuntimeApi},
      {"cuda_driver", EventCategory::kRuntimeApi},
      {"hip_runtime", EventCategory::kRuntimeApi},
      {"xpu_runtime", EventCategory::kRuntimeApi},
      {"mtia_runtime", EventCategory::kRuntimeApi},
      {"Runtime", EventCategory::kRuntimeApi},
      {"user_annotation", EventCategory::kAnnotation},
      {"python_function", EventCategory::kPython},
      {"overhead", EventCategory::kOverhead},
      {"kernel", EventCategory::kKernel},
      {"Kernel", EventCategory::kKernel},
      {"gpu_memcpy", EventCategory::kMemcpy},
      {"Memcpy", EventCategory::kMemcpy},
      {"gpu_memset", EventCategory::kMemset},
      {"Memset", EventCategory::kMemset},
      {"cuda_sync", EventCategory::kDeviceSync},
      {"gpu_user_annotation", EventCategory::kDeviceAnnotation},
  });
  const auto it = kCategories->find(cat);
  return it == kCategories->end() ? EventCategory::kUnknown : it->second;
}

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

absl::string_view EventCategoryName(EventCategory category) {
  // In the order of the enum.
  static constexpr absl::string_view kNames[] = {
      "unknown",    "cpu_op", "runtime_api", "annotation", "step",        "python",
      "overhead",   "kernel", "memcpy",      "memset",     "device_sync", "device_annotation",
      "xla_module", "xla_op"};
  static_assert(std::size(kNames) == kNumEventCategories);
  return kNames[static_cast<int>(category)];
}

bool IsDeviceWork(EventCategory category) {
  return category == EventCategory::kKernel || category == EventCategory::kMemcpy ||
         category == EventCategory::kMemset;
}

EventCategory KinetoCategory(absl::string_view cat, absl::string_view name) {
  // Meta's accelerators have one category for all that their control processor saw.
  if (cat == "mtia_ccp_events") {
    if (name == "event_wait" || name == "event_record") return EventCategory::kUnknown;
    return name == "dma_request" ? EventCategory::kMemcpy : EventCategory::kKernel;
  }
  const EventCategory category = FindKinetoCategory(cat);
  return category == EventCategory::kAnnotation && absl::StartsWith(name, kKinetoStepPrefix)
             ? EventCategory::kStep
             : category;
}

bool IsKinetoDeviceCategory(EventCategory category) {
  switch (category) {
    case EventCategory::kKernel:
    case EventCategory::kMemcpy:
    case EventCategory::kMemset:
    case EventCategory::kDeviceSync:
    case EventCategory::kDeviceAnnotation:
      return true;
    default:
      return false;
  }
}

bool MayHaveKinetoCorrelation(EventCategory category) {
  switch (category) {
    case EventCategory::kCpuOp:
    case EventCategory::kAnnotation:
    case EventCategory::kStep:
    case EventCategory::kPython:
      return false;
    default:
      return true;
  }
}

EventCategory XSpaceEventCategory(bool on_device, const XLineVisitor& line,
                                  const XEventVisitor& event) {
  if (on_device) return DeviceCategory(line, event);
  if (absl::StartsWith(line.Name(), kApiLinePrefix)) return EventCategory::kRuntimeApi;
  if (event.GetEventOrMetadataStat(StatType::kStepNum) != nullptr) return EventCategory::kStep;
  return absl::StartsWith(event.Name(), kPythonNamePrefix) ? EventCategory::kPython
                                                           : EventCategory::kAnnotation;
}

}  // namespace meridian
