#include "workload_model/measurements/run_calls.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/base/time_units.h"

namespace meridian {
namespace {

// The communications of one rank as calls, nodes being in the order in which they started.
std::vector<TracedCall> CallsOf(const ExecutionGraph& graph, int64_t rank,
                                const std::vector<NodeIndex>& nodes) {
  // What tells a callsite: name, kind, group and bytes.
  using CallKey = std::tuple<std::string, std::string, GroupIndex, int64_t>;
  std::map<CallKey, int64_t> callsites;
  std::vector<TracedCall> calls;
  int64_t source = 0, last_end_ns = 0;
  for (NodeIndex node : nodes) {
    const Communication& communication = *graph.communication(node);
    const bool is_message = IsMessage(graph.type(node));
    TracedCall& call = calls.emplace_back();
    call.source = source;
    call.operation = graph.CommunicationKind(node);
    const CallKey key(std::string(graph.name(node)), call.operation,
                      is_message ? 0 : communication.group, communication.bytes);
    call.destination =
        callsites.insert({key, static_cast<int64_t>(callsites.size()) + 1}).first->second;
    const int64_t end_ns = std::max(last_end_ns, graph.start_ns(node) + graph.duration_ns(node));
    call.us = static_cast<double>(end_ns - last_end_ns) / kNsPerUs;
    call.call_us = std::min(call.us, static_cast<double>(graph.duration_ns(node)) / kNsPerUs);
    call.bytes = static_cast<double>(communication.bytes);
    if (!is_message) {
      call.members = graph.groups()[communication.group].ranks;
    } else if (communication.source == rank) {
      call.sends_message = true;
      if (communication.target != kNoRank) call.peer = communication.target;
    }
    source = call.destination;
    last_end_ns = end_ns;
  }
  return calls;
}

}  // namespace

absl::StatusOr<std::vector<RunMeasurements>> ReadRunCalls(FileSystem& file_system,
                                                          const std::string& prefix,
                                                          const std::string& name, double size) {
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(file_system, prefix));
  RETURN_IF_ERROR(CheckNoRankIsMissing(files, prefix));
  EtGraphReaderOptions options;
  options.ignore_dangling = true;
  if (const std::string path = CommGroupsBeside(file_system, prefix); !path.empty()) {
    ASSIGN_OR_RETURN(options.groups, ReadCommGroups(file_system, path));
  }
  ASSIGN_OR_RETURN(const ExecutionGraph graph, ReadEtGraph(file_system, files, options));
  std::map<int64_t, std::vector<NodeIndex>> by_rank;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.communication(node) == nullptr) continue;
    if (graph.start_ns(node) == kNoTimeNs) {
      return absl::InvalidArgumentError(absl::StrCat(
          Printable(name), ": ", Printable(graph.Describe(node)),
          " does not say when it ran; a model needs traces of a run that was measured"));
    }
    by_rank[graph.rank(node)].push_back(node);
  }
  std::vector<RunMeasurements> runs;
  RunName run_name = {{static_cast<double>(graph.Ranks().size()), size}, 0, name};
  for (auto& [rank, nodes] : by_rank) {
    std::sort(nodes.begin(), nodes.end(), [&](NodeIndex a, NodeIndex b) {
      return std::make_pair(graph.start_ns(a), graph.id(a)) <
             std::make_pair(graph.start_ns(b), graph.id(b));
    });
    run_name.rank = rank;
    ASSIGN_OR_RETURN(RunMeasurements run,
                     MeasureCalls(CallsOf(graph, rank, nodes), name, run_name));
    if (run.times.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Printable(name), ": rank ", rank, " communicates once, which makes no transition"));
    }
    runs.push_back(std::move(run));
  }
  if (runs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Printable(name), ": there is no communication in it"));
  }
  return runs;
}

}  // namespace meridian
