#include "chakra_export/pytorch/pytorch_workload.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/et_tools/et_check.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/pytorch/host_trace.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/testing/et_workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kAllReduce[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)";

// A step of one rank of two: a kernel, an all-reduce on another stream, a kernel that needs it. On
// rank 1 everything is 20 us later, so that rank 0 waits in the all-reduce from 40 to 60.
//
//            rank 0     rank 1
//   mul      [20, 40)   [40, 60)      stream 7
//   reduce   [40, 90)   [60, 90)      stream 16
//   add      [95, 105)  [95, 105)     stream 7
HostTraceText HostOf() {
  const std::string grad = absl::StrCat("[", TensorJson(5, 256), "]");
  return HostTraceText()
      .Op(2, 1, "aten::mul", 1, "[]", grad)
      .Op(3, 1, "nccl:all_reduce", 1, grad)
      .Op(4, 1, "aten::add_", 1, grad);
}

KinetoText DeviceOf(int64_t rank) {
  const int64_t late = 20 * rank;
  return KinetoText(rank, 2)
      .Op("aten::mul", 1, late, 10, 2)
      .Call("cudaLaunchKernel", 1, late + 5, 2, 1)
      .Op("nccl:all_reduce", 1, late + 10, 10, 3)
      .Call("cudaLaunchKernelExC", 1, late + 15, 2, 2)
      .Op("aten::add_", 1, late + 20, 10, 4)
      .Call("cudaLaunchKernel", 1, late + 25, 2, 3)
      .Kernel("mul", 7, late + 20, 20, 1)
      .Collective("allreduce", kAllReduce, 16, late + 40, 50 - late, 2, 256)
      .Kernel("add", 7, 95, 10, 3);
}

class PytorchWorkloadTest : public ::testing::Test {
 protected:
  // Writes the traces of two ranks.
  void WriteRanks() {
    for (int64_t rank = 0; rank < 2; ++rank) {
      host_.push_back(directory_.Write(absl::StrCat("et_", rank, ".json"), HostOf().Text()));
      device_.push_back(
          directory_.Write(absl::StrCat("kineto_", rank, ".json"), DeviceOf(rank).Text()));
    }
  }

  absl::StatusOr<ChakraWorkloadReport> Convert(const PytorchWorkloadOptions& options = {}) {
    return ConvertPytorchWorkload(FileSystem::Posix(), host_, device_, directory_.PathOf("w"),
                                  options);
  }

  // Of bad input; empty when there is none.
  std::string ConvertError() {
    const absl::Status status = Convert().status();
    EXPECT_EQ(ExitCode(status), status.ok() ? kExitDone : kExitBadInput) << status;
    return std::string(status.message());
  }

  ExecutionGraph ReadGraph(const std::string& prefix = "w") {
    const absl::StatusOr<EtFiles> files =
        FindEtFiles(FileSystem::Posix(), directory_.PathOf(prefix));
    EXPECT_OK(files);
    absl::StatusOr<ExecutionGraph> graph = ReadEtGraph(FileSystem::Posix(), *files);
    EXPECT_OK(graph);
    return *std::move(graph);
  }

  std::vector<std::string> Written() const {
    std::vector<std::string> names;
    for (const std::string& name : directory_.List()) {
      if (!absl::StartsWith(name, "et_") && !absl::StartsWith(name, "kineto_")) {
        names.push_back(name);
      }
    }
    return names;
  }

  TemporaryDirectory directory_;
  std::vector<std::string> host_;
  std::vector<std::string> device_;
};

// "name us" of a rank's nodes in the order of ids.
std::vector<std::string> NodesOf(const ExecutionGraph& graph, int64_t rank) {
  std::vector<std::string> texts;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.rank(node) == rank) {
      texts.push_back(absl::StrCat(graph.name(node), " ", graph.duration_ns(node) / 1000));
    }
  }
  return texts;
}

TEST_F(PytorchWorkloadTest, MakesDeviceWorkAndGapsForSimulation) {
  WriteRanks();
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Convert());
  EXPECT_THAT(Written(), ElementsAre("w.0.et", "w.1.et"));
  const ExecutionGraph graph = ReadGraph();
  // The all-reduce moves data from 60, when both are there, to 90. The last kernel came 5 us after.
  EXPECT_THAT(NodesOf(graph, 0),
              ElementsAre("mul 20", absl::StrCat(kAllReduce, " 30"), "host_gap 5", "add 10"));
  EXPECT_THAT(NodesOf(graph, 1),
              ElementsAre("host_gap 20", "mul 20", absl::StrCat(kAllReduce, " 30"), "host_gap 5",
                          "add 10"));
  EXPECT_EQ(report.replayed_ns(), 85000);
  EXPECT_EQ(report.measured_ns(), 85000);
  const Communication* communication = graph.communication(1);
  ASSERT_NE(communication, nullptr);
  EXPECT_EQ(communication->bytes, 1024);
  EXPECT_EQ(communication->type, ChakraProtoMsg::ALL_REDUCE);
  EXPECT_EQ(graph.groups()[communication->group].name, "");
  EXPECT_THAT(graph.dependencies(1), ElementsAre(0));

  ASSERT_THAT(report.ranks(), SizeIs(2));
  EXPECT_EQ(report.ranks(1).rank(), 1);
  EXPECT_EQ(report.ranks(1).nodes(), 5);
  EXPECT_EQ(report.ranks(1).comm_nodes(), 1);
  EXPECT_THAT(report.ranks(1).left_out(), IsEmpty());
  EXPECT_GT(report.edges().at("data"), 0);
  EXPECT_GT(report.edges().at("launch"), 0);
}

TEST_F(PytorchWorkloadTest, ProfilesAloneAreEnough) {
  WriteRanks();
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport joined, Convert());
  host_.clear();
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport alone, Convert());
  EXPECT_EQ(alone.measured_ns(), joined.measured_ns());
  EXPECT_EQ(alone.replayed_ns(), joined.replayed_ns());
  EXPECT_THAT(alone.warnings(), IsEmpty());
  ASSERT_EQ(alone.ranks_size(), 2);
  EXPECT_EQ(alone.ranks(0).comm_nodes(), 1);
  EXPECT_EQ(alone.ranks(0).left_out_size(), 0);
  PytorchWorkloadOptions options;
  options.linked_json_prefix = directory_.PathOf("linked");
  EXPECT_THAT(Convert(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("need execution traces of PyTorch")));
}

TEST_F(PytorchWorkloadTest, LogsOfCollectivesAreNoWorkload) {
  device_.push_back(directory_.Write(
      "kineto_0.json",
      KinetoText(0, 1).Collective("allreduce", kAllReduce, 16, 0, 9, 2, 4).Text()));
  EXPECT_THAT(Convert(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("it holds collectives alone")));
}

TEST_F(PytorchWorkloadTest, PassesEveryRuleOfTheChecker) {
  WriteRanks();
  ASSERT_OK(Convert());
  ASSERT_OK_AND_ASSIGN(const EtFiles files,
                       FindEtFiles(FileSystem::Posix(), directory_.PathOf("w")));
  EtProblems problems;
  ASSERT_OK(CheckEtFiles(FileSystem::Posix(), files, {}, &problems));
  CheckEtGraph(ReadGraph(), &problems);
  EXPECT_EQ(problems.report().errors() + problems.report().warnings(), 0);
}

TEST_F(PytorchWorkloadTest, KeepsTheHostInTheFullFlavor) {
  WriteRanks();
  PytorchWorkloadOptions options;
  options.flavor = EtFlavor::kFull;
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Convert(options));
  const std::vector<ChakraProtoMsg::Node> nodes = ReadNodes(directory_.PathOf("w.0.et"));
  ASSERT_THAT(nodes, SizeIs(7));
  EXPECT_EQ(nodes[0].type(), ChakraProtoMsg::METADATA_NODE);
  EXPECT_EQ(nodes[1].name(), "aten::mul");
  EXPECT_THAT(GetIntAttribute(nodes[1].attr(), kRecordFunctionIdAttribute),
              IsOkAndHolds(::testing::Optional(2)));
  EXPECT_THAT(nodes[1].outputs().values(), HasSubstr(R"([1005, 5, 0, 256, 4, "cuda:0"])"));
  EXPECT_GT(nodes[1].start_time_micros(), 1'000'000'000'000'000u);
  EXPECT_EQ(report.edges().at("launch"), 6);
}

// The schema has lists of Python in these fields, not JSON.
TEST_F(PytorchWorkloadTest, TensorsAndOtherValuesAreWrittenAsPythonReadsThem) {
  host_.push_back(directory_.Write(
      "et_0.json",
      HostTraceText()
          .Op(2, 1, "op", 1,
              R"([[1,2,"cuda:0"],true,false,null,-1.5e-05,NaN,"it's","a\"'","\u00e9\n\u0001\\",[]])")
          .Text()));
  device_.push_back(directory_.Write("kineto_0.json", KinetoText()
                                                          .Op("op", 1, 0, 10, 2)
                                                          .Call("cudaLaunchKernel", 1, 2, 5, 9)
                                                          .Kernel("k", 7, 20, 5, 9)
                                                          .Text()));
  PytorchWorkloadOptions options;
  options.flavor = EtFlavor::kFull;
  ASSERT_OK(Convert(options));
  const std::vector<ChakraProtoMsg::Node> nodes = ReadNodes(directory_.PathOf("w.0.et"));
  const auto op = std::find_if(nodes.begin(), nodes.end(), [](const ChakraProtoMsg::Node& node) {
    return node.name() == "op";
  });
  ASSERT_NE(op, nodes.end());
  EXPECT_EQ(op->inputs().values(),
            R"([[1, 2, "cuda:0"], True, False, None, -1.5e-05, nan, "it's", "a\"'", )"
            R"("\u00e9\n\u0001\\", []])");
}

TEST_F(PytorchWorkloadTest, ReadsGzip) {
  WriteRanks();
  ASSERT_OK(Convert());
  const std::string plain = directory_.Read("w.1.et");
  for (std::vector<std::string>* paths : {&host_, &device_}) {
    for (std::string& path : *paths) {
      const std::string name = path.substr(path.rfind('/') + 1);
      path = directory_.Write(name, GzipText(directory_.Read(name)));
    }
  }
  ASSERT_OK(Convert());
  EXPECT_EQ(directory_.Read("w.1.et"), plain);
}

TEST_F(PytorchWorkloadTest, ConvertsOneRankAlone) {
  WriteRanks();
  host_.erase(host_.begin());
  device_.erase(device_.begin());
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Convert());
  EXPECT_THAT(Written(), ElementsAre("w.1.et"));
  EXPECT_EQ(report.ranks(0).comm_nodes(), 1);
  EXPECT_THAT(report.warnings(), ::testing::Contains(HasSubstr("one of 2 ranks")));
}

// mul reads nothing and writes 256 floats; add_ reads 256 floats.
TEST_F(PytorchWorkloadTest, StatesWhatOperatorsMoveAndCompute) {
  WriteRanks();
  ASSERT_OK(Convert());
  const std::vector<ChakraProtoMsg::Node> nodes = ReadNodes(directory_.PathOf("w.0.et"));
  ASSERT_THAT(nodes, SizeIs(4));
  const auto number = [&](size_t node, absl::string_view name) {
    return *GetIntAttribute(nodes[node].attr(), name);
  };
  EXPECT_EQ(nodes[0].name(), "mul");
  // It waits for nothing, so it must not be too short.
  EXPECT_EQ(number(0, kTensorSizeAttribute), kMinEarlyTensorBytes);
  EXPECT_EQ(number(0, kNumOpsAttribute), 256);
  // What the one gives and the other takes is one tensor.
  constexpr absl::string_view kTensor = R"([1005, 5, 0, 256, 4, "cuda:0"])";
  EXPECT_THAT(nodes[0].outputs().values(), HasSubstr(kTensor));
  EXPECT_THAT(nodes[1].inputs().values(), HasSubstr(kTensor));
  EXPECT_EQ(nodes[2].name(), "host_gap");
  EXPECT_EQ(number(2, kTensorSizeAttribute), 1);
  EXPECT_EQ(number(2, kNumOpsAttribute), 1);
  EXPECT_EQ(nodes[3].name(), "add");
  EXPECT_EQ(number(3, kTensorSizeAttribute), 1024);
}

TEST_F(PytorchWorkloadTest, MakesCollectivesWithoutCounterpartComputation) {
  WriteRanks();
  // Rank 0 ran another all-reduce, of another size, that rank 1's profile does not show.
  KinetoText device = DeviceOf(0);
  device.Collective("allreduce", kAllReduce, 16, 110, 10, 9, 77);
  directory_.Write("kineto_0.json", device.Text());
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Convert());
  EXPECT_EQ(report.ranks(0).comm_nodes(), 1);
  EXPECT_EQ(report.ranks(0).left_out().at(
                "communication made computation: not all ranks of its group show it"),
            1);
}

// Each stage of a pipeline sends four activations on and four gradients back in each of three
// steps, as batches.
TEST_F(PytorchWorkloadTest, BatchesBecomeMessagesToTheirPeers) {
  for (int rank = 0; rank < 4; ++rank) {
    host_.push_back(absl::StrCat("examples/torch_pipeline4/et_", rank, ".json.gz"));
    device_.push_back(absl::StrCat("examples/torch_pipeline4/kineto_", rank, ".json.gz"));
  }
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Convert());
  EXPECT_NEAR(report.replayed_ns(), report.measured_ns(), 0.01 * report.measured_ns());
  const ExecutionGraph graph = ReadGraph();
  std::map<std::pair<int64_t, int64_t>, int> sends, receives;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (!IsMessage(graph.type(node))) continue;
    const Communication& message = *graph.communication(node);
    EXPECT_EQ(message.bytes, 4 * 65536);
    const bool is_send = graph.type(node) == ChakraProtoMsg::COMM_SEND_NODE;
    EXPECT_EQ(graph.rank(node), is_send ? message.source : message.target);
    ++(is_send ? sends : receives)[{message.source, message.target}];
  }
  const std::map<std::pair<int64_t, int64_t>, int> expected = {
      {{0, 1}, 12}, {{1, 2}, 12}, {{2, 3}, 12}, {{1, 0}, 12}, {{2, 1}, 12}, {{3, 2}, 12}};
  EXPECT_EQ(sends, expected);
  EXPECT_EQ(receives, expected);
}

TEST_F(PytorchWorkloadTest, MakesMessagesWithPeersAndTags) {
  for (int64_t rank = 0; rank < 2; ++rank) {
    host_.push_back(directory_.Write(absl::StrCat("et_", rank, ".json"),
                                     HostTraceText().Op(2, 1, "nccl:p2p").Text()));
    KinetoText device(rank, 2);
    device.Op("nccl:p2p", 1, 0, 10, 2).Call("cudaLaunchKernel", 1, 5, 2, 1);
    device.Kernel(
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)", 16, 20, 10, 1,
        absl::StrCat(R"(, "Collective name": ")", rank == 0 ? "send" : "recv",
                     R"(", "In msg nelems": 64, "Out msg nelems": 64, "Group size": 2, "dtype": )"
                     R"("Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]", )",
                     rank == 0 ? R"("Dst Rank": 1)" : R"("Src Rank": 0)"));
    device_.push_back(directory_.Write(absl::StrCat("kineto_", rank, ".json"), device.Text()));
  }
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Convert());
  const ExecutionGraph graph = ReadGraph();
  // A simulator must have begun before it communicates.
  ASSERT_EQ(graph.node_count(), 4u);
  EXPECT_EQ(graph.name(0), "host_gap");
  EXPECT_EQ(graph.duration_ns(0), 0);
  EXPECT_EQ(graph.type(1), ChakraProtoMsg::COMM_SEND_NODE);
  EXPECT_THAT(graph.dependencies(1), ElementsAre(0));
  EXPECT_EQ(graph.name(2), "host_gap");
  EXPECT_EQ(graph.type(3), ChakraProtoMsg::COMM_RECV_NODE);
  for (const NodeIndex node : {1u, 3u}) {
    EXPECT_EQ(graph.communication(node)->source, 0);
    EXPECT_EQ(graph.communication(node)->target, 1);
    EXPECT_EQ(graph.communication(node)->bytes, 256);
  }
  EXPECT_EQ(graph.communication(1)->tag, graph.communication(3)->tag);
  EtProblems problems;
  CheckEtGraph(graph, &problems);
  EXPECT_EQ(problems.report().errors() + problems.report().warnings(), 0);
}

// Two microbatches along a pipeline of three: 0 -> 1 -> 2. Each message has its own tag, and every
// rule of the checker holds.
TEST_F(PytorchWorkloadTest, PipelinesKeepTheirMessagesApart) {
  constexpr char kKernel[] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)";
  for (int64_t rank = 0; rank < 3; ++rank) {
    KinetoText device(rank, 3);
    uint64_t correlation = 0;
    const auto message = [&](bool sends, int64_t peer, int64_t start, int64_t end) {
      device.Kernel(
          kKernel, 16, start, end - start, ++correlation,
          absl::StrCat(R"(, "Collective name": ")", sends ? "send" : "recv",
                       R"(", "In msg nelems": 64, "Out msg nelems": 64, "Group size": 3, )"
                       R"("dtype": "Float", "Process Group Name": "0", )"
                       R"("Process Group Ranks": "[0, 1, 2]", ")",
                       sends ? "Dst Rank" : "Src Rank", R"(": )", peer));
    };
    for (const int64_t batch : {0, 1}) {
      const int64_t begin = 100 * batch;
      if (rank == 0) message(true, 1, begin + 10, begin + 30);
      if (rank == 1) message(false, 0, begin + 5, begin + 30);
      if (rank == 1) message(true, 2, begin + 50, begin + 70);
      if (rank == 2) message(false, 1, begin + 55, begin + 70);
    }
    host_.push_back(directory_.Write(absl::StrCat("et_", rank, ".json"), HostTraceText().Text()));
    device_.push_back(directory_.Write(absl::StrCat("kineto_", rank, ".json"), device.Text()));
  }
  ASSERT_OK(Convert());
  const ExecutionGraph graph = ReadGraph();
  // By tag: who sends to whom, and how many nodes say so.
  std::map<int32_t, std::map<std::pair<int64_t, int64_t>, int>> messages;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const Communication* communication = graph.communication(node);
    if (communication == nullptr) continue;
    EXPECT_EQ(communication->bytes, 256);
    const bool sends = graph.type(node) == ChakraProtoMsg::COMM_SEND_NODE;
    EXPECT_EQ(graph.rank(node), sends ? communication->source : communication->target);
    ++messages[communication->tag][{communication->source, communication->target}];
  }
  ASSERT_THAT(messages, SizeIs(4));
  std::map<std::pair<int64_t, int64_t>, int> pairs;
  for (const auto& [tag, ends] : messages) {
    ASSERT_THAT(ends, SizeIs(1)) << tag;
    EXPECT_EQ(ends.begin()->second, 2) << tag;
    ++pairs[ends.begin()->first];
  }
  using Ends = std::pair<int64_t, int64_t>;
  EXPECT_THAT(pairs, ElementsAre(std::make_pair(Ends(0, 1), 2), std::make_pair(Ends(1, 2), 2)));
  EtProblems problems;
  ASSERT_OK_AND_ASSIGN(const EtFiles files,
                       FindEtFiles(FileSystem::Posix(), directory_.PathOf("w")));
  ASSERT_OK(CheckEtFiles(FileSystem::Posix(), files, {}, &problems));
  CheckEtGraph(graph, &problems);
  for (const ChakraProblemReport& problem : problems.report().problems()) {
    ADD_FAILURE() << problem.message();
  }
}

TEST_F(PytorchWorkloadTest, WritesTheJoinedTraceAsJson) {
  WriteRanks();
  PytorchWorkloadOptions options;
  options.linked_json_prefix = directory_.PathOf("linked");
  ASSERT_OK(Convert(options));
  const std::string text = directory_.Read("linked.1.json");
  // It is an execution trace again, with the device's work in it.
  ASSERT_OK_AND_ASSIGN(const HostTrace trace, ReadHostTrace(text, "linked.1.json"));
  ASSERT_THAT(trace.ops(), SizeIs(6));
  EXPECT_EQ(trace.name(4), kAllReduce);
  EXPECT_EQ(trace.ops()[4].parent, 1u);
  EXPECT_EQ(trace.Json(0).Find("exclusive_dur").AsDouble(), 10);
  EXPECT_EQ(trace.Json(0).Find("ts").text(), "1790857026000020.000");
  EXPECT_EQ(trace.Json(4).Find("inclusive_dur").AsDouble(), 30);
  EXPECT_EQ(trace.Json(4).Find("cat").AsString(), "kernel");
}

TEST_F(PytorchWorkloadTest, RefusesBadInputAndWritesNothing) {
  WriteRanks();
  const std::string good_host = directory_.Read("et_0.json");
  const std::string good_device = directory_.Read("kineto_0.json");

  directory_.Write("et_0.json", good_host.substr(0, good_host.size() / 2));
  EXPECT_THAT(ConvertError(), HasSubstr("et_0.json: offset"));
  directory_.Write("et_0.json", absl::StrReplaceAll(good_host, {{"1.1.1-", "3.0.0-"}}));
  EXPECT_THAT(ConvertError(), HasSubstr("schema \"3.0.0-chakra.0.0.4\""));
  directory_.Write("et_0.json", good_host);

  directory_.Write("kineto_0.json", "not JSON");
  EXPECT_THAT(ConvertError(), HasSubstr("kineto_0.json: offset 0"));
  directory_.Write("kineto_0.json", R"({"traceEvents": []})");
  EXPECT_THAT(ConvertError(), HasSubstr("no kernel, copy or set"));
  directory_.Write("kineto_0.json",
                   absl::StrReplaceAll(good_device, {{"aten::", "other::"}, {"nccl:", "other:"}}));
  EXPECT_THAT(ConvertError(), HasSubstr("PyTorch 2.1 and later record the ids"));
  directory_.Write("kineto_0.json", DeviceOf(1).Text());
  EXPECT_FALSE(ConvertError().empty()) << "two traces of rank 1";
  directory_.Write("kineto_0.json",
                   absl::StrReplaceAll(good_device, {{"\"world_size\": 2", "\"world_size\": 3"}}));
  EXPECT_THAT(ConvertError(), HasSubstr("no trace of rank 2"));
  directory_.Write("kineto_0.json", absl::StrReplaceAll(good_device, {{"[0, 1]", "[0, 3]"}}));
  EXPECT_THAT(ConvertError(), HasSubstr("process group 0 has the ranks"));
  directory_.Write("kineto_0.json", good_device);

  host_.pop_back();
  EXPECT_THAT(ConvertError(), HasSubstr("1 host traces, but 2 device traces"));
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(PytorchWorkloadTest, RefusesClocksThatContradictUnlessToldOtherwise) {
  WriteRanks();
  // Rank 1's clock is 10 s behind.
  directory_.Write("kineto_1.json",
                   absl::StrReplaceAll(directory_.Read("kineto_1.json"),
                                       {{"1790857026000000000", "1790857016000000000"}}));
  EXPECT_THAT(Convert(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("run combine first")));
  EXPECT_THAT(Written(), IsEmpty());
  PytorchWorkloadOptions options;
  options.allow_violations = true;
  ASSERT_OK(Convert(options));
  // The kernels' own durations, and both ranks begin at once.
  const ExecutionGraph graph = ReadGraph();
  EXPECT_THAT(NodesOf(graph, 0),
              ElementsAre("mul 20", absl::StrCat(kAllReduce, " 50"), "host_gap 5", "add 10"));
  EXPECT_THAT(NodesOf(graph, 1),
              ElementsAre("mul 20", absl::StrCat(kAllReduce, " 30"), "host_gap 5", "add 10"));
}

TEST_F(PytorchWorkloadTest, SurvivesDamage) {
  WriteRanks();
  const std::string host = directory_.Read("et_0.json");
  const std::string device = directory_.Read("kineto_0.json");
  std::mt19937_64 random(2);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    directory_.Write("et_0.json", i % 2 == 0 ? Damage(host, random) : host);
    directory_.Write("kineto_0.json", i % 2 == 1 ? Damage(device, random) : device);
    const absl::Status status = Convert().status();
    EXPECT_FALSE(absl::IsInternal(status)) << i << ": " << status;
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

// A step calls aten::linear, which calls aten::addmm; an all-reduce of the result, and one that needs
// it. Neither the step nor NCCL's call is an operator.
TEST_F(PytorchWorkloadTest, OperatorsAreWhatTheProgramAskedFor) {
  const std::string y = TensorJson(5, 256);
  const std::string given = absl::StrCat("[", TensorJson(3, 256), ", ", TensorJson(4, 64), "]");
  const std::string host =
      HostTraceText()
          .Op(2, 1, "step")
          .Op(3, 2, "aten::linear", 1, given, absl::StrCat("[", y, "]"), "s")
          .Op(4, 3, "aten::mul", 1, given, absl::StrCat("[", y, "]"), "s")
          .Op(5, 2, "c10d::allreduce_", 1, absl::StrCat("[[", y, "]]"), "[]", "s")
          .Op(6, 5, "nccl:all_reduce", 1, absl::StrCat("[", y, "]"))
          .Op(7, 2, "aten::neg", 1, absl::StrCat("[", y, "]"), "[]", "s")
          .Op(8, 2, "aten::ones", 1, "[]", "[]", "s")
          .Text();
  for (int64_t rank = 0; rank < 2; ++rank) {
    host_.push_back(directory_.Write(absl::StrCat("et_", rank, ".json"), host));
    device_.push_back(directory_.Write(absl::StrCat("kineto_", rank, ".json"),
                                       KinetoText(rank, 2)
                                           .Op("aten::linear", 1, 0, 12, 3)
                                           .Op("aten::mul", 1, 1, 10, 4)
                                           .Call("cudaLaunchKernel", 1, 5, 2, 1)
                                           .Op("nccl:all_reduce", 1, 20, 10, 6)
                                           .Call("cudaLaunchKernelExC", 1, 25, 2, 2)
                                           .Kernel("gemm", 7, 20, 20, 1)
                                           .Collective("allreduce", kAllReduce, 16, 40, 50, 2, 256)
                                           .Text()));
  }
  PytorchWorkloadOptions options;
  options.pre_transformed = true;
  ASSERT_OK(Convert(options));
  const std::vector<ChakraProtoMsg::Node> nodes = ReadNodes(directory_.PathOf("w.1.et"));
  std::vector<std::string> told;
  for (const ChakraProtoMsg::Node& node : nodes) {
    EXPECT_EQ(node.duration_micros(), 0u);
    told.push_back(
        absl::StrCat(node.id(), " ", node.name(), " after ", absl::StrJoin(node.data_deps(), ",")));
  }
  EXPECT_THAT(told, ElementsAre("1 aten::linear after ", "2 aten::ones after ",
                                "3 c10d::allreduce_ after 1", "4 aten::neg after 3"));
  EXPECT_EQ(nodes[2].type(), ChakraProtoMsg::COMM_COLL_NODE);
  EXPECT_THAT(GetIntAttribute(nodes[2].attr(), kCommSizeAttribute),
              IsOkAndHolds(::testing::Optional(1024)));
  EXPECT_THAT(nodes[0].outputs().values(), HasSubstr("[1005, 5, 0, 256"));
  EXPECT_THAT(nodes[3].inputs().values(), HasSubstr("[1005, 5, 0, 256"));

  host_.clear();
  EXPECT_THAT(Convert(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("is in its execution traces")));
}

// ---- Real runs.

class SharedRunTest : public PytorchWorkloadTest {
 protected:
  void SetUp() override {
    const std::optional<std::string> shared = SharedDataDirectory();
    if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
    shared_ = *shared;
  }

  // In two steps each rank reduces three buckets of gradients and gathers 2^20 floats: number,
  // bytes and group are those that NCCL's kernels state in the profiles. All device work is there.
  static void ExpectWhatTheKernelsSay(const ExecutionGraph& graph, const int64_t (&device_ops)[4]) {
    const std::map<std::pair<int, int64_t>, int> expected = {
        {{ChakraProtoMsg::ALL_REDUCE, 4 * 1312768}, 2},
        {{ChakraProtoMsg::ALL_REDUCE, 4 * 1050624}, 2},
        {{ChakraProtoMsg::ALL_REDUCE, 4 * 1051648}, 2},
        {{ChakraProtoMsg::ALL_GATHER, 4 * 1048576}, 2}};
    for (int64_t rank = 0; rank < 4; ++rank) {
      std::map<std::pair<int, int64_t>, int> counts;
      int64_t work = 0;
      for (NodeIndex node = 0; node < graph.node_count(); ++node) {
        if (graph.rank(node) != rank) continue;
        const bool on_device = graph.resource(node).kind != ResourceKind::kHostThread;
        work += on_device && graph.name(node) != "host_gap";
        const Communication* communication = graph.communication(node);
        if (communication == nullptr) continue;
        ++counts[{communication->type, communication->bytes}];
        EXPECT_THAT(graph.groups()[communication->group].ranks, ElementsAre(0, 1, 2, 3));
      }
      EXPECT_EQ(counts, expected) << "rank " << rank;
      // Of operators, no kernel counts.
      if (device_ops[rank] > 0) {
        EXPECT_EQ(work, device_ops[rank]) << "rank " << rank;
      }
    }
  }

  std::string shared_;
};

TEST_F(SharedRunTest, ConvertsFourRanksOfTraining) {
  for (int rank = 0; rank < 4; ++rank) {
    host_.push_back(absl::StrCat(shared_, "/traces/torch_nccl4/et_", rank, ".json.gz"));
    device_.push_back(absl::StrCat(shared_, "/traces/torch_nccl4/kineto_", rank, ".json.gz"));
  }
  for (const EtFlavor flavor : {EtFlavor::kSimulation, EtFlavor::kFull}) {
    PytorchWorkloadOptions options;
    options.flavor = flavor;
    ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, Convert(options));
    EXPECT_NEAR(report.replayed_ns(), report.measured_ns(), 0.05 * report.measured_ns());
    for (const char* kind : {"data", "stream", "launch"}) EXPECT_GT(report.edges().at(kind), 0);
    const int64_t device_ops[] = {337, 303, 330, 260};
    for (int rank = 0; rank < 4; ++rank) {
      const ChakraWorkloadRank& rank_report = report.ranks(rank);
      // The process, its threads and the list of process groups.
      EXPECT_EQ(rank_report.left_out().at("operators without an event"), 4);
      EXPECT_EQ(rank_report.comm_nodes(), 8);
    }
    ExpectWhatTheKernelsSay(ReadGraph(), device_ops);
  }
  PytorchWorkloadOptions options;
  options.pre_transformed = true;
  ASSERT_OK(Convert(options));
  ExpectWhatTheKernelsSay(ReadGraph(), {0, 0, 0, 0});
}

}  // namespace
}  // namespace meridian
