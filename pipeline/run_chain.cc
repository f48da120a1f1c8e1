#include "pipeline/run_chain.h"

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/transfers.h"
#include "chakra_export/xspace/device_work.h"
#include "pipeline/align_stage.h"
#include "pipeline/comparison.h"
#include "pipeline/findings.h"
#include "pipeline/folder_lock.h"
#include "pipeline/job_traces.h"
#include "pipeline/path_stage.h"
#include "pipeline/simulation_stage.h"
#include "report/bounded_steps.h"
#include "report/run_report_html.h"
#include "trace_alignment/collectives/validation.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/command_line/progress_bar.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/files/scratch_folder.h"
#include "xla_profiler/base/files/temporary_files.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/flight_recorder/flight_recorder.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {
namespace {

constexpr absl::string_view kDone = "done", kSkipped = "skipped", kFailed = "failed";
// The stage that finds the clocks. It is always run, and no other does without it.
constexpr absl::string_view kAlign = "align";

// What slow links cost is asked of so many: each is a replay.
constexpr size_t kMostAskedLinks = 4;

// The text of so many events was about 600 MB, and chrome://tracing cannot hold more than 512.
constexpr int64_t kMostJsonEvents = 2000000;

// Chakra traces of so many pieces of work of a rank take 200 MB, and half a gigabyte to make.
constexpr size_t kMostChakraWork = size_t{1} << 19;

// The files of a calibration.
constexpr const char* kCalibrationFiles[] = {"network.yml", "system.json", "corrections.json",
                                             "calibration.json"};

// The simulation leaves the first and the last step out, and simulates a step from its first start to
// its last end on any rank: the same shares of the steps as they are told here.
void ScaleSimulatedSteps(RunReport* report) {
  std::map<int64_t, double> lengths_ms;
  for (const ReportedStep& step : report->steps()) {
    lengths_ms[step.step()] = step.end_ms() - step.start_ms();
  }
  if (!report->has_simulation()) return;
  for (CheckedStep& step : *report->mutable_simulation()->mutable_steps()) {
    const auto length = lengths_ms.find(step.step());
    if (!step.has_step() || length == lengths_ms.end() || !(step.measured_ns() > 0)) continue;
    const double scale = length->second * kNsPerMs / step.measured_ns();
    step.set_measured_ns(length->second * kNsPerMs);
    step.set_simulated_ns(step.simulated_ns() * scale);
    step.set_replayed_ns(step.replayed_ns() * scale);
    if (step.has_simulated_low_ns()) step.set_simulated_low_ns(step.simulated_low_ns() * scale);
    if (step.has_simulated_high_ns()) step.set_simulated_high_ns(step.simulated_high_ns() * scale);
  }
}

// Tells of each slow link what the run would gain if it were as fast as the others.
void AddLinkCosts(RunReport* report) {
  for (CombinedLink& link : *report->mutable_slow_links()) {
    for (const WhatIfPart& part : report->what_if()) {
      if (part.change() == WhatIfPart::LINK_AS_FAST_AS_OTHERS && part.rank() == link.rank()) {
        link.set_cost_ms(part.saved_ms());
      }
    }
  }
}

void RemoveWhatIf(WhatIfPart::Change change, RunReport* report) {
  auto& parts = *report->mutable_what_if();
  parts.erase(std::remove_if(parts.begin(), parts.end(),
                             [&](const WhatIfPart& part) { return part.change() == change; }),
              parts.end());
}

// A rank that others wait for: the forecast is the answer wherever it is told.
void TakeForecastOfLateRank(RunReport* report) {
  for (WhatIfPart& part : *report->mutable_what_if()) {
    for (const ForecastReport& answer : report->forecasts()) {
      if (answer.question() != part.what()) continue;
      const double now_ms = part.step_ms() + part.saved_ms();
      part.set_step_ms(now_ms * answer.step_ns() / answer.measured_step_ns());
      part.set_saved_ms(now_ms - part.step_ms());
    }
  }
}

class Chain {
 public:
  Chain(FileSystem& file_system, const ChainRequest& request)
      : file_system_(file_system), request_(request) {}

  absl::StatusOr<RunReport> Run() {
    RemoveLeftovers();
    ASSIGN_OR_RETURN(const TraceSource* source,
                     DetectOneSource(file_system_, request_.combine.files.traces));
    is_kineto_ = source->form() == TraceForm::kKineto;
    is_converted_ = source->NeedsConversion();
    tells_hangs_ = source->TellsWhyJobsHang();
    RETURN_IF_ERROR(RunStage(kAlign, "clocks, happens-before, combined profile",
                             [&](RunReport* report) { return Align(report); }));
    for (const CombinedOutput& output : report_.combine().outputs()) {
      if (output.kind() == "aligned") aligned_.push_back(output.path());
    }
    RemoveEarlier();
    if (Wants("simulate") && !profiled_.collectives.profiles.empty()) {
      const std::string folder = aligned_[0].substr(0, aligned_[0].rfind('/'));
      calibration_run_ = MakeCalibrationRun(folder, profiled_.collectives);
      if (calibration_run_->ok()) (*calibration_run_)->traces = aligned_;
    }
    RETURN_IF_ERROR(RunStage("chakra", "execution traces",
                             [&](RunReport* report) { return ExportChakra(report); }));
    if (report_.combine().happens_before().violations_after() > 0) {
      for (const char* stage : {"path", "simulate"}) {
        AddStage(stage, kSkipped, absl::Now(), "the clocks contradict the collectives");
      }
      return Finish();
    }
    RETURN_IF_ERROR(RunStage("path", "critical path, blame, what-if",
                             [&](RunReport* report) { return FindPath(report); }));
    RETURN_IF_ERROR(RunStage("simulate", "calibration, simulated against measured",
                             [&](RunReport* report) { return Simulate(report); }));
    return Finish();
  }

 private:
  std::string PathOf(absl::string_view name) const {
    return absl::StrCat(request_.output_dir, "/", name);
  }

  // Removes the temporary files of a run that was killed. This run has the folder for itself.
  void RemoveLeftovers() {
    std::vector<std::string> folders = {request_.output_dir, PathOf("chakra"),
                                        PathOf("calibration")};
    const std::string profiles = PathOf("plugins/profile");
    const absl::StatusOr<std::vector<std::string>> runs = file_system_.List(profiles);
    for (const std::string& run : runs.value_or(std::vector<std::string>())) {
      folders.push_back(absl::StrCat(profiles, "/", run));
    }
    for (const std::string& folder : folders) RemoveTemporaryFiles(file_system_, folder);
  }

  // Removes what stages made before, so that nobody takes it for part of this run.
  void RemoveEarlier() {
    std::vector<std::string> names = {"report.html", "report.json"};
    const auto& outputs = report_.combine().outputs();
    const bool has_json = absl::c_any_of(
        outputs, [](const CombinedOutput& output) { return output.kind() == "trace_json"; });
    // Only of XSpaces is it ours.
    if (!is_kineto_ && !has_json) names.push_back("trace.json.gz");
    for (const char* name : kCalibrationFiles) names.push_back(absl::StrCat("calibration/", name));
    const absl::StatusOr<std::vector<std::string>> exported = file_system_.List(PathOf("chakra"));
    for (const std::string& name : exported.value_or(std::vector<std::string>())) {
      if (absl::StartsWith(name, "job.")) names.push_back(absl::StrCat("chakra/", name));
    }
    for (const std::string& name : names) (void)file_system_.Delete(PathOf(name));
  }

  bool Wants(absl::string_view stage) const {
    return stage == kAlign || request_.stages.empty() ||
           request_.stages.count(std::string(stage)) > 0;
  }

  void AddStage(absl::string_view name, absl::string_view state, absl::Time start,
                std::string note = "") {
    ReportedStage& stage = *report_.add_stages();
    stage.set_name(std::string(name));
    stage.set_state(std::string(state));
    stage.set_seconds(absl::ToDoubleSeconds(absl::Now() - start));
    stage.set_note(std::move(note));
  }

  // Notes what a stage wrote.
  absl::Status AddOutput(absl::string_view kind, absl::string_view name, RunReport* report) {
    ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> file, file_system_.Map(PathOf(name)));
    AddFile(kind, name, static_cast<int64_t>(file->bytes().size()), report);
    return absl::OkStatus();
  }

  // Runs a stage, which fills in its part of the report. What it cannot do is a note, unless the
  // environment is to blame, or nothing can be done without it.
  absl::Status RunStage(absl::string_view name, const char* what,
                        const std::function<absl::Status(RunReport*)>& run) {
    const absl::Time start = absl::Now();
    if (!Wants(name)) {
      AddStage(name, kSkipped, start, "not among --stages");
      return absl::OkStatus();
    }
    const auto place = absl::c_find(kChainStages, name) - std::begin(kChainStages);
    WorkingLine::Say(
        absl::StrCat(what, " (stage ", place + 1, " of ", std::size(kChainStages), ")"));
    RunReport part;
    const absl::Status status = run(&part);
    if (!status.ok()) {
      if (name == kAlign || ExitCode(status) == kExitEnvironment) return status;
      AddStage(name, kFailed, start, std::string(status.message()));
      return absl::OkStatus();
    }
    // What the path says about the run as a whole takes the place of what alignment said.
    if (part.combine().step_waits_size() > 0) report_.mutable_combine()->clear_step_waits();
    // Stages that read the same profiles find the same to say.
    auto& notes = *part.mutable_notes();
    notes.erase(std::remove_if(notes.begin(), notes.end(),
                               [&](const std::string& note) {
                                 return absl::c_linear_search(report_.notes(), note);
                               }),
                notes.end());
    report_.MergeFrom(part);
    AddStage(name, kDone, start);
    return absl::OkStatus();
  }

  absl::Status Align(RunReport* report) {
    CombineRequest request = request_.combine;
    request.output_dir = request_.output_dir;
    request.output = PathOf(is_kineto_ ? "combined.json.gz" : "combined.xplane.pb");
    if (!is_kineto_) request.trace_json = PathOf("trace.json.gz");
    request.most_json_events = kMostJsonEvents;
    request.perfetto = PathOf("trace.perfetto-trace");
    request.validate = true;
    request.aligned_collectives = &profiled_.collectives;
    const std::string json = PathOf("combine.json");
    request.other_outputs = {json, PathOf("report.html"), PathOf("report.json")};
    OutputFiles outputs(file_system_);
    ASSIGN_OR_RETURN(*report->mutable_combine(), CombineRun(file_system_, request, outputs));
    RETURN_IF_ERROR(outputs.WriteText("combine_json", json, ReportToJson(report->combine())));
    RETURN_IF_ERROR(outputs.Commit());
    DescribeAlignment(PathOf(""), report);
    if (tells_hangs_) RETURN_IF_ERROR(FindHang(report));
    // Tables, databases and logs do not say which framework ran.
    if (!is_converted_) report->mutable_run()->set_framework(is_kineto_ ? "PyTorch" : "JAX");
    return absl::OkStatus();
  }

  absl::Status FindHang(RunReport* report) {
    const std::vector<std::string>& dumps = request_.combine.files.traces;
    std::vector<std::string> notes;
    ASSIGN_OR_RETURN(const std::vector<FlightDump> read, ReadFlightDumps(
                                                             dumps.size(),
                                                             [&](size_t dump) {
                                                               return InputFile::Open(
                                                                   file_system_, dumps[dump],
                                                                   request_.combine.input);
                                                             },
                                                             &notes));
    std::optional<Finding> hang = HangFinding(FindHangs(read));
    if (hang.has_value()) *report->add_findings() = *std::move(hang);
    return absl::OkStatus();
  }

  absl::Status FindPath(RunReport* report) {
    ProgressBar bar("path: profiles", aligned_.size());
    PathStageOptions options;
    options.input = request_.combine.input;
    options.progress = [&](size_t position) { bar.Update(position); };
    for (const CombinedLink& link : report_.slow_links()) {
      const bool is_asked = link.or_ranks().empty() && options.slow_links.size() < kMostAskedLinks;
      if (is_asked) options.slow_links.push_back(link);
    }
    options.can_compare_ranks = CanCompareRanks(report_.evidence());
    if (report_.evidence().has_clock_uncertainty_ms()) {
      options.clock_uncertainty_ms = report_.evidence().clock_uncertainty_ms();
    }
    if (!is_kineto_) options.profiled = &profiled_;
    ASSIGN_OR_RETURN(graph_, DescribePath(file_system_, aligned_, options, report));
    return absl::OkStatus();
  }

  absl::Status ExportChakra(RunReport* report) {
    JobTraces traces;
    (is_kineto_ ? traces.device_traces : traces.xspaces) = aligned_;
    traces.host_traces = request_.host_traces;
    const std::string prefix = PathOf("chakra/job");
    ProgressBar bar("chakra: profiles", aligned_.size());
    std::vector<std::string> notes;
    const JobExportOptions options{request_.combine.input,
                                   [&](size_t position) { bar.Update(position); },
                                   Wants("path") ? &profiled_ : nullptr, kMostChakraWork, &notes};
    absl::Status exported = ExportJob(file_system_, traces, prefix, options);
    if (absl::IsInvalidArgument(exported) && !traces.host_traces.empty()) {
      // Profiles alone are enough.
      report->add_notes(absl::StrCat(
          "Chakra traces are made of the profiles alone, without operators and tensors: ",
          exported.message()));
      traces.host_traces.clear();
      exported = ExportJob(file_system_, traces, prefix, options);
    }
    RETURN_IF_ERROR(exported);
    for (const std::string& note : notes) {
      report->add_notes(note);
      report->mutable_combine()->add_notes(note);
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_.List(PathOf("chakra")));
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, "job.")) continue;
      RETURN_IF_ERROR(AddOutput("chakra", absl::StrCat("chakra/", name), report));
    }
    return absl::OkStatus();
  }

  absl::Status Simulate(RunReport* report) {
    SimulationStageRequest request;
    request.traces = aligned_;
    if (calibration_run_.has_value()) request.run = &*calibration_run_;
    request.sweep = request_.sweep;
    const bool can_forecast = graph_.has_value() && CanCompareRanks(report_.evidence()) &&
                              !report_.evidence().communication_only() &&
                              report_.run().has_step_ms();
    if (can_forecast) request.graph = &*graph_;
    for (const WhatIfPart& part : report_.what_if()) {
      if (part.change() == WhatIfPart::RANK_AS_FAST_AS_OTHERS) request.late_rank = &part;
    }
    request.calibration_folder = PathOf("calibration");
    request.input = request_.combine.input;
    std::optional<ProgressBar> bar;
    request.progress = [&](size_t done, size_t models) {
      if (!bar.has_value()) bar.emplace("simulate: models", models);
      bar->Update(done);
    };
    RETURN_IF_ERROR(DescribeSimulation(file_system_, request, report));
    bar.reset();
    if (!report->has_simulation()) return absl::OkStatus();
    for (const char* name : kCalibrationFiles) {
      RETURN_IF_ERROR(AddOutput("calibration", absl::StrCat("calibration/", name), report));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<RunReport> Finish() {
    std::map<int64_t, std::string> hosts = HostsByRank(report_);
    for (BlamePart& part : *report_.mutable_blame()) part.set_hostname(hosts[part.rank()]);
    for (const ReportedStage& stage : report_.stages()) {
      if (stage.state() != kFailed) continue;
      const std::string note =
          absl::StrCat("the stage '", stage.name(), "' was not done: ", stage.note());
      report_.add_notes(note);
      report_.mutable_combine()->add_notes(note);
    }
    AddLinkCosts(&report_);
    if (report_.forecasts_size() > 0) {
      // The same questions, better answered by forecasts.
      RemoveWhatIf(WhatIfPart::HALF_THE_COMMUNICATION, &report_);
      RemoveWhatIf(WhatIfPart::HALF_THE_COMPUTATION, &report_);
      TakeForecastOfLateRank(&report_);
    }
    if (!CanCompareRanks(report_.evidence())) report_.clear_what_if();
    ScaleSimulatedSteps(&report_);
    if (report_.simulation().cells_size() + report_.simulation().steps_size() == 0) {
      report_.clear_simulation();
    }
    const std::string& name = request_.combine.files.name;
    report_.set_title(name.empty() ? "Run" : name);
    report_.set_created(UtcText(absl::Now()));
    report_.set_command(request_.command);
    report_.set_version(request_.version);
    AddFindings(&report_);
    if (request_.baseline != nullptr) {
      *report_.mutable_comparison() = CompareRuns(*request_.baseline, report_);
      AddComparisonFinding(&report_);
    }
    for (const std::string& contradiction : FindContradictions(report_)) {
      report_.add_notes(absl::StrCat("this report contradicts itself: ", contradiction));
    }
    RETURN_IF_ERROR(WriteReport());
    return std::move(report_);
  }

  absl::Status WriteReport() {
    const std::string html = PathOf("report.html"), json = PathOf("report.json");
    if (!Wants("report")) return absl::OkStatus();
    // combine.json has the waits of all steps.
    RunReport shown = report_;
    BoundSteps(&shown);
    std::string page, text;
    (void)ParallelFor(2, [&](size_t which) {
      if (which == 0) page = RunReportHtml(shown);
      if (which == 1) text = ReportToJson(shown);
      return absl::OkStatus();
    });
    OutputFiles outputs(file_system_);
    RETURN_IF_ERROR(outputs.WriteText("report", html, page));
    RETURN_IF_ERROR(outputs.WriteText("report_json", json, text));
    RETURN_IF_ERROR(outputs.Commit());
    for (const OutputFile& file : outputs.files()) {
      meridian::AddOutput(file, report_.mutable_combine());
    }
    return absl::OkStatus();
  }

  FileSystem& file_system_;
  const ChainRequest& request_;
  bool is_kineto_ = false;
  // The traces were made from something else (trace_source.h).
  bool is_converted_ = false;
  // They are flight recorder dumps.
  bool tells_hangs_ = false;
  // The profiles on the common clock, one for each node.
  std::vector<std::string> aligned_;
  // These, as far as they were read, until the path takes them; and their transfers.
  ProfiledRun profiled_;
  std::optional<absl::StatusOr<CalibrationRun>> calibration_run_;
  // What waited for what, once that is known.
  std::optional<PathGraph> graph_;
  RunReport report_;
};

}  // namespace

absl::StatusOr<RunReport> RunChain(FileSystem& file_system, const ChainRequest& request) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FolderLock> lock,
                   FolderLock::Take(file_system, request.output_dir));
  return Chain(file_system, request).Run();
}

absl::StatusOr<RunReport> ReportOfRun(FileSystem& file_system, const std::string& folder,
                                      const InputFileOptions& input, absl::string_view version) {
  absl::StatusOr<RunReport> report = ReadRunReport(file_system, folder);
  if (!absl::IsNotFound(report.status()) || absl::EndsWith(folder, ".json")) return report;
  ChainRequest request;
  const absl::StatusOr<FileKind> kind = file_system.Kind(folder);
  if (kind.ok() && *kind == FileKind::kRegular) {
    request.combine.files.traces = {folder};
    request.combine.files.name = folder.substr(folder.rfind('/') + 1);
  } else {
    ASSIGN_OR_RETURN(request.combine.files, FindRunFiles(file_system, folder));
  }
  ASSIGN_OR_RETURN(const ScratchFolder scratch,
                   ScratchFolder::Create(input.temporary_directory, "compare"));
  request.combine.input = input;
  request.output_dir = scratch.path();
  request.stages = {"path"};
  request.version = std::string(version);
  return RunChain(file_system, request);
}

}  // namespace meridian
