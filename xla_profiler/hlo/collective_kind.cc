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

double BusFactor(CollectiveKind kind, double ranks) {
  using Kind = CollectiveKind;
  if (ranks < 2) return 0;
  if (kind == Kind::kAllReduce) return 2 * (ranks - 1) / ranks;
  if (kind == Kind::kAllGather) return ranks - 1;
  if (kind == Kind::kReduceScatter || kind == Kind::kAllToAll) return (ranks - 1) / ranks;
  const bool moves_once =
      kind == Kind::kCollectiveBroadcast || kind == Kind::kCollectiveReduce || HasPairs(kind);
  return moves_once ? 1 : 0;
}

}  // namespace meridian
