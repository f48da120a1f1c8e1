#include "critical_path/report/path_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "critical_path/graph/step_times.h"
#include "critical_path/job/blame.h"
#include "critical_path/report/path_report.pb.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/events/event_category.h"

namespace meridian {
namespace {
// Tables for people show at most this many rows, and this much of the texts in them.
constexpr int kShownRows = 20;
constexpr size_t kNameCharacters = 60;
constexpr size_t kShortNameCharacters = 40;
constexpr size_t kEditCharacters = 90;

double Micros(int64_t ps) { return static_cast<double>(ps) / 1e6; }

double Percent(int64_t part_ps, int64_t whole_ps) {
  return whole_ps == 0 ? 0 : 100 * static_cast<double>(part_ps) / static_cast<double>(whole_ps);
}

void ReportGraph(const PathGraph& graph, const StepTimes& steps, PathReport* report) {
  report->set_nodes(CountJoinedInstants(graph));
  std::vector<int64_t> counts(kNumEdgeTypes);
  for (const GraphEdge& edge : graph.edges) ++counts[static_cast<int>(edge.type)];
  for (int type = 0; type < kNumEdgeTypes; ++type) {
    const std::string name(EdgeTypeName(static_cast<EdgeType>(type)));
    (*report->mutable_edges())[name] = counts[type];
  }
  report->set_window_start_us(Micros(graph.window_start_ps));
  report->set_window_end_us(Micros(graph.window_end_ps));
  report->set_begin_us(Micros(steps.ReplayStartPs().value_or(graph.window_start_ps)));
}

void ReportBreakdown(const PathBreakdown& breakdown, int64_t length_ps, bool without_gpus,
                     PathReport* report) {
  for (int i = 0; i < kNumBoundBy; ++i) {
    const BoundBy bound_by = static_cast<BoundBy>(i);
    if (bound_by == BoundBy::kNothing || bound_by == BoundBy::kBeforeStep) continue;
    const std::string name(BoundByName(bound_by, without_gpus));
    (*report->mutable_breakdown())[name] = Micros(breakdown.Of(bound_by));
    (*report->mutable_breakdown_percent())[name] = Percent(breakdown.Of(bound_by), length_ps);
  }
}

void ReportEvents(const PathGraph& graph, const std::vector<EventShare>& shares, int64_t length_ps,
                  bool without_gpus, PathReport* report) {
  // Positions, for of equal times the first on the path comes first.
  std::vector<size_t> order;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i].time_ps != 0 && shares[i].bound_by != BoundBy::kBeforeStep) order.push_back(i);
  }
  report->set_events_total(static_cast<int64_t>(order.size()));
  const auto shown = order.begin() + std::min<size_t>(order.size(), kMaxReportedEvents);
  std::partial_sort(order.begin(), shown, order.end(), [&](size_t a, size_t b) {
    return std::make_tuple(-shares[a].time_ps, a) < std::make_tuple(-shares[b].time_ps, b);
  });
  order.erase(shown, order.end());
  for (const size_t i : order) {
    const EventShare& share = shares[i];
    PathEventReport* out = report->add_events();
    const GraphEventId id = share.event != kNoEvent ? share.event : share.before;
    if (id != kNoEvent) {
      const GraphEvent& event = graph.events[id];
      const Lane& lane = graph.lanes[event.lane];
      const std::string name(graph.EventName(id));
      if (share.event != kNoEvent) {
        out->set_event(event.position);
        out->set_category(std::string(EventCategoryName(event.category)));
      }
      out->set_name(share.event != kNoEvent ? name : absl::StrCat("before ", name));
      out->set_rank(lane.rank);
      out->set_process(lane.process);
      out->set_thread(lane.thread);
      if (event.step != kNoStep) out->set_step(event.step);
    }
    out->set_edge_type(std::string(EdgeTypeName(share.type)));
    out->set_bound_by(std::string(BoundByName(share.bound_by, without_gpus)));
    out->set_us(Micros(share.time_ps));
    out->set_percent(Percent(share.time_ps, length_ps));
  }
}

// The length of each step, and what the path spent most of it on.
void ReportSteps(const PathGraph& graph, const CriticalPath& path, const StepTimes& steps,
                 const Blame& blame, bool without_gpus, PathReport* report) {
  std::vector<std::map<BoundBy, int64_t>> spent_ps(steps.steps.size());
  if (steps.steps.empty()) return;
  VisitPieces(graph, path, steps, [&](const PathPiece& piece) {
    if (piece.step.has_value()) spent_ps[*piece.step][piece.bound_by] += piece.time_ps;
  });
  std::map<int64_t, std::vector<const BlameRow*>> rows_of_step;
  for (const BlameRow& row : blame.rows) {
    if (row.step.has_value()) rows_of_step[*row.step].push_back(&row);
  }
  for (size_t i = 0; i < steps.steps.size(); ++i) {
    PathStepReport* out = report->add_steps();
    out->set_step(steps.steps[i].step);
    out->set_us(Micros(steps.steps[i].length_ps()));
    BoundBy most = BoundBy::kNothing;
    for (const auto& [bound_by, time_ps] : spent_ps[i]) {
      if (most == BoundBy::kNothing || time_ps > spent_ps[i].at(most)) most = bound_by;
    }
    out->set_bound_by(std::string(BoundByName(most, without_gpus)));
    const auto found = rows_of_step.find(steps.steps[i].step);
    if (found == rows_of_step.end()) continue;
    std::map<int64_t, double> by_rank;
    for (const BlameRow* row : found->second) by_rank[row->rank] += Micros(row->time_ps);
    const auto worst =
        std::max_element(by_rank.begin(), by_rank.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const BlameRow* row = *std::find_if(found->second.begin(), found->second.end(),
                                        [&](const BlameRow* r) { return r->rank == worst->first; });
    out->set_rank(worst->first);
    out->set_blame_us(worst->second);
    out->set_op(row->op);
    out->set_after(row->after);
    out->set_waited_in(row->waited_in);
  }
}

void ReportBlame(const Blame& blame, int64_t length_ps, bool without_gpus, PathReport* report) {
  report->set_blame_total(static_cast<int64_t>(blame.rows.size()));
  for (const BlameRow& row : blame.rows) {
    if (report->blame_size() == kMaxReportedEvents) break;
    BlameReport* out = report->add_blame();
    if (row.step.has_value()) out->set_step(*row.step);
    out->set_rank(row.rank);
    out->set_op(row.op);
    out->set_us(Micros(row.time_ps));
    out->set_bound_by(std::string(BoundByName(row.bound_by, without_gpus)));
    out->set_waited_in(row.waited_in);
    out->set_after(row.after);
  }
  for (const RankBlame& rank : blame.ranks) {
    RankBlameReport* out = report->add_blame_by_rank();
    out->set_rank(rank.rank);
    out->set_us(Micros(rank.blamed_ps));
    out->set_percent(Percent(rank.blamed_ps, length_ps));
    out->set_waited_us(Micros(rank.waited_ps));
  }
}

std::string DescribeWindow(const PathReport& report) {
  if (report.annotation().empty()) return "the whole trace";
  std::string text = absl::StrCat("'", report.annotation(), "' ", report.first_instance());
  if (report.last_instance() != report.first_instance()) {
    absl::StrAppend(&text, "..", report.last_instance());
  }
  return text;
}

std::string MicrosText(double us) { return absl::StrFormat("%.3f", us); }
std::string PercentText(double percent) { return absl::StrFormat("%.2f", percent); }

// Returns the table, with a line that says how many rows it does not show.
std::string WithRest(const TextTable& table, int64_t rest) {
  return rest <= 0 ? table.ToString()
                   : absl::StrCat(table.ToString(), "... and ", WithThousands(rest), " more\n");
}

// A breakdown in the order of its names; that of the report has none.
using Breakdown = std::map<std::string, double>;

std::string BreakdownTable(const PathReport& report) {
  TextTable table({"spent on", ">us", ">%"});
  for (const auto& [name, us] : Breakdown(report.breakdown().begin(), report.breakdown().end())) {
    if (us == 0) continue;
    table.AddRow({name, MicrosText(us), PercentText(report.breakdown_percent().at(name))});
  }
  return table.ToString();
}

std::string EventTableText(const PathReport& report) {
  TextTable table({">us", ">%", "spent on", ">rank", ">step", ">event", "name"});
  const int shown = std::min(kShownRows, report.events_size());
  for (int i = 0; i < shown; ++i) {
    const PathEventReport& event = report.events(i);
    table.AddRow({MicrosText(event.us()), PercentText(event.percent()), event.bound_by(),
                  !event.name().empty() ? absl::StrCat(event.rank()) : "",
                  event.has_step() ? absl::StrCat(event.step()) : "",
                  event.has_event() ? absl::StrCat(event.event()) : "",
                  FirstCharacters(event.name(), kNameCharacters)});
  }
  return WithRest(table, report.events_total() - shown);
}

// Returns e.g. "host_gap between aten::mm and all_to_all".
std::string WhereText(absl::string_view op, absl::string_view after, absl::string_view waited_in) {
  if (after.empty()) return FirstCharacters(op, kShortNameCharacters);
  return absl::StrCat(FirstCharacters(op, kShortNameCharacters), " between ",
                      FirstCharacters(after, kShortNameCharacters), " and ",
                      FirstCharacters(waited_in, kShortNameCharacters));
}

std::string StepTable(const PathReport& report) {
  TextTable table({absl::StrCat(">", report.step_word()), ">us", "mostly", ">late rank",
                   ">kept others waiting, us", "most by"});
  const int shown = std::min(kShownRows, report.steps_size());
  for (int i = 0; i < shown; ++i) {
    const PathStepReport& step = report.steps(i);
    table.AddRow({absl::StrCat(step.step()), MicrosText(step.us()), step.bound_by(),
                  step.has_rank() ? absl::StrCat(step.rank()) : "",
                  step.has_rank() ? MicrosText(step.blame_us()) : "",
                  WhereText(step.op(), step.after(), step.waited_in())});
  }
  return WithRest(table, report.steps_size() - shown);
}

std::string RankBlameTable(const PathReport& report) {
  TextTable table({">rank", ">kept others waiting, us", ">% of path", ">waited, us"});
  for (const RankBlameReport& rank : report.blame_by_rank()) {
    table.AddRow({absl::StrCat(rank.rank()), MicrosText(rank.us()), PercentText(rank.percent()),
                  MicrosText(rank.waited_us())});
  }
  return table.ToString();
}

std::string BlameTable(const PathReport& report) {
  TextTable table({">step", ">rank", ">blame, us", "op", "spent on", "others waited in"});
  const int shown = std::min(kShownRows, report.blame_size());
  for (int i = 0; i < shown; ++i) {
    const BlameReport& row = report.blame(i);
    table.AddRow({row.has_step() ? absl::StrCat(row.step()) : "", absl::StrCat(row.rank()),
                  MicrosText(row.us()), WhereText(row.op(), row.after(), row.waited_in()),
                  row.bound_by(), FirstCharacters(row.waited_in(), kShortNameCharacters)});
  }
  return WithRest(table, report.blame_total() - shown);
}

std::string ChangeText(double us) { return absl::StrFormat("%+.3f", us); }

std::string EditTable(const WhatIfReport& what_if) {
  TextTable table({"edit", ">matched"});
  for (const WhatIfEditReport& edit : what_if.edits()) {
    table.AddRow({FirstCharacters(edit.text(), kEditCharacters), WithThousands(edit.matched())});
  }
  return table.ToString();
}

std::string ComparisonTable(const WhatIfReport& what_if) {
  TextTable table({"spent on", ">before us", ">after us", ">change us"});
  for (const auto& [name, before] :
       Breakdown(what_if.breakdown_before().begin(), what_if.breakdown_before().end())) {
    const double after = what_if.breakdown_after().at(name);
    if (before == 0 && after == 0) continue;
    table.AddRow({name, MicrosText(before), MicrosText(after), ChangeText(after - before)});
  }
  table.AddRow({"length", MicrosText(what_if.length_us_before()),
                MicrosText(what_if.length_us_after()),
                ChangeText(what_if.length_us_after() - what_if.length_us_before())});
  return table.ToString();
}

// Says which time is compared, `whole` for all of it: the path's length is another.
absl::string_view ComparedText(const PathReport& report, absl::string_view whole) {
  if (report.begin_us() <= report.window_start_us()) return whole;
  return report.steps_size() > 1 ? ", from the end of the first step on"
                                 : ", without what was before the step";
}

// Returns the report's what-if; nothing when it has none.
std::string FormatWhatIf(const PathReport& report) {
  if (!report.has_what_if()) return "";
  const WhatIfReport& what_if = report.what_if();
  const double before = what_if.length_us_before(), after = what_if.length_us_after();
  return absl::StrCat(
      absl::StrFormat("\nwhat if: %.3f us instead of %.3f us (%+.2f %%)%s\n\n", after, before,
                      before == 0 ? 0 : 100 * (after - before) / before, ComparedText(report, "")),
      EditTable(what_if), "\n", ComparisonTable(what_if));
}

// Returns what could be reordered; nothing when that is not known.
std::string FormatReordering(const PathReport& report) {
  if (!report.has_reorder()) return "";
  const ReorderReport& reorder = report.reorder();
  TextTable table({">us", ">rank", "waited for its turn", "behind, needing nothing of it"});
  for (const QueuedWorkReport& row : reorder.queued()) {
    table.AddRow({MicrosText(row.us()), absl::StrCat(row.rank()),
                  FirstCharacters(row.name(), kShortNameCharacters),
                  FirstCharacters(row.behind(), kShortNameCharacters)});
  }
  return absl::StrFormat(
      "\nif device work waited for its data alone, not for its turn: at most %.3f us less than "
      "%.3f us%s\n(a device cannot run everything at once; %.2f %% of device time has unknown "
      "data)\n\n%s",
      reorder.length_us() - reorder.at_least_us(), reorder.length_us(),
      ComparedText(report, ", the whole window"), reorder.unknown_percent(),
      reorder.queued().empty() ? "" : table.ToString());
}

}  // namespace

PathReport ReportPath(const GraphSource& source, const PathGraph& graph, const CriticalPath& path) {
  PathReport report;
  report.set_trace(source.trace);
  report.set_annotation(source.window.annotation);
  report.set_first_instance(source.window.instances.first);
  report.set_last_instance(source.window.instances.last);
  report.set_hta_compatible(source.hta_compatible);
  const StepTimes steps = FindStepTimes(graph);
  ReportGraph(graph, steps, &report);
  report.set_critical_nodes(static_cast<int64_t>(path.edges.size()) + 1);
  const PathBreakdown breakdown = BreakDown(graph, path);
  // What a rank did before its step belongs to the step before.
  const int64_t length_ps = path.length_ps - breakdown.Of(BoundBy::kBeforeStep);
  report.set_length_us(Micros(length_ps));
  report.set_before_step_us(Micros(breakdown.Of(BoundBy::kBeforeStep)));
  ReportBreakdown(breakdown, length_ps, source.without_gpus, &report);
  ReportEvents(graph, breakdown.shares, length_ps, source.without_gpus, &report);
  const Blame blame = FindBlame(graph);
  ReportSteps(graph, path, steps, blame, source.without_gpus, &report);
  report.set_step_word(source.step_word);
  ReportBlame(blame, length_ps, source.without_gpus, &report);
  for (const std::string& note : source.notes) report.add_notes(note);
  return report;
}

void AddWhatIf(absl::Span<const WhatIfEdit> edits, const WhatIfResult& result,
               const PathReport& measured, PathReport* report) {
  WhatIfReport* what_if = report->mutable_what_if();
  for (size_t i = 0; i < edits.size(); ++i) {
    WhatIfEditReport* edit = what_if->add_edits();
    edit->set_text(edits[i].text);
    edit->set_matched(result.matched[i]);
  }
  // Of graphs that explain the whole window: from when the first rank begins, since ranks may begin
  // their steps apart, but without the time in which work launched earlier ran.
  const auto length_us = [](const PathReport& of) {
    return of.hta_compatible() ? of.length_us() : of.window_end_us() - of.begin_us();
  };
  what_if->set_length_us_before(length_us(measured));
  what_if->set_length_us_after(length_us(*report));
  *what_if->mutable_breakdown_before() = measured.breakdown();
  *what_if->mutable_breakdown_after() = report->breakdown();
}

std::string FormatPathReport(const PathReport& report) {
  int64_t edges = 0;
  for (const auto& [type, count] : report.edges()) edges += count;
  std::string out = absl::StrCat(
      "critical path of ", Printable(report.trace()), ", ", Printable(DescribeWindow(report)),
      report.hta_compatible() ? " (as HTA sees it)" : "", ": ", MicrosText(report.length_us()),
      " us\n", WithThousands(report.critical_nodes()), " of ", WithThousands(report.nodes()),
      " nodes and ", WithThousands(edges), " edges; the window lasts ",
      MicrosText(report.window_end_us() - report.window_start_us()), " us\n\n",
      BreakdownTable(report), "\n", EventTableText(report));
  if (report.steps_size() > 1) absl::StrAppend(&out, "\n", StepTable(report));
  if (report.blame_by_rank_size() > 0) {
    absl::StrAppend(&out, "\nwho kept others waiting\n\n", RankBlameTable(report));
  }
  if (report.blame_size() > 0) {
    absl::StrAppend(&out, "\n", BlameTable(report));
  }
  for (const std::string& note : report.notes()) absl::StrAppend(&out, Printable(note), "\n");
  return out + FormatWhatIf(report) + FormatReordering(report);
}

}  // namespace meridian
