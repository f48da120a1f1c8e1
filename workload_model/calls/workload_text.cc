#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/repeated_field.h"
#include "workload_model/calls/evaluation.h"
#include "workload_model/calls/workload_file.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {
// Tables of transitions show so many, those with the most time.
constexpr int kShown = 20;
// Smaller parts of a total are noise.
constexpr double kNamedShare = 0.01;

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }
std::string Ms(double us) { return absl::StrFormat("%.3f", us / 1000); }

std::string Notes(const google::protobuf::RepeatedPtrField<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) absl::StrAppend(&text, "note: ", Printable(note), "\n");
  return text;
}

std::string MoreText(int rows) {
  return rows > kShown ? absl::StrCat("and ", rows - kShown, " more\n") : "";
}

// What was fitted, where and how well.
std::string FittedText(const WorkloadModel& model) {
  std::string text = absl::StrCat(model.models_size(), " transitions in ", model.cells(), " cells");
  for (const FittedKind& kind : model.kinds()) {
    absl::StrAppend(
        &text, &kind == &model.kinds(0) ? ": " : "; ",
        model.kinds_size() > 1
            ? absl::StrCat(KindText(KindOf(kind)), ", ranks '", kind.rank_class(), "', ")
            : "",
        PlainNumber(kind.least_nodes()), " to ", NodesText(kind.most_nodes()), ", sizes ",
        PlainNumber(kind.least_size()), " to ", PlainNumber(kind.most_size()));
  }
  absl::StrAppend(&text, "\n");
  TextTable table({">from", ">to", ">cells", "model", ">in sample", ">left out"});
  for (const CallModel& call : model.models()) {
    std::string form = call.value().type();
    for (const std::string& term : call.value().terms()) absl::StrAppend(&form, " ", term);
    table.AddRow({absl::StrCat(call.source()), absl::StrCat(call.destination()),
                  absl::StrCat(call.cells()), form, Percent(call.in_sample_error()),
                  call.has_left_out_error() ? Percent(call.left_out_error()) : "?"});
  }
  if (model.models_size() > 0) absl::StrAppend(&text, "\n", table.ToString(), "\n");
  const WorkloadErrors& errors = model.errors();
  absl::StrAppend(
      &text, "total time is off by ", Percent(errors.in_sample()), " in the fitted cells",
      errors.has_interpolation() ? ", " + Percent(errors.interpolation()) + " between them" : "",
      errors.has_extrapolation() ? ", " + Percent(errors.extrapolation()) + " beyond them" : "",
      "\n");
  return text;
}

// How one class of ranks goes on, and what of it cannot be generated.
std::string FlowText(const ControlFlow& flow) {
  std::string text = absl::StrCat("control flow of ranks '", flow.rank_class(),
                                  "': ", flow.branches_size(), " callsites\n");
  for (const CallsiteModel& callsite : flow.callsites()) {
    if (callsite.unexplained().empty()) continue;
    absl::StrAppend(&text, "note: callsite ", callsite.callsite(), " (",
                    Printable(callsite.operation()),
                    ") cannot be generated: ", Printable(callsite.unexplained()), "\n");
  }
  return text;
}

// The parts of the total; those of less than a hundredth go unnamed.
std::string IterationsText(const WorkloadEvaluation& evaluation) {
  const double iterations = std::round(evaluation.iterations());
  std::string text =
      absl::StrCat(PlainNumber(iterations), iterations == 1 ? " iteration of " : " iterations of ");
  absl::StrAppend(&text, Ms(evaluation.iteration_us()), " ms");
  const double first_times = evaluation.total_us() - evaluation.before_us() -
                             evaluation.iterations() * evaluation.iteration_us();
  const double least = kNamedShare * evaluation.total_us();
  if (first_times >= least) {
    absl::StrAppend(&text, ", ", Ms(first_times), " ms more for what is done the first time");
  }
  if (evaluation.before_us() >= least) {
    absl::StrAppend(&text, ", ", Ms(evaluation.before_us()), " ms before them");
  }
  return absl::StrCat(text, "\n");
}

std::string TransitionsText(const WorkloadEvaluation& evaluation) {
  std::vector<EvaluatedTransition> order(evaluation.transitions().begin(),
                                         evaluation.transitions().end());
  if (order.empty()) return "";
  const auto time = [](const EvaluatedTransition& t) { return t.count() * t.us(); };
  absl::c_stable_sort(order, [&](const auto& a, const auto& b) { return time(a) > time(b); });
  // Each class of ranks has times of its own.
  std::map<std::string, double> totals;
  for (const EvaluatedTransition& t : order) totals[t.rank_class()] += time(t);
  const bool has_classes = totals.size() > 1;
  std::vector<std::string> columns = {">from", ">to", ">count", ">us", ">share", "model"};
  if (has_classes) columns.push_back("ranks");
  TextTable table(columns);
  const int rows = evaluation.transitions_size();
  order.resize(static_cast<size_t>(std::min(rows, kShown)));
  for (const EvaluatedTransition& t : order) {
    const double total = totals[t.rank_class()];
    std::vector<std::string> row = {absl::StrCat(t.source()),
                                    absl::StrCat(t.destination()),
                                    absl::StrFormat("%.1f", t.count()),
                                    absl::StrFormat("%.3f", t.us()),
                                    Percent(total > 0 ? time(t) / total : 0),
                                    t.type()};
    if (has_classes) row.push_back(t.rank_class());
    table.AddRow(row);
  }
  return absl::StrCat("\n", table.ToString(), MoreText(rows));
}

std::string MessagesText(const WorkloadEvaluation& evaluation) {
  TextTable messages({">callsite", ">bytes", "model"});
  std::set<int64_t> constant;
  bool has_others = false;
  for (const EvaluatedMessage& message : evaluation.messages()) {
    if (message.type() == kConstant) {
      constant.insert(message.callsite());
      continue;
    }
    has_others = true;
    messages.AddRow({absl::StrCat(message.callsite()), absl::StrFormat("%.1f", message.bytes()),
                     message.type()});
  }
  std::string text;
  if (has_others) absl::StrAppend(&text, "\n", messages.ToString());
  if (!constant.empty()) {
    absl::StrAppend(
        &text, "\nmessages of ", constant.size(),
        constant.size() == 1 ? " callsite are constant\n" : " callsites are constant\n");
  }
  return text;
}

}  // namespace

std::string FormatWorkloadModel(const WorkloadModel& model) {
  std::string text = FittedText(model);
  if (model.messages_size() > 0) {
    const auto varying = absl::c_count_if(
        model.messages(), [](const CallModel& call) { return call.value().type() != kConstant; });
    absl::StrAppend(&text, "messages of ", model.messages_size(), " callsites, of which ", varying,
                    " vary\n");
  }
  for (const ControlFlow& flow : model.flows()) text += FlowText(flow);
  return text + Notes(model.notes());
}

std::string FormatWorkloadEvaluation(const WorkloadEvaluation& evaluation) {
  std::string text =
      absl::StrCat(NodesText(evaluation.nodes()), ", size ", PlainNumber(evaluation.size()));
  if (evaluation.transitions_size() > 0) {
    absl::StrAppend(&text, ": ", Ms(evaluation.total_us()), " ms");
  }
  // Files of the motif have no interval.
  if (evaluation.low_us() < evaluation.high_us()) {
    absl::StrAppend(&text, "; nine of ten between ", Ms(evaluation.low_us()), " and ",
                    Ms(evaluation.high_us()), " ms");
  }
  absl::StrAppend(&text, "\n");
  if (evaluation.has_iterations()) text += IterationsText(evaluation);
  return absl::StrCat(text, TransitionsText(evaluation), MessagesText(evaluation),
                      Notes(evaluation.notes()));
}

std::string FormatWorkloadComparison(const WorkloadComparison& comparison) {
  TextTable cells({">nodes", ">size", "ranks", ">measured ms", ">predicted ms", ">nine of ten ms",
                   ">error", ""});
  for (const ComparedCell& cell : comparison.cells()) {
    cells.AddRow({absl::StrFormat("%.15g", cell.nodes()), absl::StrFormat("%.15g", cell.size()),
                  cell.rank_class(), Ms(cell.measured_us()), Ms(cell.predicted_us()),
                  absl::StrCat(Ms(cell.low_us()), " to ", Ms(cell.high_us())),
                  absl::StrFormat("%+.1f %%", 100 * cell.error()),
                  cell.extrapolated() ? "extrapolated" : ""});
  }
  TextTable transitions({">from", ">to", ">measured ms", ">predicted ms"});
  for (int i = 0; i < std::min(comparison.transitions_size(), kShown); ++i) {
    const ComparedTransition& t = comparison.transitions(i);
    transitions.AddRow({absl::StrCat(t.source()), absl::StrCat(t.destination()),
                        Ms(t.measured_us()), Ms(t.predicted_us())});
  }
  return absl::StrCat(
      cells.ToString(), "\n", transitions.ToString(), MoreText(comparison.transitions_size()),
      absl::StrFormat("\ntotals are off by %.1f %% in the mean; %d of %d lie in "
                      "their intervals\n",
                      100 * comparison.mean_error(), comparison.inside(), comparison.cells_size()));
}

}  // namespace meridian
