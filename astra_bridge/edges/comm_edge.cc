#include "astra_bridge/edges/comm_edge.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

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

}  // namespace

absl::string_view AlgorithmHintName(AlgorithmHint hint) {
  switch (hint) {
    case AlgorithmHint::kNone:
      return "";
    case AlgorithmHint::kRing:
      return "ring";
    case AlgorithmHint::kDirect:
      return "direct";
    case AlgorithmHint::kTree:
      return "tree";
    case AlgorithmHint::kHierarchical:
      return "hierarchical";
  }
  return "";
}

bool UsesNetwork(const CommEdge& edge) { return edge.bytes > 0 && edge.participants.size() > 1; }

std::string CanonicalText(const CommEdge& edge) {
  std::string text = absl::StrCat(TimedKindCode(edge.kind), " ", edge.bytes, " ");
  if (edge.hint != AlgorithmHint::kNone) absl::StrAppend(&text, AlgorithmHintName(edge.hint), " ");
  AppendRanks(edge.participants, &text);
  return text;
}

}  // namespace meridian
