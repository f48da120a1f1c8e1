#include "xla_profiler/xplane/xplane_visitor.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::tensorflow::profiler::XEvent;
using ::tensorflow::profiler::XPlane;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A plane with one line and one event "kernel", whose metadata has the stat hlo_op = "add.1".
class XPlaneVisitorTest : public ::testing::Test {
 protected:
  XPlaneVisitorTest() {
    plane_.set_name("/device:GPU:0");
    (*plane_.mutable_stat_metadata())[1].set_name("hlo_op");
    (*plane_.mutable_stat_metadata())[2].set_name("correlation_id");
    (*plane_.mutable_stat_metadata())[3].set_name("add.1");
    (*plane_.mutable_stat_metadata())[4].set_name("custom");
    auto& metadata = (*plane_.mutable_event_metadata())[9];
    metadata.set_name("kernel");
    auto* stat = metadata.add_stats();
    stat->set_metadata_id(1);
    stat->set_ref_value(3);
    plane_.add_lines()->set_name("Stream #1");
    event_ = plane_.mutable_lines(0)->add_events();
    event_->set_metadata_id(9);
  }

  // Calls fn with the only event; returns how the visit ended.
  template <typename Fn>
  absl::Status VisitEvent(Fn fn) {
    bytes_ = plane_.SerializeAsString();
    source_ = XSpaceSource{bytes_, {}};
    absl::StatusOr<XPlaneVisitor> plane = XPlaneVisitor::Create(source_, bytes_);
    if (!plane.ok()) return plane.status();
    return plane->ForEachLine([&](const XLineVisitor& line) { return line.ForEachEvent(fn); });
  }

  XPlane plane_;
  XEvent* event_;
  std::string bytes_;
  XSpaceSource source_;
};

TEST_F(XPlaneVisitorTest, MetadataStatsAreSeenFirst) {
  event_->add_stats()->set_metadata_id(1);
  event_->mutable_stats(0)->set_str_value("own");
  EXPECT_OK(VisitEvent([](const XEventVisitor& event) {
    EXPECT_EQ(event.Name(), "kernel");
    ASSERT_NE(event.GetStat(StatType::kHloOp), nullptr);
    EXPECT_EQ(event.GetStat(StatType::kHloOp)->StrOrRefValue(), "own");
    EXPECT_EQ(event.GetEventOrMetadataStat(StatType::kHloOp)->StrOrRefValue(), "add.1");
    EXPECT_EQ(event.GetEventOrMetadataStat(StatType::kRunId), nullptr);
  }));
}

TEST_F(XPlaneVisitorTest, NumbersComeSignedOrUnsignedAndTextAsStringOrReference) {
  for (int id : {2, 2, 4, 4, 4}) event_->add_stats()->set_metadata_id(id);
  event_->mutable_stats(0)->set_uint64_value(0xFFFFFFFFFFFFFFFF);
  event_->mutable_stats(1)->set_int64_value(-5);
  event_->mutable_stats(2)->set_ref_value(3);
  event_->mutable_stats(3)->set_double_value(1.5);
  event_->mutable_stats(4)->set_bytes_value("\xFF");
  EXPECT_OK(VisitEvent([](const XEventVisitor& event) {
    const auto stats = event.Stats();
    ASSERT_EQ(stats.size(), 5u);
    EXPECT_EQ(stats[0].IntOrUintValue(), -1);
    EXPECT_EQ(stats[0].UintValue(), 0xFFFFFFFFFFFFFFFF);
    EXPECT_EQ(stats[0].IntValue(), 0);
    EXPECT_EQ(stats[1].IntOrUintValue(), -5);
    EXPECT_EQ(stats[2].StrOrRefValue(), "add.1");
    EXPECT_EQ(stats[2].Name(), "custom");
    EXPECT_EQ(stats[2].Type(), std::nullopt);
    EXPECT_EQ(stats[2].IntOrUintValue(), std::nullopt);
    EXPECT_EQ(stats[3].DoubleValue(), 1.5);
    EXPECT_EQ(stats[4].BytesValue(), "\xFF");
    EXPECT_EQ(stats[4].StrOrRefValue(), "");
  }));
}

TEST_F(XPlaneVisitorTest, AnAggregatedEventHasNoStart) {
  event_->set_num_occurrences(12);
  event_->set_duration_ps(9);
  EXPECT_OK(VisitEvent([](const XEventVisitor& event) {
    EXPECT_TRUE(event.IsAggregatedEvent());
    EXPECT_EQ(event.OffsetPs(), 0);
    EXPECT_EQ(event.DurationPs(), 9);
  }));
}

TEST_F(XPlaneVisitorTest, EventsCanBeVisitedInAnotherOrder) {
  event_->set_offset_ps(30);
  for (int64_t offset_ps : {10, 20}) {
    XEvent* event = plane_.mutable_lines(0)->add_events();
    event->set_metadata_id(9);
    event->set_offset_ps(offset_ps);
  }
  bytes_ = plane_.SerializeAsString();
  source_ = XSpaceSource{bytes_, {}};
  const auto plane = XPlaneVisitor::Create(source_, bytes_);
  ASSERT_OK(plane);
  std::vector<int64_t> offsets_ps;
  EXPECT_OK(plane->ForEachLine([&](const XLineVisitor& line) {
    std::vector<absl::string_view> payloads;
    XLineHeader header;
    EXPECT_OK(WalkXLine(source_, line.Header().payload, &header, [&](absl::string_view payload) {
      payloads.push_back(payload);
      return absl::OkStatus();
    }));
    std::swap(payloads.front(), payloads.back());
    return line.ForEachEvent(
        payloads, [&](const XEventVisitor& event) { offsets_ps.push_back(event.OffsetPs()); });
  }));
  EXPECT_THAT(offsets_ps, ElementsAre(20, 10, 30));
}

TEST_F(XPlaneVisitorTest, ACallbackCanStopTheVisit) {
  plane_.mutable_lines(0)->add_events()->set_metadata_id(9);
  int visited = 0;
  EXPECT_THAT(VisitEvent([&](const XEventVisitor&) {
                ++visited;
                return absl::CancelledError("enough");
              }),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(visited, 1);
}

TEST_F(XPlaneVisitorTest, IdsThatAreNotDefinedAreErrors) {
  const auto ignore = [](const XEventVisitor&) {};
  event_->set_metadata_id(8);
  EXPECT_THAT(VisitEvent(ignore), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("event metadata id 8 is used")));
  event_->set_metadata_id(9);
  event_->add_stats()->set_metadata_id(77);
  EXPECT_THAT(VisitEvent(ignore), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("stat metadata id 77 is used")));
  event_->mutable_stats(0)->set_metadata_id(1);
  event_->mutable_stats(0)->set_ref_value(66);
  EXPECT_THAT(VisitEvent(ignore), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("refers to stat metadata id 66")));
}

TEST_F(XPlaneVisitorTest, PlaneStatsMayUseIdsAsData) {
  plane_.add_stats()->set_metadata_id(281474976710849);
  plane_.mutable_stats(0)->set_uint64_value(5);
  bytes_ = plane_.SerializeAsString();
  source_ = XSpaceSource{bytes_, {}};
  ASSERT_OK_AND_ASSIGN(const XPlaneVisitor plane, XPlaneVisitor::Create(source_, bytes_));
  ASSERT_EQ(plane.Stats().size(), 1u);
  EXPECT_EQ(plane.Stats()[0].Name(), "");
  EXPECT_EQ(plane.Stats()[0].Id(), 281474976710849);
}

TEST_F(XPlaneVisitorTest, StatsOfOneEventAreLimited) {
  for (int i = 0; i < 3; ++i) event_->add_stats()->set_metadata_id(1);
  bytes_ = plane_.SerializeAsString();
  source_ = XSpaceSource{bytes_, {}};
  source_.limits.max_stats_per_event = 2;
  ASSERT_OK_AND_ASSIGN(const XPlaneVisitor plane, XPlaneVisitor::Create(source_, bytes_));
  EXPECT_THAT(plane.ForEachLine([](const XLineVisitor& line) {
    return line.ForEachEvent([](const XEventVisitor&) {});
  }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 2 stats")));
}

TEST_F(XPlaneVisitorTest, StatsOfAllMetadataAreLimitedTogether) {
  auto& other = (*plane_.mutable_event_metadata())[10];
  for (int i = 0; i < 2; ++i) other.add_stats()->set_metadata_id(1);
  bytes_ = plane_.SerializeAsString();
  source_ = XSpaceSource{bytes_, {}};
  source_.limits.max_metadata_stats_per_plane = 2;
  EXPECT_THAT(XPlaneVisitor::Create(source_, bytes_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than 2 stats of metadata in one plane")));
}

TEST_F(XPlaneVisitorTest, DisplayNameFallsBackToTheLinesOwn) {
  auto* shown = plane_.add_lines();
  shown->set_name("n");
  shown->set_display_name("shown");
  bytes_ = plane_.SerializeAsString();
  source_ = XSpaceSource{bytes_, {}};
  ASSERT_OK_AND_ASSIGN(const XPlaneVisitor plane, XPlaneVisitor::Create(source_, bytes_));
  std::vector<std::string> names;
  EXPECT_OK(plane.ForEachLine(
      [&](const XLineVisitor& visited) { names.emplace_back(visited.DisplayName()); }));
  EXPECT_THAT(names, ElementsAre("Stream #1", "shown"));
}

}  // namespace
}  // namespace meridian
