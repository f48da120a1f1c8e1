// CollectiveKind and the collectives of Chakra's files.
#ifndef CHAKRA_EXPORT_ET_COLLECTIVE_TYPE_H_
#define CHAKRA_EXPORT_ET_COLLECTIVE_TYPE_H_

#include <cstdint>
#include <optional>

#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// Returns the type of a kind; nullopt for kinds that are messages.
std::optional<ChakraProtoMsg::CollectiveCommType> CommTypeOf(CollectiveKind kind);

// Returns the type that simulators run; of kinds that they do not have the nearest of the same
// bytes. Nullopt for kinds that are messages, and for barriers.
std::optional<ChakraProtoMsg::CollectiveCommType> SimulatedCommTypeOf(CollectiveKind kind);

// True for kinds of which SimulatedCommTypeOf gives the nearest.
bool IsApproximated(CollectiveKind kind);

// Returns the kind of a type, given as the number that a file holds; nullopt for unknown numbers.
std::optional<CollectiveKind> CollectiveKindOf(int64_t comm_type);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_COLLECTIVE_TYPE_H_
