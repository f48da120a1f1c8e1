// SPDX-License-Identifier: Apache-2.0
// The kinds of communication that have a time of their own on the network: the first of
// CollectiveKind.
#ifndef ASTRA_BRIDGE_EDGES_TIMED_KIND_H_
#define ASTRA_BRIDGE_EDGES_TIMED_KIND_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {

// All-reduce, all-gather, reduce-scatter, all-to-all and messages, in the order of CollectiveKind:
// arrays of so many elements are indexed by it.
inline constexpr int kTimedKinds = 5;
static_assert(static_cast<int>(CollectiveKind::kPointToPoint) == kTimedKinds - 1);

// Returns the timed kind that a collective of a program or profile is: that of its name, or
// kPointToPoint for sends, receives and permutes. Nullopt for kinds that no network times.
std::optional<CollectiveKind> TimedKindOf(CollectiveKind kind);

// Returns the short name in lists of comm edges: AR, AG, RS, A2A, P2P.
absl::string_view TimedKindCode(CollectiveKind kind);

// Returns the timed kind with this TimedKindCode; nullopt for any other text.
std::optional<CollectiveKind> TimedKindFromCode(absl::string_view code);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_EDGES_TIMED_KIND_H_
