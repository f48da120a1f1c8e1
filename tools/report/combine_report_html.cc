#include "tools/report/combine_report_html.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tools/report/combine_charts.h"
#include "tools/report/html_text.h"
#include "tools/report/page.h"
#include "tools/report/quantities.h"
#include "tools/report/style.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr double kNanosPerMilli = 1e6;
constexpr size_t kMaxTextCharacters = 300;
// Ranks shown at once; the others are behind a click.
constexpr int kRanksShown = 16;
// In place of a value; readers are told what the dash means.
constexpr char kUnknown[] =
    "<span class=\"unknown\" title=\"not known\" aria-label=\"not known\">&#8211;</span>";
// A node whose method is this needs no other mark.
constexpr absl::string_view kReferenceMethod = "reference";
constexpr absl::string_view kPlusMinus = " &#177; ";
constexpr absl::string_view kNonBreakingHyphen = "\u2011";

std::string Text(absl::string_view text) {
  return HtmlEscape(FirstCharacters(text, kMaxTextCharacters));
}

// For texts that may be missing.
std::string TextOrUnknown(absl::string_view text) { return text.empty() ? kUnknown : Text(text); }

std::string Millis(double ms) {
  return std::isfinite(ms) ? DurationText(ms * kNanosPerMilli) : kUnknown;
}

// "1 collective", "2 collectives".
std::string Count(int64_t count, absl::string_view noun) {
  return absl::StrCat(WithThousands(count), " ", noun, count == 1 ? "" : "s");
}

// A table with a caption and a header row.
class HtmlTable {
 public:
  struct Column {
    absl::string_view title;
    bool is_number = false;
  };

  HtmlTable(absl::string_view caption, std::vector<Column> columns) : columns_(std::move(columns)) {
    absl::StrAppend(&html_, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
                    HtmlEscape(caption), "\"><table>\n<caption>", HtmlEscape(caption),
                    "</caption>\n<thead><tr>");
    for (const Column& column : columns_) {
      absl::StrAppend(&html_, "<th scope=\"col\"", column.is_number ? " class=\"n\">" : ">",
                      HtmlEscape(column.title), "</th>");
    }
    absl::StrAppend(&html_, "</tr></thead>\n<tbody>\n");
  }

  // Cells are HTML. The first says what the row is about. A cell may bring its own <td>.
  void AddRow(const std::vector<std::string>& cells) {
    absl::StrAppend(&html_, "<tr>");
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].compare(0, 3, "<td") == 0) {
        absl::StrAppend(&html_, cells[i]);
        continue;
      }
      const absl::string_view css_class = columns_[i].is_number ? " class=\"n\">" : ">";
      if (i == 0) {
        absl::StrAppend(&html_, "<th scope=\"row\"", css_class, cells[i], "</th>");
      } else {
        absl::StrAppend(&html_, "<td", css_class, cells[i], "</td>");
      }
    }
    absl::StrAppend(&html_, "</tr>\n");
  }

  std::string Finish() { return absl::StrCat(html_, "</tbody></table></div>\n"); }

 private:
  std::vector<Column> columns_;
  std::string html_;
};

// Wide pictures scroll on narrow screens instead of becoming too small to read.
std::string Figure(absl::string_view svg) {
  return absl::StrCat("<div class=\"scroll\">", svg, "</div>\n");
}

std::string PathCell(absl::string_view path) {
  return absl::StrCat("<td class=\"path\">", TextOrUnknown(path), "</td>");
}

struct Verdict {
  // "good", "bad" or "open".
  absl::string_view css_class;
  std::string headline;
  std::string explanation;
};

Verdict JudgeCollectives(const CombineReport& report) {
  const HappensBeforeSummary& checks = report.happens_before();
  if (!report.has_happens_before() || checks.checked() == 0) {
    return {"open", "Nothing could be checked.",
            "No collective was found on two or more ranks, so nothing proves or disproves that the "
            "clocks agree."};
  }
  const std::string change =
      absl::StrCat("Violations before: ", WithThousands(checks.violations_before()),
                   ", after: ", WithThousands(checks.violations_after()), ".");
  if (checks.violations_after() > 0) {
    return {"bad",
            absl::StrCat(WithThousands(checks.violations_after()), " of ",
                         Count(checks.checked(), "collective"), " cannot have happened as shown."),
            absl::StrCat(change,
                         " There a member ends before another has started: do not trust "
                         "times across nodes.")};
  }
  if (checks.violations_before() > 0) {
    return {"good",
            absl::StrCat("The nodes are on one clock: ", Count(checks.checked(), "collective"),
                         " checked, none impossible."),
            change};
  }
  return {"good",
          absl::StrCat("The clocks agreed from the start: ", Count(checks.checked(), "collective"),
                       " checked, none impossible."),
          change};
}

// What of the run the report can not be about: profiles that began or ended at different times.
std::string StaggeredText(const CombineReport& report) {
  const int64_t incomplete = report.happens_before().incomplete();
  std::string text;
  if (report.steps() > 0 && report.steps_on_all_ranks() < report.steps()) {
    absl::StrAppend(&text, " All ranks have only ", WithThousands(report.steps_on_all_ranks()),
                    " of the ", Count(report.steps(), "step"),
                    ": the profiles began or ended at different times.");
  }
  if (incomplete > 0) {
    absl::StrAppend(&text, " Ranks are missing in ", WithThousands(incomplete), " of ",
                    Count(report.happens_before().instances(), "collective"),
                    ", which are not counted in what follows.");
  }
  return text;
}

std::string VerdictSection(const CombineReport& report) {
  Verdict verdict = JudgeCollectives(report);
  absl::StrAppend(&verdict.explanation, StaggeredText(report));
  return absl::StrCat("<div class=\"verdict ", verdict.css_class, "\" role=\"status\"><strong>",
                      HtmlEscape(verdict.headline), "</strong><span>",
                      HtmlEscape(verdict.explanation), "</span></div>\n");
}

std::string FactsSection(const CombineReport& report) {
  std::string html = "<dl>\n";
  const auto add = [&](absl::string_view name, const std::string& value) {
    absl::StrAppend(&html, "<div><dt>", name, "</dt><dd>", value, "</dd></div>\n");
  };
  add("Nodes", WithThousands(report.nodes_size()));
  std::string method = TextOrUnknown(report.method());
  if (!report.method_asked().empty() && report.method_asked() != report.method()) {
    absl::StrAppend(&method, " <span class=\"soft\">(asked for: ", Text(report.method_asked()),
                    ")</span>");
  }
  if (report.steps() > 0) {
    add("Steps", absl::StrCat(WithThousands(report.steps()), " <span class=\"soft\">(",
                              WithThousands(report.steps_on_all_ranks()), " on all ranks)</span>"));
  }
  if (report.wall_ms() > 0) add("First to last collective", Millis(report.wall_ms()));
  add("Clocks found by", method);
  add("Reference",
      report.nodes().empty() ? kUnknown : absl::StrCat("node ", report.reference_node()));
  add("Executions matched by", TextOrUnknown(report.run_method()));
  if (report.has_happens_before()) {
    const HappensBeforeSummary& checks = report.happens_before();
    add("Collectives", absl::StrCat(WithThousands(checks.instances()), " <span class=\"soft\">(",
                                    WithThousands(checks.checked()), " checked)</span>"));
    if (checks.incomplete() > 0) {
      add("Lacking ranks", Count(checks.incomplete(), "collective"));
    }
    add("Checked on", TextOrUnknown(checks.checked_on()));
  }
  return absl::StrCat(html, "</dl>\n");
}

// When the offset was as it is told.
std::string OffsetTitle(const CombinedNode& node) {
  std::string title = absl::StrCat(WithThousands(node.offset_ns()), " ns");
  if (node.has_offset_at_ns()) {
    const absl::Time at = absl::FromUnixNanos(node.offset_at_ns());
    absl::StrAppend(&title, " at ",
                    absl::FormatTime("%Y-%m-%d %H:%M:%E3S UTC", at, absl::UTCTimeZone()));
  }
  return title;
}

std::string OffsetCell(const CombinedNode& node) {
  if (!node.has_offset_ns()) return kUnknown;
  std::string html =
      absl::StrCat("<span title=\"", HtmlEscape(OffsetTitle(node)), "\">",
                   SignedDurationText(static_cast<double>(node.offset_ns())), kPlusMinus);
  absl::StrAppend(&html, node.has_uncertainty_ns()
                             ? DurationText(static_cast<double>(node.uncertainty_ns()))
                             : kUnknown);
  return absl::StrCat(html, "</span>");
}

std::string DurationOrUnknown(bool is_known, int64_t ns) {
  return is_known ? DurationText(static_cast<double>(ns)) : kUnknown;
}

std::string DriftCell(const CombinedNode& node) {
  if (!node.has_drift_ppm() || !std::isfinite(node.drift_ppm())) return kUnknown;
  const bool has_uncertainty =
      node.has_drift_uncertainty_ppm() && std::isfinite(node.drift_uncertainty_ppm());
  return absl::StrCat(
      PpmText(node.drift_ppm()), kPlusMinus,
      has_uncertainty ? absl::StrFormat("%.2f", node.drift_uncertainty_ppm()) : kUnknown);
}

std::string NodesSection(const CombineReport& report) {
  if (report.nodes().empty()) return "<h2>Nodes</h2>\n<p>The report names no node.</p>\n";
  std::string html = "<h2>Nodes</h2>\n";
  absl::StrAppend(&html, Figure(OffsetsChart(report)));
  absl::StrAppend(&html,
                  "<p class=\"soft\"><span class=\"key transfer\"></span>offset and uncertainty"
                  "<span class=\"key certified\"></span>what happens-before alone certifies</p>\n");
  if (static_cast<size_t>(report.nodes_size()) > kMaxChartRows) {
    absl::StrAppend(&html, "<p>The picture shows the first ", kMaxChartRows, " of ",
                    WithThousands(report.nodes_size()), " nodes; the table has them all.</p>\n");
  }
  HtmlTable table(
      "Each node's clock. An offset is positive where the node's clock is ahead of the reference. "
      "A dash: not known.",
      {{"Node", true},
       {"Host"},
       {"File"},
       {"Ranks"},
       {"Method"},
       {"Offset", true},
       {"Worst uncertainty", true},
       {"Certified", true},
       {"Drift", true},
       {"Largest correction", true}});
  for (const CombinedNode& node : report.nodes()) {
    const std::vector<int64_t> ranks(node.ranks().begin(), node.ranks().end());
    const bool mark =
        node.node_id() == report.reference_node() && node.method() != kReferenceMethod;
    table.AddRow(
        {absl::StrCat(node.node_id()), TextOrUnknown(node.hostname()),
         TextOrUnknown(node.trace().substr(node.trace().rfind('/') + 1)),
         TextOrUnknown(absl::StrReplaceAll(RangesText(ranks), {{"-", kNonBreakingHyphen}})),
         absl::StrCat(TextOrUnknown(node.method()), mark ? " (reference)" : ""), OffsetCell(node),
         DurationOrUnknown(node.has_uncertainty_max_ns(), node.uncertainty_max_ns()),
         DurationOrUnknown(node.has_certified_uncertainty_ns(), node.certified_uncertainty_ns()),
         DriftCell(node), SignedDurationText(static_cast<double>(node.max_correction_ns()))});
  }
  return absl::StrCat(html, table.Finish());
}

std::string KindsSection(const CombineReport& report) {
  std::string html = "<h2>Collectives: waiting and transfer</h2>\n";
  if (report.kinds().empty()) {
    return absl::StrCat(html, "<p>No collective was found in these profiles.</p>\n");
  }
  absl::StrAppend(&html,
                  "<p>A collective moves data only when its last member has started. What comes "
                  "before is waiting: it is not the network's. Waiting is the mean of a "
                  "collective's members.</p>\n",
                  Figure(KindsChart(report)),
                  "<p class=\"soft\"><span class=\"key wait\"></span>waiting for the last to start"
                  "<span class=\"key transfer\"></span>transfer</p>\n");
  HtmlTable table("Sums over all instances, on the common clock.", {{"Kind"},
                                                                    {"Instances", true},
                                                                    {"Operand bytes", true},
                                                                    {"Wait", true},
                                                                    {"Transfer", true},
                                                                    {"Share of waiting", true}});
  for (const CombinedKind& kind : report.kinds()) {
    const double total_ms = kind.wait_ms() + kind.transfer_ms();
    table.AddRow({TextOrUnknown(kind.kind()), WithThousands(kind.instances()),
                  BytesText(kind.operand_bytes()), Millis(kind.wait_ms()),
                  Millis(kind.transfer_ms()),
                  total_ms > 0 ? ShareText(kind.wait_ms(), total_ms) : kUnknown});
  }
  return absl::StrCat(html, table.Finish());
}

// "2 (host-b)".
std::string NodeCell(const CombineReport& report, int64_t node_id) {
  for (const CombinedNode& node : report.nodes()) {
    if (node.node_id() != node_id || node.hostname().empty()) continue;
    return absl::StrCat(node_id, " (", Text(node.hostname()), ")");
  }
  return absl::StrCat(node_id);
}

// Waiting and transfer of a rank, as parts of the time from the first to the last collective.
std::string WallBar(const CombineReport& report, const CombinedRank& rank) {
  const auto percent = [&](double ms) {
    if (!(report.wall_ms() > 0) || !(ms > 0)) return 0.0;
    return std::min(100.0, 100 * ms / report.wall_ms());
  };
  const double waited = percent(rank.waited_ms());
  return absl::StrFormat(
      "<td class=\"track\"><span class=\"bar wait\" style=\"width:%.1f%%\"></span>"
      "<span class=\"bar transfer\" style=\"width:%.1f%%\"></span></td>",
      waited, std::min(percent(rank.transfer_ms()), 100 - waited));
}

std::string RanksTable(const CombineReport& report, int begin, int end, absl::string_view caption) {
  HtmlTable table(caption, {{"Rank", true},
                            {"Node", true},
                            {"Last to start", true},
                            {"Of its collectives", true},
                            {"Others waited, summed", true},
                            {"Waited itself", true},
                            {"Of the time", true},
                            {"Waiting and transfer of the time"}});
  for (int i = begin; i < end; ++i) {
    const CombinedRank& rank = report.ranks(i);
    table.AddRow(
        {absl::StrCat(rank.rank()), NodeCell(report, rank.node_id()), WithThousands(rank.last()),
         rank.collectives() > 0
             ? ShareText(static_cast<double>(rank.last()), static_cast<double>(rank.collectives()))
             : kUnknown,
         Millis(rank.caused_wait_ms()), Millis(rank.waited_ms()),
         report.wall_ms() > 0 ? ShareText(rank.waited_ms(), report.wall_ms()) : kUnknown,
         WallBar(report, rank)});
  }
  return table.Finish();
}

std::string RanksSection(const CombineReport& report) {
  std::string html = "<h2>Who is last</h2>\n";
  if (report.ranks().empty()) {
    return absl::StrCat(html, "<p>No rank took part in a checked collective.</p>\n");
  }
  const int shown = std::min(report.ranks_size(), kRanksShown);
  absl::StrAppend(
      &html,
      "<p class=\"soft\"><span class=\"key wait\"></span>the rank itself waits"
      "<span class=\"key transfer\"></span>transfer</p>\n",
      RanksTable(report, 0, shown,
                 "Ranks by how long others waited for them. The time is that from the first to the "
                 "last collective; a rank that waits much is not the slow one."));
  if (shown < report.ranks_size()) {
    absl::StrAppend(&html, "<details><summary>", Count(report.ranks_size() - shown, "more rank"),
                    "</summary>\n",
                    RanksTable(report, shown, report.ranks_size(), "The other ranks."),
                    "</details>\n");
  }
  return html;
}

std::string InputsSection(const CombineReport& report) {
  if (report.nodes().empty()) return "";
  HtmlTable table("Profiles that were read.",
                  {{"Node", true}, {"Events", true}, {"Collectives", true}, {"Path"}});
  for (const CombinedNode& node : report.nodes()) {
    table.AddRow({absl::StrCat(node.node_id()), WithThousands(node.events()),
                  WithThousands(node.collectives()), PathCell(node.trace())});
  }
  return absl::StrCat("<h2>Inputs</h2>\n", table.Finish());
}

std::string OutputsSection(const CombineReport& report) {
  if (report.outputs().empty()) return "";
  HtmlTable table("Files that were written.", {{"What"}, {"Size", true}, {"Path"}});
  for (const CombinedOutput& output : report.outputs()) {
    table.AddRow(
        {TextOrUnknown(output.kind()), BytesText(output.bytes()), PathCell(output.path())});
  }
  return absl::StrCat("<h2>Outputs</h2>\n", table.Finish());
}

std::string NotesSection(const CombineReport& report) {
  if (report.notes().empty()) return "";
  std::string html = "<h2>Notes</h2>\n<ul>\n";
  for (const std::string& note : report.notes())
    absl::StrAppend(&html, "<li>", Text(note), "</li>\n");
  return absl::StrCat(html, "</ul>\n");
}

}  // namespace

std::string CombineReportHtml(const CombineReport& report) {
  return absl::StrReplaceAll(
      kPage, {{"{{style}}", kStyle},
              {"{{sections}}",
               absl::StrCat(VerdictSection(report), FactsSection(report), NodesSection(report),
                            KindsSection(report), RanksSection(report), NotesSection(report),
                            OutputsSection(report), InputsSection(report))}});
}

}  // namespace meridian
