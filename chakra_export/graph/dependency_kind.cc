#include "chakra_export/graph/dependency_kind.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace meridian {
namespace {

char Letter(DependencyKind kind) {
  return kind == DependencyKind::kSync ? 'w' : DependencyKindName(kind)[0];
}

}  // namespace

absl::string_view DependencyKindName(DependencyKind kind) {
  switch (kind) {
    case DependencyKind::kData:
      return "data";
    case DependencyKind::kControl:
      return "control";
    case DependencyKind::kStream:
      return "stream";
    case DependencyKind::kLaunch:
      return "launch";
    case DependencyKind::kProgram:
      return "program";
    case DependencyKind::kSync:
      return "sync";
  }
  return "";
}

std::string DependencyKinds::Letters() const {
  std::string letters;
  for (const DependencyKind kind : kDependencyKinds) {
    if (Contains(kind)) letters.push_back(Letter(kind));
  }
  return letters;
}

std::optional<DependencyKinds> DependencyKinds::FromLetters(absl::string_view letters) {
  DependencyKinds kinds;
  for (const char letter : letters) {
    DependencyKinds known;
    for (const DependencyKind kind : kDependencyKinds) {
      if (Letter(kind) == letter) known = kind;
    }
    if (known.empty()) return std::nullopt;
    kinds |= known;
  }
  if (kinds.empty()) return std::nullopt;
  return kinds;
}

std::string DependencyKindsText(absl::Span<const DependencyKinds> sets) {
  return absl::StrJoin(
      sets, ",", [](std::string* out, DependencyKinds kinds) { out->append(kinds.Letters()); });
}

std::optional<std::vector<DependencyKinds>> ParseDependencyKinds(absl::string_view text) {
  std::vector<DependencyKinds> sets;
  for (const absl::string_view letters : absl::StrSplit(text, ',')) {
    const std::optional<DependencyKinds> kinds = DependencyKinds::FromLetters(letters);
    if (!kinds.has_value()) return std::nullopt;
    sets.push_back(*kinds);
  }
  return sets;
}

}  // namespace meridian
