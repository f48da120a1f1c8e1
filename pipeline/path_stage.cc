#include "pipeline/path_stage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "critical_path/graph/step_times.h"
#include "critical_path/job/blame.h"
#include "critical_path/job/job_analysis.h"
#include "critical_path/what_if/what_if.h"
#include "critical_path/what_if/what_if_edits.h"
#include "pipeline/findings.h"
#include "pipeline/operations.h"
#include "pipeline/timeline.h"
#include "report/quantities.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/parallel.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

using Field = Condition::Field;

// Replays of larger graphs would take longer than they are worth.
constexpr size_t kMaxWhatIfEvents = 5000000;

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
       {"OP", has_parts ? absl::StrCat("the longest part, ", text(row.time_ps), ", in ", row.op)
                        : row.op},
       {"AFTER",
        absl::StrCat(has_parts ? absl::StrCat(", the longest part, ", text(row.time_ps)) : "",
                     row.after.empty() ? "" : absl::StrCat(", after ", row.after))}});
}

// What a rank is blamed for in one way.
struct CauseOfWaiting {
  int64_t time_ps = 0;
  BlameRow largest;
};

// An answer to what the run would take if.
struct Answer {
  WhatIfPart::Change change = WhatIfPart::UNKNOWN_CHANGE;
  std::optional<int64_t> rank;
  std::string what;
  // How much less all the steps would take.
  double saved_ms = 0;
};

// What a window of the run says. Times count from the start of the window's graph.
struct WindowPart {
  // Unix time.
  int64_t base_ns = 0;
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  int64_t events = 0;
  GraphSource source;
  bool communication_only = true;
  StepTimes steps;
  // The path's time by step, rank and what it is spent on.
  std::map<std::tuple<std::optional<int64_t>, std::optional<int64_t>, BoundBy>, int64_t> path;
  // By step, rank, and whether it is about what was before the rank's profile.
  std::map<std::tuple<std::optional<int64_t>, int64_t, bool>, std::map<BoundBy, CauseOfWaiting>>
      causes;
  // None where nothing was asked, or there was nothing to change.
  std::vector<Answer> answers;
  // How many steps the answers are about, or 1 for the whole of a run without steps, and what these
  // take.
  double asked_steps = 0;
  double asked_ms = 0;
  std::vector<CombinedStep> waits;
  OperationTable operations;
  RunTimeline timeline;
  std::vector<std::string> notes;
};

// Returns the ranks of which one may be what MostLateRank says of the run: as many as are wanted of
// those that others waited for longest in steps, and of those that were late by more than the clocks
// may be off by; each for at least so long in this window. Of a rank that is late for less in all
// windows the run is not asked at all.
std::set<int64_t> LateRanks(const WindowPart& part, double uncertainty_ms, size_t wanted,
                            int64_t least_ps) {
  std::map<int64_t, int64_t> all_ps, beyond_ps;
  for (const auto& [key, causes] : part.causes) {
    const auto& [step, rank, is_before] = key;
    if (is_before || (!step.has_value() && !part.steps.steps.empty())) continue;
    int64_t sum_ps = 0;
    for (const auto& [bound_by, cause] : causes) sum_ps += cause.time_ps;
    all_ps[rank] += sum_ps;
    if (static_cast<double>(sum_ps) * kMsPerPs > uncertainty_ms) beyond_ps[rank] += sum_ps;
  }
  std::set<int64_t> late;
  for (const auto* sums : {&all_ps, &beyond_ps}) {
    std::vector<std::pair<int64_t, int64_t>> longest;
    for (const auto& [rank, time_ps] : *sums) {
      if (time_ps >= least_ps) longest.push_back({-time_ps, rank});
    }
    absl::c_sort(longest);
    for (size_t i = 0; i < std::min(wanted, longest.size()); ++i) late.insert(longest[i].second);
  }
  return late;
}

class WindowDescription {
 public:
  WindowDescription(const JobWindow& window, const PathStageOptions& options)
      : window_(window),
        graph_(window.graph),
        options_(options),
        own_(window),
        collectives_(window.graph) {}

  absl::StatusOr<WindowPart> Describe() {
    ASSIGN_OR_RETURN(path_, FindLongestPath(graph_));
    part_.base_ns = graph_.base_ns;
    part_.start_ps = graph_.window_start_ps;
    part_.end_ps = graph_.window_end_ps;
    part_.source = window_.source;
    part_.steps = own_.steps();
    for (const GraphEvent& event : graph_.events) part_.events += own_.HasEvent(event) ? 1 : 0;
    // Without computation the time between collectives is not the host's, but unknown.
    part_.communication_only = HoldsCommunicationOnly();
    // Whether other windows have any, a window does not know.
    const bool is_known = !part_.communication_only || window_.count > 1;
    if (is_known) FindBreakdown();
    if (options_.can_compare_ranks && is_known) FindCauses();
    part_.operations.Read(window_, own_, collectives_, path_);
    // Nobody but the graph knows the steps of programs that mark none.
    if (window_.source.step_word != "step" && !own_.steps().steps.empty()) {
      part_.waits = WaitsInSteps(graph_, collectives_, own_);
    }
    part_.timeline.Read(graph_, own_, collectives_, path_);
    // Large, and in the operations now.
    part_.source.origins.clear();
    return std::move(part_);
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

  void FindBreakdown() {
    own_.VisitPath(graph_, path_, [&](const PathPiece& piece) {
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
      if (piece.step.has_value()) step = own_.all_steps().steps[*piece.step].step;
      part_.path[{step, rank, piece.bound_by}] += piece.time_ps;
    });
  }

  // Who kept others waiting, and what would help. Most of the latter needs not know the former.
  void FindCauses() {
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
    ReadBlame(blame);
    if (run.has_value()) {
      AskOfRanks(&*run);
    } else {
      part_.notes.push_back(
          "the run has too many events to ask what would help; choose fewer steps");
    }
  }

  void ReadBlame(const Blame& blame) {
    for (const std::vector<BlameRow>* rows : {&blame.rows, &blame.beginnings}) {
      const bool is_before = rows == &blame.beginnings;
      // Later windows begin where they are cut.
      if (is_before && window_.number > 0) continue;
      for (const BlameRow& row : *rows) {
        if (row.step.has_value() && !own_.HasStep(*row.step)) continue;
        CauseOfWaiting& cause = part_.causes[{row.step, row.rank, is_before}][row.bound_by];
        cause.time_ps += row.time_ps;
        if (row.time_ps > cause.largest.time_ps) cause.largest = row;
      }
    }
  }

  // What the run would take if: its graph, run again.
  void AskWhatWouldHelp(WhatIfRun* run) {
    part_.asked_steps = Steps(own_.steps());
    part_.asked_ms = SumMs(own_.steps(), path_);
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

  // The same of the ranks that others waited for, and of slow links. Which rank the run as a whole
  // waits for, a window does not know: it asks of several, unless they are hardly late.
  void AskOfRanks(WhatIfRun* run) {
    const bool is_whole = window_.count == 1;
    const int64_t least_ps = is_whole ? 0 : (part_.end_ps - part_.start_ps) / 1000;
    for (const int64_t rank :
         LateRanks(part_, options_.clock_uncertainty_ms.value_or(0), is_whole ? 1 : 2, least_ps)) {
      WhatIfEdit level;
      level.kind = WhatIfEdit::Kind::kLevel;
      level.subject.conditions = {{Field::kRank, "", nullptr, rank}};
      Ask(WhatIfPart::RANK_AS_FAST_AS_OTHERS, rank,
          absl::StrCat("rank ", rank, " is as fast as the others"), {level}, run);
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

  // Adds what the steps, or the whole run where there are none, would save with the edits. Returns
  // false when one of them matches nothing: that would not help either.
  bool Ask(WhatIfPart::Change change, std::optional<int64_t> rank, std::string what,
           const std::vector<WhatIfEdit>& edits, WhatIfRun* run) {
    const absl::StatusOr<const WhatIfResult*> result = run->Ask(edits);
    if (!result.ok()) return false;
    const double sum_ms = SumMs(own_.StepsOf((*result)->edited.graph), (*result)->path);
    part_.answers.push_back({change, rank, std::move(what), part_.asked_ms - sum_ms});
    return true;
  }

  // How many steps the mean is of.
  static double Steps(const StepTimes& steps) {
    const size_t left_out = steps.before_end_ps.has_value() && steps.steps.size() > 1 ? 1 : 0;
    return std::max(1.0, static_cast<double>(steps.steps.size() - left_out));
  }
  static double SumMs(const StepTimes& steps, const CriticalPath& path) {
    return Steps(steps) * static_cast<double>(steps.MeanPs().value_or(path.length_ps)) * kMsPerPs;
  }

  const JobWindow& window_;
  const PathGraph& graph_;
  const PathStageOptions& options_;
  const OwnPart own_;
  const CollectiveEvents collectives_;
  CriticalPath path_;
  WindowPart part_;
};

// All windows together.
class RunDescription {
 public:
  // Adds what later windows say.
  void Add(RunDescription later) {
    if (!later.is_empty_) Add(std::move(later.whole_));
  }
  // In the order of the windows.
  void Add(WindowPart part) {
    if (is_empty_) {
      whole_ = std::move(part);
      is_empty_ = false;
      return;
    }
    const int64_t rebase_ps = (part.base_ns - whole_.base_ns) * kPsPerNs;
    const int64_t shift_ps = rebase_ps + part.start_ps - whole_.start_ps;
    whole_.end_ps = std::max(whole_.end_ps, rebase_ps + part.end_ps);
    whole_.events += part.events;
    whole_.communication_only &= part.communication_only;
    for (const auto& [what, count] : part.source.counts) whole_.source.counts[what] += count;
    whole_.operations.Merge(std::move(part.operations),
                            whole_.steps.steps.size() + part.steps.steps.size());
    for (StepTime step : part.steps.steps) {
      step.start_ps += rebase_ps;
      step.end_ps += rebase_ps;
      step.last_end_ps += rebase_ps;
      whole_.steps.steps.push_back(step);
    }
    for (const auto& [key, time_ps] : part.path) whole_.path[key] += time_ps;
    for (const auto& [key, causes] : part.causes) {
      for (const auto& [bound_by, cause] : causes) {
        CauseOfWaiting& sum = whole_.causes[key][bound_by];
        sum.time_ps += cause.time_ps;
        if (cause.largest.time_ps > sum.largest.time_ps) sum.largest = cause.largest;
      }
    }
    for (Answer& answer : part.answers) AddAnswer(std::move(answer));
    // What is not counted, windows say alike.
    for (std::string& note : part.source.notes) {
      if (absl::c_linear_search(whole_.source.notes, note)) continue;
      whole_.source.notes.push_back(std::move(note));
    }
    whole_.asked_steps += part.asked_steps;
    whole_.asked_ms += part.asked_ms;
    for (CombinedStep& row : part.waits) {
      row.set_start_ms(row.start_ms() + static_cast<double>(shift_ps) * kMsPerPs);
      row.set_end_ms(row.end_ms() + static_cast<double>(shift_ps) * kMsPerPs);
      whole_.waits.push_back(std::move(row));
    }
    whole_.timeline.Merge(std::move(part.timeline), shift_ps);
  }

  void Report(std::optional<double> clock_uncertainty_ms, RunReport* report) {
    if (clock_uncertainty_ms.has_value()) {
      report->mutable_evidence()->set_clock_uncertainty_ms(*clock_uncertainty_ms);
    }
    for (const auto* notes : {&whole_.source.notes, &whole_.notes}) {
      for (const std::string& note : *notes) report->add_notes(note);
    }
    for (const auto& [what, count] : whole_.source.counts) {
      report->add_notes(absl::StrCat(count, what));
    }
    ReportSteps(report);
    ReportEvidence(report->mutable_evidence());
    if (!whole_.communication_only) {
      ReportPath(report);
      ReportBlame(report);
      ReportAnswers(report);
    }
    whole_.operations.Report(whole_.steps.steps, report);
    for (CombinedStep& row : whole_.waits) {
      *report->mutable_combine()->add_step_waits() = std::move(row);
    }
    whole_.timeline.Report(report->mutable_timeline());
  }

 private:
  double Ms(int64_t ps) const { return static_cast<double>(ps - whole_.start_ps) * kMsPerPs; }

  void AddAnswer(Answer answer) {
    for (Answer& known : whole_.answers) {
      if (known.change != answer.change || known.rank != answer.rank) continue;
      known.saved_ms += answer.saved_ms;
      return;
    }
    whole_.answers.push_back(std::move(answer));
  }

  void ReportSteps(RunReport* report) const {
    const StepTimes& steps = whole_.steps;
    RunSummary& run = *report->mutable_run();
    run.set_wall_ms(Ms(whole_.end_ps));
    run.set_events(whole_.events);
    for (const StepTime& step : steps.steps) {
      ReportedStep& row = *report->add_steps();
      row.set_step(step.step);
      row.set_start_ms(Ms(step.start_ps));
      row.set_end_ms(Ms(step.end_ps));
    }
    run.set_steps(static_cast<int64_t>(steps.steps.size()));
    const std::optional<int64_t> median_ps = steps.MedianPs();
    if (!median_ps.has_value()) return;
    run.set_step_word(whole_.source.step_word);
    run.set_first_step_is_cut(steps.before_end_ps.has_value() && steps.steps.size() > 1);
    std::vector<double> distances;
    for (const StepTime& step : steps.steps) {
      distances.push_back(std::abs(static_cast<double>(step.length_ps() - *median_ps)) * kMsPerPs);
    }
    run.set_step_ms(static_cast<double>(*median_ps) * kMsPerPs);
    run.set_step_mean_ms(static_cast<double>(*steps.MeanPs()) * kMsPerPs);
    run.set_step_spread_ms(Median(distances));
  }

  void ReportEvidence(Evidence* evidence) const {
    evidence->set_communication_only(whole_.communication_only);
    // Steps that profiles mark were counted when they were aligned.
    std::map<int64_t, int64_t> ranks_in;
    std::set<int64_t> ranks;
    for (const CombinedStep& row : whole_.waits) {
      if (row.has_step()) ++ranks_in[row.step()];
      ranks.insert(row.rank());
    }
    if (ranks.empty()) return;
    evidence->set_steps(static_cast<int64_t>(whole_.steps.steps.size()));
    evidence->set_common_steps(absl::c_count_if(ranks_in, [&](const auto& step) {
      return step.second == static_cast<int64_t>(ranks.size());
    }));
  }

  void ReportPath(RunReport* report) const {
    const bool without_gpus = whole_.source.without_gpus;
    std::set<BoundBy> kinds;
    for (const auto& [key, time_ps] : whole_.path) {
      PathPart& part = *report->add_path();
      if (std::get<0>(key).has_value()) part.set_step(*std::get<0>(key));
      if (std::get<1>(key).has_value()) part.set_rank(*std::get<1>(key));
      part.set_kind(std::string(BoundByName(std::get<2>(key), without_gpus)));
      part.set_ms(static_cast<double>(time_ps) * kMsPerPs);
      kinds.insert(std::get<2>(key));
    }
    for (BoundBy bound_by : kinds) {
      PathKind& kind = *report->add_path_kinds();
      kind.set_kind(std::string(BoundByName(bound_by, without_gpus)));
      kind.set_label(WordingOf(bound_by).label);
      kind.set_role(WordingOf(bound_by).role);
    }
  }

  // One row for each step and rank: what most of the time was spent on says why. What was before its
  // profile has a row of its own.
  void ReportBlame(RunReport* report) const {
    std::map<int64_t, int64_t> lengths_ps;
    for (const StepTime& step : whole_.steps.steps) lengths_ps[step.step] = step.length_ps();
    std::vector<BlamePart> parts;
    for (const auto& [key, of_rank] : whole_.causes) {
      const auto& [step, rank, is_before] = key;
      BlamePart part;
      double whole_ms = report->run().wall_ms();
      if (step.has_value()) {
        part.set_step(*step);
        const int64_t length_ps = lengths_ps[*step];
        if (length_ps > 0) whole_ms = static_cast<double>(length_ps) * kMsPerPs;
      }
      int64_t sum_ps = 0;
      const CauseOfWaiting* most = nullptr;
      for (const auto& [bound_by, cause] : of_rank) {
        sum_ps += cause.time_ps;
        if (most == nullptr || cause.time_ps > most->time_ps) most = &cause;
      }
      part.set_rank(rank);
      part.set_before_profile(is_before);
      part.set_caused_ms(static_cast<double>(sum_ps) * kMsPerPs);
      part.set_share(whole_ms > 0 ? part.caused_ms() / whole_ms : 0);
      part.set_op(most->largest.op);
      part.set_reason(is_before
                          ? "its profile begins later than theirs; what it did before, nobody "
                            "recorded"
                          : ReasonOf(most->time_ps, most->largest));
      parts.push_back(std::move(part));
    }
    absl::c_stable_sort(parts, [](const BlamePart& a, const BlamePart& b) {
      return a.caused_ms() > b.caused_ms();
    });
    for (BlamePart& part : parts) *report->add_blame() = std::move(part);
  }

  // In the mean of the steps that were asked about.
  void ReportAnswers(RunReport* report) {
    absl::c_stable_sort(whole_.answers,
                        [](const Answer& a, const Answer& b) { return a.change < b.change; });
    const std::optional<int64_t> late = MostLateRank(*report);
    // Windows end their steps where most ranks do; the mean of the run may end where the last does.
    const double now_ms = report->run().has_step_mean_ms() ? report->run().step_mean_ms()
                                                           : whole_.asked_ms / whole_.asked_steps;
    for (const Answer& answer : whole_.answers) {
      const bool is_of_late = answer.change == WhatIfPart::RANK_AS_FAST_AS_OTHERS;
      if (is_of_late && answer.rank != late) continue;
      WhatIfPart& part = *report->add_what_if();
      part.set_change(answer.change);
      if (answer.rank.has_value()) part.set_rank(*answer.rank);
      part.set_what(answer.what);
      part.set_step_ms(now_ms - answer.saved_ms / whole_.asked_steps);
      part.set_saved_ms(answer.saved_ms / whole_.asked_steps);
    }
  }

  bool is_empty_ = true;
  WindowPart whole_;
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
  return DescribeWindows(
      [&](auto describe, auto merge) {
        return VisitWindows(file_system, input, job, options.window_work, describe, merge);
      },
      options, report);
}

absl::StatusOr<PathGraph> DescribeWindows(WindowVisitor visit, const PathStageOptions& options,
                                          RunReport* report) {
  // The parts of windows that are not added yet. Each is written by one thread.
  std::map<size_t, WindowPart> parts;
  absl::Mutex mutex;
  // What the windows say up to the middle one, and those behind it, which are described before it.
  RunDescription description, behind;
  size_t middle = 0;
  PathGraph graph;
  const auto describe = [&](JobWindow window) -> absl::Status {
    ASSIGN_OR_RETURN(WindowPart part, WindowDescription(window, options).Describe());
    const absl::MutexLock lock(&mutex);
    parts[window.number] = std::move(part);
    middle = window.count / 2;
    if (!window.IsMiddle()) return absl::OkStatus();
    if (window.count > 1) {
      report->add_notes(absl::StrCat("the run is looked at in ", window.count,
                                     " windows of steps; forecasts rest on the steps ",
                                     window.steps->first, " to ", window.steps->last));
    }
    graph = std::move(window.graph);
    return absl::OkStatus();
  };
  const auto merge = [&](size_t number) {
    (number <= middle ? description : behind).Add(std::move(parts[number]));
    parts.erase(number);
  };
  RETURN_IF_ERROR(visit(describe, merge));
  description.Add(std::move(behind));
  description.Report(options.clock_uncertainty_ms, report);
  return graph;
}

}  // namespace meridian
