#include "critical_path/node_bound.h"

#include "chakra_export/et/et_attributes.h"

namespace meridian {

BoundBy BoundByOf(absl::string_view op_kind, bool on_host, bool communicates) {
  if (op_kind == kHostGapOpKind) return BoundBy::kHostGap;
  if (on_host) return BoundBy::kCpu;
  if (communicates || op_kind == kUnmatchedOpKind || op_kind == kLocalOpKind) {
    return BoundBy::kGpuCommunication;
  }
  return BoundBy::kGpuCompute;
}

}  // namespace meridian
