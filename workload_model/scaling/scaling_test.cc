#include "workload_model/scaling/scaling.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/generate/generated_workload.h"
#include "chakra_export/generate/micro_benchmark.h"
#include "chakra_export/generate/transformer_step.h"
#include "chakra_export/run/workload_report.pb.h"
#include "chakra_export/testing/et_nodes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

TransformerOptions SmallTransformer(int64_t tp, int64_t dp, int64_t pp) {
  TransformerOptions options;
  options.tensor_parallel = tp;
  options.data_parallel = dp;
  options.pipeline_parallel = pp;
  options.layers = 2 * pp;
  options.hidden = 64;
  options.sequence = 16;
  options.vocabulary = 128;
  options.microbatches = 3;
  options.batch = 3 * dp;
  return options;
}

// What each rank communicates: rank, type, ranks of the group or peer, bytes -> how often. And how
// long it computes, as the rank's "compute".
using Work = std::map<std::tuple<int64_t, std::string, std::string>, int64_t>;

Work WorkOf(const std::string& prefix) {
  Work work;
  FileSystem& files = FileSystem::Posix();
  const absl::StatusOr<EtFiles> found = FindEtFiles(files, prefix);
  EXPECT_TRUE(found.ok()) << found.status();
  CommGroups groups;
  const std::string path = CommGroupsBeside(files, prefix);
  if (!path.empty()) groups = ReadCommGroups(files, path).value_or(CommGroups());
  for (const EtFile& file : found->files) {
    absl::StatusOr<EtReader> reader = EtReader::Open(files, file.path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    EXPECT_OK(reader->ForEachNode([&](const ChakraProtoMsg::Node& node) {
      const auto number = [&](absl::string_view name) {
        return GetIntAttribute(node.attr(), name).value_or(0).value_or(-1);
      };
      if (node.type() == ChakraProtoMsg::COMP_NODE) {
        work[{file.rank, "compute", ""}] += number(kDurationNsAttribute);
      } else if (node.type() == ChakraProtoMsg::COMM_COLL_NODE) {
        const std::string group =
            GetStringAttribute(node.attr(), kPgNameAttribute).value_or("").value_or("");
        ++work[{file.rank,
                absl::StrCat(number(kCommTypeAttribute), " of ", number(kCommSizeAttribute)),
                IsWorldGroup(group) ? "all" : absl::StrJoin(groups[group], ",")}];
      } else {
        ++work[{file.rank,
                absl::StrCat(ChakraProtoMsg::NodeType_Name(node.type()), " of ",
                             number(kCommSizeAttribute)),
                absl::StrCat(number(kCommSrcAttribute), "->", number(kCommDstAttribute))}];
      }
      return absl::OkStatus();
    }));
  }
  return work;
}

class ScalingTest : public testing::Test {
 protected:
  std::string Generate(const std::string& name, const TransformerOptions& options) {
    const auto workload = MakeTransformerStep(options);
    EXPECT_TRUE(workload.ok()) << workload.status();
    const std::string prefix = directory_.PathOf(name);
    EXPECT_OK(WriteGeneratedWorkload(FileSystem::Posix(), **workload, prefix));
    return prefix;
  }

  absl::StatusOr<ScaleReport> Scale(const std::string& prefix, const std::vector<int64_t>& layout,
                                    int64_t ranks = 0) {
    ScaleOptions options;
    for (const int64_t length : layout) options.layout.push_back({length, ""});
    options.ranks = ranks;
    return ScaleWorkload(FileSystem::Posix(), prefix, directory_.PathOf("scaled"), options);
  }

  TemporaryDirectory directory_;
};

// What 2 x 2 ranks do, on 2 x 4, is what 2 x 4 ranks with twice the batch do.
TEST_F(ScalingTest, MoreCopiesAreWhatMoreCopiesWouldBe) {
  for (const bool sharded : {false, true}) {
    TransformerOptions small = SmallTransformer(2, 2, 1), large = SmallTransformer(2, 4, 1);
    small.sharded = large.sharded = sharded;
    const std::string measured = Generate("small", small), truth = Generate("large", large);
    ASSERT_OK_AND_ASSIGN(const ScaleReport report, Scale(measured, {}, 8));
    EXPECT_EQ(report.new_ranks(), 8);
    ASSERT_EQ(report.axes_size(), 2);
    EXPECT_EQ(report.axes(0).kind(), "tensor");
    EXPECT_EQ(report.axes(1).kind(), "data");
    EXPECT_EQ(report.axes(1).new_length(), 4);
    Work scaled = WorkOf(directory_.PathOf("scaled")), wanted = WorkOf(truth);
    // A copy's share of the optimizer shrinks, which nothing in a trace tells.
    for (Work* work : {&scaled, &wanted}) {
      for (int64_t rank = 0; rank < 8; ++rank) work->erase({rank, "compute", ""});
    }
    EXPECT_EQ(scaled, wanted);
  }
}

// Along a pipeline, stages between are as the one between; messages go to the next.
TEST_F(ScalingTest, PipelinesBecomeLonger) {
  const std::string measured = Generate("small", SmallTransformer(2, 1, 3));
  const std::string truth = Generate("large", SmallTransformer(2, 1, 5));
  ASSERT_OK_AND_ASSIGN(const ScaleReport report, Scale(measured, {2, 5}));
  EXPECT_EQ(report.axes(1).kind(), "pipeline");
  EXPECT_EQ(WorkOf(directory_.PathOf("scaled")), WorkOf(truth));
}

// Twice the tensor parallel ranks compute half as much each.
TEST_F(ScalingTest, TensorAxesDivideTheWork) {
  TransformerOptions slow = SmallTransformer(2, 2, 1);
  slow.tflops = 1e-3;
  const std::string measured = Generate("small", slow);
  ASSERT_OK(Scale(measured, {4, 2}).status());
  TransformerOptions large = SmallTransformer(4, 2, 1);
  large.tflops = slow.tflops;
  Work truth = WorkOf(Generate("large", large)), scaled = WorkOf(directory_.PathOf("scaled"));
  for (int64_t rank = 0; rank < 8; ++rank) {
    const std::tuple<int64_t, std::string, std::string> compute(rank, "compute", "");
    const auto ns = static_cast<double>(truth.at(compute));
    EXPECT_NEAR(static_cast<double>(scaled.at(compute)), ns, ns * 0.01);
    truth.erase(compute);
    scaled.erase(compute);
  }
  // Gradients are those of half the parameters.
  EXPECT_EQ(scaled, truth);
}

TEST_F(ScalingTest, APipelineHasMessages) {
  const std::string measured = Generate("small", SmallTransformer(2, 2, 1));
  ScaleOptions named;
  named.layout = {{4, "pipeline"}, {2, "data"}};
  EXPECT_THAT(ScaleWorkload(FileSystem::Posix(), measured, directory_.PathOf("scaled"), named)
                  .status()
                  .message(),
              HasSubstr("a pipeline, but no messages go along it"));
}

// A job without data parallel copies: what its one axis of collectives is for must be said.
TEST_F(ScalingTest, AnAxisCanBeNamed) {
  TransformerOptions options = SmallTransformer(2, 1, 3);
  options.tflops = 1e-3;
  const std::string measured = Generate("small", options);
  ASSERT_OK_AND_ASSIGN(const ScaleReport guessed, Scale(measured, {4, 3}));
  EXPECT_EQ(guessed.axes(0).kind(), "data");
  EXPECT_THAT(guessed.assumptions(0), HasSubstr("--layout can say which it is"));
  ScaleOptions named;
  named.layout = {{4, "tensor"}, {3, ""}};
  ASSERT_OK(ScaleWorkload(FileSystem::Posix(), measured, directory_.PathOf("scaled"), named));
  options.tensor_parallel = 4;
  const Work truth = WorkOf(Generate("large", options)),
             scaled = WorkOf(directory_.PathOf("scaled"));
  for (int64_t rank = 0; rank < 12; ++rank) {
    const double wanted = static_cast<double>(truth.at({rank, "compute", ""}));
    // The embedding is computed whole by each.
    EXPECT_NEAR(static_cast<double>(scaled.at({rank, "compute", ""})) / wanted, 1, 0.02) << rank;
  }
  named.layout[0].second = "magic";
  EXPECT_FALSE(ScaleWorkload(FileSystem::Posix(), measured, directory_.PathOf("x"), named).ok());
}

// All send to the first: along no axis does that go on.
TEST_F(ScalingTest, MessagesThatWouldNotMatchAreRefused) {
  MicroBenchmarkOptions options;
  options.pattern = "p2p-incast";
  options.ranks = 4;
  options.bytes = {1 << 20};
  const auto workload = MakeMicroBenchmark(options);
  ASSERT_OK(workload.status());
  const std::string prefix = directory_.PathOf("incast");
  ASSERT_OK(WriteGeneratedWorkload(FileSystem::Posix(), **workload, prefix));
  EXPECT_THAT(Scale(prefix, {}, 8).status().message(), HasSubstr("would not agree"));
}

TEST_F(ScalingTest, WhatDoesNotFitIsRefused) {
  const std::string pipeline = Generate("pipeline", SmallTransformer(1, 2, 2));
  EXPECT_THAT(Scale(pipeline, {2, 4}).status().message(), HasSubstr("measure three"));
  EXPECT_THAT(Scale(pipeline, {2}).status().message(), HasSubstr("a mesh of 2x2"));
  EXPECT_THAT(Scale(pipeline, {}, 7).status().message(), HasSubstr("no multiple of 2"));
  EXPECT_THAT(Scale(pipeline, {1 << 20, 2}).status().message(), HasSubstr("at most 16384"));
  EXPECT_THAT(Scale(pipeline, {0, 2}).status().message(), HasSubstr("below 1"));
  EXPECT_FALSE(Scale(directory_.PathOf("nothing"), {2, 2}).ok());
  EXPECT_THAT(Scale(Generate("one", SmallTransformer(1, 1, 1)), {}, 8).status().message(),
              HasSubstr("one rank"));
}

// They were copied, and simulators refused the copies.
TEST_F(ScalingTest, NodesThatDoNotFitTogetherAreRefused) {
  const std::string prefix = Generate("w", SmallTransformer(2, 2, 1));
  const std::string sound = directory_.Read("w.0.et");
  const auto with_dependency_on = [&](uint64_t id, int copies = 1) {
    ChakraProtoMsg::Node node;
    node.set_id(1'000'000);
    node.set_type(ChakraProtoMsg::COMP_NODE);
    node.add_data_deps(id);
    std::string bytes = sound;
    for (int i = 0; i < copies; ++i) AppendEtRecord(node, &bytes);
    directory_.Write("w.0.et", bytes);
    return std::string(Scale(prefix, {}, 8).status().message());
  };
  EXPECT_THAT(with_dependency_on(1'000'000), HasSubstr("a cycle: rank 0 node 1000000"));
  EXPECT_THAT(with_dependency_on(2'000'000),
              HasSubstr("node 1000000 depends on 2000000, which no node has as id"));
  EXPECT_THAT(with_dependency_on(0, 2), HasSubstr("1000000"));
}

// What was written of them ran until all ranks waited for each other.
TEST_F(ScalingTest, CollectivesThatRanksDisagreeAboutAreRefused) {
  const std::string prefix = Generate("w", SmallTransformer(2, 2, 1));
  const auto with_last = [&](int rank, ChakraProtoMsg::CollectiveCommType type) {
    std::string bytes = directory_.Read(absl::StrCat("w.", rank, ".et"));
    AppendEtRecord(CollectiveNode(1'000'000, type, 4096), &bytes);
    directory_.Write(absl::StrCat("w.", rank, ".et"), bytes);
    return std::string(Scale(prefix, {}, 8).status().message());
  };
  EXPECT_THAT(with_last(0, ChakraProtoMsg::ALL_REDUCE), HasSubstr("but rank 1 has only"));
  with_last(1, ChakraProtoMsg::ALL_TO_ALL);
  with_last(2, ChakraProtoMsg::ALL_REDUCE);
  EXPECT_THAT(with_last(3, ChakraProtoMsg::ALL_REDUCE), HasSubstr("but its peer"));
}

// Doubled, a size of 2^63 - 1 was written as -2^63.
TEST_F(ScalingTest, BytesThatNoSimulatorTakesAreRefused) {
  const std::string prefix = Generate("w", SmallTransformer(2, 2, 1));
  const auto with_bytes = [&](int64_t bytes) {
    for (int rank = 0; rank < 4; ++rank) {
      const std::string file = absl::StrCat("w.", rank, ".et");
      std::string text = directory_.Read(file);
      AppendEtRecord(CollectiveNode(static_cast<uint64_t>(1'000'000 + bytes % 2),
                                    ChakraProtoMsg::ALL_REDUCE, bytes),
                     &text);
      directory_.Write(file, text);
    }
    return Scale(prefix, {}, 8).status();
  };
  EXPECT_OK(with_bytes(kMaxCommBytes));
  EXPECT_THAT(with_bytes(std::numeric_limits<int64_t>::max()).message(),
              HasSubstr("comm_size 9223372036854775807 is out of range"));
}

TEST_F(ScalingTest, GroupsThatAreNoRowsAreRefused) {
  const std::string prefix = Generate("w", SmallTransformer(2, 2, 1));
  directory_.Write("w.comm_groups.json", R"({"1": [0, 3], "2": [1, 2]})");
  EXPECT_THAT(Scale(prefix, {}, 8).status().message(), HasSubstr("the group {0,3}"));
  directory_.Write("w.comm_groups.json", R"({"1": [0, 1, 2], "2": [3]})");
  EXPECT_FALSE(Scale(prefix, {}, 8).ok());
}

}  // namespace
}  // namespace meridian
