#include "astra_bridge/engine/collective_recorder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

CollectiveRecord Starting(uint32_t group, int64_t begin_ns) {
  CollectiveRecord record;
  record.id = {group, 0};
  record.begin_ns = begin_ns;
  return record;
}

TEST(CollectiveRecorderTest, KnowsHowLongEachMemberTook) {
  CollectiveRecorder recorder;
  recorder.Begin(Starting(1, 100), 2);
  recorder.EndMember({1, 0}, 1, 150);
  recorder.EndMember({1, 0}, 0, 170);
  recorder.End({1, 0});
  ASSERT_THAT(recorder.records(), SizeIs(1));
  EXPECT_TRUE(recorder.records()[0].was_alone);
  EXPECT_THAT(recorder.records()[0].durations_ns, ElementsAre(70, 50));
}

TEST(CollectiveRecorderTest, CollectivesThatMeetAreNotAlone) {
  CollectiveRecorder recorder;
  recorder.Begin(Starting(1, 0), 2);
  recorder.Begin(Starting(2, 5), 2);
  recorder.End({1, 0});
  recorder.End({2, 0});
  recorder.Begin(Starting(3, 9), 2);
  recorder.End({3, 0});
  EXPECT_FALSE(recorder.records()[0].was_alone);
  EXPECT_FALSE(recorder.records()[1].was_alone);
  EXPECT_TRUE(recorder.records()[2].was_alone);
}

TEST(CollectiveRecorderTest, NorAreThoseThatSendsMeet) {
  CollectiveRecorder recorder;
  recorder.BeginSend();
  recorder.Begin(Starting(1, 0), 2);
  recorder.EndSend();
  recorder.End({1, 0});
  recorder.Begin(Starting(2, 5), 2);
  recorder.BeginSend();
  recorder.End({2, 0});
  EXPECT_FALSE(recorder.records()[0].was_alone);
  EXPECT_FALSE(recorder.records()[1].was_alone);
}

}  // namespace
}  // namespace meridian
