#include "chakra_export/pytorch/rank_timeline.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/op_tensors.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

// "a 70" for a node of 70 us, in the order of the timeline; "gap 10" for a gap.
class RankTimelineTest : public ::testing::Test {
 protected:
  void Build(const HostTraceText& host, const KinetoText& device) {
    host_text_ = host.Text();
    device_text_ = device.Text();
    const absl::StatusOr<HostTrace> trace = ReadHostTrace(host_text_, "et.json");
    absl::StatusOr<TraceJsonTable> table = LoadTraceJson(device_text_, "kineto.json");
    ASSERT_OK(trace);
    ASSERT_OK(table);
    table_ = std::move(table->table);
    timeline_ =
        BuildRankTimeline(table_, device_text_, LinkHostTrace(*trace, table_, device_text_));
    AddTensorDependencies(*trace, &timeline_);
  }
  void Build(const KinetoText& device) { Build(HostTraceText(), device); }

  std::string NameOf(TimelineIndex node) const {
    const EventRow row = timeline_.nodes[node].row;
    return row == kNoRow ? "gap" : std::string(table_.name(row));
  }

  std::vector<std::string> Nodes() const {
    std::vector<std::string> texts;
    for (TimelineIndex i = 0; i < timeline_.nodes.size(); ++i) {
      texts.push_back(absl::StrCat(NameOf(i), " ", timeline_.nodes[i].duration_ps / kPsPerUs));
    }
    return texts;
  }

  // "source > node: kinds".
  std::vector<std::string> Edges() const {
    std::vector<std::string> texts;
    for (const DependencyEdge& edge : timeline_.edges) {
      texts.push_back(
          absl::StrCat(NameOf(edge.source), " > ", NameOf(edge.node), ": ", edge.kinds.Letters()));
    }
    return texts;
  }

  std::string host_text_;
  std::string device_text_;
  EventTable table_;
  RankTimeline timeline_;
};

//   0     10     40    100 110  112        120 128 130 140  150
//   [a    [b     ]     ]gap[c   [synchronize        ]  ]gap [d  ]
//              kernel [50           ..         120)
TEST_F(RankTimelineTest, GivesCallsTheirOwnTimeWithoutWaiting) {
  Build(KinetoText()
            .Op("a", 1, 0, 100)
            .Op("b", 1, 10, 30)
            .Call("cudaLaunchKernel", 1, 20, 5, 1)
            .Op("c", 1, 110, 20)
            .Call("cudaDeviceSynchronize", 1, 112, 16, 2)
            .Op("d", 1, 140, 10)
            .Kernel("k", 7, 50, 70, 1));
  // c is 20 us long, of which it waited from 112 to 120.
  EXPECT_THAT(Nodes(), ElementsAre("a 70", "b 30", "k 70", "gap 10", "c 12", "gap 10", "d 10"));
  EXPECT_THAT(Edges(),
              ::testing::UnorderedElementsAre("a > b: p", "b > gap: p", "gap > c: p", "c > gap: p",
                                              "gap > d: p", "b > k: l", "k > gap: w"));
  EXPECT_EQ(timeline_.nodes[2].launching_op, kNoHostOp);
}

// Work that an operator launches after it has waited comes after what it waited for.
TEST_F(RankTimelineTest, OrdersWorkLaunchedAfterAWaitInTheSameCall) {
  Build(KinetoText()
            .Op("nonzero", 1, 0, 100)
            .Call("cudaLaunchKernel", 1, 5, 5, 1)
            .Call("cudaDeviceSynchronize", 1, 20, 20, 2)
            .Call("cudaLaunchKernel", 1, 50, 5, 3)
            .Kernel("count", 7, 10, 25, 1)
            .Kernel("write", 8, 60, 10, 3));
  EXPECT_THAT(Edges(), IsSupersetOf({"count > write: w"}));
}

// Thread 1 does nothing from 200 to 5000 us; thread 2's e ends at 4000. So 1000 us of that are
// thread 1's own, and they come after e. Thread 2 began after d, the last that was over by then.
TEST_F(RankTimelineTest, MakesThreadsWaitForThreads) {
  Build(KinetoText().Op("d", 1, 0, 200).Op("g", 1, 5000, 2000).Op("e", 2, 3000, 1000));
  EXPECT_THAT(Nodes(), ElementsAre("d 200", "gap 2800", "e 1000", "gap 1000", "g 2000"));
  EXPECT_THAT(Edges(), ::testing::UnorderedElementsAre("d > gap: p", "gap > g: p", "gap > e: p",
                                                       "d > gap: w", "e > gap: w"));
}

// Time within an operator is the thread's own.
TEST_F(RankTimelineTest, AnOperatorDoesNotWaitForOtherThreads) {
  Build(KinetoText().Op("f", 1, 0, 4900).Op("g", 1, 4900, 10).Op("e", 2, 100, 300));
  EXPECT_THAT(Edges(), ::testing::Not(::testing::Contains("e > g: w")));
}

TEST_F(RankTimelineTest, LooksThroughStepMarks) {
  Build(KinetoText().Step(3, 1, 0, 100).Op("a", 1, 10, 10).Op("b", 1, 50, 10));
  EXPECT_THAT(Nodes(), ElementsAre("a 10", "gap 30", "b 10"));
}

TEST_F(RankTimelineTest, WorkWhoseLaunchIsNotThereHasNoOperator) {
  Build(KinetoText().Op("a", 1, 0, 10).Kernel("k", 7, 5, 5, 99));
  EXPECT_EQ(timeline_.nodes[1].launching_op, kNoHostOp);
  EXPECT_THAT(Edges(), IsEmpty());
}

TEST_F(RankTimelineTest, CutsCallsThatOutlastTheirCaller) {
  Build(KinetoText().Op("a", 1, 0, 100).Op("b", 1, 50, 100).Op("c", 1, 120, 10));
  EXPECT_THAT(Nodes(), ElementsAre("a 50", "b 50", "gap 20", "c 10"));
}

// The reduction on stream 8 reads what the first kernel wrote, and the last one reads its result.
TEST_F(RankTimelineTest, FollowsTensorsAcrossStreams) {
  const std::string grad = absl::StrCat("[", TensorJson(5, 8), "]");
  Build(HostTraceText()
            .Op(2, 1, "aten::mul", 1, "[]", grad)
            .Op(3, 1, "nccl:all_reduce", 1, grad)
            .Op(4, 1, "aten::add_", 1, grad),
        KinetoText()
            .Op("aten::mul", 1, 0, 10, 2)
            .Call("cudaLaunchKernel", 1, 5, 2, 1)
            .Op("nccl:all_reduce", 1, 10, 10, 3)
            .Call("cudaLaunchKernel", 1, 15, 2, 2)
            .Op("aten::add_", 1, 20, 10, 4)
            .Call("cudaLaunchKernel", 1, 25, 2, 3)
            .Kernel("mul", 7, 30, 10, 1)
            .Kernel("ncclDevKernel_AllReduce", 8, 40, 10, 2)
            .Kernel("add", 7, 50, 10, 3));
  EXPECT_THAT(Edges(), IsSupersetOf({"mul > ncclDevKernel_AllReduce: d",
                                     "ncclDevKernel_AllReduce > add: d"}));
  for (const TimelineNode& node : timeline_.nodes) {
    EXPECT_EQ(node.launching_op == kNoHostOp, node.on_host);
  }
}

// Overlapping work cannot have waited.
TEST_F(RankTimelineTest, LeavesOutTensorsThatContradictTheTimes) {
  const std::string grad = absl::StrCat("[", TensorJson(5, 8), "]");
  Build(HostTraceText().Op(2, 1, "a", 1, "[]", grad).Op(3, 1, "b", 1, grad),
        KinetoText()
            .Op("a", 1, 0, 10, 2)
            .Call("cudaLaunchKernel", 1, 5, 2, 1)
            .Op("b", 1, 10, 10, 3)
            .Call("cudaLaunchKernel", 1, 15, 2, 2)
            .Kernel("write", 7, 30, 20, 1)
            .Kernel("read", 8, 40, 10, 2));
  EXPECT_THAT(Edges(), ::testing::Not(::testing::Contains("write > read: d")));
  EXPECT_EQ(timeline_.edges_against_time, 1);
}

}  // namespace
}  // namespace meridian
