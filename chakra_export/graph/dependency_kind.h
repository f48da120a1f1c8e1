// Why a piece of work had to wait for another.
#ifndef CHAKRA_EXPORT_GRAPH_DEPENDENCY_KIND_H_
#define CHAKRA_EXPORT_GRAPH_DEPENDENCY_KIND_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace meridian {

enum class DependencyKind : uint8_t {
  // It consumes what the other produced.
  kData,
  // The program says so without data: a control predecessor, the caller of a call.
  kControl,
  // The stream of a device runs its work in order.
  kStream,
  // A host call launched it.
  kLaunch,
  // A host thread runs its calls in order.
  kProgram,
  // A host call or a stream waited for it.
  kSync,
};

inline constexpr std::array<DependencyKind, 6> kDependencyKinds = {
    DependencyKind::kData,   DependencyKind::kControl, DependencyKind::kStream,
    DependencyKind::kLaunch, DependencyKind::kProgram, DependencyKind::kSync};

// Returns e.g. "stream".
absl::string_view DependencyKindName(DependencyKind kind);

// A set of kinds: one edge may have several reasons.
class DependencyKinds {
 public:
  constexpr DependencyKinds() = default;
  constexpr DependencyKinds(DependencyKind kind)  // NOLINT: a kind is a set of one
      : bits_(static_cast<uint8_t>(1 << static_cast<int>(kind))) {}

  constexpr bool Contains(DependencyKind kind) const {
    return (bits_ & DependencyKinds(kind).bits_) != 0;
  }
  constexpr bool empty() const { return bits_ == 0; }

  constexpr DependencyKinds& operator|=(DependencyKinds other) {
    bits_ |= other.bits_;
    return *this;
  }
  friend constexpr DependencyKinds operator|(DependencyKinds a, DependencyKinds b) {
    return a |= b;
  }
  friend constexpr bool operator==(DependencyKinds a, DependencyKinds b) {
    return a.bits_ == b.bits_;
  }
  friend constexpr bool operator!=(DependencyKinds a, DependencyKinds b) { return !(a == b); }

  // One letter per kind, the first of its name except for sync, which is 'w' (wait): "ds".
  std::string Letters() const;

  // Nullopt for an empty text or an unknown letter.
  static std::optional<DependencyKinds> FromLetters(absl::string_view letters);

 private:
  uint8_t bits_ = 0;
};

// The same for several sets, with commas between: "d,ds,l".
std::string DependencyKindsText(absl::Span<const DependencyKinds> sets);
std::optional<std::vector<DependencyKinds>> ParseDependencyKinds(absl::string_view text);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_DEPENDENCY_KIND_H_
