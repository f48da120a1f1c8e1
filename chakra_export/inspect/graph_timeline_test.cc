#include "chakra_export/inspect/graph_timeline.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/inspect/node_times.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ExecutionGraph GraphOf(const std::vector<std::vector<ChakraProtoMsg::Node>>& ranks) {
  const TemporaryDirectory directory;
  absl::StatusOr<ExecutionGraph> graph =
      ReadEtGraph(FileSystem::Posix(), WriteWorkload(directory, "w", ranks));
  EXPECT_OK(graph);
  return *std::move(graph);
}

TEST(GraphTimelineTest, WritesMeasuredTimesFromTheFirstOn) {
  const ExecutionGraph graph = GraphOf(TrainingStep());
  ASSERT_TRUE(HasStartTimes(graph));
  std::string json;
  StringSink sink(&json);
  ASSERT_OK(WriteGraphTimeline(graph, MeasuredTimes(graph), &sink));
  EXPECT_THAT(
      json,
      AllOf(HasSubstr(R"("name":"process_name","args":{"name":"rank 1"})"),
            HasSubstr(R"("args":{"name":"stream 7"})"),
            HasSubstr("\"args\":{\"name\":\"stream 21 (receive)\"}"),
            HasSubstr(R"("ts":110,"name":"secret_model/layer1/attention_matmul")"),
            HasSubstr(R"("dur":80,"args":{"id":3,"waits_for":[1]})"),
            HasSubstr(R"("args":{"id":2,"bytes":8388608,"group":"","waits_for":[1]})"),
            HasSubstr(R"("args":{"id":7,"bytes":65536,"source":0,"target":1,"waits_for":[6]})")));
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  ASSERT_EQ(parser.parse(json).get(document), simdjson::SUCCESS);
}

TEST(GraphTimelineTest, WritesReplayedTimes) {
  const ExecutionGraph graph = GraphOf({{CompNode(1, 5), CompNode(2, 6, {1})}});
  EXPECT_FALSE(HasStartTimes(graph));
  ASSERT_OK_AND_ASSIGN(const GraphReplay replay,
                       ReplayAsSimulator(graph, CommunicationMatch(graph)));
  std::string json;
  StringSink sink(&json);
  ASSERT_OK(WriteGraphTimeline(graph, ReplayedTimes(replay), &sink));
  EXPECT_THAT(json, AllOf(HasSubstr(R"("ts":5,"name":"n2")"), HasSubstr(R"("dur":6,)")));
}

TEST(GraphTimelineTest, TimesThatDoNotFitAreAnError) {
  ChakraProtoMsg::Node node = CompNode(1, uint64_t{1} << 50);
  node.set_start_time_micros(1);
  const ExecutionGraph graph = GraphOf({{node}});
  std::string json;
  StringSink sink(&json);
  EXPECT_THAT(WriteGraphTimeline(graph, MeasuredTimes(graph), &sink),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("rank 0 node 1")));
}

}  // namespace
}  // namespace meridian
