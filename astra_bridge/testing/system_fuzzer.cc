// Any bytes as a system or a remote memory of ASTRA-sim: what is accepted passes the check that the
// engine makes.
#include "absl/status/statusor.h"
#include "astra_bridge/engine/system_config.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  (void)ParseRemoteMemory(bytes, "fuzz.json");
  const absl::StatusOr<SystemConfig> system = ParseSystemConfig(bytes, "fuzz.json");
  return system.ok() ? CheckSystemConfig(*system) : absl::OkStatus();
}
