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

// A cell takes the sum of its values times the numbers of their columns, and the rest. Column 2 d is
// the latency of dimension d, 2 d + 1 its time per byte, and the last the overhead.
struct CellCost {
  std::vector<double> values;
  double rest_ns = 0;
  const TransferCell* cell = nullptr;
};
using Series = std::vector<CellCost>;

bool IsOfBytes(size_t column) { return column % 2 == 1; }

struct Numbers {
  // By column, in ns.
  std::vector<double> values;
  std::vector<bool> is_told;
};

// One equation: what some columns make of a cell is y, to within a share of its time.
struct Equation {
  const CellCost* cost = nullptr;
  double y = 0;
};

// Returns numbers of the columns, from 0 on, that minimise the sum of relative errors: least squares,
// again and again with each error's square divided by its size. Columns that would be negative are
// left out, and 0 as all others.
std::vector<double> LeastErrors(const std::vector<Equation>& equations,
                                const std::vector<size_t>& columns, size_t column_count) {
  std::vector<double> numbers(column_count);
  std::vector<size_t> used;
  for (const size_t i : columns) {
    const bool occurs = std::any_of(equations.begin(), equations.end(),
                                    [&](const Equation& e) { return e.cost->values[i] > 0; });
    if (occurs) used.push_back(i);
  }
  while (!used.empty()) {
    Eigen::MatrixXd values(equations.size(), used.size());
    Eigen::VectorXd y(equations.size());
    for (size_t e = 0; e < equations.size(); ++e) {
      const double scale = equations[e].cost->cell->median_ns;
      y[e] = equations[e].y / scale;
      for (size_t u = 0; u < used.size(); ++u) {
        values(e, u) = equations[e].cost->values[used[u]] / scale;
      }
    }
    Eigen::VectorXd weights = Eigen::VectorXd::Ones(equations.size()), solved;
    for (int round = 0; round < kReweightings; ++round) {
      const Eigen::VectorXd roots = weights.cwiseSqrt();
      const Eigen::MatrixXd weighted = roots.asDiagonal() * values;
      solved = weighted.colPivHouseholderQr().solve(roots.cwiseProduct(y));
      weights = (y - values * solved).cwiseAbs().cwiseMax(kExactError).cwiseInverse();
    }
    // Each by what it does to the mean cell, for they have different units.
    Eigen::Index worst = 0;
    values.colwise().sum().transpose().cwiseProduct(solved).minCoeff(&worst);
    if (solved[worst] >= 0) {
      for (size_t u = 0; u < used.size(); ++u) numbers[used[u]] = solved[u];
      break;
    }
    used.erase(used.begin() + worst);
  }
  return numbers;
}

// Fits latencies and overhead, times per byte, or both. What no byte tells stays as it is.
void Fit(const std::vector<Equation>& equations, bool with_latency, bool with_bytes,
         Numbers* numbers) {
  const size_t overhead = numbers->values.size() - 1;
  std::vector<size_t> columns;
  for (size_t i = 0; i < overhead; ++i) {
    if (IsOfBytes(i) ? with_bytes : with_latency) columns.push_back(i);
  }
  if (with_latency) {
    std::set<std::vector<double>> step_counts;
    for (const Equation& equation : equations) {
      std::vector<double> steps;
      for (size_t i = 0; i < overhead; i += 2) steps.push_back(equation.cost->values[i]);
      step_counts.insert(std::move(steps));
    }
    // One more number than there are latencies takes more than one number of steps for each.
    numbers->is_told[overhead] = step_counts.size() > overhead / 2;
    if (numbers->is_told[overhead]) columns.push_back(overhead);
  }
  if (equations.empty()) return;
  if (with_latency) numbers->values[overhead] = 0;
  const std::vector<double> fitted = LeastErrors(equations, columns, numbers->values.size());
  for (const size_t i : columns) {
    if (fitted[i] > 0 || !IsOfBytes(i)) numbers->values[i] = fitted[i];
  }
}

// Returns what the bytes make of a cell, or all else.
double PartNs(const CellCost& cost, const Numbers& numbers, bool of_bytes) {
  double sum_ns = of_bytes ? 0 : cost.rest_ns;
  for (size_t i = 0; i < cost.values.size(); ++i) {
    if (IsOfBytes(i) == of_bytes) sum_ns += cost.values[i] * numbers.values[i];
  }
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
      const double time_ns = cost.cell->median_ns;
      const bool is_large =
          time_ns > least_ns && static_cast<double>(cost.cell->bytes) >= least_bytes;
      if (!is_large && &cost != &series.back()) continue;
      const double latency_ns = PartNs(cost, *numbers, /*of_bytes=*/false);
      equations.push_back({&cost, std::max(time_ns - latency_ns, 0.1 * time_ns)});
    }
  }
  Fit(equations, /*with_latency=*/false, /*with_bytes=*/true, numbers);
}

void FitLatency(const std::vector<Series>& all, Numbers* numbers) {
  std::vector<Equation> equations;
  for (const Series& series : all) {
    const double most_ns = kSmallTimes * SmallTimeOf(series);
    for (const CellCost& cost : series) {
      const double time_ns = cost.cell->median_ns;
      const double bytes_ns = PartNs(cost, *numbers, /*of_bytes=*/true);
      if (time_ns > most_ns || bytes_ns > kSmallShare * time_ns) continue;
      equations.push_back({&cost, time_ns - bytes_ns - cost.rest_ns});
    }
  }
  Fit(equations, /*with_latency=*/true, /*with_bytes=*/false, numbers);
}

// Fits all numbers to all cells at once: right where cells are as simple as that.
bool FitAtOnce(const std::vector<Series>& all, Numbers* numbers) {
  std::vector<Equation> equations;
  for (const Series& series : all) {
    for (const CellCost& cost : series) {
      equations.push_back({&cost, cost.cell->median_ns - cost.rest_ns});
    }
  }
  Fit(equations, /*with_latency=*/true, /*with_bytes=*/true, numbers);
  std::vector<double> errors;
  for (const auto& [cost, y] : equations) {
    const double time_ns = PartNs(*cost, *numbers, true) + PartNs(*cost, *numbers, false);
    errors.push_back(std::abs(time_ns / cost->cell->median_ns - 1));
  }
  return Mean(errors) <= kSimpleError;
}

Numbers FitNumbers(const std::vector<Series>& all, const Numbers& start) {
  Numbers numbers = start;
  const size_t overhead = start.values.size() - 1;
  // What is assumed of latency must not count against bandwidth.
  for (size_t i = 0; i < overhead; i += 2) numbers.values[i] = 0;
  Numbers at_once = numbers;
  if (FitAtOnce(all, &at_once)) {
    numbers = at_once;
  } else {
    for (int round = 0; round < kRounds; ++round) {
      FitBandwidth(all, &numbers);
      FitLatency(all, &numbers);
    }
  }
  // A number is told by a cell of which it makes a share.
  for (size_t i = 0; i < overhead; ++i) {
    double share = 0;
    for (const Series& series : all) {
      for (const CellCost& cost : series) {
        share = std::max(share, cost.values[i] * numbers.values[i] / cost.cell->median_ns);
      }
    }
    numbers.is_told[i] = share >= kToldShare;
    if (!numbers.is_told[i]) numbers.values[i] = start.values[i];
  }
  return numbers;
}

// Returns a number as reports have it: bandwidth in place of time per byte.
double ReportedValue(const Numbers& numbers, size_t column) {
  const double value = numbers.values[column];
  return IsOfBytes(column) ? 1 / value / GibibytesPerSecondToBytesPerNs(1) : value;
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
      CellKey key = *series[0].cell;
      key.bytes = all.size() < kLeastSeries ? 0 : static_cast<int64_t>(i);
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
    for (size_t p = 0; p < draws.size(); ++p) {
      if (fitted.is_told[p]) draws[p].push_back(ReportedValue(fitted, p));
    }
  }
  for (size_t p = 0; p < draws.size(); ++p) {
    CalibratedParameter& parameter = physics->parameters[p];
    if (draws[p].size() < kDraws / 2) parameter.set_identifiable(false);
    if (!parameter.identifiable()) continue;
    const double low = std::min(Quantile(draws[p], kTail), parameter.value());
    const double high = std::max(Quantile(draws[p], 1 - kTail), parameter.value());
    // An overhead may be nothing.
    const bool is_overhead = p + 1 == draws.size();
    parameter.set_identifiable(is_overhead || high <= kMaxSpan * low);
    if (!parameter.identifiable()) continue;
    parameter.set_low(low);
    parameter.set_high(high);
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
                                   bool with_intervals) {
  const size_t dimensions = start.network.dimensions.size();
  // The engine's steps and bytes, found by making all else free.
  std::map<CellKey, Series> by_key;
  for (const TransferCell& cell : cells) {
    CellKey key = cell;
    key.bytes = 0;
    by_key[key].push_back({std::vector<double>(2 * dimensions + 1, 1), 0, &cell});
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
        cost.values[2 * d] = factor * std::max(0.0, slow_ns[s] - rest_ns[s]) / kAskedLatencyNs;
        cost.values[2 * d + 1] = factor * std::max(0.0, narrow_ns[s] - rest_ns[s]) / kAskedBytes *
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
    given.values.insert(given.values.end(), {dimension.latency_ns, 1 / dimension.bytes_per_ns});
  }
  given.values.push_back(0);
  given.is_told.resize(given.values.size());
  const Numbers fitted = FitNumbers(all, given);
  Physics physics;
  physics.fabric = start;
  physics.overhead_ns = fitted.values.back();
  physics.latency_includes_overhead = !fitted.is_told.back();
  for (size_t d = 0; d < dimensions; ++d) {
    physics.fabric.network.dimensions[d].latency_ns = fitted.values[2 * d];
    physics.fabric.network.dimensions[d].bytes_per_ns = 1 / fitted.values[2 * d + 1];
  }
  for (size_t i = 0; i < fitted.values.size(); ++i) {
    CalibratedParameter& parameter = physics.parameters.emplace_back();
    parameter.set_name(
        i == 2 * dimensions
            ? "overhead_ns"
            : absl::StrCat(IsOfBytes(i) ? "bandwidth_gib_per_s[" : "latency_ns[", i / 2, "]"));
    parameter.set_value(ReportedValue(fitted, i));
    parameter.set_identifiable(fitted.is_told[i]);
  }
  if (with_intervals) SetIntervals(all, given, &physics);
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
