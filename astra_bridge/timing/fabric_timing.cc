#include "astra_bridge/timing/fabric_timing.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/content_hash.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

absl::Status AnnotateEdge(const absl::Status& status, const CommEdge& edge) {
  return Annotate(status, absl::StrCat("edge ", Printable(edge.id)));
}

absl::Status CheckDevices(const CommEdge& edge, const NetworkConfig& network) {
  for (int32_t device : edge.participants) {
    if (device >= 0 && device < network.npus()) continue;
    return InvalidArgument("device ", device, " takes part, but ", network.source, " has ",
                           network.npus(),
                           " NPUs; give a network that is large enough or a rank_to_device map");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EdgeEstimate> FabricTiming::EstimateEdge(const CommEdge& edge) {
  const absl::StatusOr<const Fabric*> fabric = fabrics_->Find(edge.topology_key);
  absl::Status status = fabric.status();
  if (status.ok()) status = CheckDevices(edge, (*fabric)->network);
  if (!status.ok()) return AnnotateEdge(status, edge);
  EdgeEstimate estimate;
  if (!UsesNetwork(edge)) return estimate;
  const absl::StatusOr<double> ns = KnownNs(**fabric, edge);
  if (!ns.ok()) return AnnotateEdge(ns.status(), edge);
  estimate.seconds = *ns / kNsPerSecond;
  return estimate;
}

absl::StatusOr<double> FabricTiming::KnownNs(const Fabric& fabric, const CommEdge& edge) {
  const std::string key = absl::StrCat(engine_.name, "\n", engine_.version, "\nfabric ",
                                       HashDigits(fabric.content_hash), "\n", CanonicalText(edge));
  {
    absl::MutexLock lock(&mutex_);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
  }
  std::optional<double> cached;
  if (cache_ != nullptr) cached = cache_->Find(key);
  const absl::StatusOr<double> ns =
      cached.has_value() ? absl::StatusOr<double>(*cached) : AloneNs(fabric, edge);
  if (cache_ != nullptr && !cached.has_value() && ns.ok()) cache_->Store(key, *ns);
  absl::MutexLock lock(&mutex_);
  return known_.insert_or_assign(key, ns).first->second;
}

}  // namespace meridian
