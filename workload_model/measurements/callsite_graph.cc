#include "workload_model/measurements/callsite_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "xla_profiler/base/json/report_json.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr double kWidestEdge = 8;

RobustStatistics StatisticsOf(const std::vector<double>& values) {
  RobustStatistics statistics;
  const double median = Median(values);
  std::vector<double> distances;
  for (double value : values) distances.push_back(std::abs(value - median));
  statistics.set_median(median);
  statistics.set_deviation(kDeviationsPerMedianDistance * Median(distances));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  statistics.set_least(*least);
  statistics.set_most(*most);
  return statistics;
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(Printable(text), {{"\\", "\\\\"}, {"\"", "\\\""}}),
                      "\"");
}

}  // namespace

CallsiteGraph MakeCallsiteGraph(const std::vector<RunMeasurements>& runs) {
  struct Site {
    std::string operation;
    int64_t calls = 0;
    std::vector<double> bytes;
    std::set<int64_t> communicators;
  };
  std::map<int64_t, Site> sites;
  std::map<Transition, std::vector<double>> times;
  std::map<std::vector<int64_t>, int64_t> communicators;
  CallsiteGraph graph;
  for (const RunMeasurements& run : runs) {
    if (run.calls.empty()) continue;
    graph.set_runs(graph.runs() + 1);
    for (const TracedCall& call : run.calls) {
      Site& site = sites[call.destination];
      if (site.operation.empty()) site.operation = call.operation;
      ++site.calls;
      if (call.bytes.has_value()) site.bytes.push_back(*call.bytes);
      if (!call.members.empty()) {
        const auto [known, is_new] =
            communicators.insert({call.members, static_cast<int64_t>(communicators.size())});
        if (is_new)
          graph.add_communicators()->mutable_ranks()->Add(call.members.begin(), call.members.end());
        site.communicators.insert(known->second);
      }
      if (call.source != 0) {
        times[{call.source, call.destination}].push_back(std::max(0.0, call.us));
      }
    }
  }
  for (const auto& [callsite, site] : sites) {
    MeasuredCallsite& node = *graph.add_callsites();
    node.set_callsite(callsite);
    node.set_operation(site.operation);
    node.set_calls(site.calls);
    if (!site.bytes.empty()) *node.mutable_bytes() = StatisticsOf(site.bytes);
    node.mutable_communicators()->Add(site.communicators.begin(), site.communicators.end());
  }
  for (const auto& [transition, values] : times) {
    CallsiteTransition& edge = *graph.add_transitions();
    edge.set_source(transition.first);
    edge.set_destination(transition.second);
    edge.set_count(static_cast<int64_t>(values.size()));
    *edge.mutable_us() = StatisticsOf(values);
  }
  return graph;
}

std::string CallsiteGraphDot(const CallsiteGraph& graph) {
  double most = 0;
  const auto time = [](const CallsiteTransition& edge) {
    return static_cast<double>(edge.count()) * edge.us().median();
  };
  for (const CallsiteTransition& edge : graph.transitions()) most = std::max(most, time(edge));
  std::string dot = "digraph callsites {\n  node [shape=box];\n";
  for (const MeasuredCallsite& node : graph.callsites()) {
    std::string label = absl::StrCat(node.callsite(), " ", node.operation());
    if (node.has_bytes()) {
      absl::StrAppend(&label, ", ", FormatByteSize(static_cast<int64_t>(node.bytes().median())));
    }
    absl::StrAppend(&dot, "  ", node.callsite(), " [label=", Quoted(label), "];\n");
  }
  for (const CallsiteTransition& edge : graph.transitions()) {
    absl::StrAppend(&dot, "  ", edge.source(), " -> ", edge.destination(),
                    absl::StrFormat(" [label=\"%d x %.1f us\", penwidth=%.1f];\n", edge.count(),
                                    edge.us().median(),
                                    1 + (most > 0 ? (kWidestEdge - 1) * time(edge) / most : 0)));
  }
  return dot + "}\n";
}

absl::StatusOr<std::string> CallsiteGraphText(const std::vector<RunMeasurements>& runs,
                                              absl::string_view path) {
  const CallsiteGraph graph = MakeCallsiteGraph(runs);
  if (graph.runs() == 0) {
    return absl::InvalidArgumentError(
        "--graph needs traces of single calls; trace models only have the values of transitions");
  }
  return absl::EndsWith(path, ".dot") ? CallsiteGraphDot(graph) : ReportToJson(graph);
}

}  // namespace meridian
