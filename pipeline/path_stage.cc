#include "pipeline/path_stage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "critical_path/graph/step_times.h"
#include "critical_path/job/blame.h"
#include "critical_path/job/job_analysis.h"
#include "critical_path/what_if/what_if.h"
#include "critical_path/what_if/what_if_edits.h"
#include "pipeline/operations.h"
#include "report/quantities.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/hlo/collective_kind.h"

namespace meridian {
namespace {

using Field = Condition::Field;

// Replays of larger graphs would take longer than they are worth.
constexpr size_t kMaxWhatIfEvents = 3000000;

// How reports speak of what time is spent on.
struct Wording {
  // What people call it, and how it is coloured.
  const char* label;
  PathKind::Role role;
  // What a rank does that is late because of it: TIME stands for how long, OP for the op, AFTER for
  // what was before.
  const char* lateness;
};

// In the order of BoundBy.
constexpr Wording kWordings[kNumBoundBy] = {
    {"nothing", PathKind::GAP, "it comes TIME later (OP)"},
    {"host calls", PathKind::HOST,
     "its host's calls take TIME longer than those of the others (OP)"},
    {"loading data", PathKind::HOST, "it loads data TIME longer than the others (OP)"},
    {"computation", PathKind::COMPUTATION, "it computes TIME longer than the others (OP)"},
    {"communication", PathKind::TRANSFER, "it communicates TIME longer (OP)"},
    {"pauses between kernels", PathKind::GAP, "it pauses TIME longer between kernels (OP)"},
    {"launching kernels", PathKind::GAP, "its kernels start TIME later after their launch (OP)"},
    {"host, not in the trace", PathKind::GAP,
     "its host does something that the trace does not show (sleeping, input, Python) for TIME "
     "longer than the othersAFTER"},
    {"waiting for other ranks", PathKind::WAIT, "it comes TIME later (OP)"},
    {"device, not in the trace", PathKind::GAP,
     "its device waits, or is busy, for TIME with something that the trace does not showAFTER"},
    {"before the step", PathKind::GAP, "it begins the step TIME later"},
};

const Wording& WordingOf(BoundBy bound_by) { return kWordings[static_cast<int>(bound_by)]; }

// What a rank did longer than the others, in words: so long for one reason, most of it in one op.
std::string ReasonOf(int64_t time_ps, const BlameRow& row) {
  const auto text = [](int64_t ps) { return DurationText(static_cast<double>(ps) / kPsPerNs); };
  const bool has_parts = time_ps > row.time_ps;
  return absl::StrReplaceAll(
      WordingOf(row.bound_by).lateness,
      {{"TIME", text(time_ps)},
       {"OP", absl::StrCat(has_parts ? "most in " : "", row.op)},
       {"AFTER",
        absl::StrCat(has_parts ? absl::StrCat(", the longest part, ", text(row.time_ps)) : "",
                     row.after.empty() ? "" : absl::StrCat(", after ", row.after))}});
}

class GraphDescription {
 public:
  GraphDescription(const PathGraph& graph, const GraphSource& source,
                   const PathStageOptions& options, RunReport* report)
      : graph_(graph), source_(source), options_(options), report_(report), collectives_(graph) {}

  absl::Status Describe() {
    ASSIGN_OR_RETURN(path_, FindLongestPath(graph_));
    steps_ = FindStepTimes(graph_);
    DescribeSteps();
    // Without computation the time between collectives is not the host's, but unknown.
    const bool communication_only = HoldsCommunicationOnly();
    report_->mutable_evidence()->set_communication_only(communication_only);
    if (!communication_only) DescribeBreakdown();
    if (options_.can_compare_ranks && !communication_only) DescribeCauses();
    DescribeOperations(graph_, source_, collectives_, path_, steps_, report_);
    // Nobody but the graph knows the steps of programs that mark none.
    if (source_.step_word != "step" && !steps_.steps.empty()) {
      for (CombinedStep& row : WaitsInSteps(graph_, collectives_, steps_)) {
        *report_->mutable_combine()->add_step_waits() = std::move(row);
      }
    }
    DescribeTimeline();
    return absl::OkStatus();
  }

 private:
  bool HoldsCommunicationOnly() const {
    for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
      const bool on_device = graph_.LaneOf(id).kind == TrackKind::kDevice;
      if (on_device && !collectives_.communicates[id]) return false;
      // Hosts of logs do nothing but launch.
      if (!on_device && graph_.events[id].category == EventCategory::kCpuOp) return false;
    }
    return true;
  }

  // More digits are only bytes.
  static double Nanoseconds(double us) { return std::round(us * 1000) / 1000; }

  double Ms(int64_t ps) const {
    return static_cast<double>(ps - graph_.window_start_ps) * kMsPerPs;
  }
  double Us(int64_t ps) const {
    return static_cast<double>(ps - graph_.window_start_ps) * kUsPerPs;
  }

  void DescribeSteps() {
    RunSummary& run = *report_->mutable_run();
    run.set_wall_ms(static_cast<double>(graph_.window_end_ps - graph_.window_start_ps) * kMsPerPs);
    run.set_events(static_cast<int64_t>(graph_.events.size()));
    for (const StepTime& step : steps_.steps) {
      ReportedStep& row = *report_->add_steps();
      row.set_step(step.step);
      row.set_start_ms(Ms(step.start_ps));
      row.set_end_ms(Ms(step.end_ps));
    }
    run.set_steps(static_cast<int64_t>(steps_.steps.size()));
    const std::optional<int64_t> median_ps = steps_.MedianPs();
    if (!median_ps.has_value()) return;
    run.set_step_word(source_.step_word);
    run.set_first_step_is_cut(steps_.before_end_ps.has_value() && steps_.steps.size() > 1);
    std::vector<double> distances;
    for (const StepTime& step : steps_.steps) {
      distances.push_back(std::abs(static_cast<double>(step.length_ps() - *median_ps)) * kMsPerPs);
    }
    run.set_step_ms(static_cast<double>(*median_ps) * kMsPerPs);
    run.set_step_mean_ms(static_cast<double>(*steps_.MeanPs()) * kMsPerPs);
    run.set_step_spread_ms(Median(distances));
  }

  void DescribeBreakdown() {
    std::map<std::tuple<std::optional<int64_t>, std::optional<int64_t>, BoundBy>, int64_t> parts;
    std::set<BoundBy> kinds;
    VisitPieces(graph_, path_, steps_, [&](const PathPiece& piece) {
      // What was before the first step is in no length.
      if (piece.bound_by == BoundBy::kNothing || piece.bound_by == BoundBy::kBeforeStep ||
          piece.time_ps == 0) {
        return;
      }
      const GraphEdge& edge = graph_.edges[piece.edge];
      const GraphEventId event =
          edge.event != kNoEvent ? edge.event : graph_.instants[edge.to].event;
      std::optional<int64_t> step, rank;
      if (event != kNoEvent) rank = graph_.LaneOf(event).rank;
      if (piece.step.has_value()) step = steps_.steps[*piece.step].step;
      parts[{step, rank, piece.bound_by}] += piece.time_ps;
      kinds.insert(piece.bound_by);
    });
    for (const auto& [key, time_ps] : parts) {
      PathPart& part = *report_->add_path();
      if (std::get<0>(key).has_value()) part.set_step(*std::get<0>(key));
      if (std::get<1>(key).has_value()) part.set_rank(*std::get<1>(key));
      part.set_kind(std::string(BoundByName(std::get<2>(key), source_.without_gpus)));
      part.set_ms(static_cast<double>(time_ps) * kMsPerPs);
    }
    for (BoundBy bound_by : kinds) {
      PathKind& kind = *report_->add_path_kinds();
      kind.set_kind(std::string(BoundByName(bound_by, source_.without_gpus)));
      kind.set_label(WordingOf(bound_by).label);
      kind.set_role(WordingOf(bound_by).role);
    }
  }

  // Who kept others waiting, and what would help. Most of the latter needs not know the former.
  void DescribeCauses() {
    Blame blame;
    std::optional<WhatIfRun> run;
    const auto find = [&](size_t part) {
      if (part == 0) {
        blame = FindBlame(graph_);
      } else if (graph_.events.size() <= kMaxWhatIfEvents) {
        run.emplace(graph_, path_, /*hta_compatible=*/false);
        AskWhatWouldHelp(&*run);
      }
      return absl::OkStatus();
    };
    (void)ParallelFor(2, find);
    DescribeBlame(blame);
    if (run.has_value()) {
      AskOfRanks(&*run);
    } else {
      report_->add_notes("the run has too many events to ask what would help; choose fewer steps");
    }
  }

  // One row for each step and rank: what most of the time was spent on says why. What was before its
  // profile has a row of its own.
  void DescribeBlame(const Blame& blame) {
    struct Cause {
      int64_t time_ps = 0;
      const BlameRow* largest = nullptr;
    };
    std::map<int64_t, int64_t> lengths_ps;
    for (const StepTime& step : steps_.steps) lengths_ps[step.step] = step.length_ps();
    std::map<std::tuple<std::optional<int64_t>, int64_t, bool>, std::map<BoundBy, Cause>> causes;
    for (const std::vector<BlameRow>* rows : {&blame.rows, &blame.beginnings}) {
      for (const BlameRow& row : *rows) {
        Cause& cause = causes[{row.step, row.rank, rows == &blame.beginnings}][row.bound_by];
        cause.time_ps += row.time_ps;
        if (cause.largest == nullptr || row.time_ps > cause.largest->time_ps) cause.largest = &row;
      }
    }
    std::vector<BlamePart> parts;
    for (const auto& [key, of_rank] : causes) {
      const auto& [step, rank, is_before] = key;
      BlamePart part;
      double whole_ms = report_->run().wall_ms();
      if (step.has_value()) {
        part.set_step(*step);
        const int64_t length_ps = lengths_ps[*step];
        if (length_ps > 0) whole_ms = static_cast<double>(length_ps) * kMsPerPs;
      }
      int64_t sum_ps = 0;
      const Cause* most = nullptr;
      for (const auto& [bound_by, cause] : of_rank) {
        sum_ps += cause.time_ps;
        if (most == nullptr || cause.time_ps > most->time_ps) most = &cause;
      }
      part.set_rank(rank);
      part.set_before_profile(is_before);
      part.set_caused_ms(static_cast<double>(sum_ps) * kMsPerPs);
      part.set_share(whole_ms > 0 ? part.caused_ms() / whole_ms : 0);
      part.set_op(most->largest->op);
      part.set_reason(is_before
                          ? "its profile begins later than theirs; what it did before, nobody "
                            "recorded"
                          : ReasonOf(most->time_ps, *most->largest));
      parts.push_back(std::move(part));
    }
    absl::c_stable_sort(parts, [](const BlamePart& a, const BlamePart& b) {
      return a.caused_ms() > b.caused_ms();
    });
    std::map<int64_t, double> by_rank;
    for (const BlamePart& part : parts) {
      const bool in_steps = part.has_step() || steps_.steps.empty();
      if (in_steps && !part.before_profile()) by_rank[part.rank()] += part.caused_ms();
      *report_->add_blame() = part;
    }
    const auto most = absl::c_max_element(
        by_rank, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != by_rank.end()) straggler_ = most->first;
  }

  // What the run would take if: its graph, run again.
  void AskWhatWouldHelp(WhatIfRun* run) {
    Ask(WhatIfPart::HALF_THE_COMMUNICATION, std::nullopt, "communication takes half the time",
        {ScaleEdit({{Field::kCategory, "communication"}}, kFactorOne / 2)}, run);
    Ask(WhatIfPart::HALF_THE_COMPUTATION, std::nullopt, "computation takes half the time",
        {ScaleEdit({{Field::kCategory, "compute"}}, kFactorOne / 2)}, run);
    const WhatIfEdit no_calls = ScaleEdit({{Field::kCategory, "host"}}, 0);
    const WhatIfEdit no_gaps = ScaleEdit({{Field::kCategory, "host_gap"}}, 0);
    // Traces may have but one of them.
    for (const std::vector<WhatIfEdit>& edits :
         {std::vector{no_calls, no_gaps}, std::vector{no_gaps}, std::vector{no_calls}}) {
      if (Ask(WhatIfPart::NO_HOST_TIME, std::nullopt, "hosts take no time", edits, run)) break;
    }
    Ask(WhatIfPart::NO_LAUNCH_DELAYS, std::nullopt, "kernels start as soon as they are launched",
        {ScaleEdit({{Field::kCategory, "launch"}}, 0)}, run);
  }

  // The same of the rank that others waited for, and of slow links.
  void AskOfRanks(WhatIfRun* run) {
    if (straggler_.has_value()) {
      WhatIfEdit level;
      level.kind = WhatIfEdit::Kind::kLevel;
      level.subject.conditions = {{Field::kRank, "", nullptr, *straggler_}};
      Ask(WhatIfPart::RANK_AS_FAST_AS_OTHERS, straggler_,
          absl::StrCat("rank ", *straggler_, " is as fast as the others"), {level}, run);
    }
    for (const CombinedLink& slow : options_.slow_links) {
      Ask(WhatIfPart::LINK_AS_FAST_AS_OTHERS, slow.rank(),
          absl::StrCat("the link of rank ", slow.rank(), " is as fast as the others'"),
          {ScaleEdit(
              {{Field::kCategory, "communication"}, {Field::kWith, "", nullptr, slow.rank()}},
              std::llround(static_cast<double>(kFactorOne) / slow.times_slower()))},
          run);
    }
  }

  static WhatIfEdit ScaleEdit(std::vector<Condition> conditions, int64_t factor) {
    WhatIfEdit edit;
    edit.kind = WhatIfEdit::Kind::kScale;
    edit.subject.conditions = std::move(conditions);
    edit.factor = factor;
    return edit;
  }

  // Adds what one step, or the whole run where there are none, would take with the edits. Returns
  // false when one of them matches nothing: that would not help either.
  bool Ask(WhatIfPart::Change change, std::optional<int64_t> rank, std::string what,
           const std::vector<WhatIfEdit>& edits, WhatIfRun* run) {
    const absl::StatusOr<const WhatIfResult*> result = run->Ask(edits);
    if (!result.ok()) return false;
    WhatIfPart& part = *report_->add_what_if();
    part.set_change(change);
    if (rank.has_value()) part.set_rank(*rank);
    part.set_what(std::move(what));
    part.set_step_ms(UnitMs(FindStepTimes((*result)->edited.graph), (*result)->path));
    part.set_saved_ms(UnitMs(steps_, path_) - part.step_ms());
    return true;
  }

  static double UnitMs(const StepTimes& steps, const CriticalPath& path) {
    return static_cast<double>(steps.MeanPs().value_or(path.length_ps)) * kMsPerPs;
  }

  using EventsByLane = std::map<std::tuple<int64_t, bool, LaneId>, std::vector<GraphEventId>>;

  // A run may have more events than a page can bear: the longest stay. Returns whether some were left
  // out.
  bool LeaveOutShortest(EventsByLane* lanes) const {
    std::vector<int64_t> durations;
    for (const auto& [key, ids] : *lanes) {
      for (GraphEventId id : ids) durations.push_back(graph_.events[id].duration_ps);
    }
    if (durations.size() <= kMaxTimelineEvents) return false;
    const auto bound = durations.begin() + kMaxTimelineEvents;
    std::nth_element(durations.begin(), bound, durations.end(), std::greater<>());
    const int64_t shortest_ps = *bound;
    // Of those that are as long as the shortest that stays, as many as there is room for.
    size_t room = kMaxTimelineEvents;
    for (auto at = durations.begin(); at != bound; ++at) room -= *at > shortest_ps ? 1 : 0;
    const auto is_left_out = [&](GraphEventId id) {
      const int64_t duration_ps = graph_.events[id].duration_ps;
      if (duration_ps != shortest_ps) return duration_ps < shortest_ps;
      if (room == 0) return true;
      --room;
      return false;
    };
    for (auto& [key, ids] : *lanes) {
      ids.erase(std::remove_if(ids.begin(), ids.end(), is_left_out), ids.end());
    }
    return true;
  }

  // Returns the lanes that have events to be shown, those of a rank together, devices first, with the
  // events by start, and says in the timeline whether events are left out.
  EventsByLane ChooseEvents(Timeline* timeline) const {
    EventsByLane lanes;
    for (GraphEventId id = 0; id < graph_.events.size(); ++id) {
      const GraphEvent& event = graph_.events[id];
      if (event.duration_ps <= 0) continue;
      const Lane& lane = graph_.lanes[event.lane];
      lanes[{lane.rank, lane.kind == TrackKind::kHost, event.lane}].push_back(id);
    }
    timeline->set_truncated(LeaveOutShortest(&lanes));
    for (auto& [key, ids] : lanes) {
      absl::c_stable_sort(ids, [&](GraphEventId a, GraphEventId b) {
        return graph_.events[a].start_ps < graph_.events[b].start_ps;
      });
    }
    return lanes;
  }

  // Some traces only number their threads and streams.
  static std::string LaneName(const Lane& lane) {
    const bool is_number = absl::c_all_of(lane.thread, absl::ascii_isdigit);
    return absl::StrCat(!is_number                      ? ""
                        : lane.kind == TrackKind::kHost ? "thread "
                                                        : "stream ",
                        lane.thread);
  }

  // Where the timeline shows an event that takes part in a collective, and its waiting before; -1
  // when it did not wait.
  struct Shown {
    int event = -1;
    int wait = -1;
  };

  void DescribeTimeline() {
    Timeline& timeline = *report_->mutable_timeline();
    for (int role = PathKind::Role_MIN; role <= PathKind::Role_MAX; ++role) {
      timeline.add_kinds(
          absl::AsciiStrToLower(PathKind::Role_Name(static_cast<PathKind::Role>(role))));
    }
    const std::vector<InstantId>& meetings = collectives_.meetings;
    std::map<LaneId, int> lane_numbers;
    std::map<GraphEventId, Shown> shown;
    std::map<NameId, int> names;
    for (auto& [key, ids] : ChooseEvents(&timeline)) {
      const Lane& lane = graph_.lanes[std::get<2>(key)];
      const int number = timeline.lanes_size();
      lane_numbers[std::get<2>(key)] = number;
      TimelineLane& described = *timeline.add_lanes();
      described.set_rank(lane.rank);
      described.set_name(LaneName(lane));
      for (GraphEventId id : ids) {
        const GraphEvent& event = graph_.events[id];
        const int64_t end_ps = event.start_ps + event.duration_ps;
        const bool meets = meetings[id] != kNoInstant;
        int64_t start_ps = event.start_ps;
        if (meets) {
          const int64_t met_ps = std::clamp(graph_.Time(meetings[id]), start_ps, end_ps);
          if (met_ps > start_ps) {
            shown[id].wait =
                AddEvent(number, id, PathKind::WAIT, start_ps, met_ps, &names, &timeline);
          }
          start_ps = met_ps;
        }
        const PathKind::Role role =
            RoleOfEvent(graph_, event, meets || collectives_.communicates[id]);
        const int position = AddEvent(number, id, role, start_ps, end_ps, &names, &timeline);
        if (meets) shown[id].event = position;
      }
    }
    DescribeTimelinePath(lane_numbers, &timeline);
    DescribeTimelineCollectives(meetings, shown, &timeline);
  }

  // Adds an event, or the part of it that is spent on one role, and returns its position. `names` has
  // the positions of the names that the timeline has so far.
  int AddEvent(int lane, GraphEventId id, PathKind::Role role, int64_t start_ps, int64_t end_ps,
               std::map<NameId, int>* names, Timeline* timeline) const {
    const NameId name = graph_.events[id].name;
    const auto [known, is_new] = names->insert({name, timeline->names_size()});
    if (is_new) timeline->add_names(ShownName(graph_.names.Get(name)));
    TimelineEvents& events = *timeline->mutable_events();
    events.add_lane(lane);
    events.add_name(known->second);
    events.add_kind(role);
    events.add_start_us(Nanoseconds(Us(start_ps)));
    events.add_duration_us(Nanoseconds(static_cast<double>(end_ps - start_ps) * kUsPerPs));
    return events.lane_size() - 1;
  }

  void DescribeTimelinePath(const std::map<LaneId, int>& lane_numbers, Timeline* timeline) const {
    TimelinePath& path = *timeline->mutable_path();
    // The longest stay, as of events.
    std::vector<int64_t> lengths_ps;
    for (EdgeId id : path_.edges) lengths_ps.push_back(graph_.edges[id].weight_ps);
    int64_t least_ps = 1;
    if (lengths_ps.size() > kMaxTimelineEvents) {
      const auto bound = lengths_ps.begin() + kMaxTimelineEvents;
      std::nth_element(lengths_ps.begin(), bound, lengths_ps.end(), std::greater<>());
      least_ps = *bound + 1;
    }
    for (EdgeId id : path_.edges) {
      const GraphEdge& edge = graph_.edges[id];
      if (edge.weight_ps < least_ps) continue;
      int lane = -1;
      if (edge.event != kNoEvent) {
        const auto found = lane_numbers.find(graph_.events[edge.event].lane);
        if (found != lane_numbers.end()) lane = found->second;
      }
      path.add_lane(lane);
      path.add_start_us(Us(graph_.Time(edge.from)));
      path.add_end_us(Us(graph_.Time(edge.to)));
    }
  }

  void DescribeTimelineCollectives(const std::vector<InstantId>& meetings,
                                   const std::map<GraphEventId, Shown>& shown,
                                   Timeline* timeline) const {
    std::map<InstantId, TimelineCollective> collectives;
    for (const auto& [event, places] : shown) {
      collectives[meetings[event]].add_events(places.event);
      collectives[meetings[event]].add_waits(places.wait);
    }
    for (const GraphMeeting& meeting : graph_.meetings) {
      TimelineCollective& found = collectives[meeting.instant];
      if (found.events_size() < 2) continue;
      found.set_name(std::string(graph_.names.Get(meeting.name)));
      AddBandwidth(meeting, timeline->events(), &found);
      *timeline->add_collectives() = std::move(found);
    }
  }

  // Adds what the collective moved, and how fast: from when all were there until the last had it.
  static void AddBandwidth(const GraphMeeting& meeting, const TimelineEvents& events,
                           TimelineCollective* collective) {
    if (!meeting.transfer.has_value() || meeting.transfer->bytes <= 0) return;
    const GraphTransfer& transfer = *meeting.transfer;
    collective->set_bytes(transfer.bytes);
    double longest_us = 0;
    for (const int event : collective->events()) {
      longest_us = std::max(longest_us, events.duration_us(event));
    }
    const double moved = static_cast<double>(transfer.bytes) *
                         BusFactor(transfer.kind, static_cast<double>(transfer.ranks.size()));
    if (longest_us > 0 && moved > 0) collective->set_bus_gb_per_s(moved / (longest_us * 1e3));
  }

  const PathGraph& graph_;
  const GraphSource& source_;
  const PathStageOptions& options_;
  RunReport* const report_;
  const CollectiveEvents collectives_;
  CriticalPath path_;
  StepTimes steps_;
  // The rank that others waited for longest; absent when they waited for none.
  std::optional<int64_t> straggler_;
};

}  // namespace

absl::StatusOr<PathGraph> DescribePath(FileSystem& file_system,
                                       const std::vector<std::string>& traces,
                                       const PathStageOptions& options, RunReport* report) {
  JobInput input;
  input.traces = traces;
  input.files = options.input;
  input.profiled = options.profiled;
  JobOptions job;
  job.progress = options.progress;
  job.allow_missing_ranks = true;
  ASSIGN_OR_RETURN(TraceAnalysis analysis, AnalyzeJob(file_system, input, job));
  for (const std::string& note : analysis.source.notes) report->add_notes(note);
  RETURN_IF_ERROR(DescribeGraph(analysis.graph, analysis.source, options, report));
  return std::move(analysis.graph);
}

absl::Status DescribeGraph(const PathGraph& graph, const GraphSource& source,
                           const PathStageOptions& options, RunReport* report) {
  return GraphDescription(graph, source, options, report).Describe();
}

}  // namespace meridian
