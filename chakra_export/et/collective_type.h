// SPDX-License-Identifier: Apache-2.0
// CollectiveKind and the collectives of Chakra's files, which have an enum of their own.
#ifndef CHAKRA_EXPORT_ET_COLLECTIVE_TYPE_H_
#define CHAKRA_EXPORT_ET_COLLECTIVE_TYPE_H_

#include <cstdint>
#include <optional>

#include "xla_profiler/hlo/collective_kind.h"

// The enumerators are in third_party/chakra/et_def.pb.h.
namespace ChakraProtoMsg {
enum CollectiveCommType : int;
}  // namespace ChakraProtoMsg

namespace meridian {

// Returns the type of a kind; nullopt for kinds that are messages.
std::optional<ChakraProtoMsg::CollectiveCommType> CommTypeOf(CollectiveKind kind);

// Returns the type that ASTRA-sim runs for a kind: for kinds that it does not have, the nearest one
// that moves the same bytes. Nullopt for kinds that are messages, and for barriers.
std::optional<ChakraProtoMsg::CollectiveCommType> SimulatedCommTypeOf(CollectiveKind kind);

// True for kinds whose SimulatedCommTypeOf is only the nearest one.
bool IsApproximated(CollectiveKind kind);

// Returns the kind of a type, given as the number that a file holds; nullopt for unknown numbers.
std::optional<CollectiveKind> CollectiveKindOf(int64_t comm_type);

// True for the types that ASTRA-sim runs, given as the number that a file holds.
bool IsSimulated(int64_t comm_type);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_COLLECTIVE_TYPE_H_
