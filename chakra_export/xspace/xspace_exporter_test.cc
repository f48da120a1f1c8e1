#include "chakra_export/xspace/xspace_exporter.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/et_tools/et_check.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/xspace/testing/device_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/testing/synthetic_run.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

FileSystem& Files() { return FileSystem::Posix(); }

std::vector<std::string> WriteRun(const TemporaryDirectory& directory,
                                  const std::vector<XSpaceProto>& profiles) {
  std::vector<std::string> paths;
  for (size_t i = 0; i < profiles.size(); ++i) {
    paths.push_back(directory.PathOf(absl::StrCat("rank", i, ".xplane.pb")));
    EXPECT_THAT(WriteOutput(Files(), paths.back(), profiles[i].SerializeAsString()), IsOk());
  }
  return paths;
}

ExecutionGraph ReadGraph(const std::string& prefix, const std::string& groups_path) {
  EtGraphReaderOptions options;
  if (!groups_path.empty()) options.groups = *ReadCommGroups(Files(), groups_path);
  const absl::StatusOr<EtFiles> files = FindEtFiles(Files(), prefix);
  EXPECT_THAT(files, IsOk());
  absl::StatusOr<ExecutionGraph> graph = ReadEtGraph(Files(), *files, options);
  EXPECT_THAT(graph, IsOk());
  return *std::move(graph);
}

// Each step of the made-up run: 100 us + rank * 10 us of computation, then an all-reduce that takes
// 50 us once the slower rank has come.
TEST(XSpaceExporterTest, ACollectiveTakesItsTransferAndTheRestIsWaiting) {
  const TemporaryDirectory directory;
  SyntheticRunOptions run;
  run.steps = 2;
  const std::vector<std::string> traces = WriteRun(directory, SyntheticRun(run));
  const std::string prefix = directory.PathOf("et");
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, ExportXSpaces(Files(), traces, prefix));
  EXPECT_EQ(report.measured_ns(), report.replayed_ns());
  EXPECT_EQ(report.comm_groups(), "");
  ASSERT_THAT(report.ranks(), SizeIs(2));
  EXPECT_EQ(report.ranks(0).comm_nodes(), 2);
  EXPECT_THAT(report.ranks(0).left_out(), IsEmpty());

  const ExecutionGraph graph = ReadGraph(prefix, "");
  int collectives = 0;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.communication(node) == nullptr) continue;
    ++collectives;
    EXPECT_EQ(graph.duration_ns(node), 50000);
    EXPECT_EQ(graph.name(node), "all-reduce.2");
    ASSERT_THAT(graph.dependencies(node), SizeIs(1));
    // It reads what the kernel before it made.
    EXPECT_TRUE(graph.dependency_kinds(node)[0].Contains(EdgeKind::kData));
    EXPECT_EQ(graph.name(graph.dependencies(node)[0]), "loop_add_fusion");
  }
  EXPECT_EQ(collectives, 4);
}

TEST(XSpaceExporterTest, NodesStateWhatTheirInstructionReadsAndComputes) {
  const TemporaryDirectory directory;
  const std::vector<std::string> traces = WriteRun(directory, SyntheticRun({}));
  ASSERT_THAT(ExportXSpaces(Files(), traces, directory.PathOf("et")), IsOk());
  ASSERT_OK_AND_ASSIGN(EtReader reader, EtReader::Open(Files(), directory.PathOf("et.0.et")));
  int fusions = 0;
  ChakraProtoMsg::Node node;
  while (*reader.Next(&node)) {
    if (node.name() != "loop_add_fusion") continue;
    ++fusions;
    EXPECT_GE((*GetIntAttribute(node.attr(), kTensorSizeAttribute)).value_or(0), 4096);
    // A roofline divides by it.
    EXPECT_GE((*GetIntAttribute(node.attr(), kNumOpsAttribute)).value_or(1), 1);
  }
  EXPECT_EQ(fusions, 3);
}

// Of an all-reduce of two arrays within one device each part is a node, with the tensors of its array.
TEST(XSpaceExporterTest, PartsOfALocalCollectiveHaveTensorsOfTheirOwn) {
  const TemporaryDirectory directory;
  const xla::ShapeProto floats = ArrayShape(xla::F32, {64});
  HloModuleBuilder program = PartitionedProgram(1);
  auto* x = program.Add("x", "parameter", floats);
  auto* a = program.Add("a", "fusion", floats, {x});
  auto* b = program.Add("b", "fusion", floats, {x});
  AddAllReduce("both", TupleShape({floats, floats}), {a, b}, {{0}}, &program);
  const std::vector<std::string> traces =
      WriteRun(directory, {GpuProfile(0, program, {{7, 10, {{"a", "a", 14, 20000, 30000, ""}}}})});
  XSpaceExportOptions options;
  options.intent = EtIntent::kPreTransformed;
  ASSERT_THAT(ExportXSpaces(Files(), traces, directory.PathOf("et"), options), IsOk());
  ASSERT_OK_AND_ASSIGN(EtReader reader, EtReader::Open(Files(), directory.PathOf("et.0.et")));
  std::vector<std::string> read, written;
  ChakraProtoMsg::Node node;
  while (*reader.Next(&node)) {
    if (!absl::StartsWith(node.name(), "both")) continue;
    read.push_back(node.inputs().values());
    written.push_back(node.outputs().values());
  }
  ASSERT_EQ(read.size(), 2);
  EXPECT_NE(read[0], read[1]);
  EXPECT_NE(written[0], written[1]);
}

// Operations and bytes of all computation of a rank, by step.
std::map<int64_t, std::pair<int64_t, int64_t>> CostsBySteps(const std::string& path) {
  absl::StatusOr<EtReader> reader = EtReader::Open(Files(), path);
  EXPECT_THAT(reader, IsOk());
  std::map<int64_t, std::pair<int64_t, int64_t>> costs;
  ChakraProtoMsg::Node node;
  while (*reader->Next(&node)) {
    if (node.type() != ChakraProtoMsg::COMP_NODE) continue;
    const int64_t operations = (*GetIntAttribute(node.attr(), kNumOpsAttribute)).value_or(0);
    const int64_t bytes = (*GetIntAttribute(node.attr(), kTensorSizeAttribute)).value_or(0);
    // What costs nothing has one of each, and the first node bytes that make it last.
    if (bytes <= 1 || node.data_deps().empty()) continue;
    auto& sums = costs[(*GetIntAttribute(node.attr(), kStepAttribute)).value_or(-1)];
    sums.first += operations;
    sums.second += bytes;
  }
  return costs;
}

TEST(XSpaceExporterTest, MergedNodesCostWhatTheirKernelsDo) {
  for (const char* folder : {"examples/jax_cuda2", "examples/jax_cpu4"}) {
    const TemporaryDirectory directory;
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> traces,
                         ExpandPaths(Files(), folder, {"", {".xplane.pb", ".xplane.pb.gz"}}));
    ASSERT_THAT(ExportXSpaces(Files(), traces, directory.PathOf("kernel")), IsOk());
    const auto kernels = CostsBySteps(directory.PathOf("kernel.0.et"));
    int64_t operations = 0;
    for (const auto& [step, cost] : kernels) operations += cost.first;
    EXPECT_GT(operations, 1000);
    for (const WorkGranularity granularity : {WorkGranularity::kHlo, WorkGranularity::kStep}) {
      XSpaceExportOptions options;
      options.granularity = granularity;
      ASSERT_THAT(ExportXSpaces(Files(), traces, directory.PathOf("merged"), options), IsOk());
      EXPECT_EQ(CostsBySteps(directory.PathOf("merged.0.et")), kernels) << folder;
    }
  }
}

TEST(XSpaceExporterTest, FullTracesSayWhenThereAreNoHostCalls) {
  for (const char* folder : {"examples/jax_cuda2", "examples/jax_cpu4"}) {
    const TemporaryDirectory directory;
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> traces,
                         ExpandPaths(Files(), folder, {"", {".xplane.pb", ".xplane.pb.gz"}}));
    XSpaceExportOptions options;
    options.flavor = EtFlavor::kFull;
    ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report,
                         ExportXSpaces(Files(), traces, directory.PathOf("et"), options));
    const bool says =
        std::any_of(report.warnings().begin(), report.warnings().end(), [](const auto& warning) {
          return warning.find("--flavor=full adds no host nodes") != std::string::npos;
        });
    EXPECT_EQ(says, folder == std::string("examples/jax_cpu4")) << folder;
  }
}

TEST(XSpaceExporterTest, StartsAreUnixTime) {
  const TemporaryDirectory directory;
  const SyntheticRunOptions run;
  const std::vector<std::string> traces = WriteRun(directory, SyntheticRun(run));
  ASSERT_THAT(ExportXSpaces(Files(), traces, directory.PathOf("et")), IsOk());
  const ExecutionGraph graph = ReadGraph(directory.PathOf("et"), "");
  std::vector<int64_t> starts;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.communication(node) != nullptr && graph.rank(node) == 1) {
      starts.push_back(graph.start_ns(node));
    }
  }
  EXPECT_THAT(starts,
              ElementsAre(TrueAllReduce(run, 1, 0).start_ns, TrueAllReduce(run, 1, 1).start_ns,
                          TrueAllReduce(run, 1, 2).start_ns));
}

TEST(XSpaceExporterTest, ClocksThatDisagreeAreRefusedUnlessInsistedOn) {
  const TemporaryDirectory directory;
  SyntheticRunOptions run;
  std::vector<XSpaceProto> profiles = SyntheticRun(run);
  // Rank 1 as if its session had begun 10 ms later.
  run.start_ns += 10000000;
  profiles[1] = SyntheticRun(run)[1];
  const std::vector<std::string> traces = WriteRun(directory, profiles);
  const std::string prefix = directory.PathOf("et");
  EXPECT_THAT(ExportXSpaces(Files(), traces, prefix),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("rank0.xplane.pb"), HasSubstr("all-reduce.2 of jit_step"),
                             HasSubstr("run combine first"))));
  EXPECT_FALSE(FindEtFiles(Files(), prefix).ok());
  XSpaceExportOptions options;
  options.allow_violations = true;
  EXPECT_THAT(ExportXSpaces(Files(), traces, prefix, options), IsOk());
}

TEST(XSpaceExporterTest, AMissingRankIsRefusedAndNothingWritten) {
  const TemporaryDirectory directory;
  std::vector<XSpaceProto> profiles = SyntheticRun({});
  profiles.resize(1);
  const std::vector<std::string> traces = WriteRun(directory, profiles);
  EXPECT_THAT(
      ExportXSpaces(Files(), traces, directory.PathOf("et")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no profile has the work of rank 1")));
  EXPECT_FALSE(FindEtFiles(Files(), directory.PathOf("et")).ok());
}

TEST(XSpaceExporterTest, ProfilesThatDisagreeAboutACollectiveAreRefused) {
  const TemporaryDirectory directory;
  SyntheticRunOptions run;
  std::vector<XSpaceProto> profiles = SyntheticRun(run);
  run.elements = 2048;
  profiles[1] = SyntheticRun(run)[1];
  const std::vector<std::string> traces = WriteRun(directory, profiles);
  EXPECT_THAT(ExportXSpaces(Files(), traces, directory.PathOf("et")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("rank0.xplane.pb"), HasSubstr("rank1.xplane.pb"),
                             HasSubstr("disagree about the program jit_step"),
                             HasSubstr("all-reduce all-reduce.2 of 4096 bytes {0,1}"),
                             HasSubstr("all-reduce all-reduce.2 of 8192 bytes {0,1}"))));
  EXPECT_FALSE(FindEtFiles(Files(), directory.PathOf("et")).ok());
  XSpaceExportOptions options;
  options.intent = EtIntent::kPostTransformed;
  EXPECT_THAT(ExportXSpaces(Files(), traces, directory.PathOf("et"), options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("disagree about the program jit_step")));
}

// One all-reduce of the program of that name, in that execution.
XSpaceProto OneAllReduce(int64_t partition, const std::string& instruction, int64_t run_id) {
  HloModuleBuilder program = PartitionedProgram(2);
  const xla::ShapeProto shape = ArrayShape(xla::F32, {64});
  auto* x = program.Add("x", "parameter", shape);
  AddAllReduce(instruction, shape, {x}, {{0, 1}}, &program);
  return GpuProfile(
      partition, program,
      {{run_id, 10, {{"ncclDevKernel_AllReduce(args)", instruction, 15, 100000, 200000, ""}}}});
}

TEST(XSpaceExporterTest, ProfilesWithoutACommonCollectiveAreRefused) {
  const TemporaryDirectory directory;
  const std::vector<std::string> traces =
      WriteRun(directory, {OneAllReduce(0, "all-reduce.2", 7), OneAllReduce(1, "all-reduce.3", 8)});
  for (const EtIntent intent : {EtIntent::kProfiled, EtIntent::kPostTransformed}) {
    XSpaceExportOptions options;
    options.intent = intent;
    EXPECT_THAT(
        ExportXSpaces(Files(), traces, directory.PathOf("et"), options),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("rank0.xplane.pb"), HasSubstr("are they all of one run"))));
  }
  EXPECT_FALSE(FindEtFiles(Files(), directory.PathOf("et")).ok());
}

TEST(XSpaceExporterTest, StepsThatDoNotExistAreRefused) {
  const TemporaryDirectory directory;
  const std::vector<std::string> traces = WriteRun(directory, SyntheticRun({}));
  XSpaceExportOptions options;
  options.steps = NumberRange{-7, -6};
  EXPECT_THAT(
      ExportXSpaces(Files(), traces, directory.PathOf("et"), options),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--steps=-7..-6 selects no work")));
}

TEST(XSpaceExporterTest, TheStartOfASessionMayBeGiven) {
  const TemporaryDirectory directory;
  const SyntheticRunOptions run;
  std::vector<XSpaceProto> profiles = SyntheticRun(run);
  // The second profile does not say when it began.
  for (auto& plane : *profiles[1].mutable_planes()) {
    if (plane.name() == kTaskEnvPlaneName) plane.clear_stats();
  }
  const std::vector<std::string> traces = WriteRun(directory, profiles);
  const std::string prefix = directory.PathOf("et");
  EXPECT_THAT(ExportXSpaces(Files(), traces, prefix),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("rank1.xplane.pb"), HasSubstr("--profile_start_ns"))));
  XSpaceExportOptions options;
  options.profile_starts_ns = {std::nullopt, run.start_ns + run.session_spread_ns};
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report,
                       ExportXSpaces(Files(), traces, prefix, options));
  EXPECT_EQ(report.measured_ns(), report.replayed_ns());
  const ExecutionGraph graph = ReadGraph(prefix, "");
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.communication(node) == nullptr || graph.rank(node) != 1) continue;
    EXPECT_EQ(graph.start_ns(node), TrueAllReduce(run, 1, 0).start_ns);
    break;
  }
}

// The order of programs is all that times tell; of several profiles they need a common start.
TEST(XSpaceExporterTest, ProgramsOfASingleProfileNeedNoStart) {
  const TemporaryDirectory directory;
  HloModuleBuilder program = PartitionedProgram(1);
  const xla::ShapeProto shape = ArrayShape(xla::F32, {64});
  program.Add("a", "fusion", shape, {program.Add("x", "parameter", shape)});
  XSpaceProto profile = GpuProfile(0, program, {{7, 1000, {{"a", "a", 14, 10000, 20000, ""}}}});
  const std::string prefix = directory.PathOf("et");
  for (const EtIntent intent : {EtIntent::kPostTransformed, EtIntent::kPreTransformed}) {
    XSpaceExportOptions options;
    options.intent = intent;
    ASSERT_THAT(ExportXSpaces(Files(), WriteRun(directory, {profile}), prefix, options), IsOk());
    const std::string with_start = directory.Read("et.0.et");
    XSpaceProto unknown = profile;
    for (auto& plane : *unknown.mutable_planes()) {
      if (plane.name() == kTaskEnvPlaneName) plane.clear_stats();
    }
    ASSERT_THAT(ExportXSpaces(Files(), WriteRun(directory, {unknown}), prefix, options), IsOk());
    EXPECT_EQ(directory.Read("et.0.et"), with_start);
    const auto needs_start =
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("give --profile_start_ns"));
    EXPECT_THAT(ExportXSpaces(Files(), WriteRun(directory, {unknown}), prefix), needs_start);
    EXPECT_THAT(ExportXSpaces(Files(), WriteRun(directory, {unknown, profile}), prefix, options),
                needs_start);
  }
}

// A ring of three that computes, shifts its data and computes again, twice.
TEST(XSpaceExporterTest, PermutesAreMessagesThatSimulatorsRun) {
  HloModuleBuilder program = PartitionedProgram(3);
  const xla::ShapeProto shape = ArrayShape(xla::F32, {64});
  auto* x = program.Add("x", "parameter", shape);
  auto* a = program.Add("a", "fusion", shape, {x});
  auto* shifted = AddPermute("ppermute.1", shape, {a}, {{0, 1}, {1, 2}, {2, 0}}, &program);
  program.Add("b", "fusion", shape, {shifted});
  std::vector<XSpaceProto> profiles;
  for (const int64_t rank : {0, 1, 2}) {
    std::vector<ProfileRun> runs;
    for (const int64_t run : {0, 1}) {
      const int64_t begin_ns = run * 200000;
      runs.push_back({7 + run,
                      begin_ns + 1000,
                      {{"a", "a", 14, begin_ns + 10000, begin_ns + 20000 + 5000 * rank, ""},
                       {"ncclDevKernel_SendRecv(args)", "ppermute.1", 14,
                        begin_ns + 20000 + 5000 * rank, begin_ns + 60000, ""},
                       {"b", "b", 14, begin_ns + 60000, begin_ns + 90000, ""}}});
    }
    profiles.push_back(GpuProfile(rank, program, runs));
  }
  const TemporaryDirectory directory;
  const std::string prefix = directory.PathOf("et");
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report,
                       ExportXSpaces(Files(), WriteRun(directory, profiles), prefix));
  EXPECT_EQ(report.replayed_ns(), report.measured_ns());
  EtProblems problems;
  ASSERT_OK_AND_ASSIGN(const EtFiles files, FindEtFiles(Files(), prefix));
  EXPECT_THAT(CheckEtFiles(Files(), files, {}, &problems), IsOk());
  const ExecutionGraph graph = ReadGraph(prefix, "");
  CheckEtGraph(graph, &problems);
  for (const ChakraProblemReport& problem : problems.report().problems()) {
    ADD_FAILURE() << problem.message();
  }
  // (tag, source, target) -> sends and receives.
  std::map<std::tuple<int32_t, int64_t, int64_t>, std::pair<int, int>> messages;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const Communication* communication = graph.communication(node);
    if (communication == nullptr) continue;
    auto& [sends, receives] =
        messages[{communication->tag, communication->source, communication->target}];
    if (graph.type(node) == ChakraProtoMsg::COMM_SEND_NODE) {
      EXPECT_EQ(graph.rank(node), communication->source);
      ++sends;
    } else {
      EXPECT_EQ(graph.rank(node), communication->target);
      ++receives;
    }
  }
  // Three pairs in each of two executions, every one with a single send and a single receive.
  EXPECT_THAT(messages, SizeIs(6));
  for (const auto& [key, counts] : messages) EXPECT_EQ(counts, std::make_pair(1, 1));
}

// Two TPU cores: a fusion, an all-reduce that runs beside the next fusion, and a loop around the
// last op.
TEST(XSpaceExporterTest, TpuOpsAreNodesAndAsynchronousCollectivesRunBesideThem) {
  HloModuleBuilder program = PartitionedProgram(2);
  const xla::ShapeProto shape = ArrayShape(xla::F32, {64});
  auto* x = program.Add("x", "parameter", shape);
  auto* a = program.Add("a", "fusion", shape, {x});
  auto* start = AddAllReduce("all-reduce-start.1", shape, {a}, {{0, 1}}, &program);
  start->set_opcode("all-reduce-start");
  auto* b = program.Add("b", "fusion", shape, {a});
  auto* done = program.Add("all-reduce-done.1", "all-reduce-done", shape, {start});
  program.Add("c", "fusion", shape, {done, b});
  std::vector<XSpaceProto> profiles;
  for (const int64_t core : {0, 1}) {
    // The second core is 5 us late.
    const int64_t late = 5000 * core;
    profiles.push_back(TpuProfile(core, program,
                                  {{7,
                                    1000,
                                    {{"", "a", 0, 10000 + late, 20000 + late, ""},
                                     {"", "all-reduce-start.1", 0, 20000 + late, 21000 + late, ""},
                                     {"", "b", 0, 21000 + late, 41000 + late, ""},
                                     {"", "all-reduce-done.1", 0, 45000 + late, 50000, ""},
                                     {"", "while.9", 0, 50000 + late, 70000 + late, ""},
                                     {"", "c", 0, 52000 + late, 62000 + late, ""}}}}));
  }
  const TemporaryDirectory directory;
  const std::vector<std::string> traces = WriteRun(directory, profiles);
  const std::string prefix = directory.PathOf("et");
  ASSERT_OK_AND_ASSIGN(const ChakraWorkloadReport report, ExportXSpaces(Files(), traces, prefix));
  ASSERT_THAT(report.ranks(), SizeIs(2));
  EXPECT_EQ(report.ranks(0).left_out().at("op that surrounds others"), 1);
  EXPECT_EQ(report.ranks(0).comm_nodes(), 1);
  EXPECT_GT(report.edges().at("data"), 0);
  EXPECT_GT(report.edges().at("stream"), 0);
  EXPECT_NEAR(static_cast<double>(report.replayed_ns()), static_cast<double>(report.measured_ns()),
              0.05 * static_cast<double>(report.measured_ns()));
  const ExecutionGraph graph = ReadGraph(prefix, "");
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (graph.communication(node) == nullptr) continue;
    EXPECT_EQ(graph.CommunicationKind(node), "ALL_REDUCE");
    EXPECT_EQ(graph.communication(node)->bytes, 256);
    // From when the late core had started, at 25 us, to 50 us.
    EXPECT_EQ(graph.duration_ns(node), 25000);
  }
}

// What one rank does once, by the HLO alone: (type, bytes) -> how often.
using CommCounts = std::map<std::pair<int, int64_t>, int64_t>;

CommCounts CountInHlo(const std::string& trace, const std::vector<std::string>& programs) {
  CommCounts counts;
  const absl::StatusOr<XSpaceReader> reader = XSpaceReader::Open(Files(), trace);
  EXPECT_THAT(reader, IsOk());
  const auto metadata = reader->FindPlane(kMetadataPlaneName);
  const HloModuleIndex index(**metadata);
  for (const HloProgram& program : index.programs()) {
    // Others were compiled, but did not run while the profile was taken.
    if (std::find(programs.begin(), programs.end(), program.name()) == programs.end()) continue;
    const auto collectives = program.Collectives();
    EXPECT_THAT(collectives, IsOk());
    for (const HloCollective& collective : (*collectives)->all()) {
      int type = 0;
      switch (collective.kind) {
        case CollectiveKind::kAllReduce:
          type = ChakraProtoMsg::ALL_REDUCE;
          break;
        case CollectiveKind::kAllGather:
          type = ChakraProtoMsg::ALL_GATHER;
          break;
        case CollectiveKind::kReduceScatter:
          type = ChakraProtoMsg::REDUCE_SCATTER;
          break;
        case CollectiveKind::kAllToAll:
          type = ChakraProtoMsg::ALL_TO_ALL;
          break;
        default:
          type = -1;
      }
      ++counts[{type, collective.operand_bytes}];
    }
  }
  return counts;
}

CommGroups GroupsIn(const ChakraWorkloadReport& report) {
  if (report.comm_groups().empty()) return {};
  return *ReadCommGroups(Files(), report.comm_groups());
}

struct Example {
  const char* folder;
  std::vector<std::string> programs;
  // Executions of each program.
  int64_t runs;
  int64_t steps;
  std::vector<std::vector<int64_t>> groups;
};

class ExampleTest : public ::testing::TestWithParam<Example> {
 protected:
  ExampleTest()
      : traces_(*ExpandPaths(Files(), GetParam().folder, {"", {".xplane.pb", ".xplane.pb.gz"}})),
        prefix_(directory_.PathOf("et")) {}

  ChakraWorkloadReport Export(const XSpaceExportOptions& options = {}) {
    absl::StatusOr<ChakraWorkloadReport> report = ExportXSpaces(Files(), traces_, prefix_, options);
    EXPECT_THAT(report, IsOk());
    return *std::move(report);
  }

  const TemporaryDirectory directory_;
  const std::vector<std::string> traces_;
  const std::string prefix_;
};

void ExpectReplayWithinFivePercent(const ChakraWorkloadReport& report) {
  EXPECT_GT(report.measured_ns(), 0);
  EXPECT_NEAR(static_cast<double>(report.replayed_ns()), static_cast<double>(report.measured_ns()),
              0.05 * static_cast<double>(report.measured_ns()));
}

// What is known of each node, by rank and id.
std::map<std::pair<int64_t, uint64_t>, std::string> Describe(const ExecutionGraph& graph) {
  std::map<std::pair<int64_t, uint64_t>, std::string> nodes;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    std::string& text = nodes[{graph.rank(node), graph.id(node)}];
    text = absl::StrCat(std::string(graph.name(node)), " ", graph.type(node), " ",
                        ResourceName(graph.resource(node)), " ", graph.start_ns(node), " ",
                        graph.duration_ns(node), " ", EdgeKindsText(graph.dependency_kinds(node)));
    for (const NodeIndex source : graph.dependencies(node)) {
      absl::StrAppend(&text, " ", graph.id(source));
    }
  }
  return nodes;
}

TEST_P(ExampleTest, RankByRankIsAsAllAtOnce) {
  for (const WorkGranularity granularity : {WorkGranularity::kKernel, WorkGranularity::kHlo}) {
    XSpaceExportOptions options;
    options.granularity = granularity;
    const ChakraWorkloadReport report = Export(options);
    ASSERT_OK_AND_ASSIGN(const ProfiledRun run, ReadProfiledRun(Files(), traces_, options));
    ASSERT_OK_AND_ASSIGN(const XSpaceGraph built, BuildXSpaceGraph(run, options));
    EXPECT_EQ(Describe(ReadGraph(prefix_, report.comm_groups())), Describe(built.graph));
  }
}

TEST_P(ExampleTest, EveryDeviceEventAndEveryKindOfEdgeIsThere) {
  const ChakraWorkloadReport report = Export();
  for (const ChakraWorkloadRank& rank : report.ranks()) {
    EXPECT_GT(rank.nodes(), 0);
    EXPECT_THAT(rank.left_out(), IsEmpty());
  }
  EXPECT_GT(report.edges().at("data"), 0);
  EXPECT_GT(report.edges().at("stream"), 0);
  EXPECT_GT(report.edges().at("launch"), 0);
  EXPECT_THAT(report.warnings(), IsEmpty());
}

TEST_P(ExampleTest, TracesForAnalysisRunWithOneCommunicationAtATimeToo) {
  XSpaceExportOptions options;
  options.flavor = EtFlavor::kFull;
  const ChakraWorkloadReport report = Export(options);
  EXPECT_THAT(report.warnings(), Not(Contains(HasSubstr("would not run to the end"))));
  const ExecutionGraph graph = ReadGraph(prefix_, report.comm_groups());
  ReplayOptions simulator;
  simulator.resources = ReplayResources::kSimulator;
  simulator.send_mode = SendMode::kEager;
  EXPECT_THAT(ReplayGraph(graph, CommunicationMatch(graph), simulator), IsOk());
}

// A simulator with a roofline insists on both, of every computation.
TEST_P(ExampleTest, EveryComputationHasOperationsAndBytes) {
  for (const EtIntent intent : {EtIntent::kProfiled, EtIntent::kPostTransformed}) {
    XSpaceExportOptions options;
    options.intent = intent;
    Export(options);
    ASSERT_OK_AND_ASSIGN(EtReader reader, EtReader::Open(Files(), prefix_ + ".0.et"));
    int64_t priced = 0;
    ChakraProtoMsg::Node node;
    while (*reader.Next(&node)) {
      if (node.type() != ChakraProtoMsg::COMP_NODE) continue;
      ASSERT_OK_AND_ASSIGN(const auto operations, GetIntAttribute(node.attr(), kNumOpsAttribute));
      ASSERT_OK_AND_ASSIGN(const auto bytes, GetIntAttribute(node.attr(), kTensorSizeAttribute));
      ASSERT_TRUE(operations.has_value() && bytes.has_value()) << node.name();
      EXPECT_GE(*operations, 1) << node.name();
      EXPECT_GE(*bytes, node.data_deps().empty() ? kMinEarlyTensorBytes : 1) << node.name();
      priced += *bytes > 1;
    }
    EXPECT_GT(priced, 10);
  }
}

TEST_P(ExampleTest, CollectivesAgreeWithTheHlo) {
  const ChakraWorkloadReport report = Export();
  const ExecutionGraph graph = ReadGraph(prefix_, report.comm_groups());
  for (const int64_t rank : graph.Ranks()) {
    CommCounts counts;
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      const Communication* communication = graph.communication(node);
      if (graph.rank(node) != rank || communication == nullptr) continue;
      if (graph.type(node) == ChakraProtoMsg::COMM_COLL_NODE) {
        ++counts[{communication->type, communication->bytes}];
      } else if (graph.type(node) == ChakraProtoMsg::COMM_SEND_NODE) {
        ++counts[{-1, communication->bytes}];
      }
    }
    CommCounts expected = CountInHlo(traces_[0], GetParam().programs);
    for (auto& [key, count] : expected) {
      count *= GetParam().runs;
      // A rank of the 2 x 2 mesh sends in some of the permutes only.
      if (key.first == -1 && !GetParam().groups.empty()) {
        EXPECT_LE((counts[key]), count);
        count = counts[key];
      }
    }
    EXPECT_EQ(counts, expected) << "rank " << rank;
  }
  std::vector<std::vector<int64_t>> groups;
  for (const auto& [name, ranks] : GroupsIn(report)) groups.push_back(ranks);
  EXPECT_EQ(groups, GetParam().groups);
}

TEST_P(ExampleTest, TheReplayTakesAsLongAsTheRunAndEachStep) {
  for (const EtFlavor flavor : {EtFlavor::kSimulation, EtFlavor::kFull}) {
    for (const WorkGranularity granularity :
         {WorkGranularity::kKernel, WorkGranularity::kHlo, WorkGranularity::kStep}) {
      XSpaceExportOptions options;
      options.flavor = flavor;
      options.granularity = granularity;
      ExpectReplayWithinFivePercent(Export(options));
    }
  }
  for (int64_t step = 0; step < GetParam().steps; ++step) {
    XSpaceExportOptions options;
    options.steps = NumberRange{step, step};
    ExpectReplayWithinFivePercent(Export(options));
  }
}

TEST_P(ExampleTest, SimulatorsFindNothingWrong) {
  for (const EtIntent intent : {EtIntent::kProfiled, EtIntent::kPostTransformed}) {
    XSpaceExportOptions options;
    options.intent = intent;
    const ChakraWorkloadReport report = Export(options);
    EtProblems problems;
    EtGraphReaderOptions check;
    check.groups = GroupsIn(report);
    ASSERT_OK_AND_ASSIGN(const EtFiles files, FindEtFiles(Files(), prefix_));
    EXPECT_THAT(CheckEtFiles(Files(), files, check, &problems), IsOk());
    CheckEtGraph(ReadGraph(prefix_, report.comm_groups()), &problems);
    for (const ChakraProblemReport& problem : problems.report().problems()) {
      ADD_FAILURE() << problem.message();
    }
  }
}

TEST_P(ExampleTest, ProgramsAloneHaveEachCollectiveOnce) {
  XSpaceExportOptions options;
  options.intent = EtIntent::kPostTransformed;
  const ChakraWorkloadReport report = Export(options);
  const ExecutionGraph graph = ReadGraph(prefix_, report.comm_groups());
  CommCounts counts;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    EXPECT_EQ(graph.start_ns(node), kNoTimeNs);
    EXPECT_EQ(graph.duration_ns(node), 0);
    if (graph.rank(node) == 0 && graph.type(node) == ChakraProtoMsg::COMM_COLL_NODE) {
      ++counts[{graph.communication(node)->type, graph.communication(node)->bytes}];
    }
  }
  CommCounts expected;
  for (const auto& [key, count] : CountInHlo(traces_[0], GetParam().programs)) {
    if (key.first != -1) expected[key] = count;
  }
  EXPECT_EQ(counts, expected);
}

// Ids of the tensors in "[[7, 2, ...], [9, ...]]".
std::set<int64_t> TensorIds(const ChakraProtoMsg::IOInfo& info) {
  std::set<int64_t> ids;
  for (absl::string_view tensor : absl::StrSplit(info.values(), '[', absl::SkipEmpty())) {
    int64_t id = 0;
    if (absl::SimpleAtoi(tensor.substr(0, tensor.find(',')), &id)) ids.insert(id);
  }
  return ids;
}

// Whoever waits for data reads a tensor of the one that it waits for. Both ends of a message wait for
// what is sent, and are waited for; one reads, the other writes.
TEST_P(ExampleTest, TensorsTellTheDataEdgesOfPrograms) {
  for (const EtIntent intent : {EtIntent::kPostTransformed, EtIntent::kPreTransformed}) {
    XSpaceExportOptions options;
    options.intent = intent;
    const ChakraWorkloadReport report = Export(options);
    std::map<uint64_t, ChakraProtoMsg::Node> nodes;
    ASSERT_OK_AND_ASSIGN(EtReader reader, EtReader::Open(Files(), report.ranks(1).path()));
    ASSERT_OK(reader.ForEachNode([&](const ChakraProtoMsg::Node& node) {
      nodes[node.id()] = node;
      return absl::OkStatus();
    }));
    int64_t told = 0;
    int64_t untold = 0;
    for (const auto& [id, node] : nodes) {
      EXPECT_FALSE(node.type() == ChakraProtoMsg::COMM_SEND_NODE && node.has_outputs());
      EXPECT_FALSE(node.type() == ChakraProtoMsg::COMM_RECV_NODE && node.has_inputs());
      ASSERT_OK_AND_ASSIGN(const std::optional<std::string> kinds,
                           GetStringAttribute(node.attr(), "dep_kinds"));
      if (kinds.has_value() || node.type() == ChakraProtoMsg::COMM_RECV_NODE) continue;
      const std::set<int64_t> reads = TensorIds(node.inputs());
      for (const uint64_t source : node.data_deps()) {
        if (nodes[source].type() == ChakraProtoMsg::COMM_SEND_NODE) continue;
        const std::set<int64_t> writes = TensorIds(nodes[source].outputs());
        const bool shares =
            absl::c_any_of(writes, [&](int64_t tensor) { return reads.count(tensor) > 0; });
        ++(shares ? told : untold);
      }
    }
    EXPECT_GE(told, 20);
    EXPECT_EQ(untold, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , ExampleTest,
    ::testing::Values(
        Example{"examples/jax_cuda2", {"jit_train_step", "jit_zoo"}, 8, 8, {}},
        Example{"examples/jax_tp_cuda4", {"jit_step"}, 6, 6, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}},
        Example{"examples/jax_cpu4", {"jit_train_step", "jit_zoo"}, 8, 8, {}}),
    [](const auto& info) { return std::string(info.param.folder).substr(9); });

}  // namespace
}  // namespace meridian
