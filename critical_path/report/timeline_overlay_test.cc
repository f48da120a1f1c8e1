#include "critical_path/report/path_overlay.h"

#include <cstdint>
#include <string>
#include <utility>

#include "critical_path/graph/critical_path.h"
#include "critical_path/job/rank_join.h"
#include "critical_path/testing/random_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Rank 1 comes last; rank 0's all-reduce ends last.
PathGraph TwoRanks() {
  JobMaker maker(2);
  maker.Add(0, "a", 0, 100'000);
  const auto first = maker.Add(0, "all-reduce", 100'000, 400'000, BoundBy::kGpuCommunication);
  maker.Add(1, "b", 180'000, 300'000);
  const auto last = maker.Add(1, "all-reduce", 300'000, 390'000, BoundBy::kGpuCommunication);
  maker.Meet("all-reduce", 3, {{0, first}, {1, last}});
  return (*JoinRanks(std::move(maker).Make())).graph;
}

std::string Write(const OverlayOptions& options) {
  const PathGraph graph = TwoRanks();
  std::string text;
  StringSink sink(&text);
  EXPECT_OK(WriteTimelineOverlay(graph, *FindLongestPath(graph), options, &sink));
  return text;
}

int CountOf(const std::string& part, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(TimelineOverlayTest, ShowsThePathAcrossRanks) {
  const std::string text = Write({});
  // b and both all-reduces; the arrow from rank 1's start to rank 0's end.
  EXPECT_EQ(CountOf(R"("ph":"X")", text), 3);
  EXPECT_EQ(CountOf(R"("critical":1)", text), 3);
  EXPECT_THAT(text,
              AllOf(HasSubstr("\"args\":{\"name\":\"rank 0\"}"),
                    HasSubstr("\"args\":{\"name\":\"rank 1\"}"),
                    HasSubstr("\"name\":\"b\",\"cat\":\"kernel\",\"dur\":0.12,"
                              "\"args\":{\"critical\":1,\"event\":0}"),
                    HasSubstr("critical_path_sync_dependency"), Not(HasSubstr("\"name\":\"a\""))));
}

TEST(TimelineOverlayTest, ShowsAllWhenAsked) {
  OverlayOptions options;
  options.only_critical = false;
  const std::string text = Write(options);
  EXPECT_EQ(CountOf(R"("ph":"X")", text), 4);
  EXPECT_EQ(CountOf(R"("critical":1)", text), 3);
  EXPECT_THAT(text, HasSubstr("\"name\":\"a\""));
  options.all_edges = true;
  EXPECT_GT(CountOf(R"("ph":"s")", Write(options)), CountOf(R"("ph":"s")", text));
}

// Kernels of one stream that overlap by a little would not all be drawn.
TEST(TimelineOverlayTest, EventsThatDoNotNestGetThreadsOfTheirOwn) {
  JobMaker maker(1);
  maker.Add(0, "a", 0, 100'000);
  maker.Add(0, "b", 98'000, 200'000);
  maker.Add(0, "c", 200'000, 300'000);
  const PathGraph graph = (*JoinRanks(std::move(maker).Make())).graph;
  OverlayOptions options;
  options.only_critical = false;
  std::string text;
  StringSink sink(&text);
  ASSERT_THAT(WriteTimelineOverlay(graph, *FindLongestPath(graph), options, &sink), IsOk());
  const size_t lanes = graph.lanes.size();
  EXPECT_THAT(text, HasSubstr(" (2)\""));
  EXPECT_THAT(
      text,
      AllOf(ContainsRegex("\"tid\":" + std::to_string(lanes + 1) + "[^}]*\"b\""),
            Not(ContainsRegex("\"tid\":" + std::to_string(lanes + 1) + "[^}]*\"name\":\"c\""))));
}

// What starts before the base of the graph would have a negative time.
TEST(TimelineOverlayTest, TimesCountFromTheFirstEvent) {
  PathGraph graph = TwoRanks();
  graph.base_ns = 5000;
  for (GraphEvent& event : graph.events) event.start_ps -= 150'500;
  for (Instant& instant : graph.instants) instant.time_ps -= 150'500;
  OverlayOptions options;
  options.only_critical = false;
  std::string text;
  StringSink sink(&text);
  ASSERT_THAT(WriteTimelineOverlay(graph, *FindLongestPath(graph), options, &sink), IsOk());
  EXPECT_THAT(text,
              AllOf(HasSubstr("\"baseTimeNanoseconds\":4849,"), Not(HasSubstr("\"ts\":-")),
                    HasSubstr("\"ts\":0,\"name\":\"a\""), HasSubstr("\"ts\":0.18,\"name\":\"b\"")));
}

TEST(TimelineOverlayTest, DrawsAnyRank) {
  PathGraph graph = TwoRanks();
  for (Lane& lane : graph.lanes) lane.rank = lane.rank == 0 ? INT64_MAX : INT64_MIN;
  std::string text;
  StringSink sink(&text);
  EXPECT_THAT(WriteTimelineOverlay(graph, *FindLongestPath(graph), {}, &sink), IsOk());
  EXPECT_THAT(text, AllOf(HasSubstr("\"pid\":-9223372036854775808"),
                          HasSubstr("\"pid\":-9223372036854775807")));
}

TEST(TimelineOverlayTest, IsTheSameEachTime) { EXPECT_EQ(Write({}), Write({})); }

}  // namespace
}  // namespace meridian
