#include "report/run_report_html.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "report/run_report.pb.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RunReportHtmlTest, ThePageIsWhole) {
  RunReport report;
  report.set_title("a <run>");
  const std::string page = RunReportHtml(report);
  EXPECT_THAT(page, HasSubstr(R"("title":"a \u003crun\u003e")"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("script-src 'sha256-"));
  EXPECT_THAT(page, HasSubstr("Chart.js v"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

// The page reads fields by this; a field that is added to a message is in it.
TEST(RunReportHtmlTest, TheSchemaIsThatOfTheMessages) {
  const std::string page = RunReportHtml(RunReport());
  EXPECT_THAT(page, HasSubstr(R"("ReportedStep":{"step":"number","start_ms":"number",)"));
  EXPECT_THAT(page, HasSubstr(R"("combine":"CombineReport","steps":"ReportedStep[]")"));
  EXPECT_THAT(page, HasSubstr(R"("timeline":"Timeline?")"));
  EXPECT_THAT(page, HasSubstr(R"("PathKind":{"kind":"text","label":"text","role":"text"})"));
  EXPECT_THAT(page, HasSubstr(R"("matched_by_order":"flag")"));
}

// The words of docs/glossary.md, for tooltips.
TEST(RunReportHtmlTest, ThePageBringsTheGlossary) {
  const std::string page = RunReportHtml(RunReport());
  EXPECT_THAT(page, HasSubstr(R"("straggler":"A rank that is late by its own doing)"));
  EXPECT_THAT(page, Not(HasSubstr(R"("word":"meaning")")));
}

// What a trace calls things never ends the data, whatever it is.
TEST(RunReportHtmlTest, NamesStayData) {
  RunReport report;
  report.add_notes("</script><img src=x onerror=alert(1)> & \u2028 {{script}}");
  const std::string page = RunReportHtml(report);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script\\u003e\\u003cimg src=x onerror=alert(1)\\u003e "
                              "\\u0026 \\u2028 {{script}}"));
}

}  // namespace
}  // namespace meridian
