#include "astra_bridge/engine/simulation_report.h"

#include <string>

#include "astra_bridge/engine/testing/builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TimelineTest, PutsNodesOnThreadsWhereTheyDoNotOverlap) {
  Workload workload;
  workload.ranks.resize(2);
  WorkloadNode named = ComputeNode(1, 0);
  named.name = "matmul \"x\"";
  workload.ranks[0].Add(named);
  workload.ranks[0].Add(CollectiveNode(2, CollectiveKind::kAllReduce, 64, 3));
  workload.ranks[0].Add(SendNode(3, 1, 16));
  workload.ranks[1].Add(ReceiveNode(9, 0, 16));
  SimulationResult result;
  result.nodes = {{0, 1, 0, 1500}, {0, 2, 0, 800}, {0, 3, 500, 900}, {1, 9, 0, 900}};
  std::string json;
  StringSink sink(&json);
  ASSERT_OK(WriteTimeline(workload, result, &sink));
  EXPECT_THAT(
      json,
      AllOf(
          HasSubstr(R"("name":"process_name","args":{"name":"rank 1"})"),
          HasSubstr(
              R"({"ph":"X","pid":0,"tid":0,"ts":0,"name":"matmul \"x\"","cat":"compute","dur":1.5,"args":{"id":1}})"),
          HasSubstr(
              R"({"ph":"X","pid":0,"tid":1000000,"ts":0,"name":"all-reduce","cat":"communication","dur":0.8,"args":{"id":2,"bytes":64,"group":3}})"),
          // A second comm stream.
          HasSubstr(R"("tid":1000001,"ts":0.5,"name":"send to 1")"),
          HasSubstr(R"("pid":1,"tid":2000000,"ts":0,"name":"receive from 0")")));
}

}  // namespace
}  // namespace meridian
