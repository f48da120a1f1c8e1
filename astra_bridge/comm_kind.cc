#include "astra_bridge/comm_kind.h"

namespace meridian {
namespace {

struct Names {
  absl::string_view name;
  absl::string_view code;
};

// By CommKind.
constexpr Names kNames[kCommKinds] = {{"all-reduce", "AR"},
                                      {"all-gather", "AG"},
                                      {"reduce-scatter", "RS"},
                                      {"all-to-all", "A2A"},
                                      {"p2p", "P2P"}};

std::optional<CommKind> Find(absl::string_view Names::*member, absl::string_view text) {
  for (int kind = 0; kind < kCommKinds; ++kind) {
    if (kNames[kind].*member == text) return static_cast<CommKind>(kind);
  }
  return std::nullopt;
}

}  // namespace

absl::string_view CommKindName(CommKind kind) { return kNames[static_cast<int>(kind)].name; }

absl::string_view CommKindCode(CommKind kind) { return kNames[static_cast<int>(kind)].code; }

std::optional<CommKind> CommKindFromName(absl::string_view name) {
  return Find(&Names::name, name);
}

std::optional<CommKind> CommKindFromCode(absl::string_view code) {
  return Find(&Names::code, code);
}

}  // namespace meridian
