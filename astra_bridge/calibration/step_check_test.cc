#include "astra_bridge/calibration/step_check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/calibration_report.pb.h"
#include "astra_bridge/calibration/engine_model.h"
#include "astra_bridge/prediction/workload_edges.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/xspace/testing/device_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

using ::testing::DoubleEq;
using ::testing::Optional;

TEST(StepCheckTest, SummaryCountsStepsThatTookTime) {
  SimulationCheckReport report;
  report.add_steps()->set_measured_ns(100);
  report.mutable_steps(0)->set_simulated_ns(120);
  report.add_steps();
  SummariseSteps(&report);
  EXPECT_EQ(report.step_summary().n(), 1);
  EXPECT_NEAR(report.step_summary().mape(), 0.2, 1e-12);
}

// Two ranks that reduce for 100 us. Beside it, each sends to itself for 60 and adds for 10: what it
// sends is communication, though it is exported as computation.
TEST(StepCheckTest, CommunicationWithNobodyElseIsNoComputation) {
  const xla::ShapeProto floats = ArrayShape(xla::F32, {64});
  HloModuleBuilder program = PartitionedProgram(2);
  const auto* x = program.Add("x", "parameter", floats);
  AddAllReduce("all-reduce.1", floats, {x}, {{0, 1}}, &program);
  AddPermute("permute.1", floats, {x}, {{0, 0}, {1, 1}}, &program);
  program.Add("add.1", "add", floats, {x, x});
  const TemporaryDirectory directory;
  std::vector<std::string> traces;
  for (int64_t rank : {0, 1}) {
    const XSpaceProto profile = GpuProfile(
        rank, program,
        {{7,
          10,
          {{"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", "all-reduce.1", 14,
            100000, 200000, ""},
           {"ncclDevKernel_SendRecv(ncclDevKernelArgs)", "permute.1", 15, 120000, 180000, ""},
           {"loop_add", "add.1", 16, 180000, 190000, ""}}}});
    traces.push_back(directory.Write(absl::StrCat("traces/rank", rank, ".xplane.pb"),
                                     profile.SerializeAsString()));
  }
  ASSERT_OK_AND_ASSIGN(const ProfiledRun run, ReadProfiledRun(FileSystem::Posix(), traces));
  SimulationCheckReport report;
  ComputeBeside beside;
  const Fabric fabric = AssumedFabric(2);
  const Corrections corrections;
  const CalibrationReport calibration;
  const PredictionIntervals intervals;
  ASSERT_OK(CheckStep(run, "made_up", std::nullopt,
                      {fabric, corrections, calibration.spreads(), intervals},
                      /*allow_violations=*/false, &report, &beside));
  EXPECT_FALSE(report.steps(0).has_simulated_low_ns());
  EXPECT_EQ(report.steps(0).measured_ns(), 100000);
  EXPECT_DOUBLE_EQ(report.steps(0).compute_share(), 0.1);
}

TEST(StepCheckTest, ARealRunIsScheduledAgain) {
  std::vector<std::string> traces;
  for (int rank = 0; rank < 4; ++rank) {
    traces.push_back(absl::StrCat("examples/jax_tp_cuda4/rank", rank, ".xplane.pb.gz"));
  }
  ASSERT_OK_AND_ASSIGN(const ProfiledRun run, ReadProfiledRun(FileSystem::Posix(), traces));
  SimulationCheckReport report;
  ComputeBeside beside;
  const Fabric fabric = AssumedFabric(4);
  const Corrections corrections;
  CalibrationReport calibration;
  const PredictionIntervals intervals;
  ASSERT_OK(CheckStep(run, "jax_tp_cuda4", std::nullopt,
                      {fabric, corrections, calibration.spreads(), intervals},
                      /*allow_violations=*/false, &report, &beside));
  // Every second transfer takes three times as long: ranks that wait for the slowest are later than
  // the mean of the transfers makes them.
  TransferSpread* spread = calibration.add_spreads();
  spread->add_ratios(1);
  spread->add_ratios(3);
  ASSERT_OK(CheckStep(run, "jax_tp_cuda4", std::nullopt,
                      {fabric, corrections, calibration.spreads(), intervals},
                      /*allow_violations=*/false, &report, &beside));
  EXPECT_GT(report.steps(1).simulated_ns(), report.steps(0).simulated_ns());
  EXPECT_LT(report.steps(1).simulated_low_ns(), report.steps(1).simulated_ns());
  EXPECT_GT(report.steps(1).simulated_high_ns(), report.steps(1).simulated_ns());
  // A calibration that may be off by half makes the interval wider, and the mean hardly other.
  PredictionError* error = calibration.add_prediction_errors();
  error->set_factor(1.5);
  error->set_factor_per_doubling(1);
  CalibratedCorrection* point = calibration.add_corrections();
  point->set_kind("all-reduce");
  point->set_bytes(1 << 20);
  point->set_ranks(4);
  point->set_ratio(1);
  ASSERT_OK_AND_ASSIGN(const PredictionIntervals wide,
                       PredictionIntervals::FromReport(calibration));
  ASSERT_OK(CheckStep(run, "jax_tp_cuda4", std::nullopt,
                      {fabric, corrections, calibration.spreads(), wide},
                      /*allow_violations=*/false, &report, &beside));
  EXPECT_NEAR(report.steps(2).simulated_ns() / report.steps(1).simulated_ns(), 1, 0.03);
  EXPECT_LT(report.steps(2).simulated_low_ns(), report.steps(1).simulated_low_ns());
  EXPECT_GT(report.steps(2).simulated_high_ns(), report.steps(1).simulated_high_ns());
  const CheckedStep& step = report.steps(0);
  EXPECT_FALSE(step.has_step());
  EXPECT_GT(step.measured_ns(), 1e6);
  // Communication that costs next to nothing makes it shorter; with its own times it is as long as
  // it was.
  EXPECT_LT(step.simulated_ns(), step.replayed_ns());
  EXPECT_NEAR(step.replayed_ns() / step.measured_ns(), 1, 0.1);
  EXPECT_GT(step.compute_share(), 0);
  EXPECT_LT(step.compute_share(), 1);
  TransferCell cell;
  cell.kind = CollectiveKind::kAllReduce;
  cell.bytes = 1 << 20;
  cell.ranks = 4;
  cell.participants = {0, 1};
  const std::optional<ComputeBeside::Shares> shares = beside.SharesOf(cell);
  ASSERT_TRUE(shares.has_value());
  EXPECT_LT(shares->own, 1);
  EXPECT_GT(shares->others, 0);
  EXPECT_LT(shares->others, 1);
}

// Two ranks that each have a stream for computation and one for communication.
class Ranks {
 public:
  Ranks() {
    ProcessGroup world;
    world.ranks = {0, 1};
    world_ = builder_.AddGroup(world);
  }

  void Compute(int64_t rank, int64_t start_ns, int64_t end_ns) {
    Add(rank, 1, start_ns, end_ns, "fusion", ChakraProtoMsg::COMP_NODE, std::nullopt);
    computes_.back() = true;
  }

  // A COMP node that is no computation.
  void Wait(int64_t rank, int64_t start_ns, int64_t end_ns) {
    Add(rank, 1, start_ns, end_ns, "idle", ChakraProtoMsg::COMP_NODE, std::nullopt);
  }

  void AllReduce(int64_t rank, int64_t bytes, int64_t start_ns, int64_t end_ns) {
    Communication communication;
    communication.bytes = bytes;
    communication.group = world_;
    Add(rank, 2, start_ns, end_ns, "all-reduce", ChakraProtoMsg::COMM_COLL_NODE, communication);
  }

  void Message(int64_t bytes, int64_t start_ns, int64_t end_ns) {
    Communication communication;
    communication.bytes = bytes;
    communication.source = 0;
    communication.target = 1;
    Add(0, 2, start_ns, end_ns, "send", ChakraProtoMsg::COMM_SEND_NODE, communication);
    Add(1, 2, start_ns, end_ns, "recv", ChakraProtoMsg::COMM_RECV_NODE, communication);
  }

  // Adds them, and returns the share of all their communication.
  double AddTo(ComputeBeside* beside) {
    const ExecutionGraph graph = std::move(builder_).Build();
    const CommunicationMatch match(graph);
    const absl::StatusOr<WorkloadEdges> edges = FindWorkloadEdges(graph, match);
    EXPECT_OK(edges);
    return edges.ok() ? beside->Add(graph, computes_, match, *edges) : -1;
  }

 private:
  void Add(int64_t rank, int64_t stream, int64_t start_ns, int64_t end_ns, const std::string& name,
           ChakraProtoMsg::NodeType type, std::optional<Communication> communication) {
    ExecutionNode node;
    node.id = ++last_id_;
    node.name = name;
    node.type = type;
    node.resource = builder_.AddResource({rank, ResourceKind::kStream, stream});
    node.start_ns = start_ns;
    node.duration_ns = end_ns - start_ns;
    node.communication = communication;
    builder_.AddNode(node);
    computes_.push_back(false);
  }

  ExecutionGraphBuilder builder_;
  std::vector<bool> computes_;
  GroupIndex world_ = 0;
  uint64_t last_id_ = 0;
};

TransferCell Cell(CollectiveKind kind, int64_t bytes) {
  TransferCell cell;
  cell.kind = kind;
  cell.bytes = bytes;
  cell.ranks = 2;
  cell.participants = {0, 1};
  return cell;
}

TEST(ComputeBesideTest, OnlyWhatTheSameRankComputesCounts) {
  Ranks ranks;
  ranks.AllReduce(0, 64, 100, 200);
  ranks.AllReduce(1, 64, 100, 200);
  // 30 of rank 0's 100, in pieces that overlap; nothing of rank 1's.
  ranks.Compute(0, 90, 120);
  ranks.Compute(0, 110, 130);
  ranks.Compute(1, 0, 100);
  ranks.Compute(1, 200, 300);
  ComputeBeside beside;
  EXPECT_THAT(ranks.AddTo(&beside), DoubleEq(0.15));
  EXPECT_THAT(beside.SharesOf(Cell(CollectiveKind::kAllReduce, 64))->own, DoubleEq(0.15));
}

TEST(ComputeBesideTest, CellsAreLookedAtByThemselves) {
  Ranks ranks;
  for (int64_t rank : {0, 1}) {
    ranks.AllReduce(rank, 64, 100, 200);
    ranks.AllReduce(rank, 128, 300, 600);
    ranks.Compute(rank, 150, 200);
  }
  ranks.Message(32, 1000, 1100);
  ranks.Compute(1, 1000, 1100);
  ComputeBeside beside;
  // 200 of 1,000.
  EXPECT_THAT(ranks.AddTo(&beside), DoubleEq(0.2));
  EXPECT_THAT(beside.SharesOf(Cell(CollectiveKind::kAllReduce, 64))->own, DoubleEq(0.5));
  EXPECT_THAT(beside.SharesOf(Cell(CollectiveKind::kAllReduce, 128))->own, DoubleEq(0));
  EXPECT_THAT(beside.SharesOf(Cell(CollectiveKind::kPointToPoint, 32))->own, DoubleEq(0.5));
  EXPECT_FALSE(beside.SharesOf(Cell(CollectiveKind::kAllGather, 64)).has_value());
}

TEST(ComputeBesideTest, StepsAddUp) {
  Ranks instant, idle, busy;
  for (int64_t rank : {0, 1}) {
    instant.AllReduce(rank, 64, 100, 100);
    idle.AllReduce(rank, 64, 100, 200);
    busy.AllReduce(rank, 64, 100, 200);
    busy.Compute(rank, 100, 200);
  }
  ComputeBeside beside;
  EXPECT_EQ(instant.AddTo(&beside), 0);
  EXPECT_EQ(idle.AddTo(&beside), 0);
  EXPECT_EQ(busy.AddTo(&beside), 1);
  EXPECT_THAT(beside.SharesOf(Cell(CollectiveKind::kAllReduce, 64))->own, DoubleEq(0.5));
}

TEST(ComputeBesideTest, OnlyNodesThatComputeCount) {
  Ranks ranks;
  for (int64_t rank : {0, 1}) {
    ranks.AllReduce(rank, 64, 100, 200);
    ranks.Wait(rank, 100, 200);
    ranks.Compute(rank, 150, 160);
  }
  ComputeBeside beside;
  EXPECT_THAT(ranks.AddTo(&beside), DoubleEq(0.1));
}

}  // namespace
}  // namespace meridian
