#include "astra_bridge/edges/timed_kind.h"

#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Codes indexed by CollectiveKind.
constexpr absl::string_view kCodes[kTimedKinds] = {"AR", "AG", "RS", "A2A", "P2P"};

}  // namespace

std::optional<CollectiveKind> TimedKindOf(CollectiveKind kind) {
  if (static_cast<int>(kind) < kTimedKinds) return kind;
  if (HasPairs(kind)) return CollectiveKind::kPointToPoint;
  return std::nullopt;
}

absl::string_view TimedKindCode(CollectiveKind kind) {
  MERIDIAN_CHECK(static_cast<int>(kind) < kTimedKinds);
  return kCodes[static_cast<int>(kind)];
}

std::optional<CollectiveKind> TimedKindFromCode(absl::string_view code) {
  for (int kind = 0; kind < kTimedKinds; ++kind) {
    if (kCodes[kind] == code) return static_cast<CollectiveKind>(kind);
  }
  return std::nullopt;
}

}  // namespace meridian
