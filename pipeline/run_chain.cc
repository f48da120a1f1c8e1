#include "pipeline/run_chain.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "pipeline/findings.h"
#include "pipeline/job_traces.h"
#include "pipeline/path_stage.h"
#include "pipeline/simulation_stage.h"
#include "pipeline/stage_cache.h"
#include "report/run_report_html.h"
#include "trace_alignment/run/waiting_summary.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/hlo/collective_kind.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {
namespace {

constexpr absl::string_view kDone = "done", kCached = "cached", kSkipped = "skipped",
                            kFailed = "failed";

std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

// Bytes that cross the bus for each byte of a rank's buffer, as nccl-tests count; of an all-gather
// for each byte of its share. 0 for kinds that they do not count.
double BusFactor(const std::string& kind, double ranks) {
  if (ranks < 2) return 0;
  if (kind == CollectiveKindName(CollectiveKind::kAllReduce)) return 2 * (ranks - 1) / ranks;
  if (kind == CollectiveKindName(CollectiveKind::kAllGather)) return ranks - 1;
  if (kind == CollectiveKindName(CollectiveKind::kReduceScatter) ||
      kind == CollectiveKindName(CollectiveKind::kAllToAll)) {
    return (ranks - 1) / ranks;
  }
  const bool has_root = kind == CollectiveKindName(CollectiveKind::kCollectiveBroadcast) ||
                        kind == CollectiveKindName(CollectiveKind::kCollectiveReduce);
  return has_root ? 1 : 0;
}

// A profile may begin or end in the middle of a collective; one that lacks more lost events.
constexpr double kMostLost = 0.05;

// What slow links cost is asked of so many: each is a replay.
constexpr size_t kMostAskedLinks = 4;

void DescribeEvidence(const CombineReport& combined, Evidence* evidence) {
  evidence->set_job_ranks(combined.job_ranks());
  *evidence->mutable_missing_ranks() = combined.missing_ranks();
  for (const CombinedCoverage& rank : combined.coverage()) {
    const auto lost = static_cast<double>(rank.expected() - rank.collectives());
    if (lost <= kMostLost * static_cast<double>(rank.expected())) continue;
    LostEvents& row = *evidence->add_lost();
    row.set_rank(rank.rank());
    row.set_collectives(rank.collectives());
    row.set_expected(rank.expected());
  }
  for (const CombinedNode& node : combined.nodes()) {
    if (!HasUnknownClock(combined, node)) continue;
    for (const int64_t rank : node.ranks()) evidence->add_unknown_clocks(rank);
  }
  const std::optional<int64_t> uncertainty_ns = ClockUncertaintyNs(combined);
  if (uncertainty_ns.has_value()) {
    evidence->set_clock_uncertainty_ms(static_cast<double>(*uncertainty_ns) * kMsPerNs);
  }
  const HappensBeforeSummary& check = combined.happens_before();
  evidence->set_collectives(check.instances());
  evidence->set_complete_collectives(check.instances() - check.incomplete());
  evidence->set_matched_by_order(combined.run_method() == "subsequence");
  evidence->set_steps(combined.steps());
  evidence->set_common_steps(combined.steps_on_all_ranks());
}

// The part of the report that alignment knows.
void DescribeAlignment(const CombineReport& combined, RunReport* report) {
  RunSummary& run = *report->mutable_run();
  run.set_recorded(UtcText(absl::FromUnixNanos(combined.start_ns())));
  run.set_wall_ms(combined.wall_ms());
  std::set<int64_t> ranks;
  std::set<std::string> hosts;
  std::map<int64_t, std::string> host_of_node;
  for (const CombinedNode& node : combined.nodes()) {
    if (!node.hostname().empty()) hosts.insert(node.hostname());
    host_of_node[node.node_id()] = node.hostname();
    ReportedNode& row = *report->add_nodes();
    row.set_node_id(node.node_id());
    row.set_hostname(node.hostname());
    row.set_trace(node.trace().substr(node.trace().rfind('/') + 1));
    row.set_method(node.method());
    for (int64_t rank : node.ranks()) {
      ranks.insert(rank);
      row.add_ranks(rank);
    }
    if (node.has_offset_ns()) {
      row.set_offset_ms(static_cast<double>(node.offset_ns()) * kMsPerNs);
    }
    if (node.has_uncertainty_ns()) {
      row.set_uncertainty_ms(static_cast<double>(node.uncertainty_ns()) * kMsPerNs);
    }
    const double most_ms = static_cast<double>(node.uncertainty_max_ns()) * kMsPerNs;
    if (node.has_uncertainty_max_ns()) row.set_uncertainty_max_ms(most_ms);
    if (node.has_drift_ppm()) row.set_drift_ppm(node.drift_ppm());
    if (node.has_drift_uncertainty_ppm()) {
      row.set_drift_uncertainty_ppm(node.drift_uncertainty_ppm());
    }
    row.set_max_correction_ms(static_cast<double>(node.max_correction_ns()) * kMsPerNs);
    row.set_events(node.events());
    // The largest uncertainty holds at every moment.
    ClockSeries& clock = *row.mutable_clock();
    for (int i = 0; i < node.clock_at_ms_size(); ++i) {
      const double offset_ms = static_cast<double>(node.clock_offset_ns(i)) * kMsPerNs;
      clock.add_time_ms(node.clock_at_ms(i));
      clock.add_offset_ms(offset_ms);
      clock.add_low_ms(offset_ms - most_ms);
      clock.add_high_ms(offset_ms + most_ms);
    }
  }
  run.set_ranks(static_cast<int64_t>(ranks.size()));
  for (const std::string& host : hosts) run.add_hosts(host);
  const HappensBeforeSummary& check = combined.happens_before();
  ReportedOrder& order = *report->mutable_happens_before();
  order.set_instances(check.instances());
  order.set_checked(check.checked());
  order.set_incomplete(check.incomplete());
  order.set_violations_before(check.violations_before());
  order.set_violations_after(check.violations_after());
  order.set_checked_on(check.checked_on());
  for (const CombinedStep& step : combined.step_waits()) {
    StepWait& row = *report->add_waiting();
    if (step.has_step()) row.set_step(step.step());
    row.set_rank(step.rank());
    row.set_wall_ms(step.end_ms() - step.start_ms());
    row.set_waited_ms(step.waited_ms());
    row.set_transfer_ms(step.transfer_ms());
    row.set_worst_op(step.worst_op());
    row.set_worst_ms(step.worst_ms());
  }
  for (const CombinedKind& kind : combined.kinds()) {
    KindWait& row = *report->add_kinds();
    row.set_kind(kind.kind());
    row.set_instances(kind.instances());
    row.set_bytes(kind.operand_bytes());
    row.set_wait_ms(kind.wait_ms());
    row.set_transfer_ms(kind.transfer_ms());
  }
  for (const CombinedRank& rank : combined.ranks()) {
    RankWait& row = *report->add_rank_waits();
    row.set_rank(rank.rank());
    row.set_hostname(host_of_node[rank.node_id()]);
    row.set_last(rank.last());
    row.set_collectives(rank.collectives());
    row.set_caused_wait_ms(rank.caused_wait_ms());
    row.set_waited_ms(rank.waited_ms());
    row.set_transfer_ms(rank.transfer_ms());
  }
  for (const CombinedTransfer& transfer : combined.transfers()) {
    ReportedTransfer& row = *report->add_transfers();
    row.set_kind(transfer.kind());
    row.set_bytes(transfer.bytes());
    row.set_ranks(transfer.ranks());
    row.set_count(transfer.count());
    row.set_median_ms(transfer.transfer_ms());
    row.set_wait_ms(transfer.wait_ms());
    if (transfer.transfer_ms() > 0) {
      row.set_bus_gb_per_s(static_cast<double>(transfer.bytes()) *
                           BusFactor(transfer.kind(), static_cast<double>(transfer.ranks())) /
                           (transfer.transfer_ms() * 1e6));
    }
  }
  for (const CombinedLink& link : combined.slow_links()) {
    ReportedLink& row = *report->add_slow_links();
    row.set_rank(link.rank());
    row.set_times_slower(link.times_slower());
    *row.mutable_or_ranks() = link.or_ranks();
    row.set_transfers(link.transfers());
    row.set_compared_with(link.compared_with());
  }
  DescribeEvidence(combined, report->mutable_evidence());
  report->set_link_ranks_compared(combined.link_ranks_compared());
  report->set_link_ranks(combined.link_ranks());
  for (const std::string& note : combined.notes()) report->add_notes(note);
}

absl::string_view NoteOnFile(absl::string_view kind) {
  if (kind == "combined") return "one profile of all ranks: xprof, TensorBoard, xspace_inspect";
  if (kind == "perfetto") return "open it at ui.perfetto.dev";
  if (kind == "trace_json") return "Chrome trace: chrome://tracing, Perfetto";
  if (kind == "aligned") return "a rank's profile on the common clock";
  if (kind == "chakra") return "execution traces: astra_simulate, ASTRA-sim";
  if (kind == "calibration") return "network, system and corrections: --calibration";
  return "";
}

void AddFile(absl::string_view kind, const std::string& name, int64_t bytes, RunReport* report) {
  ReportedFile& file = *report->add_files();
  file.set_kind(std::string(kind));
  file.set_path(name);
  file.set_bytes(bytes);
  file.set_note(std::string(NoteOnFile(kind)));
}

class Chain {
 public:
  Chain(FileSystem& file_system, const ChainRequest& request)
      : file_system_(file_system),
        request_(request),
        cache_(file_system, absl::StrCat(request.output_dir, "/stages"), request.force) {}

  absl::StatusOr<ChainResult> Run() {
    ASSIGN_OR_RETURN(const TraceSource* source,
                     DetectOneSource(file_system_, request_.combine.files.traces));
    is_kineto_ = source->form() == TraceForm::kKineto;
    RETURN_IF_ERROR(Align());
    const bool violated = result_.combined.happens_before().violations_after() > 0;
    RETURN_IF_ERROR(RunStage("chakra", ChakraInputs(),
                             [&](StageRecord* record) { return ExportChakra(record); }));
    if (violated) {
      for (const char* stage : {"path", "simulate"}) {
        cache_.RemoveStale(stage, "");
        AddStage(stage, kSkipped, absl::Now(), "the clocks contradict the collectives");
      }
      return Finish();
    }
    RETURN_IF_ERROR(RunStage("path", aligned_, [&](StageRecord* record) {
      ProgressBar bar("path: profiles", aligned_.size());
      PathStageOptions options;
      options.input = request_.combine.input;
      options.progress = [&](size_t position) { bar.Update(position); };
      for (const CombinedLink& link : result_.combined.slow_links()) {
        const bool is_known = link.or_ranks().empty();
        if (is_known && options.slow_ranks.size() < kMostAskedLinks) {
          options.slow_ranks.push_back({link.rank(), link.times_slower()});
        }
      }
      options.can_compare_ranks = CanCompareRanks(result_.report.evidence());
      return DescribePath(file_system_, aligned_, options, record->mutable_report());
    }));
    std::vector<std::string> inputs = aligned_;
    inputs.push_back("");
    inputs.insert(inputs.end(), request_.sweep.begin(), request_.sweep.end());
    RETURN_IF_ERROR(
        RunStage("simulate", inputs, [&](StageRecord* record) { return Simulate(record); }));
    return Finish();
  }

 private:
  std::string PathOf(absl::string_view name) const {
    return absl::StrCat(request_.output_dir, "/", name);
  }

  // What was made for another folder lies there.
  std::string OptionsText() const {
    return absl::StrCat(request_.options, ";", request_.output_dir);
  }

  bool Wants(absl::string_view stage) const {
    return request_.stages.empty() || request_.stages.count(std::string(stage)) > 0;
  }

  void AddStage(absl::string_view name, absl::string_view state, absl::Time start,
                std::string note = "") {
    ReportedStage& stage = *result_.report.add_stages();
    stage.set_name(std::string(name));
    stage.set_state(std::string(state));
    stage.set_seconds(absl::ToDoubleSeconds(absl::Now() - start));
    stage.set_note(std::move(note));
  }

  // Clocks are always found: all else needs them. What it wrote is in the combined report.
  absl::Status Align() {
    const absl::Time start = absl::Now();
    CombineRequest request = request_.combine;
    request.output_dir = request_.output_dir;
    request.output = PathOf(is_kineto_ ? "combined.json.gz" : "combined.xplane.pb");
    if (!is_kineto_) request.trace_json = PathOf("trace.json.gz");
    request.perfetto = PathOf("trace.perfetto-trace");
    request.validate = true;
    request.other_outputs = {PathOf("combine.json"), PathOf("report.html"), PathOf("report.json")};
    // What a file is for stands between them: none is for two things.
    std::vector<std::string> inputs = request.files.traces;
    inputs.push_back("");
    inputs.insert(inputs.end(), request.files.snapshots.begin(), request.files.snapshots.end());
    inputs.push_back("");
    inputs.insert(inputs.end(), request.files.probes.begin(), request.files.probes.end());
    inputs.push_back("");
    inputs.push_back(request.files.offsets);
    ASSIGN_OR_RETURN(const std::string key, cache_.KeyOf("align", OptionsText(), inputs));
    const std::optional<StageRecord> known = cache_.Find("align", key);
    bool is_cached = known.has_value();
    if (is_cached) {
      const absl::StatusOr<std::unique_ptr<MappedRegion>> json =
          file_system_.Map(PathOf("combine.json"));
      is_cached = json.ok() && ReportFromJson((*json)->bytes(), &result_.combined).ok();
    }
    is_other_run_ = !is_cached;
    if (!is_cached) {
      Say("align", "clocks, happens-before, combined profile");
      OutputFiles outputs(file_system_);
      ASSIGN_OR_RETURN(result_.combined, CombineRun(file_system_, request, outputs));
      RETURN_IF_ERROR(outputs.WriteText("combine_json", PathOf("combine.json"),
                                        ReportToJson(result_.combined)));
      RETURN_IF_ERROR(outputs.Commit());
      StageRecord record;
      record.set_key(key);
      for (const CombinedOutput& output : result_.combined.outputs()) {
        record.add_outputs()->set_path(output.path());
      }
      RETURN_IF_ERROR(cache_.Store("align", std::move(record)));
    }
    for (const CombinedOutput& output : result_.combined.outputs()) {
      if (output.kind() == "aligned") aligned_.push_back(output.path());
      AddFile(output.kind(), NameOf(output.path()), output.bytes(), &result_.report);
    }
    DescribeAlignment(result_.combined, &result_.report);
    result_.report.mutable_run()->set_framework(is_kineto_ ? "PyTorch" : "JAX");
    AddStage("align", is_cached ? kCached : kDone, start);
    return absl::OkStatus();
  }

  // As seen from the folder of the report.
  std::string NameOf(absl::string_view path) const {
    absl::ConsumePrefix(&path, absl::StrCat(request_.output_dir, "/"));
    return std::string(path);
  }

  // Notes what a stage wrote.
  absl::Status AddOutput(absl::string_view kind, const std::string& path, StageRecord* record) {
    ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> file, file_system_.Map(path));
    record->add_outputs()->set_path(path);
    AddFile(kind, NameOf(path), static_cast<int64_t>(file->bytes().size()),
            record->mutable_report());
    return absl::OkStatus();
  }

  void Say(absl::string_view stage, absl::string_view what) const {
    std::fprintf(stderr, "combine: %s: %s ...\n", std::string(stage).c_str(),
                 std::string(what).c_str());
  }

  // Runs a stage, or takes what it made the last time. What it can not do is a note, unless the
  // environment is to blame.
  absl::Status RunStage(const std::string& name, const std::vector<std::string>& inputs,
                        const std::function<absl::Status(StageRecord*)>& run) {
    static const auto& kWhat = *new std::map<std::string, std::string>{
        {"chakra", "execution traces"},
        {"path", "critical path, blame, what-if"},
        {"simulate", "calibration, simulated against measured"}};
    const absl::Time start = absl::Now();
    ASSIGN_OR_RETURN(const std::string key, cache_.KeyOf(name, OptionsText(), inputs));
    cache_.RemoveStale(name, key);
    if (!Wants(name)) {
      AddStage(name, kSkipped, start, "not among --stages");
      return absl::OkStatus();
    }
    std::optional<StageRecord> record = cache_.Find(name, key);
    const bool is_cached = record.has_value();
    if (!is_cached) {
      Say(name, kWhat.at(name));
      record.emplace();
      record->set_key(key);
      const absl::Status status = run(&*record);
      if (!status.ok()) {
        if (ExitCode(status) == kExitEnvironment) return status;
        AddStage(name, kFailed, start, std::string(status.message()));
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(cache_.Store(name, *record));
    }
    // What the path says about the run as a whole takes the place of what alignment said.
    result_.report.MergeFrom(record->report());
    AddStage(name, is_cached ? kCached : kDone, start);
    return absl::OkStatus();
  }

  std::vector<std::string> ChakraInputs() const {
    std::vector<std::string> inputs = aligned_;
    inputs.push_back("");
    inputs.insert(inputs.end(), request_.host_traces.begin(), request_.host_traces.end());
    return inputs;
  }

  absl::Status ExportChakra(StageRecord* record) {
    JobTraces traces;
    (is_kineto_ ? traces.device_traces : traces.xspaces) = aligned_;
    traces.host_traces = request_.host_traces;
    if (is_kineto_ && traces.host_traces.empty()) {
      return absl::FailedPreconditionError(
          "Chakra traces of PyTorch need its execution traces, too (ExecutionTraceObserver), one "
          "beside each profile");
    }
    const std::string prefix = PathOf("chakra/job");
    ProgressBar bar("chakra: profiles", aligned_.size());
    const JobExportOptions options{request_.combine.input,
                                   [&](size_t position) { bar.Update(position); }};
    RETURN_IF_ERROR(ExportJob(file_system_, traces, prefix, options));
    ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_.List(PathOf("chakra")));
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, "job.")) continue;
      RETURN_IF_ERROR(AddOutput("chakra", PathOf(absl::StrCat("chakra/", name)), record));
    }
    return absl::OkStatus();
  }

  absl::Status Simulate(StageRecord* record) {
    SimulationStageRequest request;
    request.traces = aligned_;
    request.sweep = request_.sweep;
    request.calibration_folder = PathOf("calibration");
    request.input = request_.combine.input;
    std::optional<ProgressBar> bar;
    request.progress = [&](size_t done, size_t models) {
      if (!bar.has_value()) bar.emplace("simulate: models", models);
      bar->Update(done);
    };
    RETURN_IF_ERROR(DescribeSimulation(file_system_, request, record->mutable_report()));
    bar.reset();
    if (!record->report().has_simulation()) return absl::OkStatus();
    for (const char* name :
         {"network.yml", "system.json", "corrections.json", "calibration.json"}) {
      const std::string path = absl::StrCat(request.calibration_folder, "/", name);
      RETURN_IF_ERROR(AddOutput("calibration", path, record));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ChainResult> Finish() {
    RunReport& report = result_.report;
    std::map<int64_t, std::string> hosts = HostsByRank(report);
    for (BlamePart& part : *report.mutable_blame()) part.set_hostname(hosts[part.rank()]);
    for (TimelineLane& lane : *report.mutable_timeline()->mutable_lanes()) {
      lane.set_hostname(hosts[lane.rank()]);
    }
    if (report.timeline().lanes_size() == 0) report.clear_timeline();
    for (const ReportedStage& stage : report.stages()) {
      if (stage.state() != kFailed) continue;
      const std::string note =
          absl::StrCat("the stage '", stage.name(), "' was not done: ", stage.note());
      report.add_notes(note);
      result_.combined.add_notes(note);
    }
    for (ReportedLink& link : *report.mutable_slow_links()) {
      link.set_hostname(hosts[link.rank()]);
      for (const WhatIfPart& part : report.what_if()) {
        const bool is_its_own =
            part.change() == WhatIfPart::LINK_AS_FAST_AS_OTHERS && part.rank() == link.rank();
        if (is_its_own) link.set_cost_ms(part.saved_ms());
      }
    }
    // The simulation leaves the first and the last step out: the same share of the step as it is
    // told here.
    if (!CanCompareRanks(report.evidence())) report.clear_what_if();
    for (WhatIfPart& part : *report.mutable_what_if()) {
      const double now_ms = part.step_ms() + part.saved_ms();
      if (part.change() != WhatIfPart::TWICE_THE_BANDWIDTH || !(now_ms > 0) ||
          !report.run().has_step_mean_ms()) {
        continue;
      }
      const double scale = report.run().step_mean_ms() / now_ms;
      part.set_step_ms(part.step_ms() * scale);
      part.set_saved_ms(part.saved_ms() * scale);
      if (part.has_low_ms()) part.set_low_ms(part.low_ms() * scale);
      if (part.has_high_ms()) part.set_high_ms(part.high_ms() * scale);
    }
    // A step is simulated from its first start to its last end on any rank; told is its length.
    std::map<int64_t, double> lengths_ms;
    for (const ReportedStep& step : report.steps()) {
      lengths_ms[step.step()] = step.end_ms() - step.start_ms();
    }
    for (SimulatedStep& step : *report.mutable_simulation()->mutable_steps()) {
      const auto length = lengths_ms.find(step.step());
      if (!step.has_step() || length == lengths_ms.end() || !(step.measured_ms() > 0)) continue;
      const double scale = length->second / step.measured_ms();
      step.set_measured_ms(length->second);
      step.set_simulated_ms(step.simulated_ms() * scale);
      if (step.has_low_ms()) step.set_low_ms(step.low_ms() * scale);
      if (step.has_high_ms()) step.set_high_ms(step.high_ms() * scale);
    }
    if (report.simulation().cells_size() == 0 && report.simulation().steps_size() == 0) {
      report.clear_simulation();
    }
    report.set_title(request_.combine.files.name.empty() ? "Run" : request_.combine.files.name);
    report.set_created(UtcText(absl::Now()));
    report.set_command(request_.command);
    report.set_version(request_.version);
    AddFindings(&report);
    for (const std::string& contradiction : FindContradictions(report)) {
      report.add_notes(absl::StrCat(kContradiction, contradiction));
    }
    const std::string html = PathOf("report.html"), json = PathOf("report.json");
    if (!Wants("report")) {
      // One of another run would be taken for this one's.
      for (const std::string& path : {html, json}) {
        if (is_other_run_) (void)file_system_.Delete(path);
      }
      return std::move(result_);
    }
    OutputFiles outputs(file_system_);
    RETURN_IF_ERROR(outputs.WriteText("report", html, RunReportHtml(report)));
    RETURN_IF_ERROR(outputs.WriteText("report_json", json, ReportToJson(report)));
    RETURN_IF_ERROR(outputs.Commit());
    for (const OutputFile& file : outputs.files()) {
      CombinedOutput* output = result_.combined.add_outputs();
      output->set_kind(file.kind);
      output->set_path(file.path);
      output->set_bytes(static_cast<int64_t>(file.bytes));
    }
    return std::move(result_);
  }

  FileSystem& file_system_;
  const ChainRequest& request_;
  StageCache cache_;
  // What was in the folder before was made of other profiles.
  bool is_other_run_ = false;
  bool is_kineto_ = false;
  std::vector<std::string> aligned_;
  ChainResult result_;
};

}  // namespace

RunReport AlignmentReport(const CombineReport& combined, const std::string& title) {
  RunReport report;
  DescribeAlignment(combined, &report);
  for (const CombinedOutput& output : combined.outputs()) {
    AddFile(output.kind(), output.path(), output.bytes(), &report);
  }
  report.set_title(title);
  report.set_created(UtcText(absl::Now()));
  AddFindings(&report);
  return report;
}

const std::vector<std::string>& ChainStages() {
  static const auto& stages =
      *new std::vector<std::string>{"align", "chakra", "path", "simulate", "report"};
  return stages;
}

absl::StatusOr<ChainResult> RunChain(FileSystem& file_system, const ChainRequest& request) {
  return Chain(file_system, request).Run();
}

}  // namespace meridian
