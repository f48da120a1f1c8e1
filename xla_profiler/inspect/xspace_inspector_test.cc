#include "xla_profiler/inspect/xspace_inspector.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/inspect/xspace_report.pb.h"
#include "xla_profiler/testing/synthetic_run.h"

namespace meridian {
namespace {

using ::tensorflow::profiler::XEvent;
using ::tensorflow::profiler::XLine;
using ::tensorflow::profiler::XPlane;
using ::tensorflow::profiler::XSpace;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

XEvent* AddEvent(int64_t offset_ps, int64_t duration_ps, XLine* line) {
  XEvent* event = line->add_events();
  event->set_metadata_id(1);
  event->set_offset_ps(offset_ps);
  event->set_duration_ps(duration_ps);
  return event;
}

class XSpaceInspectorTest : public ::testing::Test {
 protected:
  XSpaceInspectorTest() {
    XPlane* plane = space_.add_planes();
    plane->set_name("/device:GPU:0");
    (*plane->mutable_event_metadata())[1].set_name("kernel");
    line_ = plane->add_lines();
    line_->set_name("Stream #1");
    line_->set_timestamp_ns(2);
    AddEvent(500, 1000, line_);
    AddEvent(700, 10, line_);
  }

  absl::StatusOr<XSpaceReport> Inspect() {
    bytes_ = space_.SerializeAsString();
    absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes_, "a.pb");
    if (!reader.ok()) return reader.status();
    return InspectXSpace(*reader);
  }

  XSpace space_;
  XLine* line_;
  std::string bytes_;
};

TEST_F(XSpaceInspectorTest, CountsAndSpans) {
  XEvent* aggregated = line_->add_events();
  aggregated->set_metadata_id(1);
  aggregated->set_num_occurrences(9);
  XLine* api = space_.add_planes()->add_lines();
  api->set_name("python3");
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Inspect());
  EXPECT_EQ(report.bytes(), static_cast<int64_t>(bytes_.size()));
  EXPECT_EQ(report.lines(), 2);
  EXPECT_EQ(report.events(), 3);
  const LineReport& line = report.planes(0).lines(0);
  EXPECT_EQ(line.clock_domain(), "tracer");
  EXPECT_EQ(line.events(), 3);
  EXPECT_EQ(line.first_start_ps(), 2500);
  EXPECT_EQ(line.last_end_ps(), 3500);
  EXPECT_FALSE(report.planes(1).lines(0).has_first_start_ps());
  ASSERT_EQ(report.clock_domains_size(), 2);
  EXPECT_EQ(report.clock_domains(0).name(), "host");
  EXPECT_EQ(report.clock_domains(0).lines(), 1);
  EXPECT_EQ(report.clock_domains(1).events(), 3);
}

TEST_F(XSpaceInspectorTest, OdditiesAreNotRefused) {
  AddEvent(-4, -7, line_);
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Inspect());
  EXPECT_EQ(report.planes(0).lines(0).first_start_ps(), 1996);
  EXPECT_THAT(report.notes(), ElementsAre(HasSubstr("no profile_start_time")));
}

TEST_F(XSpaceInspectorTest, AbsurdTimesDoNotOverflow) {
  line_->set_timestamp_ns(INT64_MAX);
  AddEvent(INT64_MAX, INT64_MAX, line_);
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Inspect());
  EXPECT_EQ(report.planes(0).lines(0).last_end_ps(), INT64_MAX);
}

TEST_F(XSpaceInspectorTest, TextShowsTheLinesOfEachPlane) {
  space_.add_hostnames("vm\x1b[2J");
  line_->set_timestamp_ns(-1500000);
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Inspect());
  const std::string text = FormatReport(report);
  EXPECT_THAT(text, HasSubstr("host      vm?[2J\n"));
  EXPECT_THAT(text, HasSubstr("  Stream #1    tracer       2    -1.500   -1.500\n"));
  EXPECT_THAT(text, HasSubstr("total                       2\n"));
}

TEST_F(XSpaceInspectorTest, DamageInsideAnEventIsFound) {
  line_->mutable_events(0)->set_metadata_id(5);
  EXPECT_THAT(Inspect(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("event metadata id 5 is used but not defined")));
}

absl::StatusOr<XSpaceReport> Inspect(const XSpaceProto& space) {
  const std::string bytes = space.SerializeAsString();
  absl::StatusOr<XSpaceReader> reader = XSpaceReader::FromBytes(bytes, "a.pb");
  if (!reader.ok()) return reader.status();
  return InspectXSpace(*reader);
}

TEST(XSpaceCollectivesTest, AlikeCollectivesAreOneRow) {
  SyntheticRunOptions options;
  options.ranks = 3;
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Inspect(SyntheticRun(options)[1]));
  ASSERT_EQ(report.collectives_size(), 1);
  const CollectiveReport& row = report.collectives(0);
  EXPECT_EQ(row.kind(), "all-reduce");
  EXPECT_EQ(row.operand_bytes(), 4096);
  EXPECT_EQ(row.groups(), "{0,1,2}");
  EXPECT_EQ(row.events(), 3);
  // Rank 1 waits 10 us for rank 2, then 50 us of transfer; three steps.
  EXPECT_EQ(row.total_duration_ps(), 180000000);
  EXPECT_EQ(report.unresolved_size(), 0);
}

TEST(XSpaceCollectivesTest, WhatIsNotResolvedIsShownWithItsReason) {
  XSpaceProto space = SyntheticRun({})[0];
  space.mutable_planes(0)->clear_event_metadata();
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Inspect(space));
  EXPECT_EQ(report.collectives_size(), 0);
  EXPECT_THAT(FormatReport(report),
              HasSubstr("communication kernel without HLO or annotation      3  ncclDevKernel"));
}

TEST(XSpaceCollectivesTest, AProfileWithoutAStartIsSummedUpAllTheSame) {
  XSpaceProto space = SyntheticRun({})[0];
  space.mutable_planes(3)->clear_stats();
  ASSERT_OK_AND_ASSIGN(const XSpaceReport report, Inspect(space));
  EXPECT_EQ(report.collectives_size(), 1);
}

}  // namespace
}  // namespace meridian
