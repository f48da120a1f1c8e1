#include "astra_bridge/calibration/calibrated_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

constexpr int64_t kAskedSmall = int64_t{1} << 16;
constexpr int64_t kAskedLarge = int64_t{1} << 26;

// A table is believed when its error is smaller than that of physics by this factor.
constexpr double kLeastAdvantage = 0.9;
// What physics is off by less than that in the mean needs no table.
constexpr double kNegligible = 0.03;
// Messages both ways that take so many times as long as rings take turns.
constexpr double kTakesTurns = 1.15;
// Sizes of neighbours within this factor have a say in how a size grows with the ranks.
constexpr double kNeighbours = 2.1;

// A size of a curve, which is a kind with a number of ranks: what was measured over physics.
struct TablePoint {
  double bytes = 0;
  double ratio = 1;
  // How far halves of the repeats are apart, as a logarithm; nullopt without repeats.
  std::optional<double> scatter;
};
// By kind, whether one way, and the ranks that move data; points in ascending order of bytes.
using CurveKey = std::tuple<CollectiveKind, bool, int32_t>;
using Curves = std::map<CurveKey, std::vector<TablePoint>>;

std::optional<double> HalvesApart(const TransferCell& cell) {
  if (cell.transfers_ns.size() < 4) return std::nullopt;
  std::vector<double> halves[2];
  for (size_t i = 0; i < cell.transfers_ns.size(); ++i)
    halves[i % 2].push_back(cell.transfers_ns[i]);
  return std::abs(std::log(Median(halves[0]) / Median(halves[1])));
}

// Returns one point for each kind, size and number of ranks: the geometric mean over its cells,
// wherever their groups lie. Sizes nearer to each other than kSameSizeFactor share a point.
Curves MakeCurves(absl::Span<const TransferCell> cells, const std::vector<double>& physical_ns) {
  std::map<CurveKey, std::map<int64_t, std::vector<size_t>>> by_curve;
  for (size_t i = 0; i < cells.size(); ++i) {
    by_curve[{cells[i].kind, IsOneWay(cells[i]), MovingRanksOf(cells[i])}][cells[i].bytes]
        .push_back(i);
  }
  Curves curves;
  for (const auto& [key, sizes] : by_curve) {
    for (auto size = sizes.begin(); size != sizes.end();) {
      const double end_bytes = kSameSizeFactor * static_cast<double>(size->first);
      std::vector<double> log_bytes, log_ratios, scatters;
      for (; size != sizes.end() && static_cast<double>(size->first) < end_bytes; ++size) {
        for (const size_t i : size->second) {
          log_bytes.push_back(std::log(static_cast<double>(cells[i].bytes)));
          log_ratios.push_back(std::log(cells[i].median_ns / physical_ns[i]));
          if (const auto apart = HalvesApart(cells[i])) scatters.push_back(*apart);
        }
      }
      TablePoint point{std::exp(Mean(log_bytes)), std::exp(Mean(log_ratios)), std::nullopt};
      if (!scatters.empty()) point.scatter = Mean(scatters);
      curves[key].push_back(point);
    }
  }
  return curves;
}

// Returns whether the table of a kind predicts better than physics: sizes between two others by
// these two, and sizes at an end by the other half of their repeats.
bool IsTableBetter(const std::vector<const std::vector<TablePoint>*>& curves) {
  double by_table = 0, by_physics = 0;
  int points = 0;
  for (const std::vector<TablePoint>* curve : curves) {
    for (size_t i = 0; i < curve->size(); ++i) {
      const TablePoint& point = (*curve)[i];
      const double off = std::log(point.ratio);
      if (i > 0 && i + 1 < curve->size()) {
        const TablePoint &below = (*curve)[i - 1], &above = (*curve)[i + 1];
        const double share =
            std::log(point.bytes / below.bytes) / std::log(above.bytes / below.bytes);
        const double between = (1 - share) * std::log(below.ratio) + share * std::log(above.ratio);
        by_table += std::abs(off - between);
      } else if (point.scatter.has_value()) {
        by_table += *point.scatter;
      } else {
        continue;
      }
      by_physics += std::abs(off);
      ++points;
    }
  }
  return by_physics > kNegligible * points && by_table < kLeastAdvantage * by_physics;
}

using Times = std::map<int64_t, std::map<int32_t, double>>;

TransferCell CellOf(CollectiveKind kind, int64_t bytes, int32_t ranks) {
  TransferCell cell;
  cell.kind = kind;
  cell.bytes = bytes;
  cell.ranks = ranks;
  cell.participants.resize(ranks);
  absl::c_iota(cell.participants, 0);
  return cell;
}

// Returns what a line over the logarithm of the ranks says of more: from the last point on, with
// the median slope from one point to another. At least two points.
double AlongLogarithm(const std::map<int32_t, double>& times_ns, int32_t ranks) {
  const auto& [last_ranks, last_ns] = *times_ns.rbegin();
  std::vector<double> slopes;
  for (auto a = times_ns.begin(); a != times_ns.end(); ++a) {
    for (auto b = std::next(a); b != times_ns.end(); ++b) {
      slopes.push_back((b->second - a->second) /
                       std::log2(static_cast<double>(b->first) / a->first));
    }
  }
  const double slope = std::max(0.0, Median(std::move(slopes)));
  return last_ns + slope * std::log2(static_cast<double>(ranks) / last_ranks);
}

class Table {
 public:
  Table(const Physics& physics, CollectiveKind kind, int32_t most_ranks)
      : physics_(physics), kind_(kind), up_to_ranks_(most_ranks) {}

  // Adds the points of a number of ranks; with ratios of 1 where physics is as good. Pairs of a
  // fully connected network have links of their own, which leaves something to correct even then.
  absl::Status AddCurve(int32_t ranks, const std::vector<TablePoint>& curve, bool is_better) {
    const bool is_pairwise = PortFactor(physics_.fabric, CellOf(kind_, 1, 3)) != 1;
    for (const TablePoint& point : curve) {
      const int64_t bytes = std::llround(point.bytes);
      ASSIGN_OR_RETURN(const double physical_ns, PhysicalNs(bytes, ranks));
      const double time_ns = physical_ns * (is_better ? point.ratio : 1);
      times_ns_[bytes][ranks] = physical_ns * point.ratio;
      most_ranks_ = std::max(most_ranks_, ranks);
      if (is_better || is_pairwise) AddPoint(bytes, ranks, time_ns);
    }
    return absl::OkStatus();
  }

  absl::Status AddGrowth() {
    RETURN_IF_ERROR(CompareRules());
    const bool grows_otherwise =
        absl::c_any_of(times_ns_, [&](const auto& size) { return IsLogarithmic(size.first); });
    if (points_.empty() && !grows_otherwise) return absl::OkStatus();
    // Physics is as good for what was measured, but not for what grows from it.
    if (points_.empty()) {
      for (const auto& [bytes, by_ranks] : times_ns_) {
        for (const auto& [ranks, ns] : by_ranks) {
          points_.push_back({bytes, 1, static_cast<double>(ranks)});
        }
      }
      absl::c_sort(points_, IsBefore);
    }
    for (int32_t ranks = 2 * most_ranks_; ranks / 2 < up_to_ranks_ && ranks <= kMaxNpus;
         ranks *= 2) {
      // A network whose nodes these ranks do not fill does not grow.
      if (FabricForRanks(physics_.fabric, ranks).network.npus() < ranks) break;
      RETURN_IF_ERROR(AddPointsFrom(most_ranks_, ranks));
    }
    return absl::OkStatus();
  }

  // Adds points of fewer ranks than were measured where the engine's links between pairs would have
  // theirs too long: by physics, with the ratios of the fewest.
  absl::Status AddFewer() {
    if (PortFactor(physics_.fabric, CellOf(kind_, 1, 3)) == 1 || points_.empty()) {
      return absl::OkStatus();
    }
    const int32_t least = static_cast<int32_t>(absl::c_min_element(points_, IsBefore)->ranks);
    for (int32_t ranks = least / 2; ranks >= 2; ranks /= 2) {
      RETURN_IF_ERROR(AddPointsFrom(least, ranks));
    }
    absl::c_sort(points_, IsBefore);
    return absl::OkStatus();
  }

  std::vector<CorrectionPoint> TakePoints() { return std::move(points_); }

 private:
  // Returns PhysicalTimesNs of so many ranks, and sets what corrections multiply. The engine is
  // asked for two sizes: its times of one collective lie on a line over the bytes.
  absl::StatusOr<double> PhysicalNs(int64_t bytes, int32_t ranks) {
    const TransferCell small = CellOf(kind_, kAskedSmall, ranks);
    auto found = lines_.find(ranks);
    if (found == lines_.end()) {
      const TransferCell large = CellOf(kind_, kAskedLarge, ranks);
      ASSIGN_OR_RETURN(const std::vector<double> times_ns,
                       EngineTimesNs(physics_.fabric, {small, large}));
      found = lines_.insert({ranks, {times_ns[0], times_ns[1]}}).first;
    }
    const double slope = (found->second.second - found->second.first) /
                         static_cast<double>(kAskedLarge - kAskedSmall);
    const double engine_ns = std::max(
        kLeastEngineNs, found->second.first + slope * static_cast<double>(bytes - kAskedSmall));
    uncorrected_ns_ = physics_.overhead_ns + engine_ns;
    return physics_.overhead_ns + PortFactor(physics_.fabric, small) * engine_ns;
  }

  // Of the size and ranks of the last PhysicalNs.
  void AddPoint(int64_t bytes, int32_t ranks, double time_ns) {
    points_.push_back({bytes, time_ns / uncorrected_ns_, static_cast<double>(ranks)});
  }

  // Adds points of so many ranks for all sizes that were measured with `from` ranks, the most or the
  // fewest: by physics with the ratio there or, of more, along a logarithm where that is better.
  absl::Status AddPointsFrom(int32_t from, int32_t ranks) {
    for (const auto& [bytes, by_ranks] : times_ns_) {
      const auto measured = by_ranks.find(from);
      if (measured == by_ranks.end()) continue;
      ASSIGN_OR_RETURN(const double from_ns, PhysicalNs(bytes, from));
      ASSIGN_OR_RETURN(const double physical_ns, PhysicalNs(bytes, ranks));
      AddPoint(bytes, ranks,
               ranks > from && IsLogarithmic(bytes) ? AlongLogarithm(by_ranks, ranks)
                                                    : measured->second * physical_ns / from_ns);
    }
    return absl::OkStatus();
  }

  // Finds how far both rules are off for the largest number of ranks, by size.
  absl::Status CompareRules() {
    for (const auto& [bytes, by_ranks] : times_ns_) {
      if (by_ranks.size() < 3 || by_ranks.rbegin()->first != most_ranks_) continue;
      const std::map<int32_t, double> fewer(by_ranks.begin(), std::prev(by_ranks.end()));
      const auto& [ranks, last_ns] = *fewer.rbegin();
      ASSIGN_OR_RETURN(const double before_ns, PhysicalNs(bytes, ranks));
      ASSIGN_OR_RETURN(const double physical_ns, PhysicalNs(bytes, most_ranks_));
      const double measured_ns = by_ranks.rbegin()->second;
      errors_[bytes] = {std::abs(std::log(last_ns * physical_ns / before_ns / measured_ns)),
                        std::abs(std::log(AlongLogarithm(fewer, most_ranks_) / measured_ns))};
    }
    return absl::OkStatus();
  }

  bool IsLogarithmic(int64_t bytes) const {
    double by_physics = 0, by_logarithm = 0;
    for (const auto& [other, errors] : errors_) {
      const double times = static_cast<double>(other) / static_cast<double>(bytes);
      if (times > kNeighbours || times < 1 / kNeighbours) continue;
      by_physics += errors.first;
      by_logarithm += errors.second;
    }
    return by_logarithm < by_physics;
  }

  const Physics& physics_;
  const CollectiveKind kind_;
  const int32_t up_to_ranks_;
  // Engine times of kAskedSmall and kAskedLarge by the number of ranks.
  std::map<int32_t, std::pair<double, double>> lines_;
  std::vector<CorrectionPoint> points_;
  Times times_ns_;
  int32_t most_ranks_ = 0;
  double uncorrected_ns_ = 1;
  // How far physics and the logarithm are off.
  std::map<int64_t, std::pair<double, double>> errors_;
};

// Adds what messages one way take where ports take turns and none was measured (see FitModel).
absl::Status AssumeOneWay(absl::Span<const TransferCell> cells,
                          const std::vector<double>& physical_ns, CalibratedModel* model) {
  int64_t most_bytes = 0;
  for (const TransferCell& cell : cells) {
    if (IsOneWay(cell)) return absl::OkStatus();
    if (cell.kind == CollectiveKind::kPointToPoint) most_bytes = std::max(most_bytes, cell.bytes);
  }
  std::vector<double> ratios;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool is_large =
        kLargeSpan * static_cast<double>(cells[i].bytes) >= static_cast<double>(most_bytes);
    if (cells[i].kind != CollectiveKind::kPointToPoint || !is_large) continue;
    ratios.push_back(cells[i].median_ns / physical_ns[i]);
  }
  if (ratios.empty() || Median(ratios) < kTakesTurns) return absl::OkStatus();
  // One way is what both ways of half the bytes are.
  for (CorrectionPoint point :
       model->corrections.points[static_cast<size_t>(CollectiveKind::kPointToPoint)]) {
    TransferCell whole = CellOf(CollectiveKind::kPointToPoint, point.bytes, 2);
    TransferCell half =
        CellOf(CollectiveKind::kPointToPoint, std::max<int64_t>(1, point.bytes / 2), 2);
    ASSIGN_OR_RETURN(const std::vector<double> times_ns,
                     PhysicalTimesNs(model->physics, {whole, half}));
    point.ratio *= times_ns[1] / times_ns[0];
    model->corrections.one_way.push_back(point);
    model->assumes_shared_ports = true;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CalibratedModel> FitModel(const Fabric& start, absl::Span<const TransferCell> cells,
                                         const ModelOptions& options) {
  // Messages one way may have another bandwidth than what goes both ways, as collectives do.
  std::vector<TransferCell> both_ways;
  const bool has_levels = start.network.dimensions.size() > 1;
  for (const TransferCell& cell : cells) {
    // What all-to-all costs the ports of several levels, no engine says.
    if (has_levels && cell.kind == CollectiveKind::kAllToAll) continue;
    if (!IsOneWay(cell)) both_ways.push_back(cell);
  }
  CalibratedModel model;
  ASSIGN_OR_RETURN(model.physics,
                   FitPhysics(start, both_ways.empty() ? cells : absl::MakeConstSpan(both_ways),
                              options.with_intervals));
  ASSIGN_OR_RETURN(const std::vector<double> physical_ns, PhysicalTimesNs(model.physics, cells));
  model.corrections.overhead_ns = model.physics.overhead_ns;
  std::map<std::pair<CollectiveKind, bool>, std::vector<const std::vector<TablePoint>*>> by_kind;
  const Curves curves = MakeCurves(cells, physical_ns);
  for (const auto& [key, curve] : curves) {
    by_kind[{std::get<0>(key), std::get<1>(key)}].push_back(&curve);
  }
  for (const auto& [which, of_kind] : by_kind) {
    const auto& [kind, is_one_way] = which;
    const bool is_better = IsTableBetter(of_kind);
    if (kind == CollectiveKind::kPointToPoint) {
      // A table of messages both ways would be taken for those one way, too.
      const auto other = by_kind.find({kind, !is_one_way});
      const bool is_written = is_better || (other != by_kind.end() && IsTableBetter(other->second));
      std::vector<CorrectionPoint>& points =
          is_one_way ? model.corrections.one_way
                     : model.corrections.points[static_cast<size_t>(kind)];
      for (const auto& [key, curve] : curves) {
        if (!is_written ||
            std::tie(kind, is_one_way) != std::tie(std::get<0>(key), std::get<1>(key))) {
          continue;
        }
        for (const TablePoint& point : curve) {
          points.push_back({std::llround(point.bytes), is_better ? point.ratio : 1,
                            static_cast<double>(std::get<2>(key))});
        }
      }
      continue;
    }
    Table table(model.physics, kind, options.most_ranks);
    for (const auto& [key, curve] : curves) {
      if (std::get<0>(key) != kind) continue;
      RETURN_IF_ERROR(table.AddCurve(std::get<2>(key), curve, is_better));
    }
    RETURN_IF_ERROR(table.AddGrowth());
    RETURN_IF_ERROR(table.AddFewer());
    model.corrections.points[static_cast<size_t>(kind)] = table.TakePoints();
  }
  RETURN_IF_ERROR(AssumeOneWay(cells, physical_ns, &model));
  return model;
}

}  // namespace meridian
