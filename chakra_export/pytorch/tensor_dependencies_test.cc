#include "chakra_export/pytorch/op_tensors.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string List(const std::vector<std::string>& values) {
  std::string text = "[";
  for (const std::string& value : values) absl::StrAppend(&text, text == "[" ? "" : ", ", value);
  return absl::StrCat(text, "]");
}

// Operators whose ids are also their positions plus 1, and the work that they launched.
class TensorDependenciesTest : public ::testing::Test {
 protected:
  void Read(const HostTraceText& host) {
    text_ = host.Text();
    absl::StatusOr<HostTrace> trace = ReadHostTrace(text_, "et.json");
    ASSERT_OK(trace);
    host_ = *std::move(trace);
  }

  HostOpIndex OpOf(uint64_t id) const {
    for (HostOpIndex op = 0; op < host_.ops().size(); ++op) {
      if (host_.ops()[op].id == id) return op;
    }
    return kNoHostOp;
  }

  // Work of an operator; times in microseconds. Nodes come by start.
  TimelineIndex Add(uint64_t id, TrackId stream, int64_t launched, int64_t start,
                    int64_t duration) {
    TimelineNode node;
    node.row = static_cast<EventRow>(timeline_.nodes.size());
    node.track = stream;
    node.start_ps = start * kPsPerUs;
    node.duration_ps = duration * kPsPerUs;
    node.launched_ps = launched * kPsPerUs;
    node.launching_op = OpOf(id);
    timeline_.nodes.push_back(node);
    return static_cast<TimelineIndex>(timeline_.nodes.size() - 1);
  }

  // "source>node".
  std::vector<std::string> Edges() {
    AddTensorDependencies(host_, &timeline_);
    std::vector<std::string> texts;
    for (const DependencyEdge& edge : timeline_.edges) {
      EXPECT_TRUE(edge.kinds == EdgeKind::kData);
      texts.push_back(absl::StrCat(edge.source, ">", edge.node));
    }
    return texts;
  }

  std::string text_;
  HostTrace host_;
  RankTimeline timeline_;
};

// 2 writes x; 3 and 4 read it; 5 writes it again, so that it must come after both.
TEST_F(TensorDependenciesTest, ReadsWaitForTheWriteAndTheNextWriteForTheReads) {
  const std::string x = TensorJson(7, 256);
  Read(HostTraceText()
           .Op(2, 1, "write", 1, "[]", List({x}))
           .Op(3, 1, "read", 1, List({x}))
           .Op(4, 1, "read", 1, List({x}))
           .Op(5, 1, "write", 1, "[]", List({x})));
  Add(2, 1, 0, 10, 10);
  Add(3, 2, 1, 20, 10);
  Add(4, 3, 2, 20, 15);
  Add(5, 1, 3, 40, 10);
  EXPECT_THAT(Edges(), ElementsAre("0>1", "0>2", "0>3", "1>3", "2>3"));
  EXPECT_EQ(timeline_.edges_against_time, 0);
}

// Of the reads on one stream the last stands for all.
TEST_F(TensorDependenciesTest, OfAStreamsReadsTheNextWriteWaitsForTheLast) {
  const std::string x = TensorJson(7, 256);
  Read(HostTraceText()
           .Op(2, 1, "read", 1, List({x}))
           .Op(3, 1, "read", 1, List({x}))
           .Op(4, 1, "write", 1, "[]", List({x})));
  Add(2, 1, 0, 10, 10);
  Add(3, 1, 1, 20, 10);
  Add(4, 2, 2, 30, 10);
  EXPECT_THAT(Edges(), ElementsAre("1>2"));
}

TEST_F(TensorDependenciesTest, OtherStoragesAndTensorsOfTheHostDoNotMatter) {
  Read(HostTraceText()
           .Op(2, 1, "write", 1, "[]", List({TensorJson(7, 256), TensorJson(9, 4, "cpu")}))
           .Op(3, 1, "read", 1, List({TensorJson(8, 256), TensorJson(9, 4, "cpu")})));
  Add(2, 1, 0, 10, 10);
  Add(3, 2, 1, 20, 10);
  EXPECT_THAT(Edges(), IsEmpty());
}

// An all-reduce works in place, though its list of outputs is empty.
TEST_F(TensorDependenciesTest, CollectivesWriteWhatTheyRead) {
  const std::string x = TensorJson(7, 256);
  for (const char* name : {"record_param_comms", "nccl:all_reduce", "c10d::allreduce_"}) {
    timeline_ = RankTimeline();
    Read(HostTraceText().Op(2, 1, name, 1, List({x})).Op(3, 1, "read", 1, List({x})));
    Add(2, 1, 0, 10, 10);
    Add(3, 2, 1, 20, 10);
    EXPECT_THAT(Edges(), ElementsAre("0>1")) << name;
  }
}

// Launches decide which write a read sees, not starts: 3 was launched before 2, so it cannot have
// read what 2 writes.
TEST_F(TensorDependenciesTest, TheOrderIsThatOfLaunches) {
  const std::string x = TensorJson(7, 256);
  Read(HostTraceText().Op(2, 1, "write", 1, "[]", List({x})).Op(3, 1, "read", 1, List({x})));
  Add(2, 1, 5, 10, 10);
  Add(3, 2, 1, 30, 10);
  EXPECT_THAT(Edges(), IsEmpty());
  // The write after the read would run backwards in time.
  EXPECT_EQ(timeline_.edges_against_time, 1);
}

TEST_F(TensorDependenciesTest, WorkThatOverlapsDidNotTouchTheSameBytes) {
  const std::string x = TensorJson(7, 256);
  Read(HostTraceText().Op(2, 1, "write", 1, "[]", List({x})).Op(3, 1, "read", 1, List({x})));
  Add(2, 1, 0, 10, 10);
  Add(3, 2, 1, 19, 10);
  EXPECT_THAT(Edges(), IsEmpty());
  EXPECT_EQ(timeline_.edges_against_time, 1);
}

// Kernels of one operator read and write alike; only the first waits for the operator before, and
// each for the one before it.
TEST_F(TensorDependenciesTest, KernelsOfOneOperatorFollowEachOther) {
  const std::string x = TensorJson(7, 256);
  Read(HostTraceText().Op(2, 1, "add_", 1, List({x}), List({x})));
  Add(2, 1, 0, 10, 10);
  Add(2, 1, 1, 20, 10);
  EXPECT_THAT(Edges(), ElementsAre("0>1", "0>1"));
}

}  // namespace
}  // namespace meridian
