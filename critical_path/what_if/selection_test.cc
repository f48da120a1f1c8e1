#include "critical_path/what_if/selection.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "critical_path/what_if/testing/all_reduce_job.h"
#include "critical_path/what_if/testing/what_if_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// aten::linear calls aten::mm, which launches gemm; a copy and a collective are launched outside.
WhatIfGraph Step() {
  KinetoTrace trace;
  trace.Op("aten::linear", 0, 100);                         // 0
  trace.Op("aten::mm", 10, 50);                             // 1
  trace.Call("cudaLaunchKernel", 20, 5, 1);                 // 2
  trace.Call("cudaMemcpyAsync", 110, 5, 2);                 // 3
  trace.Call("cudaLaunchKernel", 120, 5, 3);                // 4
  trace.Kernel("gemm", 30, 40, 7, 1);                       // 5
  trace.Work("gpu_memcpy", "Memcpy HtoD", 120, 10, 7, 2);   // 6
  trace.Kernel("ncclDevKernel_AllGather", 140, 30, 20, 3);  // 7
  const MeasuredGraph measured = MeasureTrace(trace);
  return MakeWhatIfGraph(measured.graph, measured.path);
}

// The places in the file of what the conditions mean, or why they mean nothing.
std::vector<int64_t> Places(const std::string& conditions) {
  const WhatIfGraph edited = Step();
  absl::StatusOr<std::vector<WhatIfEdit>> edits =
      ParseWhatIfEdits(absl::StrCat("scale ", conditions, " 2"));
  EXPECT_OK(edits);
  const absl::StatusOr<Selection> selection = Select(edited, (*edits)[0].subject);
  EXPECT_OK(selection);
  std::vector<int64_t> places;
  if (!selection.ok()) return places;
  for (GraphEventId id = 0; id < selection->events.size(); ++id) {
    if (selection->events[id]) places.push_back(edited.graph.events[id].position);
  }
  std::sort(places.begin(), places.end());
  EXPECT_EQ(selection->count, static_cast<int64_t>(places.size()));
  return places;
}

TEST(SelectionTest, SelectsByNameAndPattern) {
  EXPECT_THAT(Places("name=\"gemm\""), ElementsAre(5));
  EXPECT_THAT(Places("name=~\"gem\""), ElementsAre(5));
  EXPECT_THAT(Places("name=~\"^aten::\""), ElementsAre(0, 1));
  EXPECT_THAT(Places("name=~\"(?i)NCCL\""), ElementsAre(7));
}

TEST(SelectionTest, SelectsWhatIsWithin) {
  EXPECT_THAT(Places("within=\"aten::linear\""), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(Places("within=~\"mm$\" category=device"), ElementsAre(5));
}

TEST(SelectionTest, SelectsByCategoryAndGroup) {
  EXPECT_THAT(Places("category=memcpy"), ElementsAre(6));
  EXPECT_THAT(Places("category=runtime_api"), ElementsAre(2, 3, 4));
  EXPECT_THAT(Places("category=host"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Places("category=device"), ElementsAre(5, 6, 7));
  EXPECT_THAT(Places("category=communication"), ElementsAre(7));
  EXPECT_THAT(Places("category=compute"), ElementsAre(5, 6));
}

TEST(SelectionTest, SelectsByPlace) {
  EXPECT_THAT(Places("event=4"), ElementsAre(4));
  EXPECT_THAT(Places("rank=3 category=device"), ElementsAre(5, 6, 7));
  EXPECT_THAT(Places("all"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(SelectionTest, SelectsDelaysByWhatFollows) {
  const WhatIfGraph edited = Step();
  const auto count = [&](const std::string& conditions) {
    const auto edits = ParseWhatIfEdits(absl::StrCat("scale ", conditions, " 2"));
    EXPECT_OK(edits);
    const absl::StatusOr<Selection> selection = Select(edited, (*edits)[0].subject);
    return selection.ok() ? selection->count : -1;
  };
  EXPECT_EQ(count("category=launch"), 3);
  EXPECT_EQ(count("category=launch name=\"gemm\""), 1);
  EXPECT_EQ(count("category=kernel_gap"), 1);
  // Before the first operator and both calls; the thread's end is not the window's.
  EXPECT_EQ(count("category=host_gap"), 3);
  EXPECT_EQ(count("category=launch name=\"aten::mm\""), -1);
}

// Pairs of ranks that meet would not fit into memory.
TEST(SelectionTest, AMeetingOfManyRanksCostsNoMoreThanItsEdges) {
  constexpr int kRanks = 20'000;
  const MeasuredGraph measured =
      MeasureGraph(AllReduceJob(std::vector<RankTimes>(kRanks, {1, 2, 3})));
  const WhatIfGraph edited = MakeWhatIfGraph(measured.graph, measured.path);
  ASSERT_OK_AND_ASSIGN(const std::vector<WhatIfEdit> edits,
                       ParseWhatIfEdits("scale with=19999 2; scale rank=7 2"));
  // The all-reduces of all ranks; an op and an all-reduce.
  ASSERT_OK_AND_ASSIGN(const Selection meeting, Select(edited, edits[0].subject));
  EXPECT_EQ(meeting.count, kRanks);
  ASSERT_OK_AND_ASSIGN(const Selection rank, Select(edited, edits[1].subject));
  EXPECT_EQ(rank.count, 2);
  EXPECT_TRUE(rank.events[14]);
  EXPECT_TRUE(rank.events[15]);
}

TEST(SelectionTest, HostileNamesCannotSteerTheTerminal) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Kernel("evil\\u001b[2J", 10, 5, 7, 1);
  EXPECT_THAT(WhatIfError(MeasureTrace(trace), "scale name=\"x\" 2"), HasSubstr("'evil?[2J' (1x)"));
}

}  // namespace
}  // namespace meridian
