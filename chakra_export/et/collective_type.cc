#include "chakra_export/et/collective_type.h"

#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::CollectiveCommType;

struct Translation {
  CollectiveKind kind;
  CollectiveCommType type;
  // What ASTRA-sim runs instead; nullopt for nothing.
  std::optional<CollectiveCommType> simulated;
};

// Where several kinds have one type, or several types one kind, the first entry is the way back.
constexpr Translation kTranslations[] = {
    {CollectiveKind::kAllReduce, ChakraProtoMsg::ALL_REDUCE, ChakraProtoMsg::ALL_REDUCE},
    {CollectiveKind::kAllGather, ChakraProtoMsg::ALL_GATHER, ChakraProtoMsg::ALL_GATHER},
    {CollectiveKind::kReduceScatter, ChakraProtoMsg::REDUCE_SCATTER,
     ChakraProtoMsg::REDUCE_SCATTER},
    {CollectiveKind::kReduceScatter, ChakraProtoMsg::REDUCE_SCATTER_BLOCK, std::nullopt},
    {CollectiveKind::kAllToAll, ChakraProtoMsg::ALL_TO_ALL, ChakraProtoMsg::ALL_TO_ALL},
    {CollectiveKind::kRaggedAllToAll, ChakraProtoMsg::ALL_TO_ALL, ChakraProtoMsg::ALL_TO_ALL},
    {CollectiveKind::kCollectiveBroadcast, ChakraProtoMsg::BROADCAST, ChakraProtoMsg::BROADCAST},
    {CollectiveKind::kCollectiveReduce, ChakraProtoMsg::REDUCE, ChakraProtoMsg::ALL_REDUCE},
    {CollectiveKind::kCollectiveGather, ChakraProtoMsg::GATHER, ChakraProtoMsg::ALL_GATHER},
    {CollectiveKind::kCollectiveScatter, ChakraProtoMsg::SCATTER, ChakraProtoMsg::REDUCE_SCATTER},
    {CollectiveKind::kBarrier, ChakraProtoMsg::BARRIER, std::nullopt},
};

// Returns the first entry with that value, or nullptr.
template <typename Field, typename Value>
const Translation* Find(Field Translation::*field, Value value) {
  for (const Translation& entry : kTranslations) {
    if (entry.*field == value) return &entry;
  }
  return nullptr;
}

}  // namespace

std::optional<CollectiveCommType> CommTypeOf(CollectiveKind kind) {
  const Translation* entry = Find(&Translation::kind, kind);
  return entry == nullptr ? std::nullopt : std::make_optional(entry->type);
}

std::optional<CollectiveCommType> SimulatedCommTypeOf(CollectiveKind kind) {
  const Translation* entry = Find(&Translation::kind, kind);
  return entry == nullptr ? std::nullopt : entry->simulated;
}

bool IsApproximated(CollectiveKind kind) {
  const std::optional<CollectiveCommType> simulated = SimulatedCommTypeOf(kind);
  return simulated.has_value() && CollectiveKindOf(*simulated) != kind;
}

std::optional<CollectiveKind> CollectiveKindOf(int64_t comm_type) {
  const Translation* entry = Find(&Translation::type, comm_type);
  return entry == nullptr ? std::nullopt : std::make_optional(entry->kind);
}

bool IsSimulated(int64_t comm_type) {
  const Translation* entry = Find(&Translation::type, comm_type);
  return entry != nullptr && entry->simulated == entry->type;
}

}  // namespace meridian
