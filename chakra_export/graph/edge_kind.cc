#include "chakra_export/graph/edge_kind.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace meridian {
namespace {

char Letter(EdgeKind kind) { return kind == EdgeKind::kSync ? 'w' : EdgeKindName(kind)[0]; }

}  // namespace

absl::string_view EdgeKindName(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kData:
      return "data";
    case EdgeKind::kControl:
      return "control";
    case EdgeKind::kStream:
      return "stream";
    case EdgeKind::kLaunch:
      return "launch";
    case EdgeKind::kProgram:
      return "program";
    case EdgeKind::kSync:
      return "sync";
  }
  return "";
}

std::string EdgeKinds::Letters() const {
  std::string letters;
  for (const EdgeKind kind : kEdgeKinds) {
    if (Contains(kind)) letters.push_back(Letter(kind));
  }
  return letters;
}

std::optional<EdgeKinds> EdgeKinds::FromLetters(absl::string_view letters) {
  EdgeKinds kinds;
  for (const char letter : letters) {
    EdgeKinds known;
    for (const EdgeKind kind : kEdgeKinds) {
      if (Letter(kind) == letter) known = kind;
    }
    if (known.empty()) return std::nullopt;
    kinds |= known;
  }
  if (kinds.empty()) return std::nullopt;
  return kinds;
}

std::string EdgeKindsText(absl::Span<const EdgeKinds> sets) {
  return absl::StrJoin(sets, ",",
                       [](std::string* out, EdgeKinds kinds) { out->append(kinds.Letters()); });
}

std::optional<std::vector<EdgeKinds>> ParseEdgeKinds(absl::string_view text) {
  std::vector<EdgeKinds> sets;
  for (const absl::string_view letters : absl::StrSplit(text, ',')) {
    const std::optional<EdgeKinds> kinds = EdgeKinds::FromLetters(letters);
    if (!kinds.has_value()) return std::nullopt;
    sets.push_back(*kinds);
  }
  return sets;
}

}  // namespace meridian
