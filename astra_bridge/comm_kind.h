// The kinds of communication that have a time of their own on the network.
#ifndef ASTRA_BRIDGE_COMM_KIND_H_
#define ASTRA_BRIDGE_COMM_KIND_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace meridian {

enum class CommKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  // One rank sends to one other.
  kPointToPoint,
};

inline constexpr int kCommKinds = 5;

// Returns the name in reports and corrections: all-reduce, all-gather, reduce-scatter, all-to-all,
// p2p.
absl::string_view CommKindName(CommKind kind);

// Returns the short name in lists of comm edges: AR, AG, RS, A2A, P2P.
absl::string_view CommKindCode(CommKind kind);

// Each undoes its namesake; nullopt for any other text.
std::optional<CommKind> CommKindFromName(absl::string_view name);
std::optional<CommKind> CommKindFromCode(absl::string_view code);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_COMM_KIND_H_
