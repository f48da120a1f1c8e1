#include "critical_path/job/job_analysis.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/run/run_graph.h"
#include "chakra_export/xspace/data_dependencies.h"
#include "chakra_export/xspace/device_work.h"
#include "chakra_export/xspace/host_nodes.h"
#include "chakra_export/xspace/work_nodes.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/job/execution_job.h"
#include "trace_alignment/collectives/collective_table.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

class XSpaceJobLoader {
 public:
  // The window may be null for all work.
  XSpaceJobLoader(const ProfiledRun& run, const WorkWindow* window, const JobOptions& options)
      : run_(run), window_(window), options_(options) {}

  // The run may be emptied as soon as it is of no more use.
  absl::StatusOr<LoadedJob> Load(ProfiledRun* emptied) {
    RETURN_IF_ERROR(ChooseSteps());
    RETURN_IF_ERROR(AddRanks());
    RETURN_IF_ERROR(CheckRanksAreThere());
    RETURN_IF_ERROR(CheckStepsAreThere());
    loaded_.without_gpus = !HasGpus();
    if (!HasMarkedSteps()) loaded_.step_word = "execution";
    AddMeetings();
    for (const auto& list :
         {run_.collectives.ranks.notes, run_.collectives.runs.notes, work_.notes}) {
      loaded_.notes.insert(loaded_.notes.end(), list.begin(), list.end());
    }
    // Large, and nothing that follows needs it.
    if (emptied != nullptr) *emptied = ProfiledRun();
    ASSIGN_OR_RETURN(loaded_.job, BuildExecutionJob(execution_, windows_));
    return std::move(loaded_);
  }

 private:
  using Origin = std::pair<absl::string_view, const HloInstruction*>;

  // What a rank adds; its nodes are numbered from 0.
  struct RankPart {
    ExecutionGraph graph;
    std::vector<TimedNode> nodes;
    // As WorkNodes::node_of_event.
    std::vector<std::vector<NodeIndex>> node_of_event;
    // The chosen steps; absent when all are, and when the rank has none of them.
    std::optional<RankWindow> window;
    // Names of nodes, and what ran as them.
    std::vector<Origin> origins;
    int64_t inferred_waits = 0;
  };

  absl::Status ChooseSteps() {
    if (options_.window.annotation.empty()) return absl::OkStatus();
    StepChoice choice;
    for (const auto& profile : run_.profiles) {
      for (const StepEvent& step : profile->steps) choice.Add(step.name, step.number);
    }
    ASSIGN_OR_RETURN(steps_,
                     Annotate(choice.Choose(options_.window), run_.profiles[0]->reader.name()));
    return absl::OkStatus();
  }

  // Makes the graph rank by rank: nodes of a run take more than what is made of them.
  absl::Status AddRanks() {
    WorkNodesOptions options;
    options.window = window_;
    options.allow_missing_ranks = true;
    execution_.hosts_are_hidden = true;
    node_of_event_.resize(run_.profiles.size());
    std::mutex mutex;
    // What waits for ranks before it, of which `next` is the first.
    std::map<int64_t, RankPart> parts;
    int64_t next = 0;
    int64_t inferred_waits = 0;
    const auto add_rank = [&](int64_t rank, WorkNodes* nodes) -> absl::Status {
      RankPart part = PartOf(rank, nodes);
      const std::lock_guard<std::mutex> lock(mutex);
      parts[rank] = std::move(part);
      for (; !parts.empty() && parts.begin()->first == next; parts.erase(next++)) {
        inferred_waits += parts.begin()->second.inferred_waits;
        RETURN_IF_ERROR(AddPart(next, std::move(parts.begin()->second)));
      }
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(work_,
                     MakeWorkNodesByRank(run_.profiles, run_.collectives, options, add_rank));
    loaded_.counts = work_.counts;
    if (inferred_waits > 0) {
      loaded_.counts[" x waits inferred from the times of the work"] = inferred_waits;
    }
    return absl::OkStatus();
  }

  RankPart PartOf(int64_t rank, WorkNodes* nodes) const {
    RunGraph& graph = nodes->graph;
    RankPart part;
    part.inferred_waits = AddDeviceDependencies(&graph);
    AddHostNodes(nodes->profile_of_rank, &graph);
    ReadNodes(graph, &part);
    const ProfileWork* profile = nodes->profile_of_rank[static_cast<size_t>(rank)];
    if (steps_.has_value() && profile != nullptr) part.window = WindowOfSteps(*profile, graph);
    std::vector<NodeIndex> order(graph.nodes.size());
    std::iota(order.begin(), order.end(), 0);
    part.graph = ToExecutionGraph(order, &graph);
    part.node_of_event = std::move(nodes->node_of_event);
    return part;
  }

  absl::Status AddPart(int64_t rank, RankPart part) {
    const size_t first = execution_.nodes.size();
    for (size_t p = 0; p < part.node_of_event.size(); ++p) {
      std::vector<NodeIndex>& of_run = node_of_event_[p];
      const std::vector<NodeIndex>& of_rank = part.node_of_event[p];
      if (of_run.empty()) of_run.resize(of_rank.size(), kNoNodeIndex);
      for (size_t event = 0; event < of_rank.size(); ++event) {
        if (of_rank[event] != kNoNodeIndex) {
          of_run[event] = static_cast<NodeIndex>(first + of_rank[event]);
        }
      }
    }
    for (TimedNode node : part.nodes) {
      if (node.same_kernel_as != kNoNodeIndex) {
        node.same_kernel_as += static_cast<NodeIndex>(first);
      }
      execution_.nodes.push_back(node);
    }
    if (part.window.has_value()) windows_[rank] = *part.window;
    for (const Origin& origin : part.origins) AddOrigin(origin);
    return execution_.graph.Append(part.graph);
  }

  absl::Status CheckRanksAreThere() {
    std::vector<int64_t> there;
    for (size_t rank = 0; rank < work_.profile_of_rank.size(); ++rank) {
      if (work_.profile_of_rank[rank] != nullptr) there.push_back(static_cast<int64_t>(rank));
    }
    return CheckRanks(there, work_.graph.rank_count, options_, &loaded_.notes);
  }

  absl::Status CheckStepsAreThere() const {
    if (!steps_.has_value()) return absl::OkStatus();
    for (size_t rank = 0; rank < work_.profile_of_rank.size(); ++rank) {
      const ProfileWork* profile = work_.profile_of_rank[rank];
      if (profile == nullptr || windows_.count(static_cast<int64_t>(rank)) > 0) continue;
      return FailedPrecondition(
          profile->reader.name(), ": rank ", rank, " has no step ", steps_->first,
          steps_->last == steps_->first ? "" : absl::StrCat(" to ", steps_->last),
          "; choose steps that all ranks have, with --instance");
    }
    return absl::OkStatus();
  }

  // Returns the time of a rank's chosen steps, with all work that they launched.
  std::optional<RankWindow> WindowOfSteps(const ProfileWork& profile, const RunGraph& graph) const {
    const RunClock clock(profile.base_ns);
    std::optional<RankWindow> window;
    for (const StepEvent& step : profile.steps) {
      if (!steps_->Contains(step.number)) continue;
      const RankWindow span = {clock.ToUnixNs(step.start_ps), clock.ToUnixNs(step.end_ps)};
      if (!window.has_value()) window = span;
      window->start_ns = std::min(window->start_ns, span.start_ns);
      window->end_ns = std::max(window->end_ns, span.end_ns);
    }
    if (!window.has_value()) return window;
    for (const RunNode& node : graph.nodes) {
      if (!node.IsDeviceWork() || !node.step.has_value()) continue;
      if (steps_->Contains(*node.step)) window->end_ns = std::max(window->end_ns, node.end_ns);
    }
    return window;
  }

  void ReadNodes(const RunGraph& graph, RankPart* part) const {
    part->nodes.reserve(graph.nodes.size());
    // A name is in one place for all nodes that have it.
    absl::flat_hash_set<std::pair<const char*, const HloInstruction*>> known;
    for (const RunNode& node : graph.nodes) {
      TimedNode timed;
      timed.start_ns = node.start_ns;
      timed.end_ns = std::max(node.start_ns, node.end_ns);
      timed.bound_by = BoundByOf(node.op_kind, node.resource.kind == ResourceKind::kHostThread,
                                 node.IsCommunication());
      timed.category = CategoryOf(node);
      // Work of an earlier step belongs to none of the chosen ones; that of a later step is left
      // out, even if it started before these had ended.
      const bool is_earlier =
          steps_.has_value() && node.step.has_value() && *node.step < steps_->first;
      if (!is_earlier) timed.step = node.step;
      if (node.work != nullptr) {
        timed.is_chosen =
            !steps_.has_value() || !timed.step.has_value() || *timed.step <= steps_->last;
        // What one kernel ran as stands together.
        const size_t index = part->nodes.size();
        if (index > 0 && graph.nodes[index - 1].kernel == node.kernel) {
          const NodeIndex first = part->nodes.back().same_kernel_as;
          timed.same_kernel_as = first != kNoNodeIndex ? first : static_cast<NodeIndex>(index - 1);
        }
        if (node.instruction != nullptr &&
            known.insert({node.name.data(), node.instruction}).second) {
          part->origins.push_back({node.name, node.instruction});
        }
      }
      part->nodes.push_back(timed);
    }
  }

  void AddOrigin(const Origin& named) {
    const auto& [name, instruction] = named;
    const auto [origin, is_new] = loaded_.origins.try_emplace(std::string(name), OperationOrigin());
    if (!is_new) return;
    origin->second.framework_op = instruction->proto().metadata().op_name();
    origin->second.source = instruction->computation().module().SourceOf(*instruction);
  }

  // Other steps are executions of programs.
  bool HasMarkedSteps() const {
    for (const auto& profile : run_.profiles) {
      if (profile->steps.empty()) continue;
      const StepSource source = profile->steps[0].source;
      if (source == StepSource::kAnnotation || source == StepSource::kStepsLine) return true;
    }
    return false;
  }

  bool HasGpus() const {
    for (const auto& profile : run_.profiles) {
      for (const WorkingDevice& device : profile->devices) {
        if (absl::StartsWith(device.name, kGpuPlanePrefix)) return true;
      }
    }
    return false;
  }

  static EventCategory CategoryOf(const RunNode& node) {
    if (node.op_kind == kHostGapOpKind) return EventCategory::kUnknown;
    if (node.work == nullptr) return EventCategory::kRuntimeApi;
    switch (node.work->op->kind) {
      case WorkKind::kKernel:
        return EventCategory::kKernel;
      case WorkKind::kMemcpy:
        return EventCategory::kMemcpy;
      case WorkKind::kMemset:
        return EventCategory::kMemset;
      case WorkKind::kThunk:
        return EventCategory::kXlaOp;
    }
    return EventCategory::kUnknown;
  }

  void AddMeetings() {
    const CollectiveTable& table = run_.collectives.table;
    const auto nodes_of = [&](const std::vector<const CollectiveMember*>& members) {
      std::vector<NodeIndex> nodes;
      for (const CollectiveMember* member : members) {
        const std::vector<NodeIndex>& of_profile = node_of_event_[table.NodeOf(*member)];
        if (of_profile.empty()) continue;
        const NodeIndex node = of_profile[member->event];
        if (node != kNoNodeIndex) nodes.push_back(node);
      }
      return nodes;
    };
    for (const MemberMeeting& meeting : FindMeetings(table)) {
      std::vector<NodeIndex> arrivals = nodes_of(meeting.arrivals);
      if (arrivals.size() < 2) continue;
      AddMeeting(std::move(arrivals), nodes_of(meeting.departures), TransferOf(table, meeting),
                 &execution_);
    }
  }

  const ProfiledRun& run_;
  const WorkWindow* const window_;
  const JobOptions& options_;
  // What there is beside the nodes.
  WorkNodes work_;
  std::vector<std::vector<NodeIndex>> node_of_event_;
  TimedExecution execution_;
  std::optional<NumberRange> steps_;
  std::map<int64_t, RankWindow> windows_;
  LoadedJob loaded_;
};

// Of one device: by step, in order, the positions of its first work and of its last.
struct FirstAndLast {
  size_t first = 0;
  size_t last = 0;
};
using StepBegins = std::map<int64_t, FirstAndLast>;

// Returns nullopt for steps that do not begin in the order of their numbers.
std::optional<StepBegins> FindStepBegins(const WorkingDevice& device) {
  StepBegins begins;
  const absl::Cleanup forget = [&] { device.work.Forget(); };
  const absl::Span<const DeviceWork> work = device.work.view();
  for (size_t i = 0; i < work.size(); ++i) {
    const std::optional<int64_t> step = work[i].step;
    if (!step.has_value()) continue;
    if (const auto known = begins.find(*step); known != begins.end()) {
      known->second.last = i;
      continue;
    }
    if (!begins.empty() && *step < begins.rbegin()->first) return std::nullopt;
    begins.emplace_hint(begins.end(), *step, FirstAndLast{i, i});
  }
  return begins;
}

class XSpaceRun : public OpenedRun {
 public:
  XSpaceRun(ProfiledRun run, const JobOptions& options) : run_(std::move(run)), options_(options) {}

  absl::Status Check() {
    RETURN_IF_ERROR(CheckOneRun(run_.collectives));
    return CheckClocks(run_.collectives, options_, &notes_);
  }

  std::vector<RunWindow> FindWindows(size_t window_work) const override {
    return FindXSpaceWindows(run_, window_work);
  }

  absl::StatusOr<LoadedJob> Load(const RunWindow* window) override {
    XSpaceJobLoader loader(run_, window == nullptr ? nullptr : &window->work, options_);
    ASSIGN_OR_RETURN(LoadedJob loaded, loader.Load(window == nullptr ? &run_ : nullptr));
    loaded.notes.insert(loaded.notes.begin(), notes_.begin(), notes_.end());
    return loaded;
  }

 private:
  ProfiledRun run_;
  const JobOptions& options_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<RunWindow> FindXSpaceWindows(const ProfiledRun& run, size_t window_work) {
  std::vector<std::vector<StepBegins>> begins(run.profiles.size());
  std::map<int64_t, size_t> work_of_step;
  for (size_t p = 0; p < run.profiles.size(); ++p) {
    for (const WorkingDevice& device : run.profiles[p]->devices) {
      std::optional<StepBegins> found = FindStepBegins(device);
      if (!found.has_value()) return {};
      for (auto it = found->begin(); it != found->end(); ++it) {
        const size_t end =
            std::next(it) == found->end() ? device.work.size() : std::next(it)->second.first;
        work_of_step[it->first] += end - it->second.first;
      }
      begins[p].push_back(*std::move(found));
    }
  }
  std::vector<RunWindow> windows = CutSteps(work_of_step, window_work);
  for (RunWindow& window : windows) {
    const NumberRange& steps = window.steps;
    const auto first = work_of_step.find(window.with_beside.first);
    const auto last = work_of_step.upper_bound(window.with_beside.last);
    for (size_t p = 0; p < run.profiles.size(); ++p) {
      window.work.emplace_back();
      for (size_t d = 0; d < begins[p].size(); ++d) {
        const size_t all = run.profiles[p]->devices[d].work.size();
        const auto begin_of = [&](auto step) {
          if (step == work_of_step.begin()) return size_t{0};
          if (step == work_of_step.end()) return all;
          const auto begin = begins[p][d].lower_bound(step->first);
          return begin == begins[p][d].end() ? all : begin->second.first;
        };
        // Work of a step may come long after that of the next, as copies do.
        WorkRange range = {begin_of(first), begin_of(last),
                           begin_of(work_of_step.find(steps.first)),
                           begin_of(work_of_step.upper_bound(steps.last))};
        for (auto step = begins[p][d].lower_bound(steps.first);
             step != begins[p][d].end() && step->first <= steps.last; ++step) {
          range.last = std::max(range.last, step->second.last + 1);
        }
        window.work.back().push_back(range);
      }
    }
  }
  return windows;
}

absl::StatusOr<std::unique_ptr<OpenedRun>> ReadXSpaceRun(FileSystem& file_system,
                                                         const JobInput& input,
                                                         const JobOptions& options) {
  ProfiledRunOptions read_options;
  read_options.reader.input = input.files;
  read_options.progress = options.progress;
  ProfiledRun profiled;
  if (input.profiled != nullptr) profiled = std::exchange(*input.profiled, {});
  if (profiled.profiles.empty()) {
    read_options.collectives = &profiled.collectives;
    ASSIGN_OR_RETURN(profiled, ReadProfiledRun(file_system, input.traces, read_options));
  }
  auto run = std::make_unique<XSpaceRun>(std::move(profiled), options);
  RETURN_IF_ERROR(run->Check());
  return run;
}

}  // namespace meridian
