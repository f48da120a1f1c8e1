#include "astra_bridge/calibration/physics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "Eigen/Dense"
#include "absl/strings/str_cat.h"
#include "astra_bridge/calibration/engine_model.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// Bandwidth and latency are fitted in turn so often; they hardly move after the second time.
constexpr int kRounds = 4;
constexpr int kReweightings = 25;
// Cells that are off by no more than this in the mean, when all are fitted at once, have nothing
// that the three numbers do not say.
constexpr double kSimpleError = 0.05;
// A number that makes less than this share of every cell is not told.
constexpr double kToldShare = 0.2;
// Relative errors below this count as their squares, so that the weights of exact cells stay
// finite.
constexpr double kExactError = 0.01;
// A cell tells bandwidth when it takes so many times as long as small ones of its series, and
// latency when it takes at most so many times as long, and its bytes less than this share of it.
constexpr double kLargeTimes = 10;
constexpr double kSmallTimes = 2;
constexpr double kSmallShare = 0.5;
// Engine times are taken to be linear; they are asked for with these.
constexpr int64_t kAskedBytes = int64_t{1} << 20;
constexpr double kAskedLatencyNs = 1e6;
constexpr double kNoLimit = 1e6;

constexpr int kDraws = 200;
constexpr double kTail = 0.025;
// Fewer series than this say nothing about each other: cells are drawn then.
constexpr size_t kLeastSeries = 5;
// A parameter whose interval spans more than this factor is not told.
constexpr double kMaxSpan = 6;

// What a cell costs in each dimension: its time is steps x latency + bytes / bandwidth + rest.
struct CellCost {
  std::vector<double> steps;
  std::vector<double> bytes;
  double rest_ns = 0;
  const TransferCell* cell = nullptr;
};
using Series = std::vector<CellCost>;

// One equation: the values times the coefficients are y, to within a share of the scale.
struct Equation {
  std::vector<double> values;
  double y = 0;
  double scale = 1;
};

// Returns coefficients from 0 on that minimise the sum of |values x coefficients - y| / scale: least
// squares, again and again with each error's square divided by its size. Columns that would be
// negative are left out.
std::vector<double> LeastErrors(const std::vector<Equation>& equations, size_t columns) {
  std::vector<double> coefficients(columns);
  std::vector<size_t> used;
  for (size_t i = 0; i < columns; ++i) {
    const bool occurs = std::any_of(equations.begin(), equations.end(),
                                    [&](const Equation& e) { return e.values[i] > 0; });
    if (occurs) used.push_back(i);
  }
  while (!used.empty()) {
    std::fill(coefficients.begin(), coefficients.end(), 0);
    Eigen::VectorXd weights = Eigen::VectorXd::Ones(equations.size());
    for (int round = 0; round < kReweightings; ++round) {
      Eigen::MatrixXd values(equations.size(), used.size());
      Eigen::VectorXd y(equations.size());
      for (size_t e = 0; e < equations.size(); ++e) {
        const double weight = std::sqrt(weights[e]) / equations[e].scale;
        y[e] = weight * equations[e].y;
        for (size_t u = 0; u < used.size(); ++u) {
          values(e, u) = weight * equations[e].values[used[u]];
        }
      }
      const Eigen::VectorXd solved = values.colPivHouseholderQr().solve(y);
      for (size_t u = 0; u < used.size(); ++u) coefficients[used[u]] = solved[u];
      for (size_t e = 0; e < equations.size(); ++e) {
        double rest = equations[e].y;
        for (const size_t i : used) rest -= equations[e].values[i] * coefficients[i];
        weights[e] = 1 / std::max(std::abs(rest) / equations[e].scale, kExactError);
      }
    }
    // Each by what it does to the mean cell, for they have different units.
    const auto effect = [&](size_t i) {
      double sum = 0;
      for (const Equation& equation : equations) sum += equation.values[i] / equation.scale;
      return sum * coefficients[i];
    };
    const auto worst = std::min_element(used.begin(), used.end(),
                                        [&](size_t i, size_t k) { return effect(i) < effect(k); });
    if (coefficients[*worst] >= 0) return coefficients;
    coefficients[*worst] = 0;
    used.erase(worst);
  }
  return coefficients;
}

struct Numbers {
  std::vector<double> latency_ns;
  std::vector<double> ns_per_byte;
  double overhead_ns = 0;
  std::vector<bool> latency_told;
  std::vector<bool> bandwidth_told;
  bool overhead_told = false;
};

double LatencyPart(const CellCost& cost, const Numbers& numbers) {
  double sum_ns = numbers.overhead_ns + cost.rest_ns;
  for (size_t d = 0; d < cost.steps.size(); ++d) sum_ns += cost.steps[d] * numbers.latency_ns[d];
  return sum_ns;
}

double BytesPart(const CellCost& cost, const Numbers& numbers) {
  double sum_ns = 0;
  for (size_t d = 0; d < cost.bytes.size(); ++d) sum_ns += cost.bytes[d] * numbers.ns_per_byte[d];
  return sum_ns;
}

// Returns how long small cells of the series take: the median of its three smallest sizes, so that
// one odd cell does not count.
double SmallTimeOf(const Series& series) {
  std::vector<double> times_ns;
  for (const CellCost& cost : series) {
    if (times_ns.size() < 3) times_ns.push_back(cost.cell->median_ns);
  }
  return Median(std::move(times_ns));
}

void FitBandwidth(const std::vector<Series>& all, Numbers* numbers) {
  std::vector<Equation> equations;
  for (const Series& series : all) {
    const double least_ns = kLargeTimes * SmallTimeOf(series);
    const double least_bytes = static_cast<double>(series.back().cell->bytes) / kLargeSpan;
    for (const CellCost& cost : series) {
      const bool is_large =
          cost.cell->median_ns > least_ns && static_cast<double>(cost.cell->bytes) >= least_bytes;
      if (!is_large && &cost != &series.back()) continue;
      const double time_ns = cost.cell->median_ns;
      equations.push_back(
          {cost.bytes, std::max(time_ns - LatencyPart(cost, *numbers), 0.1 * time_ns), time_ns});
    }
  }
  const std::vector<double> fitted = LeastErrors(equations, numbers->ns_per_byte.size());
  for (size_t d = 0; d < fitted.size(); ++d) {
    if (fitted[d] > 0) numbers->ns_per_byte[d] = fitted[d];
  }
}

void FitLatency(const std::vector<Series>& all, Numbers* numbers) {
  const size_t dimensions = numbers->latency_ns.size();
  std::vector<Equation> equations;
  std::set<std::vector<double>> step_counts;
  for (const Series& series : all) {
    const double most_ns = kSmallTimes * SmallTimeOf(series);
    for (const CellCost& cost : series) {
      const double time_ns = cost.cell->median_ns;
      const double bytes_ns = BytesPart(cost, *numbers);
      if (time_ns > most_ns || bytes_ns > kSmallShare * time_ns) continue;
      equations.push_back({cost.steps, time_ns - bytes_ns - cost.rest_ns, time_ns});
      step_counts.insert(cost.steps);
    }
  }
  // One more number than there are latencies takes more than one number of steps for each.
  numbers->overhead_told = step_counts.size() > dimensions;
  for (Equation& equation : equations) {
    if (numbers->overhead_told) equation.values.push_back(1);
  }
  if (equations.empty()) return;
  const std::vector<double> fitted =
      LeastErrors(equations, dimensions + (numbers->overhead_told ? 1 : 0));
  for (size_t d = 0; d < dimensions; ++d) numbers->latency_ns[d] = fitted[d];
  numbers->overhead_ns = numbers->overhead_told ? fitted.back() : 0;
}

// Fits all numbers to all cells at once: right where cells are as simple as that.
void FitAtOnce(const std::vector<Series>& all, Numbers* numbers) {
  const size_t dimensions = numbers->latency_ns.size();
  std::vector<Equation> equations;
  std::set<std::vector<double>> step_counts;
  for (const Series& series : all) {
    for (const CellCost& cost : series) {
      Equation& equation = equations.emplace_back();
      equation.values = cost.steps;
      equation.values.insert(equation.values.end(), cost.bytes.begin(), cost.bytes.end());
      equation.y = cost.cell->median_ns - cost.rest_ns;
      equation.scale = cost.cell->median_ns;
      step_counts.insert(cost.steps);
    }
  }
  numbers->overhead_told = step_counts.size() > dimensions;
  for (Equation& equation : equations) {
    if (numbers->overhead_told) equation.values.push_back(1);
  }
  const std::vector<double> fitted =
      LeastErrors(equations, 2 * dimensions + (numbers->overhead_told ? 1 : 0));
  for (size_t d = 0; d < dimensions; ++d) {
    numbers->latency_ns[d] = fitted[d];
    if (fitted[dimensions + d] > 0) numbers->ns_per_byte[d] = fitted[dimensions + d];
  }
  numbers->overhead_ns = numbers->overhead_told ? fitted.back() : 0;
}

double MeanError(const std::vector<Series>& all, const Numbers& numbers) {
  std::vector<double> errors;
  for (const Series& series : all) {
    for (const CellCost& cost : series) {
      errors.push_back(std::abs(
          (LatencyPart(cost, numbers) + BytesPart(cost, numbers)) / cost.cell->median_ns - 1));
    }
  }
  return Mean(errors);
}

// A number is told by a cell of which it makes a share.
void FindTold(const std::vector<Series>& all, Numbers* numbers) {
  for (size_t d = 0; d < numbers->latency_ns.size(); ++d) {
    double of_latency = 0, of_bytes = 0;
    for (const Series& series : all) {
      for (const CellCost& cost : series) {
        const double time_ns = cost.cell->median_ns;
        of_latency = std::max(of_latency, cost.steps[d] * numbers->latency_ns[d] / time_ns);
        of_bytes = std::max(of_bytes, cost.bytes[d] * numbers->ns_per_byte[d] / time_ns);
      }
    }
    numbers->latency_told[d] = of_latency >= kToldShare;
    numbers->bandwidth_told[d] = of_bytes >= kToldShare;
  }
}

Numbers FitNumbers(const std::vector<Series>& all, const Numbers& start) {
  Numbers numbers = start;
  // What is assumed of latency must not count against bandwidth.
  std::fill(numbers.latency_ns.begin(), numbers.latency_ns.end(), 0);
  Numbers at_once = numbers;
  FitAtOnce(all, &at_once);
  if (MeanError(all, at_once) <= kSimpleError) {
    numbers = at_once;
  } else {
    for (int round = 0; round < kRounds; ++round) {
      FitBandwidth(all, &numbers);
      FitLatency(all, &numbers);
    }
  }
  FindTold(all, &numbers);
  for (size_t d = 0; d < start.latency_ns.size(); ++d) {
    if (!numbers.latency_told[d]) numbers.latency_ns[d] = start.latency_ns[d];
    if (!numbers.bandwidth_told[d]) numbers.ns_per_byte[d] = start.ns_per_byte[d];
  }
  return numbers;
}

// Returns the numbers one after the other: latency and bandwidth by dimension, then the overhead.
std::vector<double> ValuesOf(const Numbers& numbers) {
  std::vector<double> values;
  for (size_t d = 0; d < numbers.latency_ns.size(); ++d) {
    values.push_back(numbers.latency_ns[d]);
    values.push_back(1 / numbers.ns_per_byte[d] / GibibytesPerSecondToBytesPerNs(1));
  }
  values.push_back(numbers.overhead_ns);
  return values;
}

std::vector<bool> ToldOf(const Numbers& numbers) {
  std::vector<bool> told;
  for (size_t d = 0; d < numbers.latency_told.size(); ++d) {
    told.push_back(numbers.latency_told[d]);
    told.push_back(numbers.bandwidth_told[d]);
  }
  told.push_back(numbers.overhead_told);
  return told;
}

// Sets the intervals of what is told, and gives up what they do not vouch for.
void SetIntervals(const std::vector<Series>& all, const Numbers& start, Physics* physics) {
  std::vector<Series> drawn_from = all;
  if (all.size() < kLeastSeries) {
    drawn_from.clear();
    for (const Series& series : all) {
      for (const CellCost& cost : series) drawn_from.push_back({cost});
    }
  }
  std::vector<std::vector<double>> draws(physics->parameters.size());
  std::mt19937_64 random(1);
  for (int draw = 0; draw < kDraws; ++draw) {
    // Cells that were drawn one by one are put together again, for small and large are within one.
    std::map<CellKey, Series> drawn;
    for (size_t i = 0; i < drawn_from.size(); ++i) {
      const Series& series = drawn_from[random() % drawn_from.size()];
      CellKey key = KeyOf(*series[0].cell);
      std::get<1>(key) = all.size() < kLeastSeries ? 0 : static_cast<int64_t>(i);
      Series& together = drawn[key];
      together.insert(together.end(), series.begin(), series.end());
    }
    std::vector<Series> fitted_to;
    for (auto& [key, series] : drawn) {
      std::sort(series.begin(), series.end(),
                [](const CellCost& a, const CellCost& b) { return a.cell->bytes < b.cell->bytes; });
      fitted_to.push_back(std::move(series));
    }
    const Numbers fitted = FitNumbers(fitted_to, start);
    const std::vector<double> values = ValuesOf(fitted);
    const std::vector<bool> told = ToldOf(fitted);
    for (size_t p = 0; p < values.size(); ++p) {
      if (told[p]) draws[p].push_back(values[p]);
    }
  }
  for (size_t p = 0; p < draws.size(); ++p) {
    PhysicalParameter& parameter = physics->parameters[p];
    if (draws[p].size() < kDraws / 2) parameter.is_told = false;
    if (!parameter.is_told) continue;
    parameter.low = std::min(Quantile(draws[p], kTail), parameter.value);
    parameter.high = std::max(Quantile(draws[p], 1 - kTail), parameter.value);
    const bool is_overhead = p + 1 == draws.size();
    // An overhead may be nothing.
    if (!is_overhead && parameter.high > kMaxSpan * parameter.low) parameter.is_told = false;
  }
}

}  // namespace

double PortFactor(const Fabric& fabric, const TransferCell& cell) {
  const auto& dimensions = fabric.network.dimensions;
  const bool is_pairwise =
      dimensions.size() == 1 && dimensions[0].shape == BlockShape::kFullyConnected &&
      cell.kind == CollectiveKind::kAllToAll &&
      fabric.system.algorithms_of(cell.kind)[0].kind == CollectiveAlgorithm::Kind::kDirect;
  return is_pairwise ? static_cast<double>(cell.participants.size()) - 1 : 1;
}

absl::StatusOr<Physics> FitPhysics(const Fabric& start, absl::Span<const TransferCell> cells,
                                   const PhysicsOptions& options) {
  const size_t dimensions = start.network.dimensions.size();
  // The engine's steps and bytes, found by making all else free.
  std::map<CellKey, Series> by_key;
  for (const TransferCell& cell : cells) {
    CellKey key = KeyOf(cell);
    std::get<1>(key) = 0;
    by_key[key].push_back(
        {std::vector<double>(dimensions), std::vector<double>(dimensions), 0, &cell});
  }
  std::vector<TransferCell> asked;
  for (const auto& [key, series] : by_key) {
    asked.push_back(*series[0].cell);
    asked.back().bytes = kAskedBytes;
  }
  Fabric free = start;
  for (NetworkDimension& dimension : free.network.dimensions) {
    dimension.latency_ns = 0;
    dimension.bytes_per_ns = kNoLimit;
  }
  ASSIGN_OR_RETURN(const std::vector<double> rest_ns, EngineTimesNs(free, asked));
  for (size_t d = 0; d < dimensions; ++d) {
    Fabric slow = free, narrow = free;
    slow.network.dimensions[d].latency_ns = kAskedLatencyNs;
    narrow.network.dimensions[d].bytes_per_ns = 1;
    ASSIGN_OR_RETURN(const std::vector<double> slow_ns, EngineTimesNs(slow, asked));
    ASSIGN_OR_RETURN(const std::vector<double> narrow_ns, EngineTimesNs(narrow, asked));
    size_t s = 0;
    for (auto& [key, series] : by_key) {
      const double factor = PortFactor(start, asked[s]);
      for (CellCost& cost : series) {
        cost.rest_ns = factor * rest_ns[s];
        cost.steps[d] = factor * std::max(0.0, slow_ns[s] - rest_ns[s]) / kAskedLatencyNs;
        cost.bytes[d] = factor * std::max(0.0, narrow_ns[s] - rest_ns[s]) / kAskedBytes *
                        static_cast<double>(cost.cell->bytes);
      }
      ++s;
    }
  }
  std::vector<Series> all;
  for (auto& [key, series] : by_key) {
    std::sort(series.begin(), series.end(),
              [](const CellCost& a, const CellCost& b) { return a.cell->bytes < b.cell->bytes; });
    all.push_back(std::move(series));
  }
  Numbers given;
  for (const NetworkDimension& dimension : start.network.dimensions) {
    given.latency_ns.push_back(dimension.latency_ns);
    given.ns_per_byte.push_back(1 / dimension.bytes_per_ns);
  }
  given.latency_told.resize(dimensions);
  given.bandwidth_told.resize(dimensions);
  const Numbers fitted = FitNumbers(all, given);

  Physics physics;
  physics.fabric = start;
  physics.overhead_ns = fitted.overhead_ns;
  physics.latency_includes_overhead = !fitted.overhead_told;
  const std::vector<double> values = ValuesOf(fitted);
  for (size_t d = 0; d < dimensions; ++d) {
    NetworkDimension& dimension = physics.fabric.network.dimensions[d];
    dimension.latency_ns = fitted.latency_ns[d];
    dimension.bytes_per_ns = 1 / fitted.ns_per_byte[d];
    physics.parameters.push_back(
        {absl::StrCat("latency_ns[", d, "]"), values[2 * d], fitted.latency_told[d]});
    physics.parameters.push_back({absl::StrCat("bandwidth_gib_per_s[", d, "]"), values[2 * d + 1],
                                  fitted.bandwidth_told[d]});
  }
  physics.parameters.push_back({"overhead_ns", fitted.overhead_ns, fitted.overhead_told});
  if (options.with_intervals) SetIntervals(all, given, &physics);
  return physics;
}

absl::StatusOr<std::vector<double>> PhysicalTimesNs(const Physics& physics,
                                                    absl::Span<const TransferCell> cells) {
  ASSIGN_OR_RETURN(std::vector<double> times_ns, EngineTimesNs(physics.fabric, cells));
  for (size_t i = 0; i < cells.size(); ++i) {
    times_ns[i] = physics.overhead_ns + PortFactor(physics.fabric, cells[i]) * times_ns[i];
  }
  return times_ns;
}

}  // namespace meridian
