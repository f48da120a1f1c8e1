#include "chakra_export/et/collective_type.h"

namespace meridian {

std::optional<ChakraProtoMsg::CollectiveCommType> CommTypeOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return ChakraProtoMsg::ALL_REDUCE;
    case CollectiveKind::kAllGather:
      return ChakraProtoMsg::ALL_GATHER;
    case CollectiveKind::kReduceScatter:
      return ChakraProtoMsg::REDUCE_SCATTER;
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kRaggedAllToAll:
      return ChakraProtoMsg::ALL_TO_ALL;
    case CollectiveKind::kCollectiveBroadcast:
      return ChakraProtoMsg::BROADCAST;
    case CollectiveKind::kCollectiveReduce:
      return ChakraProtoMsg::REDUCE;
    case CollectiveKind::kCollectiveGather:
      return ChakraProtoMsg::GATHER;
    case CollectiveKind::kCollectiveScatter:
      return ChakraProtoMsg::SCATTER;
    case CollectiveKind::kBarrier:
      return ChakraProtoMsg::BARRIER;
    case CollectiveKind::kPointToPoint:
    case CollectiveKind::kCollectivePermute:
    case CollectiveKind::kSend:
    case CollectiveKind::kRecv:
      break;
  }
  return std::nullopt;
}

std::optional<ChakraProtoMsg::CollectiveCommType> SimulatedCommTypeOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kCollectiveReduce:
      return ChakraProtoMsg::ALL_REDUCE;
    case CollectiveKind::kCollectiveGather:
      return ChakraProtoMsg::ALL_GATHER;
    case CollectiveKind::kCollectiveScatter:
      return ChakraProtoMsg::REDUCE_SCATTER;
    case CollectiveKind::kBarrier:
      return std::nullopt;
    default:
      return CommTypeOf(kind);
  }
}

bool IsApproximated(CollectiveKind kind) {
  return kind == CollectiveKind::kCollectiveReduce || kind == CollectiveKind::kCollectiveGather ||
         kind == CollectiveKind::kCollectiveScatter || kind == CollectiveKind::kRaggedAllToAll;
}

std::optional<CollectiveKind> CollectiveKindOf(int64_t comm_type) {
  switch (comm_type) {
    case ChakraProtoMsg::ALL_REDUCE:
      return CollectiveKind::kAllReduce;
    case ChakraProtoMsg::ALL_GATHER:
      return CollectiveKind::kAllGather;
    case ChakraProtoMsg::REDUCE_SCATTER:
    case ChakraProtoMsg::REDUCE_SCATTER_BLOCK:
      return CollectiveKind::kReduceScatter;
    case ChakraProtoMsg::ALL_TO_ALL:
      return CollectiveKind::kAllToAll;
    case ChakraProtoMsg::BROADCAST:
      return CollectiveKind::kCollectiveBroadcast;
    case ChakraProtoMsg::REDUCE:
      return CollectiveKind::kCollectiveReduce;
    case ChakraProtoMsg::GATHER:
      return CollectiveKind::kCollectiveGather;
    case ChakraProtoMsg::SCATTER:
      return CollectiveKind::kCollectiveScatter;
    case ChakraProtoMsg::BARRIER:
      return CollectiveKind::kBarrier;
    default:
      return std::nullopt;
  }
}

}  // namespace meridian
