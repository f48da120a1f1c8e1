#include "critical_path/what_if/what_if_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "critical_path/path_graph.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr TextTable::Align kRight = TextTable::Align::kRight;
constexpr size_t kEditCharacters = 90;
constexpr size_t kNameCharacters = 40;

std::string MicrosText(double us) { return absl::StrFormat("%.3f", us); }
std::string ChangeText(double us) { return absl::StrFormat("%+.3f", us); }

std::string EditTable(const WhatIfReport& what_if) {
  TextTable table({{"edit"}, {"matched", kRight}});
  for (const WhatIfEditReport& edit : what_if.edits()) {
    table.AddRow({FirstCharacters(edit.text(), kEditCharacters), WithThousands(edit.matched())});
  }
  return table.ToString();
}

std::string ComparisonTable(const WhatIfReport& what_if) {
  TextTable table(
      {{"spent on"}, {"before us", kRight}, {"after us", kRight}, {"change us", kRight}});
  for (int i = 0; i < kNumBoundBy; ++i) {
    const std::string name(BoundByName(static_cast<BoundBy>(i)));
    if (name.empty()) continue;
    const double before = what_if.breakdown_before().at(name);
    const double after = what_if.breakdown_after().at(name);
    if (before == 0 && after == 0) continue;
    table.AddRow({name, MicrosText(before), MicrosText(after), ChangeText(after - before)});
  }
  table.AddRow({"length", MicrosText(what_if.length_us_before()),
                MicrosText(what_if.length_us_after()),
                ChangeText(what_if.length_us_after() - what_if.length_us_before())});
  return table.ToString();
}

std::string SuggestionTable(const WhatIfReport& what_if) {
  if (what_if.suggestions().empty()) {
    return absl::StrCat("no other order of a stream's work makes it shorter (",
                        WithThousands(what_if.suggestions_tried()), " of ",
                        WithThousands(what_if.suggestions_considered()), " tried)\n");
  }
  TextTable table({{"gain us", kRight}, {"move"}, {"events", kRight}, {"before"}, {"as an edit"}});
  for (const ReorderReport& order : what_if.suggestions()) {
    table.AddRow({MicrosText(order.gain_us()), FirstCharacters(order.moved(), kNameCharacters),
                  WithThousands(order.moved_events()),
                  FirstCharacters(order.before(), kNameCharacters),
                  FirstCharacters(order.edits(), kEditCharacters)});
  }
  return absl::StrCat("shorter with another order of a stream's work, if its data allow (",
                      WithThousands(what_if.suggestions_tried()), " of ",
                      WithThousands(what_if.suggestions_considered()), " tried):\n",
                      table.ToString());
}

}  // namespace

void AddWhatIf(absl::Span<const WhatIfEdit> edits, const WhatIfResult& result,
               const PathReport& measured, PathReport* report) {
  WhatIfReport* what_if = report->mutable_what_if();
  for (size_t i = 0; i < edits.size(); ++i) {
    WhatIfEditReport* edit = what_if->add_edits();
    edit->set_text(edits[i].text);
    edit->set_matched(result.matched[i]);
  }
  what_if->set_length_us_before(measured.length_us());
  what_if->set_length_us_after(report->length_us());
  *what_if->mutable_breakdown_before() = measured.breakdown();
  *what_if->mutable_breakdown_after() = report->breakdown();
  what_if->set_changed_events(result.changed_events);
}

void AddSuggestions(const Schedule& schedule, const ReorderSuggestions& found, PathReport* report) {
  WhatIfReport* what_if = report->mutable_what_if();
  what_if->set_suggestions_considered(found.candidates);
  what_if->set_suggestions_tried(found.tried);
  for (const ReorderSuggestion& suggestion : found.suggestions) {
    ReorderReport* order = what_if->add_suggestions();
    order->set_edits(suggestion.edits);
    order->set_moved(std::string(schedule.graph.EventName(suggestion.moved.front())));
    order->set_before(std::string(schedule.graph.EventName(suggestion.target)));
    order->set_moved_events(static_cast<int64_t>(suggestion.moved.size()));
    order->set_gain_us(static_cast<double>(suggestion.gain_ps) / 1e6);
  }
}

std::string FormatWhatIf(const PathReport& report) {
  if (!report.has_what_if()) return "";
  const WhatIfReport& what_if = report.what_if();
  std::string out;
  if (!what_if.edits().empty()) {
    const double before = what_if.length_us_before(), after = what_if.length_us_after();
    absl::StrAppendFormat(
        &out, "\nwhat if: %.3f us instead of %.3f us (%+.2f %%); events changed: %s\n\n", after,
        before, before == 0 ? 0 : 100 * (after - before) / before,
        WithThousands(what_if.changed_events()));
    absl::StrAppend(&out, EditTable(what_if), "\n", ComparisonTable(what_if));
  }
  if (what_if.suggestions_considered() > 0 || what_if.edits().empty()) {
    absl::StrAppend(&out, "\n", SuggestionTable(what_if));
  }
  return out;
}

}  // namespace meridian
