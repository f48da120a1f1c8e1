#include "trace_alignment/probes/probe_solver.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include "Eigen/IterativeLinearSolvers"
#include "Eigen/SparseCore"
#include "absl/container/btree_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

constexpr double kPpmOfRate = 1e6;

// The reference is node 0 of a round; its values are 0 by definition.
constexpr int kReference = 0;

// How often all links are looked at for the best way to each node. Each way goes on in the direction
// of a look as far as it leads, so that more are needed only where ways turn round that often.
constexpr size_t kMaxPasses = 1000;

// One round: the edges, and the nodes that they connect to the reference.
class Round {
 public:
  Round(std::vector<const ProbeEdge*> edges, int64_t reference_node)
      : edges_(std::move(edges)), reference_node_(reference_node) {
    std::sort(edges_.begin(), edges_.end(), [](const ProbeEdge* a, const ProbeEdge* b) {
      return std::tie(a->src, a->dst, a->midpoint_src_ns, a->offset_ps) <
             std::tie(b->src, b->dst, b->midpoint_src_ns, b->offset_ps);
    });
  }

  // Adds a sample per reached node; none when no edge touches the reference.
  absl::Status Solve(std::vector<OffsetSample>* samples) {
    const std::optional<int64_t> midpoint_ns = MidpointRefNs();
    if (!midpoint_ns.has_value()) return absl::OkStatus();
    clock_ = RunClock(*midpoint_ns);
    RETURN_IF_ERROR(ReachNodes());
    RETURN_IF_ERROR(MakeLinks());
    const int num_nodes = static_cast<int>(nodes_.size());
    const std::vector<double> corrections_ps = FitDifferences(links_, num_nodes, excess_ps_);
    const std::vector<double> log_rates = FitDifferences(links_, num_nodes, log_rates_);
    std::vector<double> residuals_ps(links_.size());
    for (size_t i = 0; i < links_.size(); ++i) {
      residuals_ps[i] =
          excess_ps_[i] - (corrections_ps[links_[i].dst] - corrections_ps[links_[i].src]);
    }
    const std::vector<double> uncertainties_ps = CertifiedErrors(residuals_ps);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      OffsetSample sample;
      sample.node_id = nodes_[i];
      sample.midpoint_ref_ns = *midpoint_ns;
      ASSIGN_OR_RETURN(sample.offset_ps, Sum(times_ps_[i], corrections_ps[i]));
      sample.drift_ppm = std::expm1(log_rates[i]) * kPpmOfRate;
      if (!uncertainties_ps.empty()) sample.uncertainty_ns = uncertainties_ps[i] / kPsPerNs;
      samples->push_back(sample);
    }
    return absl::OkStatus();
  }

 private:
  // M: the middle of a window of the reference, or of one of a neighbour on the reference's clock.
  std::optional<int64_t> MidpointRefNs() const {
    for (const ProbeEdge* edge : edges_) {
      if (edge->src == reference_node_) return edge->midpoint_src_ns;
    }
    for (const ProbeEdge* edge : edges_) {
      if (edge->dst != reference_node_) continue;
      return RunClock(edge->midpoint_src_ns).ToUnixNs(edge->offset_ps);
    }
    return std::nullopt;
  }

  // What the clock of dst shows when that of src shows src_ps; both from M.
  absl::StatusOr<int64_t> DstTime(const ProbeEdge& edge, int64_t src_ps) const {
    ASSIGN_OR_RETURN(const int64_t middle_ps, clock_.ToRunPs(edge.midpoint_src_ns, 0));
    const double since_middle_ps = static_cast<double>(absl::int128(src_ps) - middle_ps);
    return Sum(absl::int128(src_ps) + edge.offset_ps, edge.rate * since_middle_ps);
  }

  // The inverse.
  absl::StatusOr<int64_t> SrcTime(const ProbeEdge& edge, int64_t dst_ps) const {
    ASSIGN_OR_RETURN(const int64_t middle_ps, clock_.ToRunPs(edge.midpoint_src_ns, 0));
    const absl::int128 shifted_ps = absl::int128(dst_ps) - edge.offset_ps;
    const double since_middle_ps = static_cast<double>(shifted_ps - middle_ps);
    return Sum(shifted_ps, -since_middle_ps * edge.rate / (1 + edge.rate));
  }

  static absl::StatusOr<int64_t> Sum(absl::int128 time_ps, double more_ps) {
    // Whatever llround takes, and the int128 beside it does not overflow.
    if (std::abs(more_ps) < 9e18) {
      const std::optional<int64_t> sum_ps = NarrowToInt64(time_ps + std::llround(more_ps));
      if (sum_ps.has_value()) return *sum_ps;
    }
    return absl::OutOfRangeError("clocks are over 106 days apart");
  }

  // Walks the edges breadth first from the reference, in either direction, and notes what each
  // node's clock shows at M: a first estimate of its offset.
  absl::Status ReachNodes() {
    absl::btree_map<int64_t, std::vector<const ProbeEdge*>> edges_of;
    for (const ProbeEdge* edge : edges_) {
      edges_of[edge->src].push_back(edge);
      edges_of[edge->dst].push_back(edge);
    }
    Reach(reference_node_, 0);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int64_t node_id = nodes_[i];
      for (const ProbeEdge* edge : edges_of[node_id]) {
        const bool outward = edge->src == node_id;
        const int64_t other = outward ? edge->dst : edge->src;
        if (position_.contains(other)) continue;
        ASSIGN_OR_RETURN(const int64_t time_ps,
                         outward ? DstTime(*edge, times_ps_[i]) : SrcTime(*edge, times_ps_[i]));
        Reach(other, time_ps);
      }
    }
    return absl::OkStatus();
  }

  void Reach(int64_t node_id, int64_t time_ps) {
    position_[node_id] = static_cast<int>(nodes_.size());
    nodes_.push_back(node_id);
    times_ps_.push_back(time_ps);
  }

  // Takes the edges between reached nodes to M, and notes by how much each exceeds the first
  // estimate: small numbers, which doubles are right for.
  absl::Status MakeLinks() {
    // From the reference outward, so that one pass of CertifiedErrors gets far.
    std::vector<std::pair<int, const ProbeEdge*>> outward;
    for (const ProbeEdge* edge : edges_) {
      const auto src = position_.find(edge->src);
      if (src == position_.end()) continue;
      outward.emplace_back(std::min(src->second, position_.at(edge->dst)), edge);
    }
    std::stable_sort(outward.begin(), outward.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [position, edge] : outward) {
      const DifferenceLink link = {position_.at(edge->src), position_.at(edge->dst), edge->weight};
      ASSIGN_OR_RETURN(const int64_t dst_ps, DstTime(*edge, times_ps_[link.src]));
      links_.push_back(link);
      excess_ps_.push_back(static_cast<double>(absl::int128(dst_ps) - times_ps_[link.dst]));
      log_rates_.push_back(std::log1p(edge->rate));
      ASSIGN_OR_RETURN(const int64_t middle_ps, clock_.ToRunPs(edge->midpoint_src_ns, 0));
      const double distance_ps =
          std::abs(static_cast<double>(absl::int128(times_ps_[link.src]) - middle_ps));
      const auto bounds = edge->bounds;
      bounds_ps_.push_back(bounds.has_value()
                               ? static_cast<double>(bounds->offset_ps) + bounds->rate * distance_ps
                               : std::numeric_limits<double>::infinity());
    }
    return absl::OkStatus();
  }

  // With z = truth - solution, each link says |z_dst - z_src - residual| <= bound: shortest paths
  // from the reference bound z from above, and with the signs turned from below. Empty when the
  // bounds contradict each other, some link has none, or a way turns round too often.
  std::vector<double> CertifiedErrors(const std::vector<double>& residuals_ps) const {
    for (const double bound_ps : bounds_ps_) {
      if (!std::isfinite(bound_ps)) return {};
    }
    std::vector<double> errors_ps(nodes_.size(), 0.0);
    for (const double sign : {1.0, -1.0}) {
      std::vector<double> above_ps(nodes_.size(), std::numeric_limits<double>::infinity());
      above_ps[kReference] = 0;
      bool changed = true;
      for (size_t pass = 0; changed; ++pass) {
        if (pass > std::min(nodes_.size(), kMaxPasses) || above_ps[kReference] < 0) return {};
        changed = false;
        const auto relax = [&](int from, int to, double length_ps) {
          // Rounding must not look like a contradiction.
          constexpr double kSlackPs = 1e-3;
          if (above_ps[from] + length_ps >= above_ps[to] - kSlackPs) return;
          above_ps[to] = above_ps[from] + length_ps;
          changed = true;
        };
        // To and fro, so that ways against the order of the links take no pass for each link.
        for (size_t n = 0; n < links_.size(); ++n) {
          const size_t i = pass % 2 == 0 ? n : links_.size() - 1 - n;
          relax(links_[i].src, links_[i].dst, bounds_ps_[i] + sign * residuals_ps[i]);
          relax(links_[i].dst, links_[i].src, bounds_ps_[i] - sign * residuals_ps[i]);
        }
      }
      for (size_t i = 0; i < nodes_.size(); ++i) errors_ps[i] = std::max(errors_ps[i], above_ps[i]);
    }
    return errors_ps;
  }

  std::vector<const ProbeEdge*> edges_;
  const int64_t reference_node_;
  // Counts from M, so that doubles hold small numbers.
  RunClock clock_{0};
  // Ids of the reached nodes, the reference first.
  std::vector<int64_t> nodes_;
  // What the clock of each of nodes_ shows at M by the edges on the way to it, in ps from M.
  std::vector<int64_t> times_ps_;
  // Positions in nodes_, by node id.
  absl::btree_map<int64_t, int> position_;
  // The edges between reached nodes.
  std::vector<DifferenceLink> links_;
  // For each of links_: by how much its offset at M exceeds what times_ps_ say, the logarithm of
  // its rate, and the largest error of its offset at M (infinity when unknown).
  std::vector<double> excess_ps_;
  std::vector<double> log_rates_;
  std::vector<double> bounds_ps_;
};

}  // namespace

std::vector<double> FitDifferences(const std::vector<DifferenceLink>& links, int num_nodes,
                                   const std::vector<double>& differences) {
  std::vector<double> values(num_nodes, 0.0);
  if (num_nodes == 1) return values;
  // The normal equations of all nodes but the first.
  std::vector<Eigen::Triplet<double>> entries;
  Eigen::VectorXd pulls = Eigen::VectorXd::Zero(num_nodes - 1);
  for (size_t i = 0; i < links.size(); ++i) {
    const auto& [src, dst, weight] = links[i];
    if (dst > 0) pulls[dst - 1] += weight * differences[i];
    if (src > 0) pulls[src - 1] -= weight * differences[i];
    if (dst > 0) entries.emplace_back(dst - 1, dst - 1, weight);
    if (src > 0) entries.emplace_back(src - 1, src - 1, weight);
    if (src == 0 || dst == 0) continue;
    entries.emplace_back(src - 1, dst - 1, -weight);
    entries.emplace_back(dst - 1, src - 1, -weight);
  }
  Eigen::SparseMatrix<double> equations(num_nodes - 1, num_nodes - 1);
  // Adds up what is at the same place.
  equations.setFromTriplets(entries.begin(), entries.end());
  // Every node probes a few others at random distances: complete factors would fill up.
  Eigen::ConjugateGradient<Eigen::SparseMatrix<double>, Eigen::Lower | Eigen::Upper,
                           Eigen::IncompleteCholesky<double>>
      solver(equations);
  const Eigen::VectorXd solution = solver.solve(pulls);
  for (size_t node = 1; node < values.size(); ++node) values[node] = solution[node - 1];
  return values;
}

absl::StatusOr<std::vector<OffsetSample>> SolveProbes(const std::vector<ProbeEdge>& edges,
                                                      int64_t reference_node) {
  absl::btree_map<int64_t, std::vector<const ProbeEdge*>> rounds;
  for (const ProbeEdge& edge : edges) {
    MERIDIAN_CHECK(edge.weight > 0 && std::abs(edge.rate) < 1);
    rounds[edge.round_id].push_back(&edge);
  }
  std::vector<OffsetSample> samples;
  for (auto& [round_id, round_edges] : rounds) {
    RETURN_IF_ERROR(Annotate(Round(std::move(round_edges), reference_node).Solve(&samples),
                             absl::StrCat("probes of round ", round_id)));
  }
  return samples;
}

}  // namespace meridian
