#include "astra_bridge/edges/comm_edge.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Appends e.g. "0-7,12": runs of neighbours are the rule, and there may be a million of them.
void AppendRanks(absl::Span<const int32_t> ranks, std::string* out) {
  for (size_t begin = 0; begin < ranks.size();) {
    size_t end = begin + 1;
    while (end < ranks.size() && int64_t{ranks[end]} == int64_t{ranks[end - 1]} + 1) ++end;
    absl::StrAppend(out, begin == 0 ? "" : ",", ranks[begin]);
    if (end - begin > 1) absl::StrAppend(out, "-", ranks[end - 1]);
    begin = end;
  }
}

// Codes indexed by CollectiveKind.
constexpr absl::string_view kCodes[kTimedKinds] = {"AR", "AG", "RS", "A2A", "P2P"};

}  // namespace

absl::string_view AlgorithmHintName(AlgorithmHint hint) {
  constexpr absl::string_view kNames[] = {"", "ring", "direct", "tree", "hierarchical"};
  return kNames[static_cast<size_t>(hint)];
}

bool UsesNetwork(const CommEdge& edge) { return edge.bytes > 0 && edge.participants.size() > 1; }

std::string CanonicalText(const CommEdge& edge) {
  std::string text = absl::StrCat(TimedKindCode(edge.kind), " ", edge.bytes, " ");
  if (edge.hint != AlgorithmHint::kNone) absl::StrAppend(&text, AlgorithmHintName(edge.hint), " ");
  AppendRanks(edge.participants, &text);
  return text;
}

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
