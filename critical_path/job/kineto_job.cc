#include "critical_path/job/job_analysis.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "critical_path/job/trace_analysis.h"
#include "trace_alignment/collectives/collective_run.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/kineto_collectives.h"

namespace meridian {
namespace {

// The events at whose start a collective begins and at whose end it ends; kNoEvent when its kernels
// are not in the window.
struct CollectiveKernels {
  GraphEventId first = kNoEvent;
  GraphEventId last = kNoEvent;
};

// What stays in memory of a trace.
struct RankTrace {
  PathGraph graph;
  // The kernels of each collective, by event of the trace's ProfileCollectives.
  std::vector<CollectiveKernels> collectives;
  std::vector<std::string> notes;
};

// Finds the kernels of collectives, which are known by start and correlation of their first kernel,
// and by the end of their last one, on the same track.
std::vector<CollectiveKernels> FindKernels(const TraceJsonTable& trace, const PathGraph& graph,
                                           const std::vector<CollectiveEvent>& collectives) {
  absl::flat_hash_map<uint32_t, GraphEventId> of_position;
  for (GraphEventId id = 0; id < graph.events.size(); ++id) {
    of_position[graph.events[id].position] = id;
  }
  absl::flat_hash_map<std::pair<int64_t, uint64_t>, std::pair<GraphEventId, TrackId>> starts;
  absl::flat_hash_map<std::pair<int64_t, TrackId>, GraphEventId> ends;
  const EventTable& table = trace.table;
  for (EventRow row = 0; row < table.size(); ++row) {
    const TrackId track = table.track_id(row);
    if (table.track(track).kind != TrackKind::kDevice) continue;
    if (!IsCommunicationKernel(table.name(row))) continue;
    const auto event = of_position.find(trace.positions[row]);
    if (event == of_position.end()) continue;
    starts[{table.start_ps(row), table.correlation(row).value_or(0)}] = {event->second, track};
    ends[{table.end_ps(row), track}] = event->second;
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

class KinetoJobLoader {
 public:
  KinetoJobLoader(const TraceFiles& files, const JobInput& input, const JobOptions& options)
      : files_(files), input_(input), options_(options) {}

  absl::StatusOr<LoadedJob> Load() {
    const std::vector<std::string>& traces = files_.paths();
    std::vector<ProfileCollectives> collectives;
    for (size_t i = 0; i < traces.size(); ++i) {
      if (options_.progress) options_.progress(i);
      absl::StatusOr<ProfileCollectives> profile = Read(i);
      if (!profile.ok()) {
        const bool is_named = absl::StrContains(profile.status().message(), traces[i]);
        return is_named ? profile.status() : Annotate(profile.status(), traces[i]);
      }
      collectives.push_back(*std::move(profile));
    }
    ASSIGN_OR_RETURN(run_, MatchCollectives(std::move(collectives)));
    RETURN_IF_ERROR(CheckOneRun(run_));
    RETURN_IF_ERROR(CheckClocks(run_, options_, &loaded_.notes));
    RETURN_IF_ERROR(PlaceRanks());
    AddMeetings();
    loaded_.job.windows_are_chosen = !options_.window.annotation.empty();
    AddNotes();
    return std::move(loaded_);
  }

 private:
  absl::StatusOr<ProfileCollectives> Read(size_t position) {
    const std::string& path = files_.paths()[position];
    ASSIGN_OR_RETURN(const InputFile file, files_.Open(position));
    ASSIGN_OR_RETURN(const TraceJsonTable trace, LoadTraceJson(file.bytes(), path));
    RETURN_IF_ERROR(CheckOneRank(trace, path));
    TraceAnalysisOptions options;
    options.window = options_.window;
    options.data_load_events = input_.data_load_events;
    if (position < input_.host_traces.size()) options.host_trace = &input_.host_traces[position];
    ASSIGN_OR_RETURN(TraceAnalysis analysis,
                     AnalyzeLoadedTrace(trace, file.bytes(), /*rank=*/0, options));
    ProfileCollectives profile = ReadKinetoCollectives(trace, file.bytes(), path);
    RankTrace rank;
    rank.graph = std::move(analysis.graph);
    rank.notes = std::move(analysis.source.notes);
    rank.collectives = FindKernels(trace, rank.graph, profile.events);
    traces_.push_back(std::move(rank));
    return profile;
  }

  absl::Status PlaceRanks() {
    std::map<int64_t, size_t> trace_of_rank;
    for (size_t trace = 0; trace < traces_.size(); ++trace) {
      const std::vector<int64_t>& ranks = run_.ranks.ranks[trace];
      const int64_t rank =
          ranks.empty() || ranks[0] == kUnknownId ? static_cast<int64_t>(trace) : ranks[0];
      const auto [it, is_new] = trace_of_rank.emplace(rank, trace);
      if (!is_new) {
        return InvalidArgument(run_.profiles[it->second].trace, " and ", run_.profiles[trace].trace,
                               " are both of rank ", rank, "; give one trace of each rank");
      }
    }
    std::vector<int64_t> there;
    positions_.resize(traces_.size());
    for (const auto& [rank, trace] : trace_of_rank) {
      there.push_back(rank);
      positions_[trace] = loaded_.job.ranks.size();
      RankGraph& added = loaded_.job.ranks.emplace_back();
      added.rank = rank;
      added.graph = std::move(traces_[trace].graph);
      for (Lane& lane : added.graph.lanes) lane.rank = rank;
      for (StepMark& mark : added.graph.marks) mark.rank = rank;
    }
    const auto known = static_cast<int64_t>(run_.ranks.device_of_rank.size());
    return CheckRanks(there, std::max(known, there.back() + 1), options_, &loaded_.notes);
  }

  void AddMeetings() {
    for (const MemberMeeting& from : FindMeetings(run_.table)) {
      Meeting meeting;
      meeting.name = run_.table.OpOf(*from.instance).instruction;
      meeting.transfer = TransferOf(run_.table, from);
      for (const CollectiveMember* member : from.arrivals) {
        const uint32_t trace = run_.table.NodeOf(*member);
        if (!meeting.step.has_value()) {
          meeting.step = run_.profiles[trace].events[member->event].step;
        }
        const GraphEventId event = traces_[trace].collectives[member->event].first;
        if (event != kNoEvent) meeting.arrivals.push_back({positions_[trace], StartInstant(event)});
      }
      for (const CollectiveMember* member : from.departures) {
        const uint32_t trace = run_.table.NodeOf(*member);
        const GraphEventId event = traces_[trace].collectives[member->event].last;
        if (event != kNoEvent) meeting.departures.push_back({positions_[trace], EndInstant(event)});
      }
      if (meeting.arrivals.size() < 2 || meeting.departures.empty()) continue;
      loaded_.job.meetings.push_back(std::move(meeting));
    }
  }

  void AddNotes() {
    const std::vector<CollectiveInstance>& instances = run_.table.instances();
    const int64_t incomplete =
        std::count_if(instances.begin(), instances.end(),
                      [](const CollectiveInstance& instance) { return instance.missing > 0; });
    if (incomplete > 0) {
      loaded_.notes.push_back(absl::StrCat(incomplete, " of ", instances.size(),
                                           " collectives lack ranks: waiting for these looks like "
                                           "communication"));
    }
    for (const auto& list : {run_.ranks.notes, run_.runs.notes}) {
      loaded_.notes.insert(loaded_.notes.end(), list.begin(), list.end());
    }
    for (size_t trace = 0; trace < traces_.size(); ++trace) {
      const int64_t rank = loaded_.job.ranks[positions_[trace]].rank;
      for (const std::string& note : traces_[trace].notes) {
        loaded_.notes.push_back(absl::StrCat("rank ", rank, ": ", note));
      }
      for (const auto& [reason, entry] : run_.profiles[trace].unresolved.entries()) {
        loaded_.notes.push_back(absl::StrCat("rank ", rank, ": ", entry.count, " x ", reason));
      }
    }
  }

  const TraceFiles& files_;
  const JobInput& input_;
  const JobOptions& options_;
  std::vector<RankTrace> traces_;
  CollectiveRun run_;
  // By trace: its rank's position in JobGraph::ranks.
  std::vector<size_t> positions_;
  LoadedJob loaded_;
};

}  // namespace

absl::StatusOr<LoadedJob> LoadKinetoJob(const TraceFiles& files, const JobInput& input,
                                        const JobOptions& options) {
  return KinetoJobLoader(files, input, options).Load();
}

}  // namespace meridian
