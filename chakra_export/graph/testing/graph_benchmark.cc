// Makes up a workload and prints what it costs to build its graph, write and read its traces,
// order, reduce and replay it:
//
//   ./bazelw run //chakra_export/graph/testing:graph_benchmark -- 10000000 8 /tmp/w
//
// for ten million nodes on eight ranks, with the traces in /tmp/w.<rank>.et. On each rank kernels
// of two streams wait for their stream, for the host call that launched them and for a kernel of
// the other stream; every hundredth is an all-reduce of all ranks.
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/et_graph_writer.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_order.h"
#include "chakra_export/graph/graph_replay.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {
namespace {

constexpr int64_t kNames = 500;
constexpr int64_t kKernelsPerCollective = 100;

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Prints what each step took and the most memory so far.
class Steps {
 public:
  void Done(const std::string& step) {
    const double now = CpuSeconds();
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    absl::PrintF("%-28s %7.2f CPU s, %6d MB at most\n", step, now - before_,
                 usage.ru_maxrss / 1024);
    before_ = CpuSeconds();
  }

 private:
  double before_ = CpuSeconds();
};

void AddRank(int64_t rank, int64_t nodes, GroupIndex world, ExecutionGraphBuilder* builder) {
  const ResourceIndex host = builder->AddResource({rank, ResourceKind::kHostThread, 1});
  const ResourceIndex streams[] = {builder->AddResource({rank, ResourceKind::kStream, 7}),
                                   builder->AddResource({rank, ResourceKind::kStream, 20})};
  NodeIndex last_call = kNoNodeIndex;
  NodeIndex last_kernels[] = {kNoNodeIndex, kNoNodeIndex};
  for (int64_t kernel = 0; kernel < nodes / 2; ++kernel) {
    const std::string name = absl::StrCat("void some_library::kernel_", kernel % kNames);
    ExecutionNode call;
    call.id = 2 * kernel;
    call.name = "launch";
    call.resource = host;
    call.start_ns = 1700000000000000000 + 4000 * kernel;
    call.duration_ns = 3700;
    const NodeIndex call_index = builder->AddNode(call);
    if (last_call != kNoNodeIndex) {
      builder->AddDependency(call_index, last_call, EdgeKind::kProgram);
    }
    last_call = call_index;

    const bool collective = kernel % kKernelsPerCollective == kKernelsPerCollective - 1;
    const int stream = collective ? 1 : 0;
    ExecutionNode node;
    node.id = 2 * kernel + 1;
    node.name = name;
    node.resource = streams[stream];
    node.start_ns = call.start_ns + 5000;
    node.duration_ns = 3000 + kernel % 1000;
    if (collective) {
      node.type = ChakraProtoMsg::COMM_COLL_NODE;
      node.communication = Communication();
      node.communication->bytes = 1 << 20;
      node.communication->group = world;
    }
    const NodeIndex index = builder->AddNode(node);
    builder->AddDependency(index, call_index, EdgeKind::kLaunch);
    for (const int other : {0, 1}) {
      if (last_kernels[other] == kNoNodeIndex) continue;
      builder->AddDependency(index, last_kernels[other],
                             other == stream ? EdgeKind::kStream : EdgeKind::kData);
    }
    last_kernels[stream] = index;
  }
}

ExecutionGraph MakeGraph(int64_t nodes, int64_t ranks) {
  ExecutionGraphBuilder builder;
  std::vector<int64_t> all(ranks);
  std::iota(all.begin(), all.end(), int64_t{0});
  const GroupIndex world = builder.AddGroup({"", all});
  for (int64_t rank = 0; rank < ranks; ++rank) AddRank(rank, nodes / ranks, world, &builder);
  return std::move(builder).Build();
}

absl::Status Run(int64_t nodes, int64_t ranks, const std::string& prefix) {
  Steps steps;
  {
    const ExecutionGraph graph = MakeGraph(nodes, ranks);
    absl::PrintF("%d nodes, %d edges\n", graph.node_count(), graph.dependency_count());
    steps.Done("build");
    RETURN_IF_ERROR(WriteEtWorkload(FileSystem::Posix(), graph, prefix, ranks).status());
    steps.Done("write traces");
  }
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(FileSystem::Posix(), prefix));
  ASSIGN_OR_RETURN(ExecutionGraph graph, ReadEtGraph(FileSystem::Posix(), files));
  steps.Done("read traces");
  RETURN_IF_ERROR(TopologicalOrder(graph).status());
  steps.Done("order");
  ASSIGN_OR_RETURN(const size_t removed, RemoveTransitiveEdges(&graph));
  steps.Done(absl::StrCat("reduce by ", removed, " edges"));
  const CommunicationMatch match(graph);
  steps.Done(absl::StrCat("match ", match.instance_count(), " instances"));
  ASSIGN_OR_RETURN(const GraphReplay replay, ReplayGraph(graph, match));
  steps.Done("replay");
  absl::PrintF("replayed %d ns\n", replay.makespan_ns);
  return absl::OkStatus();
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  int64_t nodes = 0;
  int64_t ranks = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[1], &nodes) || !absl::SimpleAtoi(argv[2], &ranks) ||
      ranks < 1 || nodes < ranks) {
    std::fprintf(stderr, "usage: graph_benchmark NODES RANKS PREFIX\n");
    return 2;
  }
  const absl::Status status = meridian::Run(nodes, ranks, argv[3]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
