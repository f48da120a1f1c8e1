#include "astra_bridge/timing/fabric_timing.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/check.h"
#include "xla_profiler/base/status_macros.h"
#include "xla_profiler/base/status_util.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr double kNsPerSecond = 1e9;

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

// The edges of a batch that share a fabric, in canonical order.
struct Share {
  const Fabric* fabric;
  std::vector<CommEdge> edges;
  // Where they stand in the batch.
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
  ASSIGN_OR_RETURN(const double ns, CachedIsolatedNs(*fabric, edge));
  estimate.seconds = ns / kNsPerSecond;
  return estimate;
}

absl::StatusOr<BatchEstimate> FabricTiming::EstimateBatch(absl::Span<const CommEdge> edges) {
  BatchEstimate batch;
  batch.rule = batch_rule();
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
    std::vector<double> isolated_ns;
    for (const CommEdge& edge : share.edges) {
      ASSIGN_OR_RETURN(const double edge_ns, CachedIsolatedNs(*share.fabric, edge));
      isolated_ns.push_back(edge_ns);
    }
    ASSIGN_OR_RETURN(const std::vector<double> ns,
                     CachedTogetherNs(*share.fabric, share.edges, isolated_ns));
    for (size_t i = 0; i < share.edges.size(); ++i) {
      batch.isolated[share.positions[i]].seconds = isolated_ns[i] / kNsPerSecond;
      batch.seconds[share.positions[i]] = ns[i] / kNsPerSecond;
      batch.networks[share.positions[i]] = static_cast<int32_t>(network);
    }
  }
  SummariseBatch(&batch);
  return batch;
}

absl::StatusOr<double> FabricTiming::CachedIsolatedNs(const Fabric& fabric, const CommEdge& edge) {
  const std::string key = CacheKey(fabric, absl::MakeSpan(&edge, 1));
  {
    absl::MutexLock lock(&mutex_);
    const auto known = known_ns_.find(key);
    if (known != known_ns_.end()) return known->second;
  }
  std::optional<std::vector<double>> found;
  if (cache_ != nullptr) found = cache_->Find(key, 1);
  if (!found.has_value()) {
    const absl::StatusOr<double> ns = IsolatedNs(fabric, edge);
    if (!ns.ok()) return AnnotateEdge(ns.status(), edge);
    if (cache_ != nullptr) cache_->Store(key, {*ns});
    found = {*ns};
  }
  absl::MutexLock lock(&mutex_);
  return known_ns_[key] = (*found)[0];
}

absl::StatusOr<std::vector<double>> FabricTiming::CachedTogetherNs(
    const Fabric& fabric, absl::Span<const CommEdge> edges, absl::Span<const double> isolated_ns) {
  if (edges.size() == 1) return std::vector<double>(isolated_ns.begin(), isolated_ns.end());
  const std::string key = cache_ == nullptr ? "" : CacheKey(fabric, edges);
  if (cache_ != nullptr) {
    if (std::optional<std::vector<double>> found = cache_->Find(key, edges.size())) {
      return *std::move(found);
    }
  }
  ASSIGN_OR_RETURN(std::vector<double> ns, TogetherNs(fabric, edges, isolated_ns));
  MERIDIAN_CHECK(ns.size() == edges.size());
  if (cache_ != nullptr) cache_->Store(key, ns);
  return ns;
}

std::string FabricTiming::CacheKey(const Fabric& fabric, absl::Span<const CommEdge> edges) const {
  const TimingEngine engine = this->engine();
  std::string key = absl::StrCat(engine.name, "\n", engine.version, "\nfabric ",
                                 absl::Hex(fabric.content_hash, absl::kZeroPad16));
  for (const CommEdge& edge : edges) absl::StrAppend(&key, "\n", CanonicalText(edge));
  return key;
}

}  // namespace meridian
