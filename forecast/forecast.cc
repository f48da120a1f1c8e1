#include "forecast/forecast.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/corrections/corrections.h"
#include "astra_bridge/engine/links_config.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/step_times.h"
#include "critical_path/what_if/duration_edits.h"
#include "critical_path/what_if/selection.h"
#include "critical_path/what_if/what_if_edits.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// More messages take minutes, and much memory; rings have about twice the square of their members.
constexpr double kMaxMessages = 3e8;

// Half of a normal distribution's 90 % interval, in standard deviations.
constexpr double kOf90Percent = 1.645;
// A job's own collectives tell no less than this error: sweeps of the same links had it.
constexpr double kLeastOwnError = 0.1;
// Logarithm of how far the job's transfers may be from the calibrated network: 20 %.
constexpr double kLargeMismatch = 0.18;
// The standard deviation of a normal distribution over its mean distance from 0.
constexpr double kDeviationPerError = 1.2533;
// Two recordings of one job differ by as much, and so do ways to say when a step begins.
constexpr double kRecordingsDiffer = 0.02;

struct Unit {
  absl::string_view name;
  double value;
};
constexpr Unit kBandwidthUnits[] = {
    {"Gbit/s", 0.125}, {"Mbit/s", 0.125e-3}, {"GB/s", 1}, {"GiB/s", 1.073741824}};
constexpr Unit kLatencyUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}};

absl::StatusOr<Change> ParseChange(absl::string_view text, absl::Span<const Unit> units,
                                   absl::string_view examples) {
  Change change;
  absl::string_view number = text;
  change.is_multiple = absl::ConsumeSuffix(&number, "x");
  double unit_value = change.is_multiple ? 1 : 0;
  for (const Unit& unit : units) {
    if (unit_value == 0 && absl::ConsumeSuffix(&number, unit.name)) unit_value = unit.value;
  }
  // Decimals only: 0x10x would be 16 times.
  const bool is_number = !absl::StrContains(number, 'x') && absl::SimpleAtod(number, &change.value);
  if (unit_value == 0 || !is_number || !(change.value >= 1e-6 && change.value <= 1e9)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", Printable(text),
        "\" is no number above 0 with a unit, or no multiple; expected e.g. ", examples));
  }
  change.value *= unit_value;
  return change;
}

void Apply(const Change& change, double NetworkLink::*value, NetworkConfig* network) {
  for (NetworkLink& link : network->links) {
    link.*value = change.is_multiple ? link.*value * change.value : change.value;
  }
}

// Lengths of the steps of a graph that may change, before and after it was run again.
struct StepLengths {
  std::vector<double> before_ns;
  std::vector<double> after_ns;

  // Returns how many times as long they are then: the median of all, or of their sums.
  double Ratio(bool of_sums) const {
    std::vector<double> ratios;
    double before_sum_ns = 0, after_sum_ns = 0;
    for (size_t i = 0; i < before_ns.size(); ++i) {
      ratios.push_back(after_ns[i] / before_ns[i]);
      before_sum_ns += before_ns[i];
      after_sum_ns += after_ns[i];
    }
    if (ratios.empty()) return 1;
    return of_sums ? after_sum_ns / before_sum_ns : Median(std::move(ratios));
  }
};

// Steps that were cut are left out: they cannot change.
StepLengths LengthsOf(const PathGraph& measured, const PathGraph& again) {
  const StepTimes before = FindStepTimes(measured);
  const StepTimes after = FindStepTimes(again);
  StepLengths lengths;
  std::map<int64_t, int64_t> lengths_ps;
  for (const StepTime& step : after.steps) lengths_ps[step.step] = step.length_ps();
  for (const StepTime& step : before.steps) {
    const bool is_cut = step.last_end_ps <= before.ReplayStartPs().value_or(step.start_ps);
    if (is_cut || step.length_ps() <= 0 || lengths_ps.count(step.step) == 0) continue;
    lengths.before_ns.push_back(static_cast<double>(step.length_ps()) / kPsPerNs);
    lengths.after_ns.push_back(static_cast<double>(lengths_ps[step.step]) / kPsPerNs);
  }
  return lengths;
}

// What the time of a path is spent on, in a word.
absl::string_view PartName(BoundBy bound_by) {
  switch (bound_by) {
    case BoundBy::kGpuCompute:
      return "compute";
    case BoundBy::kGpuCommunication:
      return "other communication";
    case BoundBy::kCpu:
    case BoundBy::kDataLoading:
    case BoundBy::kHostGap:
      return "host";
    case BoundBy::kKernelKernelOverhead:
    case BoundBy::kKernelLaunchOverhead:
      return "launches";
    case BoundBy::kOtherRanks:
      return "waiting";
    case BoundBy::kNotInTrace:
    case BoundBy::kBeforeStep:
    case BoundBy::kNothing:
      break;
  }
  return "not in the trace";
}

}  // namespace

absl::StatusOr<Change> ParseBandwidth(absl::string_view text) {
  return ParseChange(text, kBandwidthUnits, "2x, 100Gbit/s or 12.5GB/s");
}

absl::StatusOr<Change> ParseLatency(absl::string_view text) {
  return ParseChange(text, kLatencyUnits, "0.5x, 500ns or 10us");
}

ForecastModel ModelOf(const Calibration& calibration, std::string source, bool is_of_sweep) {
  const ErrorSummary& held_out = calibration.report.holdout();
  const double unknown = held_out.n() > 0 ? held_out.mape() : 1;
  const double times = is_of_sweep ? 1 : 2;
  const double least = is_of_sweep ? 0 : kLeastOwnError;
  return {calibration.fabric, calibration.corrections.overhead_ns,
          std::max(least, times * (held_out.has_mape_large() ? held_out.mape_large() : unknown)),
          std::max(least, times * (held_out.has_mape_small() ? held_out.mape_small() : unknown)),
          std::move(source)};
}

absl::StatusOr<Forecaster> Forecaster::Create(const JobOnNetwork& job, const ForecastModel& model) {
  Forecaster forecaster(job, model);
  const StepTimes steps = FindStepTimes(job.graph().graph);
  forecaster.measured_step_ns_ = static_cast<double>(steps.MedianPs().value_or(0)) / kPsPerNs;
  if (!(forecaster.measured_step_ns_ > 0)) {
    return absl::InvalidArgumentError(
        "the run has no steps, and no work that repeats; expected steps marked by the profiler "
        "(StepTraceAnnotation, ProfilerStep), several of them");
  }
  std::vector<double> distances;
  for (const StepTime& step : steps.steps) {
    distances.push_back(std::abs(
        static_cast<double>(step.length_ps()) / kPsPerNs / forecaster.measured_step_ns_ - 1));
  }
  forecaster.steps_ = static_cast<int64_t>(distances.size());
  forecaster.step_spread_ = Median(std::move(distances));
  double sum_ns = 0, errors_ns = 0;
  for (size_t i = 0; i < job.transfers().size(); ++i) {
    const bool is_large = job.transfers()[i].bytes >= kLargeBytes;
    errors_ns += job.measured_ns()[i] * (is_large ? model.large_error : model.small_error);
    sum_ns += job.measured_ns()[i];
  }
  forecaster.error_ = errors_ns / sum_ns;
  ASSIGN_OR_RETURN(const Fabric fabric, forecaster.NetworkOf({}, job.ranks()));
  const FabricSet measured_on = FabricSet::ForAllEdges(fabric);
  const SharedTransfers measured(job.transfers(), measured_on, Congestion::kFair,
                                 model.overhead_ns);
  ASSIGN_OR_RETURN(forecaster.scales_,
                   measured.FitScales(job.measured_schedule(), job.measured_ns()));
  // The mean of logarithms, by how long transfers took.
  double log_scale = 0;
  for (size_t i = 0; i < job.transfers().size(); ++i) {
    const EdgeScale& scale = forecaster.scales_[i];
    log_scale += job.measured_ns()[i] / sum_ns * std::log(scale.bytes * scale.time);
  }
  forecaster.mismatch_ = std::exp(log_scale);
  ASSIGN_OR_RETURN(const WhatIfGraph unchanged, forecaster.RunOn(fabric, job.ranks(), {}));
  const StepLengths lengths = LengthsOf(job.graph().graph, unchanged.graph);
  forecaster.steps_run_again_ = static_cast<int64_t>(lengths.before_ns.size());
  forecaster.unchanged_step_ns_ = forecaster.measured_step_ns_ * lengths.Ratio(/*of_sums=*/false);
  return forecaster;
}

absl::StatusOr<Fabric> Forecaster::NetworkOf(const ForecastQuestion& question,
                                             int32_t ranks) const {
  Fabric fabric;
  if (question.network.has_value()) {
    fabric.network = *question.network;
    if (fabric.network.has_links()) {
      RETURN_IF_ERROR(ResolveLinks(model_.fabric.network, &fabric.network));
    }
    fabric.system = DefaultSystemConfig(fabric.network);
    ASSIGN_OR_RETURN(fabric, WithSharedPorts(fabric));
  } else {
    ASSIGN_OR_RETURN(fabric, WithSharedPorts(FabricForRanks(model_.fabric, ranks)));
  }
  if (fabric.network.npus() < ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        fabric.network.source, fabric.network.source.empty() ? "" : ": npus_count: ",
        "the network has ", fabric.network.npus(), " NPUs, the job ", ranks, " ranks"));
  }
  for (const std::optional<Change>& change : {question.bandwidth, question.latency}) {
    if (question.network.has_value() && change.has_value() && !change->is_multiple) {
      return absl::InvalidArgumentError(
          "another network has its own bandwidth and latency: only multiples of these can be asked "
          "beside it, e.g. 2x");
    }
  }
  if (question.bandwidth.has_value()) {
    Apply(*question.bandwidth, &NetworkLink::bytes_per_ns, &fabric.network);
  }
  if (question.latency.has_value()) {
    // A value is that between two ranks, which are two links apart behind a switch.
    Change latency = *question.latency;
    if (!latency.is_multiple) latency.value /= 2;
    Apply(latency, &NetworkLink::latency_ns, &fabric.network);
  }
  RETURN_IF_ERROR(CheckNetworkConfig(fabric.network));
  return fabric;
}

bool Forecaster::Grows(const CommEdge& transfer) const {
  std::vector<int32_t> ranks = transfer.participants;
  std::sort(ranks.begin(), ranks.end());
  if (transfer.kind == CollectiveKind::kPointToPoint) return false;
  const int32_t stride = ranks[1] - ranks[0];
  for (size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != stride) return false;
  }
  return stride * static_cast<int32_t>(ranks.size()) == job_.ranks();
}

int32_t Forecaster::inner_ranks() const {
  int32_t inner = 1;
  for (const CommEdge& transfer : job_.transfers()) {
    if (!Grows(transfer)) continue;
    inner = std::max(inner, job_.ranks() / static_cast<int32_t>(transfer.participants.size()));
  }
  return inner;
}

absl::StatusOr<WhatIfGraph> Forecaster::RunOn(const Fabric& fabric, int32_t ranks,
                                              const ForecastQuestion& question) const {
  const WhatIfGraph& measured_graph = job_.graph();
  WhatIfGraph edited{CopyGraph(measured_graph.graph), measured_graph.frozen_until_ps,
                     measured_graph.start_instants, measured_graph.end_instants};
  if (question.fix_rank.has_value()) {
    RETURN_IF_ERROR(LevelRank(*question.fix_rank, &edited).status());
  }
  if (question.compute != 1) {
    Selector compute;
    compute.conditions.push_back({Condition::Field::kCategory, "compute", nullptr, 0});
    ASSIGN_OR_RETURN(const Selection selection, Select(edited, compute));
    RETURN_IF_ERROR(ScaleTimes(
        selection, std::llround(question.compute * static_cast<double>(kFactorOne)), &edited));
  }
  // Ranks beyond the measured do what those do that are as many blocks of ranks before them.
  const int32_t copies = ranks / job_.ranks();
  std::vector<CommEdge> transfers = job_.transfers();
  std::vector<EdgeScale> scales = scales_;
  std::vector<size_t> copy_of;
  for (size_t i = 0; i < job_.transfers().size(); ++i) {
    const CommEdge& transfer = job_.transfers()[i];
    const bool grows = Grows(transfer);
    if (grows && transfer.kind == CollectiveKind::kAllGather) {
      transfers[i].bytes = std::max<int64_t>(1, transfers[i].bytes / copies);
    }
    for (int32_t copy = 1; copy < copies; ++copy) {
      CommEdge moved = transfer;
      for (int32_t& rank : moved.participants) rank += copy * job_.ranks();
      if (grows) {
        transfers[i].participants.insert(transfers[i].participants.end(),
                                         moved.participants.begin(), moved.participants.end());
      } else {
        transfers.push_back(std::move(moved));
        scales.push_back(scales_[i]);
        copy_of.push_back(i);
      }
    }
  }
  const FabricSet shared_by = FabricSet::ForAllEdges(fabric);
  const SharedTransfers shared(transfers, shared_by, Congestion::kFair, model_.overhead_ns);
  const auto network = [&](const EdgeSchedule& measured) -> absl::StatusOr<std::vector<double>> {
    EdgeSchedule schedule = measured;
    for (size_t i = 0; i < measured.ends_ns.size(); ++i) {
      const std::vector<int64_t>& of_ranks = measured.begins_ns[i];
      std::vector<int64_t>& of_all = schedule.begins_ns[i];
      while (of_all.size() < transfers[i].participants.size()) {
        of_all.insert(of_all.end(), of_ranks.begin(), of_ranks.end());
      }
    }
    for (const size_t original : copy_of) {
      schedule.begins_ns.push_back(measured.begins_ns[original]);
      schedule.ends_ns.push_back(measured.ends_ns[original]);
    }
    ASSIGN_OR_RETURN(std::vector<double> lasts_ns, shared.LastsNs(schedule, scales));
    lasts_ns.resize(measured.ends_ns.size());
    return lasts_ns;
  };
  return job_.Run(std::move(edited), network);
}

absl::StatusOr<ForecastReport> Forecaster::Ask(const ForecastQuestion& question) const {
  const int32_t ranks = question.ranks == 0 ? job_.ranks() : question.ranks;
  if (ranks % job_.ranks() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the job of ", job_.ranks(), " ranks cannot have ", ranks,
                     ": its outermost groups grow, to ", 2 * job_.ranks(), ", ", 3 * job_.ranks(),
                     ", ", 4 * job_.ranks(), " ranks and so on"));
  }
  double messages = 0;
  const double copies = static_cast<double>(ranks) / job_.ranks();
  for (const CommEdge& transfer : job_.transfers()) {
    const double members = static_cast<double>(transfer.participants.size());
    messages += 2 * members * members * (Grows(transfer) ? copies * copies : copies);
  }
  if (messages > kMaxMessages) {
    return absl::InvalidArgumentError(absl::StrCat("a job of ", ranks, " ranks has some ", messages,
                                                   " messages between ranks, which takes too long; "
                                                   "ask for fewer ranks"));
  }
  ASSIGN_OR_RETURN(const Fabric fabric, NetworkOf(question, ranks));
  ASSIGN_OR_RETURN(const WhatIfGraph then, RunOn(fabric, ranks, question));
  ForecastReport report;
  report.set_question(question.text);
  report.set_ranks(ranks);
  const bool is_plain = !question.latency.has_value() && !question.network.has_value() &&
                        !question.fix_rank.has_value() && ranks == job_.ranks();
  if (is_plain && question.bandwidth.value_or(Change()).is_multiple) {
    report.set_bandwidth(question.bandwidth.value_or(Change()).value);
    report.set_compute(question.compute);
  }
  const StepLengths lengths = LengthsOf(job_.graph().graph, then.graph);
  // A rank that is late in a few steps shows in the mean, not in the median.
  const bool of_mean = question.fix_rank.has_value();
  const double now_ns =
      of_mean && !lengths.before_ns.empty() ? Mean(lengths.before_ns) : measured_step_ns_;
  const double unchanged = unchanged_step_ns_ / measured_step_ns_;
  report.set_measured_step_ns(now_ns);
  report.set_unchanged_step_ns(now_ns * unchanged);
  // What is off without any change is taken to be off as much with it.
  report.set_step_ns(now_ns * lengths.Ratio(of_mean) / unchanged);
  SetInterval(then, question, &report);
  Describe(then, &report);
  report.add_rests_on(absl::StrCat(
      steps_run_again_ == steps_ ? "" : absl::StrCat(steps_run_again_, " of "), steps_,
      " recorded steps, ", job_.transfers().size(), " transfers between ", job_.ranks(), " ranks"));
  if (of_mean)
    report.add_assumptions("steps are told by their mean, since a rank may be late in few");
  if (std::abs(std::log(mismatch_)) > kLargeMismatch) {
    report.add_notes(absl::StrCat("the job's transfers took ", absl::StrFormat("%.1f", mismatch_),
                                  " times as long as the calibrated network says: was it recorded "
                                  "on that network? Multiples of "
                                  "what it has are answered all the same; other networks and "
                                  "values are not to be relied on"));
  }
  report.add_rests_on(absl::StrCat("a network fitted to ", model_.source, ", off by ",
                                   std::lround(100 * error_),
                                   " % in the mean for sizes like the job's that it had not seen"));
  if (question.network.has_value()) {
    report.add_assumptions("ranks sit on the NPUs of their number; links are shared fairly");
  }
  if (ranks > job_.ranks()) {
    const bool any_grows = std::any_of(job_.transfers().begin(), job_.transfers().end(),
                                       [&](const CommEdge& transfer) { return Grows(transfer); });
    report.add_assumptions(
        any_grows ? absl::StrCat("groups that span all ranks grow with them to ", ranks,
                                 " ranks, and their all-gathers divide the shards")
                  : absl::StrCat("no group spans all ranks, so that the job is there ",
                                 ranks / job_.ranks(), " times"));
  }
  report.add_assumptions(
      question.compute == 1 ? "computation takes as long as it did, on every rank"
                            : absl::StrCat("computation takes ", question.compute, " of its time"));
  if (job_.unknown_events() > 0) {
    report.add_assumptions(
        absl::StrCat(job_.unknown_events(),
                     " kernels that communicate, of which the trace does not say what they "
                     "move, last what they lasted"));
  }
  if (std::abs(unchanged_step_ns_ / measured_step_ns_ - 1) > kNotUnderstood) {
    report.add_notes(
        absl::StrCat("the recorded step, run again without any change, is off by ",
                     std::lround(100 * (unchanged_step_ns_ / measured_step_ns_ - 1)),
                     " %: the job is not understood well, and the interval is wider for it"));
  }
  return report;
}

void Forecaster::SetInterval(const WhatIfGraph& then, const ForecastQuestion& question,
                             ForecastReport* report) const {
  double before_ps = 0, after_ps = 0;
  for (GraphEventId event = 0; event < then.graph.events.size(); ++event) {
    if (job_.TransferOf(event) == job_.transfers().size()) continue;
    before_ps += static_cast<double>(job_.graph().graph.events[event].duration_ps);
    after_ps += static_cast<double>(then.graph.events[event].duration_ps);
  }
  // Medians of two recordings of so many steps differ by what single steps differ by: the standard
  // deviation is 1.4826 times the median distance, and that of a median pi / 2 / n of its square.
  const double sigma = 1.4826 * step_spread_;
  const double of_steps = kOf90Percent * sigma * std::sqrt(2 * 1.57 / static_cast<double>(steps_));
  // Errors of the model cancel where nothing changes; they show in full when it is twice as much, and
  // not more than twice.
  const double doublings =
      before_ps > 0 && after_ps > 0 ? std::min(2.0, std::abs(std::log2(after_ps / before_ps))) : 0;
  const double of_ranks =
      std::log2(static_cast<double>(report->ranks()) / static_cast<double>(job_.ranks()));
  const double of_network = question.network.has_value() ? 1 : 0;
  const double of_model =
      kOf90Percent * kDeviationPerError * error_ * std::max({doublings, of_ranks, of_network});
  const double of_replay = std::log(unchanged_step_ns_ / measured_step_ns_);
  // Multiples of a network do not depend on its values, all else does.
  const bool is_absolute = question.network.has_value() ||
                           (question.bandwidth.has_value() && !question.bandwidth->is_multiple) ||
                           (question.latency.has_value() && !question.latency->is_multiple);
  const double of_mismatch = is_absolute ? std::log(mismatch_) : 0;
  const double factor =
      std::exp(std::sqrt(of_steps * of_steps + of_model * of_model + of_replay * of_replay +
                         of_mismatch * of_mismatch + kRecordingsDiffer * kRecordingsDiffer));
  report->set_low_ns(report->step_ns() / factor);
  report->set_high_ns(report->step_ns() * factor);
}

void Forecaster::Describe(const WhatIfGraph& then, ForecastReport* report) const {
  const absl::StatusOr<CriticalPath> path = FindLongestPath(then.graph);
  if (!path.ok()) return;
  const StepTimes steps = FindStepTimes(then.graph);
  const int64_t begin_ps = then.frozen_until_ps.value_or(then.graph.window_start_ps);
  std::map<std::string, int64_t> parts_ps;
  int64_t sum_ps = 0;
  VisitPieces(then.graph, *path, steps, [&](const PathPiece& piece) {
    if (!piece.step.has_value() || piece.bound_by == BoundBy::kNothing) return;
    // Steps that were cut do not change.
    if (steps.steps[*piece.step].last_end_ps <= begin_ps) return;
    const GraphEventId event = then.graph.edges[piece.edge].event;
    const size_t transfer = event == kNoEvent ? job_.transfers().size() : job_.TransferOf(event);
    const bool is_transfer =
        piece.bound_by == BoundBy::kGpuCommunication && transfer < job_.transfers().size();
    parts_ps[std::string(is_transfer ? CollectiveKindName(job_.transfers()[transfer].kind)
                                     : PartName(piece.bound_by))] += piece.time_ps;
    sum_ps += piece.time_ps;
  });
  if (sum_ps == 0) return;
  std::vector<std::pair<int64_t, std::string>> ordered;
  for (auto& [what, time_ps] : parts_ps) ordered.push_back({time_ps, what});
  std::sort(ordered.rbegin(), ordered.rend());
  for (const auto& [time_ps, what] : ordered) {
    ForecastPart& part = *report->add_breakdown();
    part.set_what(what);
    part.set_ns(report->step_ns() * static_cast<double>(time_ps) / static_cast<double>(sum_ps));
  }
}

}  // namespace meridian
