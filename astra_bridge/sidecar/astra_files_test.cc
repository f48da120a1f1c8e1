#include "astra_bridge/sidecar/astra_files.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

NetworkConfig Network(std::vector<NetworkDimension> dimensions) {
  NetworkConfig network;
  network.source = "network.yml";
  network.dimensions = std::move(dimensions);
  return network;
}

NetworkDimension Ring(int32_t npus, double bytes_per_ns) {
  NetworkDimension dimension;
  dimension.npus = npus;
  dimension.bytes_per_ns = bytes_per_ns;
  dimension.latency_ns = 500.25;
  return dimension;
}

SystemConfig RingSystem() {
  SystemConfig system;
  for (std::vector<CollectiveAlgorithm>& list : system.algorithms) list.emplace_back();
  return system;
}

class AstraFilesTest : public ::testing::Test {
 protected:
  absl::Status Write(const Workload& workload, const NetworkConfig& network,
                     const SystemConfig& system = RingSystem()) {
    return WriteAstraFiles(FileSystem::Posix(), directory_.path(), workload, network, system,
                           /*node_times=*/false);
  }

  std::vector<Node> ReadEt(int rank, absl::string_view prefix = "workload") {
    absl::StatusOr<EtReader> reader = EtReader::Open(
        FileSystem::Posix(), directory_.PathOf(absl::StrCat(prefix, ".", rank, ".et")));
    EXPECT_OK(reader);
    std::vector<Node> nodes;
    Node node;
    while (reader.ok() && reader->Next(&node).value_or(false)) nodes.push_back(node);
    return nodes;
  }

  static int64_t Int(const Node& node, absl::string_view name) {
    return GetIntAttribute(node.attr(), name).value().value_or(-1);
  }

  const TemporaryDirectory directory_;
};

TEST_F(AstraFilesTest, CustomAlgorithmsAreBesideTheWorkload) {
  Workload workload;
  workload.ranks.resize(2);
  WorkloadNode send;
  send.id = 4;
  send.type = WorkloadNodeType::kSend;
  send.peer = 1;
  workload.custom[0].resize(2);
  workload.custom[0][0].Add(send);
  SystemConfig system = RingSystem();
  system.custom[0] = "/home/me/et/ring";
  ASSERT_OK(Write(workload, Network({Ring(2, 1)}), system));
  EXPECT_THAT(SystemConfigToJson(system, false),
              HasSubstr(R"("all-reduce-implementation-custom": ["custom-all-reduce"])"));
  const std::vector<Node> nodes = ReadEt(0, "custom-all-reduce");
  ASSERT_EQ(nodes.size(), 1);
  EXPECT_EQ(Int(nodes[0], kCommDstAttribute), 1);
}

TEST_F(AstraFilesTest, NodesHaveTheAttributesThatAstraSimReads) {
  WorkloadNode compute;
  compute.id = 3;
  compute.duration_ns = 7000;
  WorkloadNode collective;
  collective.id = 5;
  collective.type = WorkloadNodeType::kCollective;
  collective.op = CollectiveKind::kReduceScatter;
  collective.bytes = 1 << 20;
  collective.group = 2;
  collective.involved_dimensions = 1;
  WorkloadNode send;
  send.id = 7;
  send.type = WorkloadNodeType::kSend;
  send.peer = 1;
  send.tag = 9;
  send.bytes = 64;
  WorkloadNode receive = send;
  receive.type = WorkloadNodeType::kReceive;
  receive.peer = 0;
  Workload workload;
  workload.ranks.resize(4);
  workload.ranks[0].Add(compute);
  workload.ranks[0].Add(collective, {3});
  workload.ranks[0].Add(send, {3, 5});
  workload.ranks[1].Add(receive);
  workload.groups[2] = {1, 0};
  ASSERT_OK(Write(workload, Network({Ring(2, 1), Ring(2, 1)})));

  const std::vector<Node> nodes = ReadEt(0);
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].id(), 3u);
  EXPECT_EQ(nodes[0].type(), ChakraProtoMsg::COMP_NODE);
  EXPECT_EQ(nodes[0].duration_micros(), 7u);
  EXPECT_EQ(Int(nodes[0], kIsCpuOpAttribute), 0);
  EXPECT_EQ(nodes[1].type(), ChakraProtoMsg::COMM_COLL_NODE);
  EXPECT_THAT(nodes[1].data_deps(), ElementsAre(3));
  EXPECT_EQ(Int(nodes[1], kCommTypeAttribute), ChakraProtoMsg::REDUCE_SCATTER);
  EXPECT_EQ(Int(nodes[1], kCommSizeAttribute), 1 << 20);
  EXPECT_EQ(GetStringAttribute(nodes[1].attr(), kPgNameAttribute).value(), "2");
  EXPECT_THAT(*GetBoolListAttribute(nodes[1].attr(), kInvolvedDimAttribute).value(),
              ElementsAre(true, false));
  EXPECT_EQ(nodes[2].type(), ChakraProtoMsg::COMM_SEND_NODE);
  EXPECT_THAT(nodes[2].data_deps(), ElementsAre(3, 5));
  EXPECT_EQ(Int(nodes[2], kCommSrcAttribute), 0);
  EXPECT_EQ(Int(nodes[2], kCommDstAttribute), 1);
  EXPECT_EQ(Int(nodes[2], kCommTagAttribute), 9);
  const std::vector<Node> receives = ReadEt(1);
  ASSERT_EQ(receives.size(), 1u);
  EXPECT_EQ(receives[0].type(), ChakraProtoMsg::COMM_RECV_NODE);
  EXPECT_EQ(Int(receives[0], kCommSrcAttribute), 0);
  EXPECT_EQ(Int(receives[0], kCommDstAttribute), 1);

  EXPECT_THAT(directory_.Read("groups.json"), HasSubstr("\"2\": [1, 0]"));
  EXPECT_THAT(directory_.Read("memory.json"), HasSubstr("NO_MEMORY_EXPANSION"));
  EXPECT_THAT(
      directory_.List(),
      UnorderedElementsAre("groups.json", "log", "memory.json", "network.yml", "system.json",
                           "workload.0.et", "workload.1.et", "workload.2.et", "workload.3.et"));
}

TEST_F(AstraFilesTest, BandwidthsSurviveToTheLastBit) {
  // Those of AstraSim's users, and some that no GB/s with few digits makes.
  for (double gibibytes : {0.1, 12.5, 33.3, 46.875, 50.0, 62.5, 100.0, 450.0, 900.0}) {
    const double bytes_per_ns = GibibytesPerSecondToBytesPerNs(gibibytes);
    ASSERT_OK_AND_ASSIGN(const std::string yaml,
                         NetworkConfigToYaml(Network({Ring(4, bytes_per_ns)})));
    ASSERT_OK_AND_ASSIGN(const NetworkConfig network, ParseNetworkConfig(yaml, "n.yml"));
    EXPECT_EQ(network.dimensions[0].bytes_per_ns, bytes_per_ns) << gibibytes;
    EXPECT_EQ(network.dimensions[0].latency_ns, 500.25);
    EXPECT_EQ(network.dimensions[0].npus, 4);
  }
}

TEST_F(AstraFilesTest, TheSystemComesBackAsItWas) {
  SystemConfig system = RingSystem();
  system.collective_optimization = CollectiveOptimization::kBaseline;
  system.endpoint_delay_ns = 77;
  system.active_chunks_per_dimension = 3;
  system.preferred_dataset_splits = 5;
  system.local_memory_bandwidth = 1600.5;
  system.algorithms[0] = {ParseCollectiveAlgorithm("direct4").value(),
                          ParseCollectiveAlgorithm("doubleBinaryTree").value()};
  const std::string json = SystemConfigToJson(system, /*trace_enabled=*/true);
  EXPECT_THAT(json, HasSubstr("\"trace-enabled\": 1"));
  EXPECT_THAT(json, HasSubstr("\"scheduling-policy\": "));
  ASSERT_OK_AND_ASSIGN(const SystemConfig back, ParseSystemConfig(json, "s.json"));
  EXPECT_EQ(back.collective_optimization, system.collective_optimization);
  EXPECT_EQ(back.endpoint_delay_ns, 77);
  EXPECT_EQ(back.active_chunks_per_dimension, 3);
  EXPECT_EQ(back.preferred_dataset_splits, 5);
  EXPECT_EQ(back.local_memory_bandwidth, 1600.5);
  EXPECT_EQ(back.algorithms, system.algorithms);
}

TEST_F(AstraFilesTest, FreeReductionsAreFastMemory) {
  EXPECT_THAT(SystemConfigToJson(RingSystem(), /*trace_enabled=*/false),
              HasSubstr("\"local-mem-bw\": 1e+30"));
}

TEST_F(AstraFilesTest, WhatAstraSimCannotExpressIsUnimplemented) {
  Workload many;
  many.ranks.resize(2);
  many.groups[500] = {0, 1};
  EXPECT_THAT(Write(many, Network({Ring(2, 1)})),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("500")));
  NetworkDimension mesh = Ring(2, 1);
  mesh.shape = BlockShape::kMesh;
  Workload empty;
  empty.ranks.resize(2);
  EXPECT_THAT(Write(empty, Network({mesh})),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("network.yml: topology")));
}

}  // namespace
}  // namespace meridian
