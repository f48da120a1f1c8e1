#include "astra_bridge/engine/collective_op.h"

namespace meridian {

absl::string_view CollectiveOpName(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kAllReduce:
      return "all-reduce";
    case CollectiveOp::kAllGather:
      return "all-gather";
    case CollectiveOp::kReduceScatter:
      return "reduce-scatter";
    case CollectiveOp::kAllToAll:
      return "all-to-all";
    case CollectiveOp::kBroadcast:
      return "broadcast";
  }
  return "";
}

}  // namespace meridian
