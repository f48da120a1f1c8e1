#include "astra_bridge/engine/et_workload.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/simulation.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/testing/et_nodes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class EtWorkloadTest : public testing::Test {
 protected:
  EtWorkloadTest() {
    network_.source = "n.yml";
    network_.dimensions.resize(1);
  }

  void WriteRank(int rank, const std::vector<Node>& nodes) {
    directory_.Write(absl::StrCat("w.", rank, ".et"), EncodeEt(nodes));
  }

  absl::StatusOr<Workload> Read() {
    return ReadEtWorkload(FileSystem::Posix(), directory_.PathOf("w"), network_, system_, options_);
  }

  // Reads the node as one of rank 0.
  absl::StatusOr<WorkloadNode> ReadNode(const Node& node) {
    WriteRank(0, {node});
    WriteRank(1, {CompNode(1, 0)});
    const absl::StatusOr<Workload> workload = Read();
    if (!workload.ok()) return workload.status();
    return workload->ranks[0].nodes()[0];
  }

  const TemporaryDirectory directory_;
  NetworkConfig network_;
  SystemConfig system_;
  EtWorkloadOptions options_;
};

TEST_F(EtWorkloadTest, ReadsAllThatAstraSimReads) {
  Node host = CompNode(2, 3, {1});
  SetBoolAttribute(kIsCpuOpAttribute, true, host.mutable_attr());
  host.add_ctrl_deps(1);
  WriteRank(0, {CompNode(1, 5), host,
                CollectiveNode(3, ChakraProtoMsg::REDUCE_SCATTER, 4096, {1, 2}, "7"),
                SendNode(4, 0, 1, 64, 9)});
  WriteRank(1, {RecvNode(4, 0, 1, 64, 9)});
  ASSERT_OK_AND_ASSIGN(const Workload workload, Read());
  ASSERT_THAT(workload.ranks, SizeIs(2));
  const RankWorkload& rank = workload.ranks[0];
  EXPECT_EQ(rank.source, directory_.PathOf("w.0.et"));
  ASSERT_THAT(rank.nodes(), SizeIs(4));
  EXPECT_EQ(rank.nodes()[0].type, WorkloadNodeType::kCompute);
  EXPECT_EQ(rank.nodes()[0].duration_ns, 5000);
  EXPECT_FALSE(rank.nodes()[0].on_host);
  EXPECT_TRUE(rank.nodes()[1].on_host);
  EXPECT_THAT(rank.dependencies(1), ElementsAre(1, 1));
  EXPECT_EQ(rank.nodes()[2].type, WorkloadNodeType::kCollective);
  EXPECT_EQ(rank.nodes()[2].op, CollectiveKind::kReduceScatter);
  EXPECT_EQ(rank.nodes()[2].bytes, 4096);
  EXPECT_EQ(rank.nodes()[2].group, 7);
  EXPECT_EQ(rank.nodes()[3].type, WorkloadNodeType::kSend);
  EXPECT_EQ(rank.nodes()[3].peer, 1);
  EXPECT_EQ(rank.nodes()[3].tag, 9);
  EXPECT_EQ(workload.ranks[1].nodes()[0].type, WorkloadNodeType::kReceive);
  EXPECT_EQ(workload.ranks[1].nodes()[0].peer, 0);
  // Names cost memory.
  EXPECT_EQ(rank.nodes()[0].name, "");
  options_.names = true;
  ASSERT_OK_AND_ASSIGN(const Workload named, Read());
  EXPECT_EQ(named.ranks[0].nodes()[0].name, "n1");
}

TEST_F(EtWorkloadTest, ReadsCustomAlgorithms) {
  WriteRank(0, {CompNode(1, 5)});
  WriteRank(1, {CompNode(1, 5)});
  system_.source = "s.json";
  system_.custom[1] = directory_.PathOf("ag");
  const auto error = [&] { return std::string(Read().status().message()); };
  EXPECT_THAT(error(), StartsWith("s.json: all-gather-implementation-custom: "));
  directory_.Write("ag.1.et", EncodeEt({RecvNode(2, 0, 1, 64)}));
  EXPECT_THAT(error(), HasSubstr("no file for rank 0"));
  directory_.Write("ag.0.et", EncodeEt({SendNode(1, 0, 2, 64)}));
  directory_.Write("ag.2.et.gz", GzipText(EncodeEt({CompNode(7, 3, {7})})));
  // A roofline is for the nodes of the workload.
  system_.roofline_enabled = true;
  EXPECT_THAT(error(), HasSubstr("num_ops"));
  system_.roofline_enabled = false;
  ASSERT_OK_AND_ASSIGN(const Workload workload, Read());
  ASSERT_THAT(workload.custom[1], SizeIs(3));
  EXPECT_EQ(workload.custom[1][0].nodes()[0].peer, 2);
  EXPECT_EQ(workload.custom[1][1].source, directory_.PathOf("ag.1.et"));
  EXPECT_EQ(workload.custom[1][2].nodes()[0].duration_ns, 3000);
  EXPECT_TRUE(workload.has_custom());
  ChakraProtoMsg::GlobalMetadata metadata;
  std::string trace;
  SetIntAttribute(kCommTypeAttribute, ChakraProtoMsg::ALL_REDUCE, metadata.mutable_attr());
  AppendEtRecord(metadata, &trace);
  AppendEtRecord(RecvNode(2, 0, 1, 64), &trace);
  directory_.Write("ag.1.et", trace);
  EXPECT_THAT(error(), HasSubstr("ag.1.et: is for all-reduce, not for all-gather"));
  directory_.Write("ag.1.et", "no trace");
  EXPECT_THAT(error(), HasSubstr("ag.1.et"));
  system_.replay_only = true;
  ASSERT_OK_AND_ASSIGN(const Workload replayed, Read());
  EXPECT_FALSE(replayed.has_custom());
}

TEST_F(EtWorkloadTest, TracesThatACustomAlgorithmLacksAreNamed) {
  WriteRank(0, {CompNode(1, 5)});
  WriteRank(1, {CompNode(1, 5)});
  system_.source = "s.json";
  system_.custom[0] = directory_.PathOf("ring");
  for (const auto& [node, what] :
       {std::pair<Node, std::string>{SendNode(3, 0, 1, 64), "sends to"},
        std::pair<Node, std::string>{RecvNode(3, 1, 0, 64), "receives from"}}) {
    directory_.Write("ring.0.et", EncodeEt({node}));
    EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kNotFound,
                                 AllOf(StartsWith("s.json: all-reduce-implementation-custom: "),
                                       HasSubstr("no file for rank 1, which node 3 of "),
                                       HasSubstr("ring.0.et " + what + "; expected "),
                                       HasSubstr("ring.1.et or "))));
  }
  directory_.Write("ring.1.et", EncodeEt({SendNode(4, 1, 0, 64)}));
  EXPECT_OK(Read());
  // The network has two NPUs: the simulation says that there is no such rank.
  directory_.Write("ring.0.et", EncodeEt({SendNode(3, 0, 2, 64)}));
  EXPECT_OK(Read());
}

// AstraSim takes the first ones, too.
TEST_F(EtWorkloadTest, RanksBeyondTheNetworkAreCounted) {
  const auto left_out = [&] {
    return DescribeRanksLeftOut(FileSystem::Posix(), directory_.PathOf("w"), network_);
  };
  WriteRank(0, {CompNode(1, 5)});
  WriteRank(1, {CompNode(1, 5)});
  EXPECT_EQ(left_out(), "");
  WriteRank(3, {CompNode(1, 5)});
  ASSERT_OK(Read());
  EXPECT_THAT(left_out(), AllOf(HasSubstr("1 of 3 ranks are left out: "),
                                HasSubstr("n.yml has 2 NPUs (npus_count)")));
}

TEST_F(EtWorkloadTest, TheWorldHasSeveralNames) {
  for (const char* const name : {"", "0"}) {
    ASSERT_OK_AND_ASSIGN(const WorkloadNode node,
                         ReadNode(CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, name)));
    EXPECT_EQ(node.group, kWorldGroup);
  }
}

TEST_F(EtWorkloadTest, AGroupNameWithADecimalPointIsItsNumber) {
  ASSERT_OK_AND_ASSIGN(const WorkloadNode node,
                       ReadNode(CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "12.0")));
  EXPECT_EQ(node.group, 12);
  EXPECT_THAT(ReadNode(CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "0.0")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no group id")));
}

TEST_F(EtWorkloadTest, ReadsGzip) {
  directory_.Write("w.0.et.gz", GzipText(EncodeEt({CompNode(1, 5)})));
  WriteRank(1, {CompNode(1, 0)});
  ASSERT_OK_AND_ASSIGN(const Workload workload, Read());
  EXPECT_EQ(workload.ranks[0].nodes()[0].duration_ns, 5000);
}

TEST_F(EtWorkloadTest, DimensionsMayBeNamed) {
  network_.dimensions.resize(3);
  for (NetworkDimension& dimension : network_.dimensions) dimension.npus = 2;
  for (int rank = 2; rank < 8; ++rank) WriteRank(rank, {CompNode(1, 0)});
  Node node = CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8);
  SetBoolListAttribute(kInvolvedDimAttribute, {true, false, true, true}, node.mutable_attr());
  ASSERT_OK_AND_ASSIGN(const WorkloadNode converted, ReadNode(node));
  EXPECT_EQ(converted.involved_dimensions, 0b101u);
  SetBoolListAttribute(kInvolvedDimAttribute, {true, false}, node.mutable_attr());
  EXPECT_THAT(ReadNode(node), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("node 1: involved_dim has 2 entries")));
}

TEST_F(EtWorkloadTest, RooflinesNeedOperationsAndBytes) {
  system_.roofline_enabled = true;
  Node node = CompNode(1, 5);
  EXPECT_THAT(ReadNode(node), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("node 1: attribute num_ops is missing")));
  SetIntAttribute(kNumOpsAttribute, 1000, node.mutable_attr());
  SetIntAttribute(kTensorSizeAttribute, 10, node.mutable_attr());
  WriteRank(0, {node});
  WriteRank(1, {node});
  ASSERT_OK_AND_ASSIGN(const Workload workload, Read());
  EXPECT_EQ(workload.ranks[0].nodes()[0].operations, 1000);
  EXPECT_EQ(workload.ranks[0].nodes()[0].tensor_bytes, 10);
}

TEST_F(EtWorkloadTest, MemoryNodesMoveTheirTensors) {
  Node node = CompNode(1, 3);
  SetIntAttribute(kTensorSizeAttribute, 4096, node.mutable_attr());
  for (const auto type : {ChakraProtoMsg::MEM_LOAD_NODE, ChakraProtoMsg::MEM_STORE_NODE}) {
    node.set_type(type);
    ASSERT_OK_AND_ASSIGN(const WorkloadNode memory, ReadNode(node));
    EXPECT_EQ(memory.type, WorkloadNodeType::kMemory);
    EXPECT_EQ(memory.tensor_bytes, 4096);
  }
  system_.replay_only = true;
  node.clear_attr();
  ASSERT_OK_AND_ASSIGN(const WorkloadNode replayed, ReadNode(node));
  EXPECT_EQ(replayed.duration_ns, 3000);
}

TEST_F(EtWorkloadTest, ReplayDoesNotLookAtCommunication) {
  system_.replay_only = true;
  Node node;
  node.set_id(1);
  node.set_type(ChakraProtoMsg::COMM_COLL_NODE);
  node.set_duration_micros(2);
  ASSERT_OK_AND_ASSIGN(const WorkloadNode converted, ReadNode(node));
  EXPECT_EQ(converted.duration_ns, 2000);
}

TEST_F(EtWorkloadTest, NamesFileNodeAndAttributeAtFault) {
  const auto error = [&](const Node& node, const std::string& message) {
    EXPECT_THAT(
        ReadNode(node),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(StartsWith(directory_.PathOf("w.0.et") + ": offset "), HasSubstr(message))));
  };
  Node node = CollectiveNode(1, ChakraProtoMsg::BARRIER, 8);
  error(node, "node 1: comm_type 9 is not simulated");
  node = CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "tp");
  error(node, "node 1: pg_name \"tp\" is no group id");
  node = CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8);
  SetBoolAttribute(kIsCpuOpAttribute, true, node.mutable_attr());
  error(node, "node 1: is_cpu_op is set");
  node.clear_attr();
  error(node, "node 1: attribute comm_size is missing");
  SetIntAttribute(kCommSizeAttribute, 8, node.mutable_attr());
  error(node, "node 1: attribute comm_type is missing");
  node = SendNode(1, 1, 0, 8);
  error(node, "node 1: comm_src is 1, but this is rank 0");
  node = SendNode(1, 0, 1, 8);
  node.clear_attr();
  SetIntAttribute(kCommSizeAttribute, 8, node.mutable_attr());
  error(node, "node 1: attribute comm_dst is missing");
  SetIntAttribute(kCommDstAttribute, 1, node.mutable_attr());
  error(node, "node 1: attribute comm_tag is missing");
  node = CompNode(1, ~uint64_t{0});
  error(node, "node 1: duration_micros 18446744073709551615 is out of range");
  node = CompNode(1, 0);
  node.set_type(ChakraProtoMsg::METADATA_NODE);
  error(node, "node 1: type METADATA_NODE is not simulated");
  node.set_type(ChakraProtoMsg::MEM_LOAD_NODE);
  error(node, "node 1: attribute tensor_size is missing");
  node.set_type(ChakraProtoMsg::INVALID_NODE);
  error(node, "node 1: type INVALID_NODE is not simulated");
}

TEST_F(EtWorkloadTest, EveryRankNeedsAFileWithNodes) {
  WriteRank(0, {CompNode(1, 0)});
  EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kNotFound,
                               AllOf(StartsWith(directory_.PathOf("w.1.et") + ": no such file"),
                                     HasSubstr("n.yml has 2 NPUs (npus_count)"))));
  WriteRank(1, {});
  EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("w.1.et: has no nodes; give an idle rank one COMP node")));
}

TEST_F(EtWorkloadTest, DamagedTracesAreErrorsOrSimulated) {
  std::mt19937_64 random(1);
  const std::string good =
      EncodeEt({CompNode(1, 5), CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 4096, {1}),
                SendNode(3, 0, 1, 64, 9, {2})});
  WriteRank(1,
            {CollectiveNode(2, ChakraProtoMsg::ALL_REDUCE, 4096), RecvNode(3, 0, 1, 64, 9, {2})});
  system_.algorithms[0].resize(1);
  int simulated = 0;
  for (int i = 0; i < 500; ++i) {
    directory_.Write("w.0.et", Damage(good, random));
    const absl::StatusOr<Workload> workload = Read();
    if (workload.ok() && Simulate(*workload, network_, system_, {}).ok()) ++simulated;
  }
  EXPECT_GT(simulated, 0);
}

TEST_F(EtWorkloadTest, ReadsGroups) {
  Workload workload;
  EXPECT_OK(ReadWorkloadGroups(
      FileSystem::Posix(), directory_.Write("g.json", R"({"12": [3, 1], "2": [0, 2], "3.0": [1]})"),
      &workload));
  EXPECT_EQ(workload.groups_source, directory_.PathOf("g.json"));
  EXPECT_THAT(workload.groups[12], ElementsAre(3, 1));
  EXPECT_THAT(workload.groups[2], ElementsAre(0, 2));
  EXPECT_THAT(workload.groups[3], ElementsAre(1));
  EXPECT_THAT(ReadWorkloadGroups(FileSystem::Posix(),
                                 directory_.Write("bad.json", R"({"tp": [0, 2]})"), &workload),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("bad.json"), HasSubstr("\"tp\" is no group id"))));
}

}  // namespace
}  // namespace meridian
