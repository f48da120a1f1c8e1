#include "xla_profiler/hlo/collective_kind.h"

#include <iterator>

namespace meridian {

absl::string_view CollectiveKindName(CollectiveKind kind) {
  // In the order of the enum.
  static constexpr absl::string_view kNames[] = {"all-reduce",
                                                 "all-gather",
                                                 "reduce-scatter",
                                                 "all-to-all",
                                                 "p2p",
                                                 "ragged-all-to-all",
                                                 "collective-broadcast",
                                                 "collective-reduce",
                                                 "collective-permute",
                                                 "send",
                                                 "recv",
                                                 "collective-gather",
                                                 "collective-scatter",
                                                 "barrier",
                                                 "unknown"};
  static_assert(std::size(kNames) == static_cast<size_t>(CollectiveKind::kUnknown) + 1);
  return kNames[static_cast<int>(kind)];
}

bool HasPairs(CollectiveKind kind) {
  return kind == CollectiveKind::kCollectivePermute || kind == CollectiveKind::kSend ||
         kind == CollectiveKind::kRecv || kind == CollectiveKind::kPointToPoint;
}

}  // namespace meridian
