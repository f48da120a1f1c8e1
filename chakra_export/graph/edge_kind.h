// Why a piece of work had to wait for another.
#ifndef CHAKRA_EXPORT_GRAPH_EDGE_KIND_H_
#define CHAKRA_EXPORT_GRAPH_EDGE_KIND_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace meridian {

enum class EdgeKind : uint8_t {
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

inline constexpr std::array<EdgeKind, 6> kEdgeKinds = {EdgeKind::kData,    EdgeKind::kControl,
                                                       EdgeKind::kStream,  EdgeKind::kLaunch,
                                                       EdgeKind::kProgram, EdgeKind::kSync};

// Returns e.g. "stream".
absl::string_view EdgeKindName(EdgeKind kind);

// A set of kinds: one edge may have several reasons.
class EdgeKinds {
 public:
  constexpr EdgeKinds() = default;
  constexpr EdgeKinds(EdgeKind kind)  // NOLINT: a kind is a set of one
      : bits_(static_cast<uint8_t>(1 << static_cast<int>(kind))) {}

  constexpr bool Contains(EdgeKind kind) const { return (bits_ & EdgeKinds(kind).bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

  constexpr EdgeKinds& operator|=(EdgeKinds other) {
    bits_ |= other.bits_;
    return *this;
  }
  friend constexpr EdgeKinds operator|(EdgeKinds a, EdgeKinds b) { return a |= b; }
  friend constexpr bool operator==(EdgeKinds a, EdgeKinds b) { return a.bits_ == b.bits_; }
  friend constexpr bool operator!=(EdgeKinds a, EdgeKinds b) { return !(a == b); }

  // One letter per kind, the first of its name except for sync, which is 'w' (wait): "ds".
  std::string Letters() const;

  // Nullopt for an empty text or an unknown letter.
  static std::optional<EdgeKinds> FromLetters(absl::string_view letters);

 private:
  uint8_t bits_ = 0;
};

// The same for several sets, with commas between: "d,ds,l".
std::string EdgeKindsText(absl::Span<const EdgeKinds> sets);
std::optional<std::vector<EdgeKinds>> ParseEdgeKinds(absl::string_view text);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_EDGE_KIND_H_
