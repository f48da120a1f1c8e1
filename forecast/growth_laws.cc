#include "forecast/growth_laws.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "critical_path/graph/step_times.h"
#include "critical_path/what_if/selection.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// A kind of collective that is there so much more often on more ranks is no longer the same job.
constexpr double kSameCount = 0.1;
// The standard deviation of a median of normal values over that of their mean.
constexpr double kOfMedian = 1.2533;

struct Point {
  double log_ranks = 0;
  double log_value = 0;
  // Standard deviation of log_value.
  double deviation = 0;
};

struct Power {
  double power = 0;
  double deviation = 0;
};

// Least squares through at least two points with different numbers of ranks. The deviation is what
// those of the points make of it, and what the points miss the line by.
Power FitPower(absl::Span<const Point> points) {
  const double n = static_cast<double>(points.size());
  double mean_x = 0, mean_y = 0;
  for (const Point& point : points) {
    mean_x += point.log_ranks / n;
    mean_y += point.log_value / n;
  }
  double xx = 0, xy = 0;
  for (const Point& point : points) {
    xx += (point.log_ranks - mean_x) * (point.log_ranks - mean_x);
    xy += (point.log_ranks - mean_x) * (point.log_value - mean_y);
  }
  Power fit{xy / xx, 0};
  double variance = 0, missed = 0;
  for (const Point& point : points) {
    const double x = point.log_ranks - mean_x;
    variance += x * x * point.deviation * point.deviation / (xx * xx);
    missed += std::pow(point.log_value - mean_y - fit.power * x, 2);
  }
  if (points.size() > 2) variance += missed / (n - 2) / xx;
  fit.deviation = std::sqrt(variance);
  return fit;
}

// Returns how long one rank computes in each step, in ns.
std::vector<double> ComputeOfSteps(const JobOnNetwork& job) {
  const WhatIfGraph& measured = job.graph();
  const StepTimes steps = FindStepTimes(measured.graph);
  const std::vector<bool> communicates = FindCommunication(measured);
  std::vector<double> compute_ns(steps.steps.size());
  for (GraphEventId event = 0; event < measured.graph.events.size(); ++event) {
    if (!measured.IsOnDevice(event) || communicates[event]) continue;
    const GraphEvent& work = measured.graph.events[event];
    const std::optional<size_t> step = steps.Find(work.start_ps);
    if (!step.has_value()) continue;
    compute_ns[*step] += static_cast<double>(work.duration_ps) / kPsPerNs / job.ranks();
  }
  return compute_ns;
}

std::optional<Point> ComputePoint(const JobOnNetwork& job) {
  const std::vector<double> compute_ns = ComputeOfSteps(job);
  if (compute_ns.empty()) return std::nullopt;
  const double median_ns = Median(compute_ns);
  if (!(median_ns > 0)) return std::nullopt;
  std::vector<double> distances;
  for (const double of_step_ns : compute_ns) {
    distances.push_back(std::abs(of_step_ns / median_ns - 1));
  }
  const double deviation = kDeviationsPerMedianDistance * Median(std::move(distances));
  return Point{std::log(job.ranks()), std::log(median_ns),
               kOfMedian * deviation / std::sqrt(static_cast<double>(compute_ns.size()))};
}

// The collectives of one kind whose groups grow, or do not.
struct KindTotal {
  double transfers = 0;
  double bytes = 0;
  // How often one rank takes part in a step.
  double per_rank_and_step = 0;
};

std::map<std::pair<CollectiveKind, bool>, KindTotal> TotalsOf(const JobOnNetwork& job) {
  const double steps = static_cast<double>(FindStepTimes(job.graph().graph).steps.size());
  std::map<std::pair<CollectiveKind, bool>, KindTotal> totals;
  for (const CommEdge& transfer : job.transfers()) {
    KindTotal& total = totals[{transfer.kind, job.Grows(transfer)}];
    total.transfers += 1;
    total.bytes += static_cast<double>(transfer.bytes);
    total.per_rank_and_step +=
        static_cast<double>(transfer.participants.size()) / job.ranks() / std::max(1.0, steps);
  }
  return totals;
}

}  // namespace

double GrowthLaws::BytesPower(CollectiveKind kind, bool grows) const {
  const auto measured_power = bytes_powers.find({kind, grows});
  if (measured_power != bytes_powers.end()) return measured_power->second;
  return grows && kind == CollectiveKind::kAllGather ? -1 : 0;
}

GrowthLaws MeasureGrowth(absl::Span<const JobOnNetwork* const> jobs) {
  GrowthLaws laws;
  if (jobs.size() < 2) return laws;
  std::vector<std::string> numbers;
  std::vector<Point> compute;
  std::map<std::pair<CollectiveKind, bool>, std::vector<Point>> bytes;
  for (const JobOnNetwork* job : jobs) {
    numbers.push_back(absl::StrCat(job->ranks()));
    if (const std::optional<Point> point = ComputePoint(*job)) compute.push_back(*point);
    for (const auto& [kind, total] : TotalsOf(*job)) {
      if (total.bytes == 0) continue;
      bytes[kind].push_back({std::log(job->ranks()), std::log(total.bytes / total.transfers), 0});
    }
  }
  std::vector<std::string> words;
  if (compute.size() == jobs.size()) {
    const Power fit = FitPower(compute);
    laws.compute_power = fit.power;
    laws.compute_deviation = fit.deviation;
    words.push_back(absl::StrFormat("computation of a rank with ranks^%.2f (+-%.2f)", fit.power,
                                    fit.deviation));
  }
  for (const auto& [kind, points] : bytes) {
    if (points.size() != jobs.size()) continue;
    const double power = FitPower(points).power;
    laws.bytes_powers[kind] = power;
    words.push_back(absl::StrFormat("bytes of %s%s with ranks^%.2f", CollectiveKindName(kind.first),
                                    kind.second ? " that span all ranks" : "", power));
  }
  laws.measured.push_back(absl::StrCat("recordings of ", absl::StrJoin(numbers, ", "),
                                       " ranks; what grows: ", absl::StrJoin(words, ", ")));
  const auto fewest = TotalsOf(*jobs.front());
  for (const auto& [kind, most] : TotalsOf(*jobs.back())) {
    const auto few = fewest.find(kind);
    const double before = few == fewest.end() ? 0 : few->second.per_rank_and_step;
    if (std::abs(most.per_rank_and_step - before) <= kSameCount * most.per_rank_and_step) continue;
    laws.notes.push_back(
        absl::StrFormat("a rank takes part in %.1f %s%s a step on %d ranks, in %.1f on %d", before,
                        CollectiveKindName(kind.first), kind.second ? " that span all ranks" : "",
                        jobs.front()->ranks(), most.per_rank_and_step, jobs.back()->ranks()));
  }
  return laws;
}

}  // namespace meridian
