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
    if (device < 0 || device >= network.npus()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "device ", device, " takes part, but ", network.source, " has ", network.npus(),
          " NPUs; give a network that is large enough or a rank_to_device map"));
    }
  }
  return absl::OkStatus();
}

// The edges of a batch that are on one fabric, in canonical order.
struct Share {
  const Fabric* fabric;
  std::vector<CommEdge> edges;
  // Positions of the edges in the batch.
  std::vector<size_t> positions;
};

Share& ShareOf(const Fabric* fabric, std::vector<Share>* shares) {
  for (Share& share : *shares) {
    if (share.fabric == fabric) return share;
  }
  shares->push_back({fabric, {}, {}});
  return shares->back();
}

}  // namespace

absl::StatusOr<const Fabric*> FabricTiming::FabricOf(const CommEdge& edge) const {
  absl::StatusOr<const Fabric*> fabric = fabrics_->Find(edge.topology_key);
  absl::Status status = fabric.status();
  if (status.ok()) status = CheckDevices(edge, (*fabric)->network);
  if (!status.ok()) return AnnotateEdge(status, edge);
  return fabric;
}

absl::StatusOr<EdgeEstimate> FabricTiming::EstimateEdge(const CommEdge& edge) {
  ASSIGN_OR_RETURN(const Fabric* fabric, FabricOf(edge));
  EdgeEstimate estimate;
  if (!UsesNetwork(edge)) return estimate;
  const std::string key = absl::StrCat(KeyPrefix(*fabric), "\n", CanonicalText(edge));
  ASSIGN_OR_RETURN(const double ns, KnownIsolatedNs(key, *fabric, edge));
  estimate.seconds = ns / kNsPerSecond;
  return estimate;
}

absl::StatusOr<BatchEstimate> FabricTiming::EstimateBatch(absl::Span<const CommEdge> edges) {
  BatchEstimate batch;
  batch.rule = rule_;
  batch.seconds.resize(edges.size());
  batch.isolated.resize(edges.size());
  batch.networks.resize(edges.size());
  std::vector<Share> shares;
  for (size_t position : CanonicalOrder(edges)) {
    ASSIGN_OR_RETURN(const Fabric* fabric, FabricOf(edges[position]));
    if (!UsesNetwork(edges[position])) continue;
    Share& share = ShareOf(fabric, &shares);
    share.edges.push_back(edges[position]);
    share.positions.push_back(position);
  }
  for (size_t network = 0; network < shares.size(); ++network) {
    const Share& share = shares[network];
    const std::string prefix = KeyPrefix(*share.fabric);
    std::string batch_key = prefix;
    std::vector<double> isolated_ns;
    for (const CommEdge& edge : share.edges) {
      const std::string text = absl::StrCat("\n", CanonicalText(edge));
      absl::StrAppend(&batch_key, text);
      ASSIGN_OR_RETURN(const double edge_ns,
                       KnownIsolatedNs(absl::StrCat(prefix, text), *share.fabric, edge));
      isolated_ns.push_back(edge_ns);
    }
    std::vector<double> ns = isolated_ns;
    if (ns.size() > 1) {
      ASSIGN_OR_RETURN(ns, Known(batch_key, ns.size(), [&] {
                         return TogetherNs(*share.fabric, share.edges, isolated_ns);
                       }));
    }
    for (size_t i = 0; i < share.edges.size(); ++i) {
      batch.isolated[share.positions[i]].seconds = isolated_ns[i] / kNsPerSecond;
      batch.seconds[share.positions[i]] = ns[i] / kNsPerSecond;
      batch.networks[share.positions[i]] = static_cast<int32_t>(network);
    }
  }
  SummariseBatch(&batch);
  return batch;
}

absl::StatusOr<double> FabricTiming::KnownIsolatedNs(const std::string& key, const Fabric& fabric,
                                                     const CommEdge& edge) {
  const Times ns =
      Known(key, 1, [&] { return TogetherNs(fabric, absl::MakeConstSpan(&edge, 1), {}); });
  if (!ns.ok()) return AnnotateEdge(ns.status(), edge);
  return (*ns)[0];
}

FabricTiming::Times FabricTiming::Known(const std::string& key, size_t count,
                                        absl::FunctionRef<Times()> run) {
  {
    absl::MutexLock lock(&mutex_);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
  }
  std::optional<std::vector<double>> cached;
  if (cache_ != nullptr) cached = cache_->Find(key, count);
  const Times ns = cached.has_value() ? Times(*std::move(cached)) : run();
  MERIDIAN_CHECK(!ns.ok() || ns->size() == count);
  if (cache_ != nullptr && !cached.has_value() && ns.ok()) cache_->Store(key, *ns);
  absl::MutexLock lock(&mutex_);
  return known_.insert_or_assign(key, ns).first->second;
}

std::string FabricTiming::KeyPrefix(const Fabric& fabric) const {
  return absl::StrCat(engine_.name, "\n", engine_.version, "\nfabric ",
                      HashDigits(fabric.content_hash));
}

}  // namespace meridian
