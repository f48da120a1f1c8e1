// SPDX-License-Identifier: Apache-2.0
// Reads an InfraGraph (Keysight's description of machines, YAML or JSON: devices made of components,
// instances of devices, edges between them) as a network of links. See docs/links.md for what its
// parts become.
#ifndef ASTRA_BRIDGE_ENGINE_INFRA_GRAPH_H_
#define ASTRA_BRIDGE_ENGINE_INFRA_GRAPH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/engine/network_config.h"
#include "xla_profiler/base/config/config_value.h"

namespace meridian {

// Returns whether a file's keys are those of an InfraGraph: devices or instances, at the top or
// under `infrastructure`.
bool IsInfraGraph(const ConfigValue& document);

// NPUs are the components of choice xpu, in the order of instances, their numbers and the components
// of their device. All other components are switches with the names that InfraGraph gives to nodes,
// e.g. "host.0.nic.3"; those that lead nowhere are left out. A link without bandwidth limits nothing,
// one without latency has none. Errors name the source and the line.
absl::StatusOr<NetworkConfig> ReadInfraGraph(const ConfigValue& document, absl::string_view source);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_INFRA_GRAPH_H_
