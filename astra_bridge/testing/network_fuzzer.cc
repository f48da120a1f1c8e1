// Any bytes as a network and as a configuration of timings; both are YAML.
#include "astra_bridge/configuration/timing_config.h"
#include "astra_bridge/engine/network_config.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  ParseNetworkConfig(bytes, "fuzz.yml").IgnoreError();
  ParseTimingConfig(bytes, "fuzz.yml").IgnoreError();
  return absl::OkStatus();
}
