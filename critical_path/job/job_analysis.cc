#include "critical_path/job/job_analysis.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "critical_path/graph/periods.h"
#include "critical_path/graph/step_times.h"
#include "trace_alignment/collectives/happens_before.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel.h"

namespace meridian {
namespace {

// Messages name at most this many missing ranks.
constexpr size_t kMaxNamedRanks = 10;

// Of less than so many windows nothing is gained.
constexpr size_t kFewestWindows = 4;

absl::StatusOr<std::unique_ptr<OpenedRun>> Read(FileSystem& file_system, const JobInput& input,
                                                const JobOptions& options) {
  TraceFilesOptions opened;
  opened.input = input.files;
  ASSIGN_OR_RETURN(const TraceFiles files, TraceFiles::Create(file_system, input.traces, opened));
  if (files.form() == TraceForm::kXSpace) return ReadXSpaceRun(file_system, input, options);
  return ReadKinetoRun(file_system, files, input, options);
}

absl::StatusOr<LoadedJob> LoadJob(FileSystem& file_system, const JobInput& input,
                                  const JobOptions& options) {
  if (!input.et_prefix.empty()) return LoadEtJob(file_system, input, options);
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedRun> run, Read(file_system, input, options));
  return run->Load(nullptr);
}

std::string SourceName(const JobInput& input) {
  if (!input.et_prefix.empty()) return input.et_prefix;
  if (input.traces.size() == 1) return input.traces[0];
  return absl::StrCat(input.traces[0], " and ", input.traces.size() - 1, " more");
}

// True when what reads a file has named it in the error already.
bool NamesItsInput(const absl::Status& status, const JobInput& input) {
  if (!input.et_prefix.empty()) return absl::StartsWith(status.message(), input.et_prefix);
  return std::any_of(input.traces.begin(), input.traces.end(), [&](const std::string& trace) {
    return absl::StartsWith(status.message(), trace);
  });
}

absl::Status NameInput(const absl::Status& status, const JobInput& input) {
  return NamesItsInput(status, input) ? status : Annotate(status, SourceName(input));
}

absl::StatusOr<size_t> FindRank(const JobGraph& job, int64_t rank) {
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    if (job.ranks[i].rank == rank) return i;
  }
  const std::string there = absl::StrJoin(
      job.ranks, ", ",
      [](std::string* out, const RankGraph& graph) { absl::StrAppend(out, graph.rank); });
  return InvalidArgument("rank ", rank, " is not there; the traces have work of rank ", there);
}

absl::StatusOr<JoinedGraph> Join(JobGraph job, const JobOptions& options) {
  if (!options.rank.has_value() && job.ranks.size() > 1) return JoinRanks(std::move(job));
  size_t position = 0;
  if (options.rank.has_value()) {
    ASSIGN_OR_RETURN(position, FindRank(job, *options.rank));
  }
  return ShowWaits(std::move(job), position);
}

// Of a job that was loaded from the input, or could not be.
absl::StatusOr<TraceAnalysis> JoinLoaded(absl::StatusOr<LoadedJob> loaded, const JobInput& input,
                                         const JobOptions& options) {
  if (!loaded.ok()) return NameInput(loaded.status(), input);
  const bool is_chosen = loaded->job.windows_are_chosen;
  absl::StatusOr<JoinedGraph> joined = Join(std::move(loaded->job), options);
  if (!joined.ok()) return NameInput(joined.status(), input);
  TraceAnalysis analysis{*std::move(loaded), std::move(joined->graph)};
  analysis.source.trace = SourceName(input);
  analysis.source.window = options.window;
  if (MarkPeriods(&analysis.graph)) analysis.source.step_word = "period";
  // A rank that begins chosen steps late was late itself.
  if (!is_chosen) FindLateBeginning(&analysis.graph);
  if (joined->against_time > 0) {
    analysis.source.notes.push_back(
        "some ranks left a meeting before its last member came: nothing joins the two there");
  }
  return analysis;
}

}  // namespace

absl::StatusOr<TraceAnalysis> AnalyzeJob(FileSystem& file_system, const JobInput& input,
                                         const JobOptions& options) {
  ASSIGN_OR_RETURN(TraceAnalysis analysis,
                   JoinLoaded(LoadJob(file_system, input, options), input, options));
  for (const auto& [what, count] : std::exchange(analysis.source.counts, {})) {
    analysis.source.notes.push_back(absl::StrCat(count, what));
  }
  return analysis;
}

absl::Status VisitWindows(FileSystem& file_system, const JobInput& input, const JobOptions& options,
                          size_t window_work,
                          absl::FunctionRef<absl::Status(JobWindow window)> describe,
                          absl::FunctionRef<void(size_t number)> merge) {
  std::unique_ptr<OpenedRun> run;
  std::vector<RunWindow> windows;
  if (input.et_prefix.empty() && options.window.annotation.empty() && !options.rank.has_value()) {
    absl::StatusOr<std::unique_ptr<OpenedRun>> read = Read(file_system, input, options);
    if (!read.ok()) return NameInput(read.status(), input);
    run = *std::move(read);
    windows = run->FindWindows(window_work);
  }
  if (windows.empty()) {
    ASSIGN_OR_RETURN(
        TraceAnalysis all,
        JoinLoaded(run != nullptr ? run->Load(nullptr) : LoadJob(file_system, input, options),
                   input, options));
    run.reset();
    RETURN_IF_ERROR(describe({std::move(all), std::nullopt, 0, 1}));
    merge(0);
    return absl::OkStatus();
  }
  const auto visit = [&](size_t number) -> absl::Status {
    ASSIGN_OR_RETURN(TraceAnalysis analysis,
                     JoinLoaded(run->Load(&windows[number]), input, options));
    return describe({std::move(analysis), windows[number].steps, number, windows.size()});
  };
  // Steps of many ranks may have more work than a window should: then fewer are described at once.
  size_t largest = window_work;
  for (const RunWindow& window : windows) largest = std::max(largest, window.size);
  const size_t at_once = std::max<size_t>(1, 2 * kMostThreads * window_work / largest);
  const size_t middle = windows.size() / 2;
  std::vector<size_t> others;
  for (size_t number = 0; number < windows.size(); ++number) {
    if (number != middle) others.push_back(number);
  }
  for (size_t first = 0; first < others.size(); first += at_once) {
    const size_t count = std::min(at_once, others.size() - first);
    RETURN_IF_ERROR(ParallelFor(count, [&](size_t i) { return visit(others[first + i]); }));
    for (size_t i = 0; i < count; ++i) merge(others[first + i]);
  }
  RETURN_IF_ERROR(visit(middle));
  merge(middle);
  return absl::OkStatus();
}

std::vector<RunWindow> CutSteps(const std::map<int64_t, size_t>& work_of_step, size_t window_work) {
  // Each window has two steps more in its graph than it stands for, so that one of few steps costs more
  // for each: those of many ranks may be larger than others.
  constexpr size_t kMostSteps = 8, kLargest = 32;
  const size_t enough = std::clamp<size_t>(work_of_step.size() / kFewestWindows, 1, kMostSteps);
  std::vector<RunWindow> windows;
  size_t work = 0, steps = 0;
  for (const auto& [step, of_step] : work_of_step) {
    const bool is_full = work >= window_work && (steps >= enough || work >= kLargest * window_work);
    if (windows.empty() || is_full) {
      windows.emplace_back().steps.first = step;
      work = steps = 0;
    }
    windows.back().steps.last = step;
    work += of_step;
    ++steps;
  }
  if (windows.size() < kFewestWindows) return {};
  for (RunWindow& window : windows) {
    auto first = work_of_step.find(window.steps.first);
    auto end = work_of_step.upper_bound(window.steps.last);
    if (first != work_of_step.begin()) --first;
    if (end != work_of_step.end()) ++end;
    window.with_beside = {first->first, std::prev(end)->first};
    for (auto step = first; step != end; ++step) window.size += step->second;
  }
  return windows;
}

std::vector<MemberMeeting> FindMeetings(const CollectiveTable& table) {
  std::vector<MemberMeeting> meetings;
  for (const CollectiveInstance& instance : table.instances()) {
    const absl::Span<const CollectiveMember> members = table.MembersOf(instance);
    if (IsSynchronising(table.OpOf(instance).kind)) {
      MemberMeeting& meeting = meetings.emplace_back();
      meeting.instance = &instance;
      for (const CollectiveMember& member : members) meeting.arrivals.push_back(&member);
      meeting.departures = meeting.arrivals;
      continue;
    }
    std::map<uint32_t, std::vector<const CollectiveMember*>> sources;
    for (const MemberPair& pair : table.PairsOf(instance)) {
      if (pair.source != pair.target) sources[pair.target].push_back(&members[pair.source]);
    }
    for (auto& [target, arrivals] : sources) {
      std::vector<const CollectiveMember*> departures = {&members[target]};
      const bool is_message = table.OpOf(instance).kind != CollectiveKind::kCollectivePermute;
      for (const CollectiveMember* source : arrivals) {
        if (is_message && source->end_ps >= members[target].start_ps) departures.push_back(source);
      }
      arrivals.push_back(&members[target]);
      meetings.push_back({&instance, std::move(arrivals), std::move(departures)});
    }
  }
  return meetings;
}

std::optional<GraphTransfer> TransferOf(const CollectiveTable& table,
                                        const MemberMeeting& meeting) {
  const MatchedOp& op = table.OpOf(*meeting.instance);
  GraphTransfer transfer{op.kind, op.operand_bytes, {}};
  if (!IsSynchronising(op.kind)) {
    // The target comes last.
    if (meeting.arrivals.size() != 2) return std::nullopt;
    transfer.kind = CollectiveKind::kPointToPoint;
  }
  for (const CollectiveMember* member : meeting.arrivals) {
    transfer.ranks.push_back(static_cast<int32_t>(member->rank));
  }
  return transfer;
}

absl::Status CheckClocks(const CollectiveRun& run, const JobOptions& options,
                         std::vector<std::string>* notes) {
  const HappensBefore check = CheckHappensBefore(run.table);
  if (!options.allow_violations) return RefuseViolations(run, check);
  if (!check.violations.empty()) {
    notes->push_back(absl::StrCat("the clocks disagree: ", check.violations.size(), " of ",
                                  check.checked,
                                  " collectives end before they began elsewhere; times between "
                                  "ranks are not to be trusted"));
  }
  return absl::OkStatus();
}

absl::Status CheckRanks(const std::vector<int64_t>& present, int64_t rank_count,
                        const JobOptions& options, std::vector<std::string>* notes) {
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < rank_count && missing.size() < kMaxNamedRanks; ++rank) {
    if (!std::binary_search(present.begin(), present.end(), rank)) missing.push_back(rank);
  }
  if (missing.empty()) return absl::OkStatus();
  const std::string text = absl::StrCat("no trace has the work of rank ",
                                        absl::StrJoin(missing, ", "), " of ", rank_count);
  if (present.size() > 1 && !options.rank.has_value() && !options.allow_missing_ranks) {
    return InvalidArgument(
        text, "; give the traces of all ranks (critical_path can look at one alone: --rank)");
  }
  notes->push_back(absl::StrCat(text, ": waiting for them looks like communication"));
  return absl::OkStatus();
}

}  // namespace meridian
