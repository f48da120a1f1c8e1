#include "critical_path/job/job_analysis.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "critical_path/job/trace_analysis.h"
#include "critical_path/trace/stepped_trace.h"
#include "trace_alignment/collectives/collective_run.h"
#include "xla_profiler/base/buckets.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"

namespace meridian {
namespace {

constexpr uint32_t kNoPosition = std::numeric_limits<uint32_t>::max();

// The events at whose start a collective begins and at whose end it ends, by their places in the
// file; kNoPosition when its kernels are not known.
struct CollectiveKernels {
  uint32_t first = kNoPosition;
  uint32_t last = kNoPosition;
};

// What stays of a trace.
struct RankTrace {
  // Its graph, where that is of a chosen window or needs an execution trace; else what it is made of.
  std::optional<PathGraph> graph;
  std::optional<SteppedTrace> kept;
  // The kernels of each collective, by event of the trace's ProfileCollectives.
  std::vector<CollectiveKernels> collectives;
  std::vector<std::string> notes;
};

// Finds the kernels of collectives, which are known by start and correlation of their first kernel,
// and by the end of their last one, on the same track.
std::vector<CollectiveKernels> FindKernels(const TraceJsonTable& trace,
                                           const std::vector<CollectiveEvent>& collectives) {
  absl::flat_hash_map<std::pair<int64_t, uint64_t>, std::pair<uint32_t, TrackId>> starts;
  absl::flat_hash_map<std::pair<int64_t, TrackId>, uint32_t> ends;
  const EventTable& table = trace.table;
  for (EventRow row = 0; row < table.size(); ++row) {
    const TrackId track = table.track_id(row);
    if (table.track(track).kind != TrackKind::kDevice) continue;
    if (!IsCommunicationKernel(table.name(row))) continue;
    const uint32_t position = trace.positions[row];
    starts[{table.start_ps(row), table.correlation(row).value_or(0)}] = {position, track};
    ends[{table.end_ps(row), track}] = position;
  }
  std::vector<CollectiveKernels> kernels;
  for (const CollectiveEvent& event : collectives) {
    CollectiveKernels& found = kernels.emplace_back();
    const auto start = starts.find({event.start_ps, event.correlation_id});
    if (start == starts.end()) continue;
    const auto end = ends.find({event.end_ps, start->second.second});
    if (end != ends.end()) found = {start->second.first, end->second};
  }
  return kernels;
}

// Returns the event of a graph, whose events are in the order of the file; kNoEvent when it has none
// of that place.
GraphEventId FindEvent(const PathGraph& graph, uint32_t position) {
  const auto event = absl::c_lower_bound(
      graph.events, position,
      [](const GraphEvent& event, uint32_t position) { return event.position < position; });
  if (event == graph.events.end() || event->position != position) return kNoEvent;
  return static_cast<GraphEventId>(event - graph.events.begin());
}

class KinetoRun : public OpenedRun {
 public:
  KinetoRun(FileSystem& file_system, const JobInput& input, const JobOptions& options)
      : file_system_(file_system), input_(input), options_(options) {
    graph_options_.data_load_events = input.data_load_events;
  }

  absl::Status Read(const TraceFiles& files) {
    const std::vector<std::string>& traces = files.paths();
    std::vector<ProfileCollectives> collectives;
    for (size_t i = 0; i < traces.size(); ++i) {
      if (options_.progress) options_.progress(i);
      absl::StatusOr<ProfileCollectives> profile = ReadTrace(files, i);
      if (!profile.ok()) {
        const bool is_named = absl::StrContains(profile.status().message(), traces[i]);
        return is_named ? profile.status() : Annotate(profile.status(), traces[i]);
      }
      collectives.push_back(*std::move(profile));
    }
    ASSIGN_OR_RETURN(run_, MatchCollectives(std::move(collectives)));
    notes_ = files.notes();
    RETURN_IF_ERROR(CheckOneRun(run_));
    RETURN_IF_ERROR(CheckClocks(run_, options_, &notes_));
    RETURN_IF_ERROR(PlaceRanks());
    AddNotes();
    FindMeetingsOfSteps();
    return absl::OkStatus();
  }

  std::vector<RunWindow> FindWindows(size_t window_work) const override {
    std::map<int64_t, size_t> work_of_step;
    for (const RankTrace& trace : traces_) {
      if (!trace.kept.has_value() || trace.kept->steps() != traces_[0].kept->steps()) return {};
      const std::vector<int64_t>& steps = trace.kept->steps();
      for (size_t i = 0; i < steps.size(); ++i) {
        // The step itself is a row. A rank that did nothing has no graph.
        if (trace.kept->RowsIn(i) < 2 || (i > 0 && steps[i] <= steps[i - 1])) return {};
        work_of_step[steps[i]] += trace.kept->RowsIn(i);
      }
    }
    const auto differing = absl::c_count_if(meetings_, [&](const MemberMeeting& meeting) {
      return absl::c_any_of(meeting.arrivals, [&](const CollectiveMember* member) {
        return StepOf(*member) != StepOf(*meeting.arrivals[0]);
      });
    });
    if (2 * static_cast<size_t>(differing) > meetings_.size()) return {};
    std::vector<RunWindow> windows = CutSteps(work_of_step, window_work);
    for (RunWindow& window : windows) {
      int64_t& last = window.with_beside.last;
      const auto known = work_of_step.upper_bound(last);
      for (const RankTrace& trace : traces_) {
        const size_t during = trace.kept->LastBegunDuring(stretch_of_step_.at(window.steps.last));
        last = std::max(last, trace.kept->steps()[during]);
      }
      for (auto step = known; step != work_of_step.upper_bound(last); ++step) {
        window.size += step->second;
      }
    }
    return windows;
  }

  absl::StatusOr<LoadedJob> Load(const RunWindow* window) override {
    LoadedJob loaded;
    loaded.notes = notes_;
    loaded.job.windows_are_chosen = !options_.window.annotation.empty();
    size_t first = 0, last = stretch_of_step_.size();
    if (window != nullptr) {
      first = stretch_of_step_.at(window->with_beside.first);
      last = stretch_of_step_.at(window->with_beside.last);
    }
    for (const auto& [rank, position] : trace_of_rank_) {
      RankTrace& trace = traces_[position];
      RankGraph& added = loaded.job.ranks.emplace_back();
      added.rank = rank;
      if (trace.graph.has_value()) {
        added.graph = *std::move(trace.graph);
      } else {
        const size_t end = trace.kept->stretches();
        ASSIGN_OR_RETURN(
            added.graph,
            trace.kept->BuildGraph(first, window == nullptr ? end - 1 : last, graph_options_));
      }
      for (Lane& lane : added.graph.lanes) lane.rank = rank;
      for (StepMark& mark : added.graph.marks) mark.rank = rank;
    }
    AddMeetings(first, last, &loaded.job);
    return loaded;
  }

 private:
  absl::StatusOr<ProfileCollectives> ReadTrace(const TraceFiles& files, size_t position) {
    const std::string& path = files.paths()[position];
    ASSIGN_OR_RETURN(const InputFile file, files.Open(position));
    ASSIGN_OR_RETURN(const TraceJsonTable trace, LoadTraceJson(file.bytes(), path));
    RETURN_IF_ERROR(CheckOneRank(trace, path));
    RankTrace& rank = traces_.emplace_back();
    if (options_.window.annotation.empty() && input_.host_traces.empty()) {
      ASSIGN_OR_RETURN(rank.kept, KeepLoadedTrace(trace, file.bytes(), file_system_,
                                                  input_.files.temporary_directory, graph_options_,
                                                  &rank.notes));
    } else {
      TraceAnalysisOptions options;
      options.window = options_.window;
      options.data_load_events = input_.data_load_events;
      if (position < input_.host_traces.size()) options.host_trace = &input_.host_traces[position];
      ASSIGN_OR_RETURN(TraceAnalysis analysis,
                       AnalyzeLoadedTrace(trace, file.bytes(), /*rank=*/0, options));
      rank.graph = std::move(analysis.graph);
      rank.notes = std::move(analysis.source.notes);
    }
    ProfileCollectives profile = ReadKinetoCollectives(trace, file.bytes(), path);
    rank.collectives = FindKernels(trace, profile.events);
    return profile;
  }

  absl::Status PlaceRanks() {
    for (size_t trace = 0; trace < traces_.size(); ++trace) {
      const std::vector<int64_t>& ranks = run_.ranks.ranks[trace];
      const int64_t rank =
          ranks.empty() || ranks[0] == kUnknownId ? static_cast<int64_t>(trace) : ranks[0];
      const auto [it, is_new] = trace_of_rank_.emplace(rank, trace);
      if (!is_new) {
        return InvalidArgument(run_.profiles[it->second].trace, " and ", run_.profiles[trace].trace,
                               " are both of rank ", rank, "; give one trace of each rank");
      }
    }
    std::vector<int64_t> there;
    positions_.resize(traces_.size());
    for (const auto& [rank, trace] : trace_of_rank_) {
      positions_[trace] = there.size();
      there.push_back(rank);
    }
    const auto known = static_cast<int64_t>(run_.ranks.device_of_rank.size());
    return CheckRanks(there, std::max(known, there.back() + 1), options_, &notes_);
  }

  void FindMeetingsOfSteps() {
    if (traces_[0].kept.has_value()) {
      for (int64_t step : traces_[0].kept->steps()) {
        stretch_of_step_.emplace(step, stretch_of_step_.size());
      }
    }
    meetings_ = FindMeetings(run_.table);
    meetings_of_stretch_ = Buckets<uint32_t>(stretch_of_step_.size() + 1, [&](const auto& visit) {
      for (size_t i = 0; i < meetings_.size(); ++i) {
        const auto stretch =
            stretch_of_step_.find(StepOf(*meetings_[i].arrivals[0]).value_or(kNoStep));
        visit(stretch == stretch_of_step_.end() ? stretch_of_step_.size() : stretch->second,
              static_cast<uint32_t>(i));
      }
    });
  }

  std::optional<int64_t> StepOf(const CollectiveMember& member) const {
    return run_.profiles[run_.table.NodeOf(member)].events[member.event].step;
  }

  // Adds the meetings of the stretches, and those of no step that are in the graphs.
  void AddMeetings(size_t first, size_t last, JobGraph* job) const {
    std::vector<uint32_t> numbers;
    const auto take = [&](size_t stretch) {
      absl::c_copy(meetings_of_stretch_.Of(stretch), std::back_inserter(numbers));
    };
    for (size_t stretch = first; stretch <= last; ++stretch) take(stretch);
    if (last < stretch_of_step_.size()) take(stretch_of_step_.size());
    absl::c_sort(numbers);
    for (const uint32_t number : numbers) {
      const MemberMeeting& from = meetings_[number];
      Meeting meeting;
      meeting.name = run_.table.OpOf(*from.instance).instruction;
      meeting.transfer = TransferOf(run_.table, from);
      for (const CollectiveMember* member : from.arrivals) {
        if (!meeting.step.has_value()) meeting.step = StepOf(*member);
      }
      meeting.arrivals = InstantsOf(from.arrivals, &CollectiveKernels::first, StartInstant, *job);
      meeting.departures = InstantsOf(from.departures, &CollectiveKernels::last, EndInstant, *job);
      if (meeting.arrivals.size() < 2 || meeting.departures.empty()) continue;
      job->meetings.push_back(std::move(meeting));
    }
  }

  // Returns the instants of the members that are in the graphs.
  std::vector<RankInstant> InstantsOf(const std::vector<const CollectiveMember*>& members,
                                      uint32_t CollectiveKernels::*kernel,
                                      InstantId (*instant_of)(GraphEventId),
                                      const JobGraph& job) const {
    std::vector<RankInstant> instants;
    for (const CollectiveMember* member : members) {
      const uint32_t trace = run_.table.NodeOf(*member);
      const size_t rank = positions_[trace];
      const GraphEventId event =
          FindEvent(job.ranks[rank].graph, traces_[trace].collectives[member->event].*kernel);
      if (event != kNoEvent) instants.push_back({rank, instant_of(event)});
    }
    return instants;
  }

  void AddNotes() {
    const std::vector<CollectiveInstance>& instances = run_.table.instances();
    const int64_t incomplete =
        std::count_if(instances.begin(), instances.end(),
                      [](const CollectiveInstance& instance) { return instance.missing > 0; });
    if (incomplete > 0) {
      notes_.push_back(absl::StrCat(incomplete, " of ", instances.size(),
                                    " collectives lack ranks: waiting for these looks like "
                                    "communication"));
    }
    for (const auto& list : {run_.ranks.notes, run_.runs.notes}) {
      notes_.insert(notes_.end(), list.begin(), list.end());
    }
    std::vector<int64_t> rank_of_trace(traces_.size());
    for (const auto& [rank, trace] : trace_of_rank_) rank_of_trace[trace] = rank;
    for (size_t trace = 0; trace < traces_.size(); ++trace) {
      for (const std::string& note : traces_[trace].notes) {
        notes_.push_back(absl::StrCat("rank ", rank_of_trace[trace], ": ", note));
      }
      for (const auto& [reason, entry] : run_.profiles[trace].unresolved.entries()) {
        notes_.push_back(
            absl::StrCat("rank ", rank_of_trace[trace], ": ", entry.count, " x ", reason));
      }
    }
  }

  FileSystem& file_system_;
  const JobInput& input_;
  const JobOptions& options_;
  TraceGraphOptions graph_options_;
  std::vector<RankTrace> traces_;
  CollectiveRun run_;
  std::map<int64_t, size_t> trace_of_rank_;
  // By trace: its rank's position in JobGraph::ranks.
  std::vector<size_t> positions_;
  // By step: its stretch in the traces, where windows are possible.
  std::map<int64_t, size_t> stretch_of_step_;
  std::vector<MemberMeeting> meetings_;
  // Positions in meetings_ by stretch; those of no step last.
  Buckets<uint32_t> meetings_of_stretch_;
  std::vector<std::string> notes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OpenedRun>> ReadKinetoRun(FileSystem& file_system,
                                                         const TraceFiles& files,
                                                         const JobInput& input,
                                                         const JobOptions& options) {
  auto run = std::make_unique<KinetoRun>(file_system, input, options);
  RETURN_IF_ERROR(run->Read(files));
  return run;
}

}  // namespace meridian
