#include "astra_bridge/calibration/correction_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "astra_bridge/calibration/robust_statistics.h"
#include "astra_bridge/calibration/size_ranges.h"
#include "astra_bridge/comm_kind.h"

namespace meridian {
namespace {

constexpr double kHuberBound = 1.5;
// What even the right line misses, relative to the time: noise of the medians is of this order.
constexpr double kModelError = 0.05;
// Standard deviation of an overhead about zero, relative to the time, where nothing is known of it.
constexpr double kOverheadDeviation = 0.3;
constexpr int kReweightings = 20;
// An efficiency above 100 would be read as a slip; times that do not grow with bytes at all have
// it.
constexpr double kLeastSlope = 0.01;
// Times that grow by this factor more than bytes are a cliff.
constexpr double kCliffFactor = 1.25;
// And by so many standard errors.
constexpr double kCliffDeviations = 3;
// An error beyond a factor of e counts as one: how wrong hardly matters then.
constexpr double kMaxLogError = 1;
// For logarithms.
constexpr double kLeastNs = 1e-3;

constexpr double kPenalties[] = {4, 2, 1};
// A jump also makes a segment of its middle, which has no numbers of its own.
constexpr double kJumpPenalties = 1.5;

double DeviationOf(const CorrectionPoint& point) {
  return std::hypot(point.relative_error, kModelError);
}

// Returns the bytes that far from low to high, on a scale of ratios.
int64_t ShareOfWay(int64_t low, int64_t high, double share) {
  return std::llround(std::exp((1 - share) * std::log(static_cast<double>(low)) +
                               share * std::log(static_cast<double>(high))));
}

// Segments in the making, ascending.
class SegmentList {
 public:
  // One that would hold no bytes is left out.
  void Add(int64_t up_to_bytes, double overhead_ns, double slope) {
    if (!segments_.empty() && up_to_bytes <= segments_.back().up_to_bytes) return;
    segments_.push_back({up_to_bytes, overhead_ns, 1 / slope});
  }

  void AddMeanWith(int64_t up_to_bytes, double overhead_ns, double slope) {
    const CorrectionSegment last = segments_.back();
    Add(up_to_bytes, (last.overhead_ns + overhead_ns) / 2, (1 / last.efficiency + slope) / 2);
  }

  // Of the last.
  void MoveEnd(int64_t up_to_bytes) { segments_.back().up_to_bytes = up_to_bytes; }

  std::vector<CorrectionSegment> Finish() && {
    MoveEnd(std::numeric_limits<int64_t>::max());
    return std::move(segments_);
  }

 private:
  std::vector<CorrectionSegment> segments_;
};

using PointsByKind = std::array<std::vector<CorrectionPoint>, kCommKinds>;

PointsByKind MakePoints(absl::Span<const TransferCell> cells, absl::Span<const double> engine_ns) {
  PointsByKind points;
  std::map<std::pair<int32_t, std::vector<int32_t>>, uint32_t> groups;
  for (size_t i = 0; i < cells.size(); ++i) {
    const TransferCell& cell = cells[i];
    const uint32_t next = static_cast<uint32_t>(groups.size());
    const uint32_t group = groups.insert({{cell.ranks, cell.participants}, next}).first->second;
    points[static_cast<size_t>(cell.kind)].push_back(
        {cell.bytes, group, engine_ns[i], cell.median_ns, cell.relative_error});
  }
  for (std::vector<CorrectionPoint>& of_kind : points) of_kind = MergeSizes(of_kind);
  return points;
}

// The geometric mean of a group's points.
CorrectionPoint MeanPoint(int64_t bytes, uint32_t group,
                          const std::vector<CorrectionPoint>& points) {
  double log_engine = 0, log_measured = 0, variance = 0;
  for (const CorrectionPoint& point : points) {
    log_engine += std::log(point.engine_ns);
    log_measured += std::log(point.measured_ns);
    variance += point.relative_error * point.relative_error;
  }
  const double count = static_cast<double>(points.size());
  return {bytes, group, std::exp(log_engine / count), std::exp(log_measured / count),
          std::sqrt(variance) / count};
}

// Of a kind's points, those that are to be predicted and those to do it from.
struct LeftOutSize {
  CommKind kind;
  std::vector<CorrectionPoint> held;
  std::vector<CorrectionPoint> rest;
};

std::vector<LeftOutSize> LeaveOutSizes(const PointsByKind& points) {
  std::vector<LeftOutSize> all;
  for (size_t kind = 0; kind < points.size(); ++kind) {
    std::map<int64_t, std::vector<CorrectionPoint>> by_bytes;
    for (const CorrectionPoint& point : points[kind]) by_bytes[point.bytes].push_back(point);
    for (const auto& [bytes, held] : by_bytes) {
      if (bytes == by_bytes.begin()->first || bytes == by_bytes.rbegin()->first) continue;
      LeftOutSize left_out{static_cast<CommKind>(kind), held, {}};
      for (const CorrectionPoint& point : points[kind]) {
        if (point.bytes != bytes) left_out.rest.push_back(point);
      }
      all.push_back(std::move(left_out));
    }
  }
  return all;
}

}  // namespace

SegmentedLine::SegmentedLine(const std::vector<CorrectionPoint>& points, double least_engine_ns)
    : least_engine_ns_(least_engine_ns) {
  std::map<int64_t, std::vector<CorrectionPoint>> by_bytes;
  for (const CorrectionPoint& point : points) by_bytes[point.bytes].push_back(point);
  for (auto& [bytes, of_size] : by_bytes) by_size_.push_back(std::move(of_size));
  lines_.resize(sizes());
  for (size_t first = 0; first < sizes(); ++first) {
    for (size_t last = first; last < sizes(); ++last) {
      lines_[first].push_back(FitLine(first, last));
    }
    cliffs_.push_back(IsCliff(first));
  }
}

// Least squares of relative errors, 1 - predicted / measured, reweighted until outliers count no
// more than Huber's loss lets them.
SegmentedLine::Line SegmentedLine::FitLine(size_t first, size_t last) const {
  // A point over its measured time: what overhead (one) and slope (x) are multiplied by.
  struct Term {
    double one, x, from_least, deviation;
  };
  std::vector<Term> terms;
  std::vector<double> measured_ns;
  for (size_t size = first; size <= last; ++size) {
    for (const CorrectionPoint& point : by_size_[size]) {
      const double one = 1 / point.measured_ns;
      terms.push_back({one, point.engine_ns * one, (point.engine_ns - least_engine_ns_) * one,
                       DeviationOf(point)});
      measured_ns.push_back(point.measured_ns);
    }
  }
  const double overhead_deviation_ns = kOverheadDeviation * Median(std::move(measured_ns));
  Line line;
  for (int round = 0; round < kReweightings; ++round) {
    // Sums over points of what overhead (o) and slope (s) are multiplied by; in the last two the
    // line is through zero at the least engine time.
    double oo = 1 / (overhead_deviation_ns * overhead_deviation_ns);
    double os = 0, ss = 0, o = 0, s = 0, ss_from_least = 0, s_from_least = 0;
    for (const auto& [one, x, from_least, deviation] : terms) {
      const double error = 1 - line.overhead_ns * one - line.slope * x;
      const double huber = round == 0 ? 1 : HuberWeight(error / deviation, kHuberBound);
      const double weight = huber / (deviation * deviation);
      oo += weight * one * one;
      os += weight * one * x;
      ss += weight * x * x;
      o += weight * one;
      s += weight * x;
      ss_from_least += weight * from_least * from_least;
      s_from_least += weight * from_least;
    }
    const Line before = line;
    const double determinant = oo * ss - os * os;
    line.overhead_ns = (o * ss - os * s) / determinant;
    line.slope = (oo * s - os * o) / determinant;
    if (line.overhead_ns < -line.slope * least_engine_ns_ && ss_from_least > 0) {
      line.slope = s_from_least / ss_from_least;
      line.overhead_ns = -line.slope * least_engine_ns_;
    }
    if (line.slope < kLeastSlope) {
      line.slope = kLeastSlope;
      line.overhead_ns = (o - kLeastSlope * os) / oo;
    }
    if (line.overhead_ns == before.overhead_ns && line.slope == before.slope) break;
  }
  for (size_t size = first; size <= last; ++size) {
    double loss = 0;
    for (const CorrectionPoint& point : by_size_[size]) {
      const double predicted_ns = line.overhead_ns + line.slope * point.engine_ns;
      const double log_error = std::log(std::max(predicted_ns, kLeastNs) / point.measured_ns);
      loss += HuberLoss(log_error / DeviationOf(point), kHuberBound);
    }
    line.losses.push_back(loss);
  }
  return line;
}

// Sizes at the ends count half: the segment beside has them, too.
double SegmentedLine::LossOf(size_t first, size_t last) const {
  const Line& line = LineOf(first, last);
  double loss = 0;
  for (size_t size = first; size <= last; ++size) {
    const bool shared = (size == first && first > 0) || (size == last && last + 1 < sizes());
    loss += line.losses[size - first] * (shared ? 0.5 : 1);
  }
  return loss;
}

bool SegmentedLine::IsCliff(size_t size) const {
  if (size + 1 >= sizes()) return false;
  const double log_growth =
      std::log(static_cast<double>(BytesOf(size + 1)) / static_cast<double>(BytesOf(size)));
  std::vector<double> excesses, deviations;
  for (const CorrectionPoint& before : by_size_[size]) {
    for (const CorrectionPoint& after : by_size_[size + 1]) {
      if (before.group != after.group) continue;
      excesses.push_back(std::log(after.measured_ns / before.measured_ns) - log_growth);
      deviations.push_back(std::hypot(before.relative_error, after.relative_error));
    }
  }
  if (excesses.empty()) return false;
  const double deviation = Median(std::move(deviations));
  return Median(std::move(excesses)) >
         std::max(std::log(kCliffFactor), kCliffDeviations * deviation);
}

// The cheapest way from the first size to the last.
std::vector<SegmentedLine::Step> SegmentedLine::BestSteps(double penalty) const {
  std::vector<double> costs(sizes(), std::numeric_limits<double>::infinity());
  std::vector<Step> steps(sizes());
  costs[0] = 0;
  for (size_t to = 1; to < sizes(); ++to) {
    const auto offer = [&](size_t from, double cost, StepKind kind) {
      if (costs[from] + cost >= costs[to]) return;
      costs[to] = costs[from] + cost;
      steps[to] = {from, kind};
    };
    for (size_t from = 0; from < to; ++from) {
      offer(from, LossOf(from, to) + penalty, StepKind::kLine);
    }
    offer(to - 1, kJumpPenalties * penalty, cliffs_[to - 1] ? StepKind::kCliff : StepKind::kJump);
  }
  return steps;
}

std::vector<CorrectionSegment> SegmentedLine::Fit(double penalty) const {
  const std::vector<Step> steps = BestSteps(penalty);
  // Sizes that steps end at, ascending, from the first size on.
  std::vector<size_t> ends = {sizes() - 1};
  while (ends.front() > 0) ends.insert(ends.begin(), steps[ends.front()].from);
  const auto is_line = [&](size_t i) {
    return i < ends.size() && steps[ends[i]].kind == StepKind::kLine;
  };
  // The line that begins at the i-th end; a size between jumps has one of its own.
  const auto line_from = [&](size_t i) -> const Line& {
    return LineOf(ends[i], is_line(i + 1) ? ends[i + 1] : ends[i]);
  };
  SegmentList segments;
  if (!is_line(1)) segments.Add(BytesOf(0), line_from(0).overhead_ns, line_from(0).slope);
  for (size_t i = 1; i < ends.size(); ++i) {
    const int64_t low = BytesOf(ends[i - 1]);
    const int64_t high = BytesOf(ends[i]);
    if (is_line(i)) {
      const Line& line = line_from(i - 1);
      segments.Add(high, line.overhead_ns, line.slope);
      continue;
    }
    const Line& next = line_from(i);
    if (steps[ends[i]].kind == StepKind::kCliff) {
      segments.MoveEnd(ShareOfWay(low, high, 0.5));
    } else {
      segments.MoveEnd(ShareOfWay(low, high, 1.0 / 3));
      segments.AddMeanWith(ShareOfWay(low, high, 2.0 / 3), next.overhead_ns, next.slope);
    }
    if (!is_line(i + 1)) segments.Add(high, next.overhead_ns, next.slope);
  }
  return std::move(segments).Finish();
}

absl::Span<const double> SegmentPenalties() { return kPenalties; }

std::vector<CorrectionPoint> MergeSizes(const std::vector<CorrectionPoint>& points) {
  std::set<int64_t> sizes;
  for (const CorrectionPoint& point : points) sizes.insert(point.bytes);
  if (sizes.size() <= kMaxSizes) return points;
  const SizeRanges ranges(*sizes.begin(), *sizes.rbegin(), kMaxSizes);
  std::array<std::vector<double>, kMaxSizes> log_bytes;
  for (int64_t bytes : sizes) {
    log_bytes[ranges.RangeOf(bytes)].push_back(std::log(static_cast<double>(bytes)));
  }
  std::map<std::pair<size_t, uint32_t>, std::vector<CorrectionPoint>> by_range;
  for (const CorrectionPoint& point : points) {
    by_range[{ranges.RangeOf(point.bytes), point.group}].push_back(point);
  }
  std::vector<CorrectionPoint> merged;
  for (const auto& [range_and_group, of_group] : by_range) {
    const auto& [range, group] = range_and_group;
    merged.push_back(MeanPoint(std::llround(std::exp(Mean(log_bytes[range]))), group, of_group));
  }
  return merged;
}

PenaltyChoice ChoosePenalty(absl::Span<const TransferCell> cells,
                            absl::Span<const double> engine_ns, const KindTimes& least_engine_ns) {
  const absl::Span<const double> penalties = SegmentPenalties();
  // By penalty; all in the same order of points.
  std::vector<std::vector<double>> errors(penalties.size());
  for (const LeftOutSize& left_out : LeaveOutSizes(MakePoints(cells, engine_ns))) {
    const SegmentedLine line(left_out.rest, least_engine_ns[static_cast<size_t>(left_out.kind)]);
    for (size_t p = 0; p < penalties.size(); ++p) {
      Corrections corrections;
      corrections.segments[static_cast<size_t>(left_out.kind)] = line.Fit(penalties[p]);
      for (const CorrectionPoint& point : left_out.held) {
        const double predicted_ns =
            corrections.CorrectedNs(left_out.kind, point.bytes, point.engine_ns);
        errors[p].push_back(
            std::min(kMaxLogError,
                     std::abs(std::log(std::max(predicted_ns, kLeastNs) / point.measured_ns))));
      }
    }
  }
  if (errors[0].empty()) return {penalties[0], 0, 0};
  size_t best = 0;
  for (size_t p = 1; p < penalties.size(); ++p) {
    if (Mean(errors[p]) < Mean(errors[best])) best = p;
  }
  for (size_t p = 0; p < best; ++p) {
    double sum = 0, squares = 0;
    const double count = static_cast<double>(errors[p].size());
    for (size_t i = 0; i < errors[p].size(); ++i) {
      const double difference = errors[p][i] - errors[best][i];
      sum += difference;
      squares += difference * difference;
    }
    const double mean = sum / count;
    const double variance = std::max(0.0, squares / count - mean * mean);
    if (mean <= std::sqrt(variance / count)) {
      return {penalties[p], Mean(errors[p]), Mean(errors[best])};
    }
  }
  return {penalties[best], Mean(errors[best]), Mean(errors[best])};
}

Corrections FitCorrections(absl::Span<const TransferCell> cells, absl::Span<const double> engine_ns,
                           const KindTimes& least_engine_ns, double penalty) {
  Corrections corrections;
  const PointsByKind points = MakePoints(cells, engine_ns);
  for (size_t kind = 0; kind < points.size(); ++kind) {
    if (points[kind].empty()) continue;
    corrections.segments[kind] = SegmentedLine(points[kind], least_engine_ns[kind]).Fit(penalty);
  }
  return corrections;
}

}  // namespace meridian
