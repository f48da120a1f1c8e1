#include "chakra_export/et/et_flavor.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace meridian {

absl::string_view EtFlavorName(EtFlavor flavor) {
  return flavor == EtFlavor::kFull ? "full" : "simulation";
}

absl::StatusOr<EtFlavor> ParseEtFlavor(absl::string_view name) {
  for (const EtFlavor flavor : {EtFlavor::kSimulation, EtFlavor::kFull}) {
    if (name == EtFlavorName(flavor)) return flavor;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--flavor=", name, " is unknown; expected simulation or full"));
}

}  // namespace meridian
