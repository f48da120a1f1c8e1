#include "tools/report/combine_report_html.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/report/combine_charts.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two nodes that were off by -4.57 ms and are on one clock now.
CombineReport TwoNodes() {
  CombineReport report;
  report.set_reference_node(0);
  report.set_method_asked("auto");
  report.set_method("collectives");
  report.set_run_method("run_id");
  HappensBeforeSummary* checks = report.mutable_happens_before();
  checks->set_instances(50);
  checks->set_checked(48);
  checks->set_unmatched(2);
  checks->set_violations_before(37);
  checks->set_checked_on("written file");
  CombinedNode* reference = report.add_nodes();
  reference->set_node_id(0);
  reference->set_hostname("host-a");
  reference->set_trace("run/host-a.xplane.pb");
  reference->set_method("none");
  reference->set_offset_ns(0);
  reference->set_uncertainty_ns(0);
  reference->set_events(123456);
  for (int64_t rank : {0, 1, 2, 3}) reference->add_ranks(rank);
  CombinedNode* node = report.add_nodes();
  node->set_node_id(1);
  node->set_hostname("host-b");
  node->set_trace("run/host-b.xplane.pb");
  node->set_method("collectives");
  node->set_offset_at_ns(1794701451406144825);
  node->set_offset_ns(-4567890);
  node->set_uncertainty_ns(12345);
  node->set_uncertainty_max_ns(23456);
  node->set_certified_uncertainty_ns(98765);
  node->set_drift_ppm(3.279);
  node->set_drift_uncertainty_ppm(0.1);
  node->set_events(7);
  node->set_max_correction_ns(4567999);
  node->set_collectives(24);
  node->add_ranks(4);
  CombinedKind* kind = report.add_kinds();
  kind->set_kind("all-reduce");
  kind->set_instances(30);
  kind->set_operand_bytes(16 << 20);
  kind->set_wait_ms(12.5);
  kind->set_transfer_ms(37.5);
  CombinedRank* rank = report.add_ranks();
  rank->set_rank(4);
  rank->set_node_id(1);
  rank->set_last(12);
  rank->set_collectives(48);
  rank->set_caused_wait_ms(9.75);
  rank->set_waited_ms(20);
  rank->set_transfer_ms(30);
  report.set_wall_ms(200);
  CombinedOutput* output = report.add_outputs();
  output->set_kind("combined");
  output->set_path("out/combined.xplane.pb");
  output->set_bytes(1536);
  report.add_notes("node 1: file order decided its rank");
  return report;
}

// Returns what is wrong with the markup, or "": tags nest, attributes are quoted and known to need
// no escaping, text has no stray markup, nothing refers outside. Our pages are plain enough for it.
class MarkupChecker {
 public:
  explicit MarkupChecker(absl::string_view page) : rest_(page) {}

  std::string Check() {
    while (problem_.empty() && !rest_.empty()) {
      if (absl::ConsumePrefix(&rest_, "<!DOCTYPE html>")) continue;
      if (rest_.front() == '<') {
        CheckTag();
      } else {
        CheckText();
      }
    }
    if (problem_.empty() && !open_.empty()) problem_ = absl::StrCat("open: ", open_.back());
    return problem_;
  }

 private:
  void CheckText() {
    const bool is_style = !open_.empty() && open_.back() == "style";
    const absl::string_view text = rest_.substr(0, rest_.find('<'));
    rest_.remove_prefix(text.size());
    if (is_style && absl::StrContains(text, "url(")) problem_ = "style loads something";
    if (!is_style) CheckCharacters(text);
  }

  void CheckTag() {
    const size_t end = rest_.find('>');
    if (end == absl::string_view::npos) {
      problem_ = "a tag that does not end";
      return;
    }
    absl::string_view tag = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    if (absl::ConsumePrefix(&tag, "/")) {
      if (open_.empty() || open_.back() != tag) {
        problem_ = absl::StrCat("closes ", tag);
      } else {
        open_.pop_back();
      }
      return;
    }
    const bool closed = absl::ConsumeSuffix(&tag, "/");
    const std::string name(tag.substr(0, tag.find(' ')));
    if (name == "script" || name == "link" || name == "img" || name == "iframe" || name == "a") {
      problem_ = absl::StrCat("element ", name);
    }
    tag.remove_prefix(name.size());
    while (!tag.empty() && problem_.empty()) CheckAttribute(&tag);
    if (!closed) open_.push_back(name);
  }

  void CheckAttribute(absl::string_view* tag) {
    if (!absl::ConsumePrefix(tag, " ")) {
      problem_ = absl::StrCat("no space before an attribute: ", *tag);
      return;
    }
    size_t size = 0;
    while (size < tag->size() && (absl::ascii_isalnum((*tag)[size]) || (*tag)[size] == '-')) ++size;
    const std::string name(tag->substr(0, size));
    tag->remove_prefix(size);
    const size_t end = tag->find('"', 2);
    if (name.empty() || !absl::StartsWith(*tag, "=\"") || end == absl::string_view::npos) {
      problem_ = absl::StrCat("attribute ", name, *tag);
      return;
    }
    if (absl::StartsWith(name, "on") || name == "href" || name == "src") {
      problem_ = absl::StrCat("attribute ", name);
    }
    const absl::string_view value = tag->substr(2, end - 2);
    if (value.find('<') != absl::string_view::npos) problem_ = "markup in an attribute";
    CheckCharacters(value);
    tag->remove_prefix(end + 1);
  }

  void CheckCharacters(absl::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (absl::ascii_iscntrl(c) && c != '\n') problem_ = "a control character";
      if (c == '>') problem_ = absl::StrCat("stray markup: ", text);
      if (c == '&') CheckEntity(text.substr(i));
    }
  }

  void CheckEntity(absl::string_view text) {
    for (absl::string_view entity :
         {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#8211;", "&#177;"}) {
      if (absl::StartsWith(text, entity)) return;
    }
    problem_ = absl::StrCat("entity ", text.substr(0, 10));
  }

  absl::string_view rest_;
  std::vector<std::string> open_;
  std::string problem_;
};

std::string ProblemsOf(const std::string& page) { return MarkupChecker(page).Check(); }

TEST(MarkupCheckerTest, FindsWhatIsWrong) {
  EXPECT_EQ(ProblemsOf("<p class=\"a\">x &amp; y<br/></p>"), "");
  EXPECT_EQ(ProblemsOf("<p><b></p>"), "closes p");
  EXPECT_EQ(ProblemsOf("<p>"), "open: p");
  EXPECT_EQ(ProblemsOf("<p title=x></p>"), "attribute title=x");
  EXPECT_EQ(ProblemsOf("<script></script>"), "element script");
  EXPECT_EQ(ProblemsOf("<p onclick=\"x\"></p>"), "attribute onclick");
  EXPECT_EQ(ProblemsOf("<p>a > b</p>"), "stray markup: a > b");
  EXPECT_EQ(ProblemsOf("<p>&nbsp;</p>"), "entity &nbsp;");
  EXPECT_EQ(ProblemsOf("<p>\x1B</p>"), "a control character");
}

TEST(CombineReportHtmlTest, TellsWhatWasDone) {
  const std::string page = CombineReportHtml(TwoNodes());
  EXPECT_EQ(ProblemsOf(page), "");
  EXPECT_THAT(page,
              HasSubstr("<div class=\"verdict good\" role=\"status\"><strong>The nodes are on "
                        "one clock: 48 collectives checked, none impossible.</strong>"
                        "<span>Violations before: 37, after: 0.</span></div>"));
  EXPECT_THAT(page, HasSubstr("<dt>Clocks found by</dt><dd>collectives <span class=\"soft\">(asked "
                              "for: auto)</span></dd>"));
  EXPECT_THAT(page, HasSubstr("<dt>Reference</dt><dd>node 0</dd>"));
  EXPECT_THAT(page, HasSubstr("<dt>Executions matched by</dt><dd>run_id</dd>"));
  EXPECT_THAT(page, HasSubstr("<dd>50 <span class=\"soft\">(48 checked)</span></dd>"));
  EXPECT_THAT(
      page,
      HasSubstr("<tr><th scope=\"row\" class=\"n\">1</th><td>host-b</td>"
                "<td>host-b.xplane.pb</td><td>4</td>"
                "<td>collectives</td><td class=\"n\"><span title=\"-4,567,890 ns at 2026-11-15 "
                "00:10:51.406 UTC\">-4.57 ms &#177; 12.3 µs</span></td><td class=\"n\">23.5 µs</td>"
                "<td class=\"n\">98.8 µs</td><td class=\"n\">+3.28 ppm &#177; 0.10</td>"
                "<td class=\"n\">+4.57 ms</td></tr>"));
  EXPECT_THAT(page,
              HasSubstr("<tr><th scope=\"row\" class=\"n\">1</th><td class=\"n\">7</td><td "
                        "class=\"n\">24</td><td class=\"path\">run/host-b.xplane.pb</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<td>0\u20113</td><td>none (reference)</td>"));
  EXPECT_THAT(page,
              HasSubstr("<tr><th scope=\"row\">all-reduce</th><td class=\"n\">30</td><td "
                        "class=\"n\">16.0 MiB</td><td class=\"n\">12.5 ms</td><td class=\"n\">37.5 "
                        "ms</td><td class=\"n\">25 %</td></tr>"));
  EXPECT_THAT(
      page,
      HasSubstr("<tr><th scope=\"row\" class=\"n\">4</th><td class=\"n\">1 (host-b)</td><td "
                "class=\"n\">12</td><td class=\"n\">25 %</td><td class=\"n\">9.75 ms"
                "</td><td class=\"n\">20.0 ms</td><td class=\"n\">10 %</td>"
                "<td class=\"track\"><span class=\"bar wait\" style=\"width:10.0%\">"
                "</span><span class=\"bar transfer\" style=\"width:15.0%\"></span></td></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><th scope=\"row\">combined</th><td class=\"n\">1.50 KiB</td><td "
                              "class=\"path\">out/combined.xplane.pb</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<li>node 1: file order decided its rank</li>"));
}

// Profiles that began one after the other: the banner says what they have in common.
TEST(CombineReportHtmlTest, StaggeredProfilesAreSaidToBe) {
  CombineReport report = TwoNodes();
  EXPECT_THAT(CombineReportHtml(report), Not(HasSubstr("on all ranks")));
  report.set_steps(6);
  report.set_steps_on_all_ranks(6);
  EXPECT_THAT(CombineReportHtml(report), HasSubstr("(6 on all ranks)"));
  EXPECT_THAT(CombineReportHtml(report), Not(HasSubstr("have only")));
  report.set_steps_on_all_ranks(4);
  report.mutable_happens_before()->set_incomplete(12);
  EXPECT_THAT(
      CombineReportHtml(report),
      HasSubstr("<span>Violations before: 37, after: 0. All ranks have only 4 of the 6 steps: "
                "the profiles began or ended at different times. Ranks are missing in 12 of 50 "
                "collectives, which are not counted in what follows.</span></div>"));
}

TEST(CombineReportHtmlTest, WhatIsNotKnownIsNotZero) {
  CombineReport report;
  CombinedNode* node = report.add_nodes();
  node->set_method("unreachable");
  const std::string page = CombineReportHtml(report);
  EXPECT_EQ(ProblemsOf(page), "");
  const std::string unknown =
      "<span class=\"unknown\" title=\"not known\" aria-label=\"not known\">&#8211;</span>";
  // Host, file, ranks, offset, both uncertainties, drift; the trace. What is counted may be 0.
  EXPECT_THAT(page,
              HasSubstr(absl::StrCat(
                  "<th scope=\"row\" class=\"n\">0</th><td>", unknown, "</td><td>", unknown,
                  "</td><td>", unknown, "</td><td>unreachable (reference)</td><td class=\"n\">",
                  unknown, "</td><td class=\"n\">", unknown, "</td><td class=\"n\">", unknown,
                  "</td><td class=\"n\">", unknown, "</td><td class=\"n\">0 ns</td></tr>")));
  EXPECT_THAT(page, HasSubstr(absl::StrCat(
                        "<th scope=\"row\" class=\"n\">0</th><td class=\"n\">0</td><td class=\"n\">"
                        "0</td><td class=\"path\">",
                        unknown, "</td>")));
  EXPECT_THAT(page, HasSubstr(">offset not known</text>"));
  EXPECT_THAT(page, Not(HasSubstr("<circle")));
  EXPECT_THAT(page, HasSubstr("verdict open"));
  EXPECT_THAT(page, HasSubstr("Nothing could be checked."));
  EXPECT_THAT(page, HasSubstr("No collective was found"));
}

TEST(CombineReportHtmlTest, AnEmptyReportIsAPage) {
  const std::string page = CombineReportHtml(CombineReport());
  EXPECT_EQ(ProblemsOf(page), "");
  EXPECT_THAT(page, HasSubstr("The report names no node."));
}

TEST(CombineReportHtmlTest, TheVerdictFollowsTheChecks) {
  CombineReport report = TwoNodes();
  report.mutable_happens_before()->set_violations_after(1);
  EXPECT_THAT(CombineReportHtml(report),
              HasSubstr("verdict bad\" role=\"status\"><strong>1 of 48 collectives cannot have "
                        "happened as shown.</strong><span>Violations before: 37, after: 1."));
  report.mutable_happens_before()->set_violations_after(0);
  report.mutable_happens_before()->set_violations_before(0);
  report.mutable_happens_before()->set_checked(1);
  EXPECT_THAT(
      CombineReportHtml(report),
      HasSubstr("The clocks agreed from the start: 1 collective checked, none impossible."));
  report.mutable_happens_before()->set_checked(0);
  EXPECT_THAT(CombineReportHtml(report), HasSubstr("verdict open"));
}

// Whatever a trace holds, the page stays a page.
TEST(CombineReportHtmlTest, HostileTextsAreHarmless) {
  for (const std::string& text :
       {std::string("<script>alert(1)</script>"), std::string("\"><img src=x onerror=alert(1)>"),
        std::string("' onmouseover='x"), std::string("</td></table><style>*{display:none}"),
        std::string("\0\x1B]0;title\x07", 11), std::string("\xFF\xFE\xC0\x80"),
        std::string("&lt;&#0;&bogus;"), std::string("]]><!--"), std::string("\u202Egnp.exe"),
        std::string(100000, '<')}) {
    CombineReport report = TwoNodes();
    report.set_method(text);
    report.set_method_asked(text);
    report.set_run_method(text);
    report.mutable_happens_before()->set_checked_on(text);
    for (CombinedNode& node : *report.mutable_nodes()) {
      node.set_hostname(text);
      node.set_trace(text);
      node.set_method(text);
    }
    report.mutable_kinds(0)->set_kind(text);
    report.mutable_outputs(0)->set_kind(text);
    report.mutable_outputs(0)->set_path(text);
    report.add_notes(text);
    const std::string page = CombineReportHtml(report);
    EXPECT_EQ(ProblemsOf(page), "") << text.substr(0, 50);
    EXPECT_THAT(page, Not(HasSubstr("<script")));
    EXPECT_LT(page.size(), 100000u);
  }
}

TEST(CombineReportHtmlTest, AbsurdNumbersAreShownSomehow) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CombineReport report = TwoNodes();
  CombinedNode* node = report.mutable_nodes(1);
  node->set_offset_at_ns(kMin);
  node->set_offset_ns(kMin);
  node->set_uncertainty_ns(kMax);
  node->set_drift_ppm(kNan);
  node->set_max_correction_ns(kMin);
  report.mutable_kinds(0)->set_wait_ms(kNan);
  report.mutable_kinds(0)->set_transfer_ms(-kInfinity);
  report.mutable_ranks(0)->set_caused_wait_ms(kInfinity);
  report.mutable_ranks(0)->set_collectives(0);
  const std::string page = CombineReportHtml(report);
  EXPECT_EQ(ProblemsOf(page), "");
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("\"inf")));
  EXPECT_THAT(page, Not(HasSubstr("-inf")));
}

TEST(CombineReportHtmlTest, ManyNodesAndRanksHaveTheirTables) {
  CombineReport report = TwoNodes();
  const int kNodes = static_cast<int>(kMaxChartRows) + 2;
  for (int i = report.nodes_size(); i < kNodes; ++i) report.add_nodes()->set_node_id(i);
  for (int i = 1; i < 18; ++i) report.add_ranks()->set_rank(100 + i);
  const std::string page = CombineReportHtml(report);
  EXPECT_EQ(ProblemsOf(page), "");
  EXPECT_THAT(page, HasSubstr("The picture shows the first 128 of 130 nodes"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\" class=\"n\">129</th>"));
  EXPECT_THAT(page, Not(HasSubstr(">node 129</text>")));
  EXPECT_THAT(page, HasSubstr("<details><summary>2 more ranks</summary>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\" class=\"n\">117</th>"));
}

// Two clocks 10 us apart, the second known to 1 us: the scale runs from -1.66 us to 12.66 us (6 %
// more than from 0 to 11 us on each side) over x = 170 to 560.
TEST(CombineChartsTest, OffsetsAreDrawnToScale) {
  CombineReport report;
  report.add_nodes()->set_offset_ns(0);
  CombinedNode* node = report.add_nodes();
  node->set_node_id(1);
  node->set_offset_ns(10000);
  node->set_uncertainty_ns(1000);
  node->set_certified_uncertainty_ns(2000);
  const std::string svg = OffsetsChart(report);
  EXPECT_EQ(ProblemsOf(svg), "");
  // -0.66 .. 11.66 us: 0 is at 170 + 390 * 0.66 / 12.32, 10 us at 170 + 390 * 10.66 / 12.32.
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"190.9\" cy=\"39.0\" r=\"3.5\" class=\"offset\"/>"));
  EXPECT_THAT(svg, HasSubstr("<circle cx=\"507.5\" cy=\"61.0\" r=\"3.5\" class=\"offset\"/>"));
  EXPECT_THAT(svg, HasSubstr("<line x1=\"475.8\" y1=\"61.0\" x2=\"539.1\" y2=\"61.0\" "
                             "class=\"interval\"/>"));
  // The longest of 2 us takes 1 / 1.05 of the 260 from x = 610.
  EXPECT_THAT(svg, HasSubstr("<rect x=\"610.0\" y=\"55.0\" width=\"247.6\" height=\"12.0\" "
                             "class=\"certified\"/>"));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"610.0\" y=\"57.5\" width=\"123.8\" height=\"7.0\" "
                             "class=\"offset\"/>"));
  EXPECT_THAT(svg, HasSubstr(">+5 µs</text>"));
  EXPECT_THAT(svg, HasSubstr("Node 0: 0 ns. Node 1: +10.0 µs give or take 1.00 µs. "));
}

TEST(CombineChartsTest, BarsAreStacked) {
  CombineReport report;
  CombinedKind* kind = report.add_kinds();
  kind->set_kind("all-gather");
  kind->set_wait_ms(25);
  kind->set_transfer_ms(75);
  const std::string svg = KindsChart(report);
  EXPECT_EQ(ProblemsOf(svg), "");
  // 100 ms take 1 / 1.02 of the 700 from x = 170.
  EXPECT_THAT(svg, HasSubstr("<rect x=\"170.0\" y=\"32.0\" width=\"171.6\" height=\"14.0\" "
                             "class=\"wait\"/>\n<rect x=\"341.6\" y=\"32.0\" width=\"514.7\" "
                             "height=\"14.0\" class=\"transfer\"/>"));
  EXPECT_THAT(svg, HasSubstr("all-gather: wait 25.0 ms, transfer 75.0 ms. "));
}

}  // namespace
}  // namespace meridian
