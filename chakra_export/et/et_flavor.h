// How much of a run its traces hold.
#ifndef CHAKRA_EXPORT_ET_ET_FLAVOR_H_
#define CHAKRA_EXPORT_ET_ET_FLAVOR_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

enum class EtFlavor : uint8_t {
  // What simulators run to the end: device work only, hosts as gaps, communication in one order.
  kSimulation,
  // All that is known: hosts' calls as nodes, groups as a METADATA node.
  kFull,
};

// "simulation" or "full".
absl::string_view EtFlavorName(EtFlavor flavor);

// The inverse, of a flag's value.
absl::StatusOr<EtFlavor> ParseEtFlavor(absl::string_view name);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_ET_FLAVOR_H_
