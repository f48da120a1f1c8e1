#include "xla_profiler/events/event_category.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"

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

}  // namespace

absl::string_view EventCategoryName(EventCategory category) {
  switch (category) {
    case EventCategory::kUnknown:
      return "unknown";
    case EventCategory::kCpuOp:
      return "cpu_op";
    case EventCategory::kRuntimeApi:
      return "runtime_api";
    case EventCategory::kAnnotation:
      return "annotation";
    case EventCategory::kStep:
      return "step";
    case EventCategory::kPython:
      return "python";
    case EventCategory::kOverhead:
      return "overhead";
    case EventCategory::kKernel:
      return "kernel";
    case EventCategory::kMemcpy:
      return "memcpy";
    case EventCategory::kMemset:
      return "memset";
    case EventCategory::kDeviceSync:
      return "device_sync";
    case EventCategory::kDeviceAnnotation:
      return "device_annotation";
    case EventCategory::kXlaModule:
      return "xla_module";
    case EventCategory::kXlaOp:
      return "xla_op";
  }
  return "";
}

EventCategory KinetoCategory(absl::string_view cat, absl::string_view name) {
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

}  // namespace meridian
