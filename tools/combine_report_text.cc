#include "tools/combine_report_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/quantities.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// What is not known is shown as such.
constexpr char kUnknown[] = "?";

std::string Microseconds(int64_t ns) {
  return absl::StrFormat("%.3f", static_cast<double>(ns) * 1e-3);
}

std::string Drift(const CombinedNode& node) {
  if (!node.has_drift_ppm()) return kUnknown;
  if (!node.has_drift_uncertainty_ppm()) return absl::StrFormat("%.3f", node.drift_ppm());
  return absl::StrFormat("%.3f +- %.3f", node.drift_ppm(), node.drift_uncertainty_ppm());
}

std::string NodesText(const CombineReport& report) {
  TextTable table({">node", "host", "ranks", "method", ">offset us", ">+- us", ">certified us",
                   ">drift ppm", ">events", ">moved by us"});
  for (const CombinedNode& node : report.nodes()) {
    table.AddRow(
        {absl::StrCat(node.node_id()), FirstCharacters(node.hostname(), 24),
         FirstCharacters(RangesText({node.ranks().begin(), node.ranks().end()}), 16), node.method(),
         node.has_offset_ns() ? Microseconds(node.offset_ns()) : kUnknown,
         node.has_uncertainty_ns() ? Microseconds(node.uncertainty_ns()) : kUnknown,
         node.has_certified_uncertainty_ns() ? Microseconds(node.certified_uncertainty_ns())
                                             : kUnknown,
         Drift(node), WithThousands(node.events()), Microseconds(node.max_correction_ns())});
  }
  return table.ToString();
}

std::string RanksText(const CombineReport& report) {
  TextTable table(
      {">rank", ">node", ">last to start", ">of", ">others waited ms", ">waited itself"});
  constexpr int kMaxRanks = 8;
  for (int i = 0; i < report.ranks_size() && i < kMaxRanks; ++i) {
    const CombinedRank& rank = report.ranks(i);
    table.AddRow({absl::StrCat(rank.rank()), absl::StrCat(rank.node_id()),
                  WithThousands(rank.last()), WithThousands(rank.collectives()),
                  absl::StrFormat("%.3f", rank.caused_wait_ms()),
                  report.wall_ms() > 0
                      ? absl::StrFormat("%.1f %%", 100 * rank.waited_ms() / report.wall_ms())
                      : kUnknown});
  }
  std::string text = table.ToString();
  if (report.ranks_size() > kMaxRanks) {
    absl::StrAppend(&text, "and ", report.ranks_size() - kMaxRanks, " more, who caused less\n");
  }
  return text;
}

}  // namespace

std::string FormatCombineReport(const CombineReport& report) {
  const HappensBeforeSummary& check = report.happens_before();
  std::string text =
      absl::StrCat(report.nodes_size(), " node(s) on the clock of node ", report.reference_node(),
                   ", method ", report.method(), "\n\n", NodesText(report), "\n");
  absl::StrAppend(&text, "happens-before: ", WithThousands(check.violations_before()),
                  " violations before, ", WithThousands(check.violations_after()), " after, in ",
                  WithThousands(check.checked()), " collectives checked (", check.checked_on(),
                  ")");
  if (check.incomplete() > 0) {
    absl::StrAppend(&text, "; ", WithThousands(check.incomplete()), " of ",
                    WithThousands(check.instances()), " lack some of their ranks");
  }
  if (report.steps_on_all_ranks() < report.steps()) {
    absl::StrAppend(&text, "; ", report.steps_on_all_ranks(), " of ", report.steps(),
                    " steps are on all ranks");
  }
  absl::StrAppend(&text, "\n");
  if (report.ranks_size() > 1) absl::StrAppend(&text, "\n", RanksText(report));
  if (report.outputs_size() > 0) absl::StrAppend(&text, "\n");
  for (const CombinedOutput& output : report.outputs()) {
    absl::StrAppend(&text, output.kind(), ": ", Printable(output.path()), " (",
                    WithThousands(output.bytes()), " bytes)\n");
  }
  if (report.notes_size() > 0) absl::StrAppend(&text, "\n");
  for (const std::string& note : report.notes()) {
    absl::StrAppend(&text, "note: ", Printable(note), "\n");
  }
  return text;
}

absl::Status WriteReport(absl::string_view kind, const std::string& path,
                         const std::string& contents, OutputFiles* outputs, CombineReport* report) {
  RETURN_IF_ERROR(outputs->WriteText(std::string(kind), path, contents));
  CombinedOutput* output = report->add_outputs();
  output->set_kind(std::string(kind));
  output->set_path(path);
  output->set_bytes(static_cast<int64_t>(contents.size()));
  return absl::OkStatus();
}

}  // namespace meridian
