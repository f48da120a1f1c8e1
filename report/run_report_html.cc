#include "report/run_report_html.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "report/html_text.h"
#include "report/page_library.h"
#include "report/page_script.h"
#include "report/page_style.h"
#include "report/page_template.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {
namespace {

// Inside of strings, JSON may write these as escapes; outside they do not occur. So no text of a trace
// ends the element that holds the data.
std::string ScriptSafe(absl::string_view json) {
  return absl::StrReplaceAll(json, {{"<", "\\u003c"},
                                    {">", "\\u003e"},
                                    {"&", "\\u0026"},
                                    {"\u2028", "\\u2028"},
                                    {"\u2029", "\\u2029"}});
}

}  // namespace

std::string RunReportHtml(const RunReport& report) {
  const std::vector<std::pair<absl::string_view, std::string>> parts = {
      {"style", std::string(kPageStyle)},
      {"library", std::string(kPageLibrary)},
      {"script", std::string(kPageScript)},
      {"data", ScriptSafe(ReportToCompactJson(report))},
      {"title", HtmlEscape(report.title())},
      {"script_policy", absl::StrCat(kPageLibraryHash, " ", kPageScriptHash)}};
  // Cut at the marks of the template, so that marks in what is filled in are text.
  std::string page;
  absl::string_view rest = kPageTemplate;
  while (!rest.empty()) {
    const size_t open = rest.find("{{"), close = rest.find("}}", open);
    if (open == absl::string_view::npos || close == absl::string_view::npos) break;
    absl::StrAppend(&page, rest.substr(0, open));
    const absl::string_view name = rest.substr(open + 2, close - open - 2);
    for (const auto& [part, text] : parts) {
      if (part == name) absl::StrAppend(&page, text);
    }
    rest.remove_prefix(close + 2);
  }
  absl::StrAppend(&page, rest);
  return page;
}

}  // namespace meridian
