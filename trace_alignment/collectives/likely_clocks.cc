#include "trace_alignment/collectives/likely_clocks.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "xla_profiler/base/statistics.h"
#include "xla_profiler/hlo/hlo_collective.h"

namespace meridian {
namespace {

// See the formula in the header.
constexpr double kShareOfTransfer = 1.0 / 64;
constexpr double kShareOfShortest = 1.0 / 3;
constexpr double kTypicalShareOfScatter = 1.0 / 4;
// No step of a collective takes longer, however long its transfer does.
constexpr double kLongestLatencyPs = 1e9;
constexpr double kHalfPi = 1.5707963267948966;
// Classes with fewer executions do not show how they scatter.
constexpr size_t kFewExecutions = 4;
// Classes with fewer do not show drift.
constexpr size_t kDriftExecutions = 6;
// More tell nothing more: errors are a share of the scatter.
constexpr size_t kEnoughExecutions = 256;

// Executions of one kind and size by the same ranks.
struct EndClass {
  // The node of each member, by rank.
  std::vector<uint32_t> nodes;
  // Positions in the table's members, execution by execution.
  std::vector<uint32_t> members;

  size_t executions() const { return members.size() / nodes.size(); }
};

// What a class says about each of its nodes, up to what these have in common.
struct Evidence {
  const std::vector<uint32_t>* nodes = nullptr;
  std::vector<double> values;
  // Of the error of each value: as large as it may be, as it mostly is, and by what others say.
  double own_variance = 0;
  double typical_variance = 0;
  double misfit = 0;

  double variance() const { return own_variance + misfit; }
  double weight() const { return 1 / (typical_variance + misfit); }
};

std::vector<EndClass> ClassesOf(const CollectiveTable& table) {
  std::map<std::tuple<CollectiveKind, int64_t, std::vector<uint32_t>>, EndClass> classes;
  std::vector<uint32_t> members;
  for (const CollectiveInstance& instance : table.instances()) {
    const MatchedOp& op = table.OpOf(instance);
    if (!IsSynchronising(op.kind) || instance.member_count < 2 || instance.missing > 0) continue;
    members.resize(instance.member_count);
    std::iota(members.begin(), members.end(), instance.first_member);
    const auto rank = [&](uint32_t member) { return table.members()[member].rank; };
    std::sort(members.begin(), members.end(),
              [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
    std::vector<uint32_t> ranks;
    for (const uint32_t member : members) ranks.push_back(rank(member));
    EndClass& found = classes[{op.kind, op.operand_bytes, std::move(ranks)}];
    if (found.nodes.empty()) {
      for (const uint32_t m : members) found.nodes.push_back(table.NodeOf(table.members()[m]));
    }
    found.members.insert(found.members.end(), members.begin(), members.end());
  }
  std::vector<EndClass> all;
  for (auto& [key, of_key] : classes) {
    all.push_back({of_key.nodes, {}});
    const size_t size = of_key.nodes.size(), executions = of_key.executions();
    const size_t kept = std::min(executions, kEnoughExecutions);
    for (size_t k = 0; k < kept; ++k) {
      const auto first =
          of_key.members.begin() + static_cast<ptrdiff_t>(executions * k / kept * size);
      all.back().members.insert(all.back().members.end(), first,
                                first + static_cast<ptrdiff_t>(size));
    }
  }
  return all;
}

// The executions of a class on clocks as they are thought to be.
struct Lags {
  // When each execution ended, and how long it transferred, in ps.
  std::vector<double> times_ps;
  double transfer_ps = 0;
  // By member, then by execution: how long after the mean end it ended.
  std::vector<std::vector<double>> lags_ps;
  std::vector<double> medians_ps;
  // How far lags of the class are from the median of their member.
  double scatter_ps = 0;
};

Lags LagsOf(const EndClass& of, const CollectiveTable& table,
            const std::vector<LikelyClock>& clocks) {
  const size_t size = of.nodes.size();
  Lags result;
  result.lags_ps.resize(size);
  std::vector<double> transfers_ps, ends_ps(size), starts_ps(size);
  for (size_t first = 0; first < of.members.size(); first += size) {
    double mean_ps = 0;
    for (size_t m = 0; m < size; ++m) {
      const CollectiveMember& member = table.members()[of.members[first + m]];
      const LikelyClock& clock = clocks[of.nodes[m]];
      ends_ps[m] = static_cast<double>(member.end_ps) - clock.OffsetPs(member.end_ps);
      starts_ps[m] = static_cast<double>(member.start_ps) - clock.OffsetPs(member.start_ps);
      mean_ps += ends_ps[m] / static_cast<double>(size);
    }
    for (size_t m = 0; m < size; ++m) result.lags_ps[m].push_back(ends_ps[m] - mean_ps);
    transfers_ps.push_back(*std::max_element(ends_ps.begin(), ends_ps.end()) -
                           *std::max_element(starts_ps.begin(), starts_ps.end()));
    result.times_ps.push_back(mean_ps);
  }
  result.transfer_ps = std::max(0.0, Median(std::move(transfers_ps)));
  std::vector<double> deviations_ps;
  for (const std::vector<double>& of_member : result.lags_ps) {
    result.medians_ps.push_back(Median(of_member));
    for (const double lag_ps : of_member) {
      deviations_ps.push_back(std::abs(lag_ps - result.medians_ps.back()));
    }
  }
  // As standard deviations: the median of normal ones, the 90th percentile where tails are heavier.
  const double tail_ps = Quantile(deviations_ps, 0.9) / 1.645;
  result.scatter_ps =
      std::max(tail_ps, kDeviationsPerMedianDistance * Median(std::move(deviations_ps)));
  // The fewer the executions, the less they show how far they scatter; nearly Student's t.
  const auto executions = static_cast<double>(of.executions());
  result.scatter_ps *= executions / std::max(1.0, executions - 1);
  if (of.executions() < kFewExecutions) {
    result.scatter_ps = std::max(result.scatter_ps, result.transfer_ps / 4);
  }
  return result;
}

Evidence OffsetEvidence(const EndClass& of, const Lags& lags, double shortest_ps) {
  const double bias_ps = kShareOfTransfer * lags.transfer_ps + kShareOfShortest * shortest_ps;
  Evidence evidence = {&of.nodes, lags.medians_ps};
  const double scatter = lags.scatter_ps * lags.scatter_ps;
  // A picosecond is as exact as anything gets.
  const double noise =
      1 + bias_ps * bias_ps + scatter * kHalfPi / static_cast<double>(of.executions());
  evidence.own_variance = noise + scatter;
  evidence.typical_variance = noise + scatter * kTypicalShareOfScatter * kTypicalShareOfScatter;
  return evidence;
}

// Compares the last third of the executions with the first.
Evidence DriftEvidence(const EndClass& of, const Lags& lags) {
  Evidence evidence = {&of.nodes, std::vector<double>(of.nodes.size())};
  evidence.own_variance = std::numeric_limits<double>::infinity();
  if (of.executions() < kDriftExecutions) return evidence;
  const auto third = static_cast<ptrdiff_t>(of.executions() / 3);
  const auto gained = [&](const std::vector<double>& values) {
    return Median({values.end() - third, values.end()}) -
           Median({values.begin(), values.begin() + third});
  };
  const double elapsed_ps = gained(lags.times_ps);
  if (elapsed_ps <= 0) return evidence;
  for (size_t m = 0; m < of.nodes.size(); ++m) {
    evidence.values[m] = gained(lags.lags_ps[m]) / elapsed_ps;
  }
  // How far members end apart may change by as much as it scatters.
  evidence.own_variance = evidence.typical_variance =
      (1 + 2 * (1 + kHalfPi / static_cast<double>(third)) * lags.scatter_ps * lags.scatter_ps) /
      (elapsed_ps * elapsed_ps);
  return evidence;
}

// Finds a value for each node from evidence about their differences; the reference has 0.
class NodeValues {
 public:
  NodeValues(std::vector<Evidence> evidence, size_t nodes, uint32_t reference)
      : evidence_(std::move(evidence)), reference_(reference), values_(nodes) {
    // Each time, classes count less that the others contradict.
    for (int round = 0; round < 4; ++round) {
      SolveLeastSquares();
      for (Evidence& evidence_of : evidence_) FindMisfit(&evidence_of);
    }
  }

  // The variance is that of the best chain of evidence to the reference.
  std::vector<Estimate> Find() const {
    std::vector<Estimate> found(values_.size());
    const std::vector<double> variances = ChainVariances();
    for (size_t n = 0; n < found.size(); ++n) found[n] = {values_[n], variances[n]};
    return found;
  }

 private:
  static double MeanOf(const Evidence& of, const std::vector<double>& values) {
    double sum = 0;
    for (const uint32_t node : *of.nodes) sum += values[node];
    return sum / static_cast<double>(of.nodes->size());
  }

  void FindMisfit(Evidence* of) const {
    double mean = 0, squares = 0;
    const auto size = static_cast<double>(of->nodes->size());
    for (size_t m = 0; m < of->values.size(); ++m) {
      mean += (of->values[m] - values_[(*of->nodes)[m]]) / size;
    }
    for (size_t m = 0; m < of->values.size(); ++m) {
      const double residual = of->values[m] - values_[(*of->nodes)[m]] - mean;
      squares += residual * residual;
    }
    of->misfit = 2 * squares / size;
  }

  // Returns the gradient of half the sum of squares at these values, without the evidence's own.
  std::vector<double> Apply(const std::vector<double>& values) const {
    std::vector<double> out(values.size());
    for (const Evidence& of : evidence_) {
      const double mean = MeanOf(of, values), weight = of.weight();
      for (const uint32_t node : *of.nodes) out[node] += weight * (values[node] - mean);
    }
    out[reference_] = 0;
    return out;
  }

  // By conjugate gradients from the values that there are, each scaled by its weight.
  void SolveLeastSquares() {
    constexpr int kMostSteps = 1000;
    const size_t n = values_.size();
    std::vector<double> residual = Apply(values_), scale(n), direction(n);
    for (double& of_node : residual) of_node = -of_node;
    for (const Evidence& of : evidence_) {
      const double mean = Mean(of.values);
      for (size_t m = 0; m < of.values.size(); ++m) {
        residual[(*of.nodes)[m]] += (of.values[m] - mean) * of.weight();
        scale[(*of.nodes)[m]] += of.weight();
      }
    }
    residual[reference_] = 0;
    double last = 0, first = 0;
    for (int step = 0; step < kMostSteps; ++step) {
      double squares = 0;
      for (size_t i = 0; i < n; ++i) {
        if (scale[i] > 0) squares += residual[i] * residual[i] / scale[i];
      }
      if (step == 0) first = squares;
      if (squares <= 1e-18 * first) break;
      for (size_t i = 0; i < n; ++i) {
        direction[i] = (scale[i] > 0 ? residual[i] / scale[i] : 0) +
                       (step > 0 ? squares / last * direction[i] : 0);
      }
      last = squares;
      const std::vector<double> applied = Apply(direction);
      double curvature = 0;
      for (size_t i = 0; i < n; ++i) curvature += direction[i] * applied[i];
      if (curvature <= 0) break;
      for (size_t i = 0; i < n; ++i) {
        values_[i] += squares / curvature * direction[i];
        residual[i] -= squares / curvature * applied[i];
      }
    }
  }

  std::vector<double> ChainVariances() const {
    std::vector<std::vector<size_t>> of_node(values_.size());
    for (size_t e = 0; e < evidence_.size(); ++e) {
      for (const uint32_t node : *evidence_[e].nodes) of_node[node].push_back(e);
    }
    std::vector<double> found(values_.size(), std::numeric_limits<double>::infinity());
    std::vector<bool> is_used(evidence_.size());
    using Reached = std::pair<double, uint32_t>;
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> next;
    found[reference_] = 0;
    next.push({0, reference_});
    while (!next.empty()) {
      const auto [variance, node] = next.top();
      next.pop();
      for (const size_t e : of_node[node]) {
        // It was reached from a nearer node.
        if (is_used[e]) continue;
        is_used[e] = true;
        const double through = variance + 2 * evidence_[e].variance();
        for (const uint32_t other : *evidence_[e].nodes) {
          if (through >= found[other]) continue;
          found[other] = through;
          next.push({through, other});
        }
      }
    }
    return found;
  }

  std::vector<Evidence> evidence_;
  const uint32_t reference_;
  std::vector<double> values_;
};

// The range of what is certain is its half-width: it is often one of its ends that is true.
constexpr double kCertainRange = 2 / 1.645;

// Returns what follows of a drift from two estimates that may err alike, the second being the middle
// of what is certain: no better than the better one, and worse where they disagree.
Estimate Join(const Estimate& a, const Estimate& b) {
  if (!std::isfinite(a.variance)) return b;
  if (!std::isfinite(b.variance) || b.variance == 0) return b;
  const double share = b.variance / (a.variance + b.variance);
  const double apart = a.value - b.value;
  return {b.value + share * apart,
          std::min(a.variance, kCertainRange * kCertainRange * b.variance) +
              share * (1 - share) * apart * apart};
}

// Returns the offset by the ends, given the middle of what is certain. Ends outside of what is
// certain are wrong, and the farther the less they count. Inside, the middle says nothing of where:
// the rank that always starts last is near one of its ends.
Estimate Confine(const Estimate& ends, const Estimate& middle) {
  if (!std::isfinite(ends.variance) || middle.variance == 0) return middle;
  const double apart = ends.value - middle.value;
  const double outside = std::max(0.0, std::abs(apart) - 2 * std::sqrt(middle.variance));
  const double trust = middle.variance / (middle.variance + outside * outside);
  const double share = middle.variance / (ends.variance + middle.variance);
  return {middle.value + trust * apart,
          trust * ends.variance + (1 - trust) * kCertainRange * kCertainRange * middle.variance +
              share * (1 - share) * apart * apart};
}

}  // namespace

double LikelyClock::RangePs(int64_t time_ps) const {
  const double away_ps = static_cast<double>(time_ps - at_ps);
  return Estimate{0, offset_ps.variance + drift.variance * away_ps * away_ps}.Range();
}

std::vector<LikelyClock> FindLikelyClocks(const CollectiveTable& table, uint32_t reference_node,
                                          const std::vector<LikelyClock>& certain) {
  // How long transfers take shows only on clocks that are nearly right.
  constexpr int kRounds = 3;
  const std::vector<EndClass> classes = ClassesOf(table);
  std::vector<LikelyClock> clocks = certain;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Lags> lags;
    double shortest_ps = kLongestLatencyPs;
    for (const EndClass& of : classes) {
      lags.push_back(LagsOf(of, table, clocks));
      shortest_ps = std::min(shortest_ps, lags.back().transfer_ps);
    }
    std::vector<Evidence> offsets, drifts;
    for (size_t c = 0; c < classes.size(); ++c) {
      offsets.push_back(OffsetEvidence(classes[c], lags[c], shortest_ps));
      Evidence drift = DriftEvidence(classes[c], lags[c]);
      if (std::isfinite(drift.own_variance)) drifts.push_back(std::move(drift));
    }
    const std::vector<Estimate> moved =
        NodeValues(std::move(offsets), clocks.size(), reference_node).Find();
    const std::vector<Estimate> turned =
        NodeValues(std::move(drifts), clocks.size(), reference_node).Find();
    for (size_t n = 0; n < clocks.size(); ++n) {
      // Of a clock of which nothing is certain, ends alone are not to be believed.
      if (!std::isfinite(certain[n].offset_ps.variance)) continue;
      clocks[n].offset_ps = Confine({clocks[n].offset_ps.value + moved[n].value, moved[n].variance},
                                    certain[n].offset_ps);
      clocks[n].drift =
          Join({clocks[n].drift.value + turned[n].value, turned[n].variance}, certain[n].drift);
    }
  }
  return clocks;
}

}  // namespace meridian
