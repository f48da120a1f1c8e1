#include "forecast/forecast.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
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
// However bad a model is, twice the bandwidth makes no transfer longer or a third as long.
constexpr double kMostError = 0.5;
// Logarithm of how far the job's transfers may be from the calibrated network: 20 %.
constexpr double kLargeMismatch = 0.18;
// The standard deviation of a normal distribution over its mean distance from 0.
constexpr double kDeviationPerError = 1.2533;
// A search whose last round changed the run by more than this did not settle.
constexpr double kLargeLastChange = 0.01;
// What the number of ranks may make of computation: beyond, the recordings are of different jobs.
constexpr double kLeastCompute = 1e-3, kMostCompute = 1e3;
// No transfer has more bytes.
constexpr double kMaxBytes = 1e15;
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
  return {calibration.fabric,
          calibration.corrections.overhead_ns,
          std::max(least, times * (held_out.has_mape_large() ? held_out.mape_large() : unknown)),
          std::max(least, times * (held_out.has_mape_small() ? held_out.mape_small() : unknown)),
          std::move(source),
          is_of_sweep};
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
  forecaster.error_ = std::min(errors_ns / sum_ns, kMostError);
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
  ASSIGN_OR_RETURN(const JobOnNetwork::RunAgain unchanged,
                   forecaster.RunOn(fabric, job.ranks(), {}));
  const StepLengths lengths = LengthsOf(job.graph().graph, unchanged.graph.graph);
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

absl::Status Forecaster::CheckRanks(int32_t ranks) const {
  if (ranks % job_.ranks() != 0) {
    return InvalidArgument("the job of ", job_.ranks(), " ranks cannot have ", ranks,
                           ": its outermost groups grow, to ", 2 * job_.ranks(), ", ",
                           3 * job_.ranks(), ", ", 4 * job_.ranks(), " ranks and so on");
  }
  double messages = 0;
  const double copies = static_cast<double>(ranks) / job_.ranks();
  for (const CommEdge& transfer : job_.transfers()) {
    const double members = static_cast<double>(transfer.participants.size());
    messages += 2 * members * members * (job_.Grows(transfer) ? copies * copies : copies);
  }
  if (messages > kMaxMessages) {
    return InvalidArgument("a job of ", ranks, " ranks has some ", messages,
                           " messages between ranks, which takes too long; ask for fewer ranks");
  }
  return absl::OkStatus();
}

// Ranks beyond the measured do what those do that are as many blocks of ranks before them.
Forecaster::GrownJob Forecaster::GrowTo(int32_t ranks) const {
  const int32_t copies = ranks / job_.ranks();
  GrownJob grown{job_.transfers(), scales_, {}};
  for (size_t i = 0; i < job_.transfers().size(); ++i) {
    const bool grows = job_.Grows(job_.transfers()[i]);
    if (copies > 1) {
      int64_t& bytes = grown.transfers[i].bytes;
      const double power = laws_.BytesPower(grown.transfers[i].kind, grows);
      bytes = std::max<int64_t>(
          1,
          std::llround(std::min(static_cast<double>(bytes) * std::pow(copies, power), kMaxBytes)));
    }
    const CommEdge transfer = grown.transfers[i];
    for (int32_t copy = 1; copy < copies; ++copy) {
      CommEdge moved = transfer;
      for (int32_t& rank : moved.participants) rank += copy * job_.ranks();
      if (grows) {
        std::vector<int32_t>& members = grown.transfers[i].participants;
        members.insert(members.end(), moved.participants.begin(), moved.participants.end());
      } else {
        grown.transfers.push_back(std::move(moved));
        grown.scales.push_back(scales_[i]);
        grown.copy_of.push_back(i);
      }
    }
  }
  return grown;
}

bool Forecaster::HasRingOfMessages() const {
  std::set<int32_t> sources;
  for (const CommEdge& edge : job_.transfers()) {
    if (edge.kind != CollectiveKind::kPointToPoint) continue;
    const int32_t next = (edge.participants[0] + 1) % job_.ranks();
    if (edge.participants[1] == next) sources.insert(edge.participants[0]);
  }
  return job_.ranks() > 2 && static_cast<int32_t>(sources.size()) == job_.ranks();
}

double Forecaster::ComputeOf(const ForecastQuestion& question, int32_t ranks) const {
  if (question.compute.has_value()) return *question.compute;
  const double grown = static_cast<double>(ranks) / job_.ranks();
  return std::clamp(std::pow(grown, laws_.compute_power), kLeastCompute, kMostCompute);
}

absl::StatusOr<JobOnNetwork::RunAgain> Forecaster::RunOn(const Fabric& fabric, int32_t ranks,
                                                         const ForecastQuestion& question) const {
  WhatIfGraph edited = job_.graph();
  if (question.fix_rank.has_value()) {
    RETURN_IF_ERROR(LevelRank(*question.fix_rank, &edited).status());
  }
  const double compute = ComputeOf(question, ranks);
  if (compute != 1) {
    Selector selector;
    selector.conditions.push_back({Condition::Field::kCategory, "compute", nullptr, 0});
    ASSIGN_OR_RETURN(const Selection selection, Select(edited, selector));
    RETURN_IF_ERROR(
        ScaleTimes(selection, std::llround(compute * static_cast<double>(kFactorOne)), &edited));
  }
  const GrownJob grown = GrowTo(ranks);
  const FabricSet shared_by = FabricSet::ForAllEdges(fabric);
  const SharedTransfers shared(grown.transfers, shared_by, Congestion::kFair, model_.overhead_ns);
  const auto network = [&](const EdgeSchedule& measured) -> absl::StatusOr<std::vector<double>> {
    EdgeSchedule schedule = measured;
    for (size_t i = 0; i < measured.ends_ns.size(); ++i) {
      const std::vector<int64_t>& of_ranks = measured.begins_ns[i];
      std::vector<int64_t>& of_all = schedule.begins_ns[i];
      while (of_all.size() < grown.transfers[i].participants.size()) {
        of_all.insert(of_all.end(), of_ranks.begin(), of_ranks.end());
      }
    }
    for (const size_t original : grown.copy_of) {
      schedule.begins_ns.push_back(measured.begins_ns[original]);
      schedule.ends_ns.push_back(measured.ends_ns[original]);
    }
    ASSIGN_OR_RETURN(std::vector<double> lasts_ns, shared.LastsNs(schedule, grown.scales));
    lasts_ns.resize(measured.ends_ns.size());
    return lasts_ns;
  };
  return job_.Run(std::move(edited), network);
}

absl::StatusOr<ForecastReport> Forecaster::Ask(const ForecastQuestion& question) const {
  const int32_t ranks = question.ranks == 0 ? job_.ranks() : question.ranks;
  RETURN_IF_ERROR(CheckRanks(ranks));
  ASSIGN_OR_RETURN(const Fabric fabric, NetworkOf(question, ranks));
  ASSIGN_OR_RETURN(const JobOnNetwork::RunAgain then, RunOn(fabric, ranks, question));
  ForecastReport report;
  report.set_question(question.text);
  report.set_ranks(ranks);
  const Change bandwidth = question.bandwidth.value_or(Change());
  const Change latency = question.latency.value_or(Change());
  if (!question.network.has_value() && bandwidth.is_multiple && latency.is_multiple) {
    report.set_bandwidth(bandwidth.value);
    report.set_latency(latency.value);
    report.set_compute(question.compute.value_or(1));
  }
  if (question.fix_rank.has_value()) report.set_fix_rank(*question.fix_rank);
  const StepLengths lengths = LengthsOf(job_.graph().graph, then.graph.graph);
  // A rank that is late in a few steps shows in the mean, not in the median.
  const bool of_mean = question.fix_rank.has_value();
  const double now_ns =
      of_mean && !lengths.before_ns.empty() ? Mean(lengths.before_ns) : measured_step_ns_;
  const double unchanged = unchanged_step_ns_ / measured_step_ns_;
  report.set_measured_step_ns(now_ns);
  report.set_unchanged_step_ns(now_ns * unchanged);
  // What is off without any change is taken to be off as much with it, and what was off when the job
  // grew before, to be off as much again.
  report.set_step_ns(now_ns * lengths.Ratio(of_mean) / unchanged *
                     std::exp(laws_.rest_per_doubling * DoublingsTo(ranks)));
  Describe(then, &report);
  SetInterval(then, question, &report);
  AddSentences(then, question, &report);
  return report;
}

void Forecaster::AddSentences(const JobOnNetwork::RunAgain& then, const ForecastQuestion& question,
                              ForecastReport* report) const {
  const int32_t ranks = report->ranks();
  report->add_rests_on(absl::StrCat(
      steps_run_again_ == steps_ ? "" : absl::StrCat(steps_run_again_, " of "), steps_,
      " recorded steps, ", job_.transfers().size(), " transfers between ", job_.ranks(), " ranks"));
  report->add_rests_on(
      absl::StrFormat("a network fitted to %s, %s by %.0f %% in the mean for sizes like the job's "
                      "that it had not seen",
                      model_.source, model_.is_of_sweep ? "off" : "taken to be off", 100 * error_));
  if (question.fix_rank.has_value()) {
    report->add_assumptions("steps are told by their mean, since a rank may be late in few");
  }
  if (question.network.has_value()) {
    report->add_assumptions("ranks sit on the NPUs of their number; links are shared fairly");
  }
  const bool has_laws = ranks > job_.ranks() && !laws_.measured.empty();
  if (ranks > job_.ranks()) {
    const bool any_grows =
        absl::c_any_of(job_.transfers(), [&](const CommEdge& edge) { return job_.Grows(edge); });
    report->add_assumptions(
        any_grows ? absl::StrCat("groups that span all ranks grow with them to ", ranks, " ranks",
                                 has_laws ? "" : ", and their all-gathers divide the shards")
                  : absl::StrCat("no group spans all ranks, so that the job is there ",
                                 ranks / job_.ranks(), " times"));
  }
  if (ranks > job_.ranks() && HasRingOfMessages()) {
    report->add_assumptions(
        "messages around a ring of all ranks are as many as now, among as many ranks; what goes "
        "around all ranks (ring attention) takes longer, which recordings of two numbers of ranks "
        "tell");
  }
  if (has_laws) {
    for (const std::string& sentence : laws_.measured) report->add_rests_on(sentence);
    for (const std::string& sentence : laws_.notes) report->add_notes(sentence);
  }
  const double compute = ComputeOf(question, ranks);
  report->add_assumptions(
      compute == 1
          ? "computation takes as long as it did, on every rank"
          : absl::StrFormat("computation takes %.3g of its time%s", compute,
                            question.compute.has_value() ? "" : ", as the recordings say"));
  if (job_.unknown_events() > 0) {
    report->add_assumptions(
        absl::StrCat(job_.unknown_events(),
                     " kernels that communicate, of which the trace does not say what they "
                     "move, last what they lasted"));
  }
  if (std::abs(std::log(mismatch_)) > kLargeMismatch) {
    report->add_notes(absl::StrFormat(
        "the job's transfers took %.1f times as long as the calibrated network says: was it "
        "recorded on that network? Multiples of what it has are answered all the same; other "
        "networks and values are not to be relied on",
        mismatch_));
  }
  if (std::abs(unchanged_step_ns_ / measured_step_ns_ - 1) > kNotUnderstood) {
    report->add_notes(
        absl::StrCat("the recorded step, run again without any change, is off by ",
                     std::lround(100 * (unchanged_step_ns_ / measured_step_ns_ - 1)),
                     " %: the job is not understood well, and the interval is wider for it"));
  }
  if (then.last_change > kLargeLastChange) {
    report->add_notes(absl::StrFormat(
        "which transfers meet did not settle: the last round still changed the run by %.1f %%, and "
        "the interval is wider for it",
        100 * then.last_change));
  }
}

void Forecaster::SetInterval(const JobOnNetwork::RunAgain& then, const ForecastQuestion& question,
                             ForecastReport* report) const {
  double before_ps = 0, after_ps = 0;
  const std::vector<GraphEvent>& events = then.graph.graph.events;
  for (GraphEventId event = 0; event < events.size(); ++event) {
    if (job_.TransferOf(event) == job_.transfers().size()) continue;
    before_ps += static_cast<double>(job_.graph().graph.events[event].duration_ps);
    after_ps += static_cast<double>(events[event].duration_ps);
  }
  // Medians of two recordings of so many steps differ by what single steps differ by: the standard
  // deviation is 1.4826 times the median distance, and that of a median pi / 2 / n of its square.
  const double sigma = 1.4826 * step_spread_;
  const double of_steps = kOf90Percent * sigma * std::sqrt(2 * 1.57 / static_cast<double>(steps_));
  // Errors of the model cancel where nothing changes; they show in full when it is twice as much, and
  // not more than twice.
  const double doublings =
      before_ps > 0 && after_ps > 0 ? std::min(2.0, std::abs(std::log2(after_ps / before_ps))) : 0;
  const double of_ranks = DoublingsTo(report->ranks());
  const double of_network = question.network.has_value() ? 1 : 0;
  const double of_model =
      kOf90Percent * kDeviationPerError * error_ * std::max({doublings, of_ranks, of_network});
  const double of_replay = std::log(unchanged_step_ns_ / measured_step_ns_);
  // Multiples of a network do not depend on its values, all else does.
  const bool is_absolute = question.network.has_value() ||
                           (question.bandwidth.has_value() && !question.bandwidth->is_multiple) ||
                           (question.latency.has_value() && !question.latency->is_multiple);
  const double of_mismatch = is_absolute ? std::log(mismatch_) : 0;
  double compute_share = 0;
  for (const ForecastPart& part : report->breakdown()) {
    if (part.what() == PartName(BoundBy::kGpuCompute))
      compute_share = part.ns() / report->step_ns();
  }
  const double of_compute =
      question.compute.has_value()
          ? 0
          : kOf90Percent * laws_.compute_deviation * compute_share * of_ranks * std::log(2.0);
  const double of_growth = laws_.rest_per_doubling * of_ranks;
  double sum = 0;
  for (const double part : {of_steps, of_model, of_replay, of_mismatch, of_compute, of_growth,
                            then.last_change, kRecordingsDiffer}) {
    sum += part * part;
  }
  const double factor = std::exp(std::sqrt(sum));
  report->set_low_ns(report->step_ns() / factor);
  report->set_high_ns(report->step_ns() * factor);
}

void Forecaster::Describe(const JobOnNetwork::RunAgain& then, ForecastReport* report) const {
  const PathGraph& graph = then.graph.graph;
  const StepTimes steps = FindStepTimes(graph);
  const int64_t begin_ps = then.graph.frozen_until_ps.value_or(graph.window_start_ps);
  std::map<std::string, int64_t> parts_ps;
  int64_t sum_ps = 0;
  VisitPieces(graph, then.path, steps, [&](const PathPiece& piece) {
    if (!piece.step.has_value() || piece.bound_by == BoundBy::kNothing) return;
    // Steps that were cut do not change.
    if (steps.steps[*piece.step].last_end_ps <= begin_ps) return;
    const GraphEventId event = graph.edges[piece.edge].event;
    const size_t transfer = event == kNoEvent ? job_.transfers().size() : job_.TransferOf(event);
    const bool is_transfer =
        piece.bound_by == BoundBy::kGpuCommunication && transfer < job_.transfers().size();
    parts_ps[std::string(is_transfer ? CollectiveKindName(job_.transfers()[transfer].kind)
                                     : PartName(piece.bound_by))] += piece.time_ps;
    sum_ps += piece.time_ps;
  });
  if (sum_ps == 0) return;
  std::vector<std::pair<int64_t, std::string>> ordered;
  for (auto& [what, time_ps] : parts_ps) {
    if (time_ps > 0) ordered.push_back({time_ps, what});
  }
  std::sort(ordered.rbegin(), ordered.rend());
  for (const auto& [time_ps, what] : ordered) {
    ForecastPart& part = *report->add_breakdown();
    part.set_what(what);
    part.set_ns(report->step_ns() * static_cast<double>(time_ps) / static_cast<double>(sum_ps));
  }
}

absl::StatusOr<RunsForecaster> RunsForecaster::Create(std::vector<const JobOnNetwork*> jobs,
                                                      const ForecastModel& model) {
  absl::c_sort(
      jobs, [](const JobOnNetwork* a, const JobOnNetwork* b) { return a->ranks() < b->ranks(); });
  RunsForecaster runs;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i > 0 && jobs[i - 1]->ranks() == jobs[i]->ranks()) {
      return InvalidArgument("two of the runs have ", jobs[i]->ranks(),
                             " ranks: several runs tell what more ranks change");
    }
    ASSIGN_OR_RETURN(Forecaster forecaster, Forecaster::Create(*jobs[i], model));
    runs.forecasters_.push_back(std::move(forecaster));
  }
  GrowthLaws laws = MeasureGrowth(jobs);
  for (Forecaster& forecaster : runs.forecasters_) forecaster.set_laws(laws);
  // What was measured on more ranks is held against what the recording before would have said.
  for (size_t i = 1; i < jobs.size(); ++i) {
    const Forecaster& few = runs.forecasters_[i - 1];
    const Forecaster& more = runs.forecasters_[i];
    if (more.job().ranks() % few.job().ranks() != 0) continue;
    ForecastQuestion question;
    question.ranks = more.job().ranks();
    ASSIGN_OR_RETURN(const ForecastReport said, few.Ask(question));
    const double error = said.step_ns() / more.measured_step_ns();
    // The last recordings count: what is asked lies beyond them.
    laws.rest_per_doubling = -std::log(error) / few.DoublingsTo(more.job().ranks());
    laws.measured.push_back(absl::StrFormat(
        "from %d ranks, %d would have been forecast to take %.1f ms; measured were %.1f ms (%+.1f "
        "%%), and what was off is taken to go on",
        few.job().ranks(), more.job().ranks(), said.step_ns() / 1e6, more.measured_step_ns() / 1e6,
        100 * (error - 1)));
  }
  for (Forecaster& forecaster : runs.forecasters_) forecaster.set_laws(laws);
  return runs;
}

absl::StatusOr<ForecastReport> RunsForecaster::Ask(const ForecastQuestion& question) const {
  const Forecaster* best = &forecasters_.back();
  for (const Forecaster& forecaster : forecasters_) {
    const int32_t ranks = forecaster.job().ranks();
    if (question.ranks >= ranks && question.ranks % ranks == 0) best = &forecaster;
  }
  return best->Ask(question);
}

}  // namespace meridian
