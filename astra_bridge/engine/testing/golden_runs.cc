#include "astra_bridge/engine/testing/golden_runs.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr char kFolder[] = "astra_bridge/engine/testdata/";

std::vector<std::string> Lines(const std::string& name) {
  std::ifstream file(kFolder + name);
  MERIDIAN_CHECK(file.is_open());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    lines.push_back(line);
  }
  return lines;
}

int64_t Integer(absl::string_view text) {
  int64_t number = 0;
  MERIDIAN_CHECK(absl::SimpleAtoi(text, &number));
  return number;
}

double Number(absl::string_view text) {
  double number = 0;
  MERIDIAN_CHECK(absl::SimpleAtod(text, &number));
  return number;
}

Congestion ToCongestion(absl::string_view backend) {
  return backend == "U" ? Congestion::kUnaware : Congestion::kAware;
}

NetworkConfig ToNetwork(absl::string_view topology, absl::string_view npus,
                        absl::string_view bandwidth, absl::string_view latency) {
  const std::vector<std::string> shapes = absl::StrSplit(topology, 'x');
  const std::vector<std::string> counts = absl::StrSplit(npus, 'x');
  const std::vector<std::string> bandwidths = absl::StrSplit(bandwidth, 'x');
  const std::vector<std::string> latencies = absl::StrSplit(latency, 'x');
  NetworkConfig network;
  for (size_t d = 0; d < shapes.size(); ++d) {
    NetworkDimension& dimension = network.dimensions.emplace_back();
    dimension.shape = shapes[d] == "Ring"     ? BlockShape::kRing
                      : shapes[d] == "Switch" ? BlockShape::kSwitch
                                              : BlockShape::kFullyConnected;
    dimension.npus = static_cast<int32_t>(Integer(counts[d]));
    dimension.bytes_per_ns = GibibytesPerSecondToBytesPerNs(Number(bandwidths[d]));
    dimension.latency_ns = Number(latencies[d]);
  }
  return network;
}

std::vector<CollectiveAlgorithm> ToAlgorithms(absl::string_view names) {
  std::vector<CollectiveAlgorithm> algorithms;
  for (const absl::string_view name : absl::StrSplit(names, '|')) {
    const auto algorithm = ParseCollectiveAlgorithm(name);
    MERIDIAN_CHECK(algorithm.ok());
    algorithms.push_back(*algorithm);
  }
  return algorithms;
}

CollectiveKind ToOp(absl::string_view name) {
  if (name == "ALL_REDUCE") return CollectiveKind::kAllReduce;
  if (name == "ALL_GATHER") return CollectiveKind::kAllGather;
  if (name == "REDUCE_SCATTER") return CollectiveKind::kReduceScatter;
  MERIDIAN_CHECK(name == "ALL_TO_ALL");
  return CollectiveKind::kAllToAll;
}

// splits, active, endpoint_delay, local_mem_bw, optimization
SystemConfig ToSystem(const std::vector<std::string>& values) {
  SystemConfig system;
  system.preferred_dataset_splits = static_cast<int32_t>(Integer(values[0]));
  system.active_chunks_per_dimension = static_cast<int32_t>(Integer(values[1]));
  system.endpoint_delay_ns = Integer(values[2]);
  system.local_memory_bandwidth = Number(values[3]);
  system.collective_optimization = values[4] == "B" ? CollectiveOptimization::kBaseline
                                                    : CollectiveOptimization::kLocalBandwidthAware;
  return system;
}

std::vector<int32_t> ToRanks(absl::string_view text) {
  std::vector<int32_t> ranks;
  for (const absl::string_view rank : absl::StrSplit(text, ' ')) {
    ranks.push_back(static_cast<int32_t>(Integer(rank)));
  }
  return ranks;
}

WorkloadNode PointToPoint(WorkloadNodeType type, int32_t peer, int64_t tag, int64_t bytes) {
  WorkloadNode node;
  node.id = 1;
  node.type = type;
  node.peer = peer;
  node.tag = static_cast<int32_t>(tag);
  node.bytes = bytes;
  return node;
}

GoldenRun ToSingleRun(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, ',');
  MERIDIAN_CHECK(fields.size() == 16);
  GoldenRun run;
  run.id = fields[0];
  run.congestion = ToCongestion(fields[1]);
  run.network = ToNetwork(fields[2], fields[3], fields[4], fields[5]);
  run.system = ToSystem({fields[9], fields[10], fields[11], fields[12], fields[13]});
  const int64_t bytes = Integer(fields[8]);
  const bool is_send = fields[6] == "P2P";
  const int32_t npus = run.network.npus();
  std::vector<int32_t> members;
  if (fields[14].empty()) {
    for (int32_t rank = 0; rank < npus; ++rank) members.push_back(rank);
  } else {
    members = ToRanks(fields[14]);
    if (!is_send) run.workload.groups[1] = members;
  }
  run.workload.ranks.resize(npus);
  run.finish_ns.assign(npus, -1);
  const std::vector<std::string> finishes = absl::StrSplit(fields[15], ' ');
  for (size_t i = 0; i < members.size(); ++i) {
    RankWorkload& rank = run.workload.ranks[members[i]];
    run.finish_ns[members[i]] = Integer(finishes[finishes.size() == 1 ? 0 : i]);
    if (is_send) {
      rank.Add(i == 0 ? PointToPoint(WorkloadNodeType::kSend, members[1], 1, bytes)
                      : PointToPoint(WorkloadNodeType::kReceive, members[0], 1, bytes));
      continue;
    }
    WorkloadNode node;
    node.id = 1;
    node.type = WorkloadNodeType::kCollective;
    node.op = ToOp(fields[6]);
    node.bytes = bytes;
    node.group = fields[14].empty() ? kWorldGroup : 1;
    run.system.algorithms[static_cast<size_t>(node.op)] = ToAlgorithms(fields[7]);
    rank.Add(node);
  }
  // The others have something to do as well, as AstraSim needs it.
  for (RankWorkload& rank : run.workload.ranks) {
    if (rank.nodes().empty()) rank.Add(WorkloadNode());
  }
  return run;
}

// Adds what a line of the concurrent runs says.
void AddLine(const std::string& line, GoldenRun* run) {
  const std::vector<std::string> fields = absl::StrSplit(line, ' ');
  if (fields[0] == "run") {
    run->id = fields[1];
    run->congestion = ToCongestion(fields[2]);
    run->network = ToNetwork(fields[3], fields[4], fields[5], fields[6]);
    run->system = ToSystem({fields[7], fields[8], fields[9], fields[10], fields[11]});
    for (size_t op = 0; op < kSimulatedCollectives; ++op) {
      run->system.algorithms[op] = ToAlgorithms(fields[12 + op]);
    }
    run->workload.ranks.resize(run->network.npus());
    run->finish_ns.assign(run->network.npus(), 0);
    return;
  }
  if (fields[0] == "group") {
    std::vector<int32_t>& members = run->workload.groups[static_cast<int32_t>(Integer(fields[1]))];
    for (size_t i = 2; i < fields.size(); ++i) {
      members.push_back(static_cast<int32_t>(Integer(fields[i])));
    }
    return;
  }
  const int32_t rank = static_cast<int32_t>(Integer(fields[1]));
  WorkloadNode node;
  const std::string& type = fields[5];
  size_t next = 9;
  if (type == "compute") {
    node.duration_ns = 1000 * Integer(fields[6]);
    next = 7;
  } else if (type == "send" || type == "receive") {
    node = PointToPoint(type == "send" ? WorkloadNodeType::kSend : WorkloadNodeType::kReceive,
                        static_cast<int32_t>(Integer(fields[6])), Integer(fields[7]),
                        Integer(fields[8]));
  } else {
    node.type = WorkloadNodeType::kCollective;
    node.op = ToOp(type);
    node.group = static_cast<int32_t>(Integer(fields[6]));
    node.bytes = Integer(fields[7]);
    next = 8;
  }
  node.id = static_cast<uint64_t>(Integer(fields[2]));
  std::vector<uint64_t> dependencies;
  for (; next < fields.size(); ++next) {
    dependencies.push_back(static_cast<uint64_t>(Integer(fields[next])));
  }
  run->nodes.push_back({rank, node.id, Integer(fields[3]), Integer(fields[4])});
  run->finish_ns[rank] = std::max(run->finish_ns[rank], Integer(fields[4]));
  run->workload.ranks[rank].Add(std::move(node), dependencies);
}

// A chain of so many nodes that each wait for the one before.
void AddChain(WorkloadNode node, int64_t length, RankWorkload* rank) {
  for (int64_t i = 1; i <= length; ++i) {
    node.id = static_cast<uint64_t>(i);
    if (i == 1) {
      rank->Add(node);
    } else {
      rank->Add(node, {node.id - 1});
    }
  }
}

GoldenCost ToCost(const std::string& line) {
  const std::vector<std::string> fields = absl::StrSplit(line, ',');
  MERIDIAN_CHECK(fields.size() == 10);
  GoldenCost cost;
  GoldenRun& run = cost.run;
  cost.name = absl::StrCat(fields[0] == "U" ? "unaware " : "aware ", fields[1], " ", fields[2], " ",
                           fields[3], fields[4].empty() ? "" : " ", fields[4],
                           fields[6] == "1" ? "" : absl::StrCat(" splits ", fields[6]));
  run.congestion = ToCongestion(fields[0]);
  const size_t dimensions = 1 + std::count(fields[1].begin(), fields[1].end(), 'x');
  run.network =
      ToNetwork(fields[1], fields[2], absl::StrJoin(std::vector<int>(dimensions, 50), "x"),
                absl::StrJoin(std::vector<int>(dimensions, 500), "x"));
  run.system = ToSystem({fields[6], fields[7], "10", "1600", "L"});
  if (!fields[4].empty()) run.system.algorithms.fill(ToAlgorithms(fields[4]));
  const int32_t npus = run.network.npus();
  cost.makespan_ns = Integer(fields[8]);
  run.workload.ranks.resize(npus);
  const std::vector<std::string> workload = absl::StrSplit(fields[3], ' ');
  const int64_t length = workload.size() > 1 ? Integer(workload[1]) : 1;
  for (int32_t rank = 0; rank < npus; ++rank) {
    RankWorkload& nodes = run.workload.ranks[rank];
    WorkloadNode node;
    if (workload[0] == "compute") {
      node.duration_ns = length == 1 ? 0 : 1000;
    } else if (workload[0] == "shift") {
      const int64_t bytes = Integer(fields[5]);
      const int32_t next = (rank + 1) % npus;
      const int32_t before = (rank + npus - 1) % npus;
      nodes.Add(PointToPoint(WorkloadNodeType::kSend, next, rank, bytes));
      node = PointToPoint(WorkloadNodeType::kReceive, before, before, bytes);
      node.id = 2;
      nodes.Add(node);
      continue;
    } else {
      node.type = WorkloadNodeType::kCollective;
      node.op = workload[0] == "chain" ? CollectiveKind::kAllReduce : ToOp(workload[0]);
      node.bytes = Integer(fields[5]);
    }
    AddChain(node, length, &nodes);
  }
  cost.cpu_s = Number(fields[9]);
  return cost;
}

}  // namespace

std::vector<GoldenCost> GoldenCosts() {
  std::vector<GoldenCost> costs;
  for (const std::string& line : Lines("astra_scaling.csv")) costs.push_back(ToCost(line));
  return costs;
}

std::vector<GoldenRun> SingleGoldenRuns() {
  std::vector<GoldenRun> runs;
  for (const std::string& line : Lines("astra_golden.csv")) runs.push_back(ToSingleRun(line));
  return runs;
}

std::vector<GoldenRun> ConcurrentGoldenRuns() {
  std::vector<GoldenRun> runs;
  for (const std::string& line : Lines("astra_snapshots.txt")) {
    if (absl::StartsWith(line, "run ")) runs.emplace_back();
    AddLine(line, &runs.back());
  }
  return runs;
}

}  // namespace meridian
