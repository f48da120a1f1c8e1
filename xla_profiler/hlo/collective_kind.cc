#include "xla_profiler/hlo/collective_kind.h"

#include "xla_profiler/base/check.h"

namespace meridian {

absl::string_view CollectiveKindName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllToAll:
      return "all-to-all";
    case CollectiveKind::kPointToPoint:
      return "p2p";
    case CollectiveKind::kRaggedAllToAll:
      return "ragged-all-to-all";
    case CollectiveKind::kCollectiveBroadcast:
      return "collective-broadcast";
    case CollectiveKind::kCollectiveReduce:
      return "collective-reduce";
    case CollectiveKind::kCollectivePermute:
      return "collective-permute";
    case CollectiveKind::kSend:
      return "send";
    case CollectiveKind::kRecv:
      return "recv";
    case CollectiveKind::kCollectiveGather:
      return "collective-gather";
    case CollectiveKind::kCollectiveScatter:
      return "collective-scatter";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  MERIDIAN_CHECK(false);
}

bool HasPairs(CollectiveKind kind) {
  return kind == CollectiveKind::kCollectivePermute || kind == CollectiveKind::kSend ||
         kind == CollectiveKind::kRecv || kind == CollectiveKind::kPointToPoint;
}

}  // namespace meridian
