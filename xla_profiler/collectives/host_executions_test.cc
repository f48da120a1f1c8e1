#include "xla_profiler/collectives/host_executions.h"

#include <cstdint>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/xplane_builder.h"

namespace meridian {
namespace {

// Builds a host plane and reads it back.
class HostExecutionsTest : public ::testing::Test {
 protected:
  HostExecutionsTest() : plane_(&proto_) {}

  XEventBuilder Add(int64_t line, const std::string& name, int64_t begin, int64_t end) {
    XEventBuilder event =
        plane_.GetOrCreateLine(line).AddEvent(*plane_.GetOrCreateEventMetadata(name));
    event.SetTimespan(Timespan::FromEndPoints(begin, end));
    return event;
  }

  void AddLaunch(int64_t line, int64_t begin, uint64_t correlation_id) {
    Add(line, "kernel", begin, begin + 1)
        .AddStatValue(*plane_.GetOrCreateStatMetadata(StatType::kCorrelationId), correlation_id);
  }

  void SetInt(XEventBuilder event, StatType type, int64_t value) {
    event.AddStatValue(*plane_.GetOrCreateStatMetadata(type), value);
  }

  absl::StatusOr<HostExecutions> Read() {
    bytes_ = proto_.SerializeAsString();
    source_ = XSpaceSource{bytes_, {}};
    absl::StatusOr<XPlaneVisitor> plane = XPlaneVisitor::Create(source_, bytes_);
    if (!plane.ok()) return plane.status();
    return HostExecutions::Read(*plane);
  }

  // Each is asked for with the hint of the one before.
  std::optional<HostLaunch> Find(const HostExecutions& executions, uint64_t correlation_id) {
    return executions.FindLaunch(correlation_id, &hint_);
  }

  size_t hint_ = 0;
  XPlaneProto proto_;
  XPlaneBuilder plane_;
  std::string bytes_;
  XSpaceSource source_;
};

TEST_F(HostExecutionsTest, ALaunchKnowsTheSpansAroundIt) {
  SetInt(Add(1, "train", 0, 100), StatType::kStepNum, 7);
  SetInt(Add(1, "Execute", 10, 90), StatType::kRunId, -42);
  XEventBuilder raw = Add(1, "RawExecute", 11, 89);
  SetInt(raw, StatType::kReplica, 0);
  SetInt(raw, StatType::kPartition, 3);
  Add(1, "all-reduce.2", 20, 40);
  AddLaunch(1, 21, 1);
  AddLaunch(1, 25, 2);
  Add(1, "fusion", 50, 60);
  AddLaunch(1, 51, 3);
  ASSERT_OK_AND_ASSIGN(const HostExecutions executions, Read());
  const std::optional<HostLaunch> first = Find(executions, 1);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->run_id, -42);
  EXPECT_EQ(first->replica, 0);
  EXPECT_EQ(first->partition, 3);
  EXPECT_EQ(first->step, 7);
  EXPECT_EQ(first->thunk, Find(executions, 2)->thunk);
  EXPECT_NE(first->thunk, Find(executions, 3)->thunk);
  EXPECT_FALSE(Find(executions, 4).has_value());
}

TEST_F(HostExecutionsTest, AnExecutionIsNoThunk) {
  // A loop whose launches have no spans of their own: they must not become one.
  SetInt(Add(1, "Execute", 0, 100), StatType::kRunId, 5);
  AddLaunch(1, 10, 1);
  AddLaunch(1, 20, 2);
  ASSERT_OK_AND_ASSIGN(const HostExecutions executions, Read());
  EXPECT_EQ(Find(executions, 1)->run_id, 5);
  EXPECT_EQ(Find(executions, 1)->thunk, std::nullopt);
}

TEST_F(HostExecutionsTest, SpansOfOtherThreadsAreNotAround) {
  SetInt(Add(1, "Execute", 0, 100), StatType::kRunId, 5);
  AddLaunch(2, 50, 1);
  ASSERT_OK_AND_ASSIGN(const HostExecutions executions, Read());
  EXPECT_EQ(Find(executions, 1)->run_id, std::nullopt);
}

TEST_F(HostExecutionsTest, ASpanThatEndedIsNotAround) {
  SetInt(Add(1, "Execute", 0, 10), StatType::kRunId, 5);
  SetInt(Add(1, "Execute", 20, 30), StatType::kRunId, 6);
  AddLaunch(1, 15, 1);
  AddLaunch(1, 22, 2);
  ASSERT_OK_AND_ASSIGN(const HostExecutions executions, Read());
  EXPECT_EQ(Find(executions, 1)->run_id, std::nullopt);
  EXPECT_EQ(Find(executions, 2)->run_id, 6);
}

TEST_F(HostExecutionsTest, FileOrderDoesNotMatter) {
  AddLaunch(1, 22, 2);
  SetInt(Add(1, "Execute", 20, 30), StatType::kRunId, 6);
  ASSERT_OK_AND_ASSIGN(const HostExecutions executions, Read());
  EXPECT_EQ(Find(executions, 2)->run_id, 6);
}

TEST_F(HostExecutionsTest, TheCallWithinAnExecutionIsTheLaunch) {
  // A driver API line repeats the correlation id outside of any execution.
  AddLaunch(1, 22, 9);
  SetInt(Add(2, "Execute", 20, 30), StatType::kRunId, 6);
  AddLaunch(2, 21, 9);
  ASSERT_OK_AND_ASSIGN(const HostExecutions executions, Read());
  EXPECT_EQ(Find(executions, 9)->run_id, 6);
}

TEST_F(HostExecutionsTest, ACallBehindTheExecutionIsNotTheLaunch) {
  SetInt(Add(1, "Execute", 20, 30), StatType::kRunId, 6);
  AddLaunch(1, 21, 9);
  AddLaunch(2, 22, 9);
  ASSERT_OK_AND_ASSIGN(const HostExecutions executions, Read());
  EXPECT_EQ(Find(executions, 9)->run_id, 6);
}

// Some writers put a span where it ends.
TEST_F(HostExecutionsTest, SpansOutOfOrderAreSorted) {
  AddLaunch(1, 21, 1);
  Add(1, "all-reduce.2", 20, 40);
  AddLaunch(1, 51, 2);
  SetInt(Add(1, "Execute", 10, 90), StatType::kRunId, 5);
  ASSERT_OK_AND_ASSIGN(const HostExecutions executions, Read());
  EXPECT_EQ(Find(executions, 1)->run_id, 5);
  EXPECT_TRUE(Find(executions, 1)->thunk.has_value());
  EXPECT_EQ(Find(executions, 2)->run_id, 5);
  EXPECT_EQ(Find(executions, 2)->thunk, std::nullopt);
}

}  // namespace
}  // namespace meridian
