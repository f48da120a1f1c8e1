#include "trace_alignment/clocks/snapshot_pairs.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/snapshot_pairs.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/jsonl_row.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/testing/xplane_builder.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kWallNs = 1794701451000000000;
constexpr int64_t kGpuNs = 41603711065;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

std::string Header(absl::string_view absolute) {
  return absl::StrCat(R"({"meta":true,"node_id":2,"start_walltime_ns":)", kWallNs,
                      R"(,"start_gpu_ns":)", kGpuNs, R"(,"absolute":)", absolute, "}\n");
}

// A relative file's rows, placed at W.
absl::StatusOr<SnapshotPairs> Parse(absl::string_view rows) {
  return ParseSnapshotPairs(absl::StrCat(Header("false"), rows), "a.jsonl");
}

TEST(SnapshotPairsTest, RelativePairsAreRelativeToWalltime) {
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs snapshots,
                       Parse("{\"sys_ns\":1000,\"tracer_ns\":1250}\n"
                             "{\"sys_clock_ns\":2000,\"tracer_clock_ns\":2300}\n"));
  EXPECT_EQ(snapshots.node_id, 2);
  ASSERT_EQ(snapshots.pairs.size(), 2);
  EXPECT_EQ(snapshots.pairs[0].sys_ns, kWallNs + 1000);
  EXPECT_EQ(snapshots.pairs[0].tracer_ns, kWallNs + 1250);
  EXPECT_EQ(snapshots.pairs[1].sys_ns, kWallNs + 2000);
  EXPECT_EQ(snapshots.pairs[1].tracer_ns, kWallNs + 2300);
  EXPECT_FALSE(snapshots.pairs[0].bracket.has_value());
  EXPECT_EQ(ReadingUncertaintyNs(snapshots), std::nullopt);
}

TEST(SnapshotPairsTest, AbsolutePairsArePinnedAtTheStart) {
  // A boot-time tracer clock of 41 s is absolute all the same: only the flag tells.
  const std::string text = absl::StrCat(Header("true"), R"({"sys_ns":)", kWallNs + 1000,
                                        R"(,"tracer_ns":)", kGpuNs + 1250, "}");
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs snapshots, ParseSnapshotPairs(text, "a.jsonl"));
  ASSERT_EQ(snapshots.pairs.size(), 1);
  EXPECT_EQ(snapshots.pairs[0].sys_ns, kWallNs + 1000);
  EXPECT_EQ(snapshots.pairs[0].tracer_ns, kWallNs + 1250);
}

TEST(SnapshotPairsTest, FlagsWinOverTheHeaderAndTheHeaderOverTheOffsets) {
  const std::string row = R"({"sys_ns":10,"tracer_ns":20})";
  const auto walltime_ns = [&](absl::string_view header,
                               const SnapshotPairsOptions& options) -> int64_t {
    const auto snapshots = ParseSnapshotPairs(absl::StrCat(header, row), "a.jsonl", options);
    return snapshots.ok() ? snapshots->pairs[0].sys_ns - 10 : -1;
  };
  SnapshotPairsOptions options;
  EXPECT_EQ(walltime_ns("", options), -1);
  options.earliest_tracer_base_ns = 100;
  EXPECT_EQ(walltime_ns("", options), 100);
  options.offsets_header.start_walltime_ns = 200;
  EXPECT_EQ(walltime_ns("", options), 200);
  EXPECT_EQ(walltime_ns("{\"meta\":true,\"start_walltime_ns\":0,\"start_gpu_ns\":0}\n", options),
            200);
  EXPECT_EQ(walltime_ns("{\"meta\":true,\"start_walltime_ns\":300}\n", options), 300);
  options.flags.start_walltime_ns = 400;
  EXPECT_EQ(walltime_ns("{\"meta\":true,\"start_walltime_ns\":300}\n", options), 400);
}

TEST(SnapshotPairsTest, RefusesWhatItCannotPlace) {
  const std::string row = R"({"sys_ns":10,"tracer_ns":20})";
  EXPECT_THAT(ParseSnapshotPairs(row, "a.jsonl"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--start_walltime_ns")));
  SnapshotPairsOptions options;
  // The earliest line stands in for W of relative pairs only.
  options.earliest_tracer_base_ns = kWallNs;
  const std::string absolute = absl::StrCat("{\"meta\":true,\"absolute\":true}\n", row);
  EXPECT_THAT(ParseSnapshotPairs(absolute, "a.jsonl", options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--start_walltime_ns")));
  options.flags.start_walltime_ns = kWallNs;
  EXPECT_THAT(ParseSnapshotPairs(absolute, "a.jsonl", options),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--start_gpu_ns")));
  options.offsets_header.start_gpu_ns = 0;
  EXPECT_OK(ParseSnapshotPairs(absolute, "a.jsonl", options));
}

TEST(SnapshotPairsTest, ReadsBrackets) {
  ASSERT_OK_AND_ASSIGN(
      const SnapshotPairs snapshots,
      Parse("{\"sys_ns\":1000,\"tracer_ns\":1,\"sys_before_ns\":990,\"sys_after_ns\":1020}\n"
            "{\"tracer_ns\":2,\"sys_before_ns\":2000,\"sys_after_ns\":2100}\n"));
  ASSERT_EQ(snapshots.pairs.size(), 2);
  EXPECT_EQ(snapshots.pairs[0].bracket->sys_before_ns, kWallNs + 990);
  EXPECT_EQ(snapshots.pairs[0].bracket->sys_after_ns, kWallNs + 1020);
  // Without a reading of its own: the middle.
  EXPECT_EQ(snapshots.pairs[1].sys_ns, kWallNs + 2050);
  EXPECT_EQ(ReadingUncertaintyNs(snapshots), 50);
  EXPECT_THAT(Parse("{\"sys_ns\":9,\"tracer_ns\":1,\"sys_before_ns\":10,\"sys_after_ns\":20}"),
              StatusIs(kInvalid, HasSubstr("a.jsonl:2: sys_ns lies outside its bracket")));
  EXPECT_THAT(Parse("{\"tracer_ns\":1,\"sys_before_ns\":20,\"sys_after_ns\":10}"),
              StatusIs(kInvalid, HasSubstr("sys_before_ns is after sys_after_ns")));
  EXPECT_THAT(Parse("{\"tracer_ns\":1,\"sys_before_ns\":20}"),
              StatusIs(kInvalid, HasSubstr("sys_after_ns is missing")));
}

TEST(SnapshotPairsTest, SortsAndDropsIdenticalPairs) {
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs snapshots, Parse("{\"sys_ns\":30,\"tracer_ns\":3}\n\n"
                                                            "{\"sys_ns\":10,\"tracer_ns\":1}\r\n"
                                                            "{\"sys_ns\":30,\"tracer_ns\":3}\n"));
  ASSERT_EQ(snapshots.pairs.size(), 2);
  EXPECT_EQ(snapshots.pairs[0].sys_ns, kWallNs + 10);
  EXPECT_EQ(snapshots.identical_dropped, 1);
}

TEST(SnapshotPairsTest, NamesBothLinesOfAContradiction) {
  EXPECT_THAT(Parse("{\"sys_ns\":30,\"tracer_ns\":3}\n{\"sys_ns\":31,\"tracer_ns\":3}\n"),
              StatusIs(kInvalid, HasSubstr("a.jsonl:3: contradicts line 2")));
  // Sorted by R: line 3 (R 1, S 10), line 2 (R 3, S 5).
  EXPECT_THAT(Parse("{\"sys_ns\":5,\"tracer_ns\":3}\n{\"sys_ns\":10,\"tracer_ns\":1}\n"),
              StatusIs(kInvalid, AllOf(HasSubstr("a.jsonl:2: "), HasSubstr("since line 3"))));
  EXPECT_THAT(Parse("{\"sys_ns\":5,\"tracer_ns\":3}\n{\"sys_ns\":5,\"tracer_ns\":4}\n"),
              StatusIs(kInvalid, AllOf(HasSubstr("a.jsonl:3: "), HasSubstr("since line 2"))));
}

TEST(SnapshotPairsTest, NamesTheLineThatCannotBeRead) {
  const std::pair<absl::string_view, absl::string_view> kCases[] = {
      {"{\"sys_ns\":NaN,\"tracer_ns\":3}", "sys_ns is NaN, not an integer"},
      {"{\"sys_ns\":1,\"tracer_ns\":\"x\"}", "tracer_ns is \"x\", not an integer"},
      {"{\"sys_ns\":1.5,\"tracer_ns\":3}", "sys_ns is 1.5, not an integer"},
      {"{\"sys_ns\":null,\"tracer_ns\":3}", "sys_ns is null, not an integer"},
      {"{\"sys_ns\":9223372036854775808,\"tracer_ns\":3}", "not an integer"},
      {"{\"sys_ns\":1}", "tracer_ns is missing"},
      {"{\"tracer_ns\":1}", "sys_ns is missing"},
      {"{\"sys_ns\":1,\"tracer_ns\":3", "the line is no JSON object"},
      {"{\"sys_ns\":1,\"tracer_ns\":3} x", "the line is no JSON object"},
      {"[1,3]", "the line is no JSON object"},
      {"{\"meta\":true}", "the header is not the first line"},
      {"{\"sys_ns\":9223372036854775807,\"tracer_ns\":3}", "beyond the times that fit"},
  };
  for (const auto& [row, reason] : kCases) {
    EXPECT_THAT(Parse(absl::StrCat("{\"sys_ns\":0,\"tracer_ns\":0}\n", row)),
                StatusIs(kInvalid, AllOf(HasSubstr("a.jsonl:3: "), HasSubstr(std::string(reason)))))
        << row;
  }
  EXPECT_THAT(Parse("{\"sys_ns\":NaN,\"tracer_ns\":3}"),
              StatusIs(kInvalid, HasSubstr("expected e.g. {\"sys_ns\":1000000,")));
  EXPECT_THAT(ParseSnapshotPairs("{\"meta\":true,\"absolute\":1}", "a.jsonl"),
              StatusIs(kInvalid, HasSubstr("a.jsonl:1: absolute is 1, not true or false")));
}

TEST(SnapshotPairsTest, RefusesAFileWithoutPairs) {
  EXPECT_THAT(ParseSnapshotPairs("", "a.jsonl"),
              StatusIs(kInvalid, HasSubstr("a.jsonl: the file is empty")));
  EXPECT_THAT(ParseSnapshotPairs(" \n\n", "a.jsonl"), StatusIs(kInvalid, HasSubstr("empty")));
  EXPECT_THAT(Parse(""), StatusIs(kInvalid, HasSubstr("a.jsonl: no snapshot pairs")));
  EXPECT_THAT(ParseSnapshotPairs("hello", "a.jsonl"),
              StatusIs(kInvalid, HasSubstr("neither JSONL nor a SnapshotPairs message")));
}

SnapshotPairsOptions Anchored() {
  SnapshotPairsOptions options;
  options.flags = {kWallNs, kGpuNs};
  return options;
}

TEST(SnapshotPairsTest, ReadsTheMessageByContent) {
  tensorflow::profiler::SnapshotPairs message;
  for (int64_t i : {2, 1, 1}) {
    auto* pair = message.add_pairs();
    pair->set_sys_clock_ns(kWallNs + 1000 * i);
    pair->set_tracer_clock_ns(kGpuNs + 1001 * i);
  }
  const TemporaryDirectory directory;
  const std::string path = directory.Write("pairs.txt", GzipText(message.SerializeAsString()));
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs snapshots,
                       LoadSnapshotPairs(FileSystem::Posix(), path, Anchored()));
  ASSERT_EQ(snapshots.pairs.size(), 2);
  EXPECT_EQ(snapshots.pairs[1].sys_ns, kWallNs + 2000);
  EXPECT_EQ(snapshots.pairs[1].tracer_ns, kWallNs + 2002);
  EXPECT_EQ(snapshots.identical_dropped, 1);

  message.mutable_pairs(2)->set_sys_clock_ns(kWallNs);
  EXPECT_THAT(ParseSnapshotPairs(message.SerializeAsString(), "a.pb", Anchored()),
              StatusIs(kInvalid, HasSubstr("a.pb: pair 2: contradicts pair 3")));
  message.mutable_pairs(0)->set_tracer_clock_ns(std::numeric_limits<uint64_t>::max());
  EXPECT_THAT(ParseSnapshotPairs(message.SerializeAsString(), "a.pb", Anchored()),
              StatusIs(kInvalid, HasSubstr("a.pb: pair 1: a reading does not fit")));
}

// A profile with two snapshots, 1 ms and 2 ms after the line's base; the session began 1 s before
// the collector (W).
XSpaceProto SpaceWithSnapshots() {
  XSpaceProto space;
  XPlaneBuilder plane(space.add_planes());
  plane.SetName(kSnapshotsPlaneName);
  XLineBuilder line = plane.GetOrCreateLine(0);
  line.SetTimestampNs(1000000000);
  for (int64_t i : {1, 2}) {
    XEventBuilder event = line.AddEvent(*plane.GetOrCreateEventMetadata("Snapshot"));
    event.SetOffsetPs(i * 1000000000);
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kRocmNs),
                       static_cast<uint64_t>(kGpuNs + i * 1000005));
  }
  return space;
}

absl::StatusOr<SnapshotPairs> FromSpace(const XSpaceProto& space) {
  const std::string bytes = space.SerializeAsString();
  ASSIGN_OR_RETURN(const XSpaceReader reader, XSpaceReader::FromBytes(bytes, "a.xplane.pb"));
  ASSIGN_OR_RETURN(const XPlaneVisitor plane, reader.Plane(0));
  ASSIGN_OR_RETURN(const SessionClock clock,
                   SessionClock::Create("a.xplane.pb", SessionInfo(), kWallNs - 1000000000));
  return SnapshotPairsFromPlane(plane, clock, "a.xplane.pb", Anchored());
}

TEST(SnapshotPairsTest, ReadsThePlane) {
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs snapshots, FromSpace(SpaceWithSnapshots()));
  ASSERT_EQ(snapshots.pairs.size(), 2);
  EXPECT_EQ(snapshots.pairs[0].sys_ns, kWallNs + 1000000);
  EXPECT_EQ(snapshots.pairs[0].tracer_ns, kWallNs + 1000005);
  EXPECT_EQ(snapshots.pairs[1].sys_ns, kWallNs + 2000000);
  EXPECT_EQ(snapshots.pairs[1].tracer_ns, kWallNs + 2000010);
}

TEST(SnapshotPairsTest, APlaneWithoutReadingsIsAnError) {
  XSpaceProto space = SpaceWithSnapshots();
  space.mutable_planes(0)->mutable_lines(0)->mutable_events(1)->clear_stats();
  EXPECT_THAT(FromSpace(space),
              StatusIs(kInvalid, HasSubstr("/host:snapshots: event 2: the stat rocm_ns")));
  space.mutable_planes(0)->clear_lines();
  EXPECT_THAT(FromSpace(space), StatusIs(kInvalid, HasSubstr("no snapshot pairs")));
}

TEST(SnapshotPairsTest, AProfileIsNoSnapshotPairsMessage) {
  EXPECT_THAT(
      ParseSnapshotPairs(SpaceWithSnapshots().SerializeAsString(), "a.xplane.pb", Anchored()),
      StatusIs(kInvalid, HasSubstr("neither JSONL nor a SnapshotPairs message")));
}

TEST(SnapshotPairsTest, PairsFarFromTheRunNameTheirFile) {
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs snapshots, Parse("{\"sys_ns\":0,\"tracer_ns\":10}"));
  EXPECT_THAT(TracerToHostMap(snapshots, RunClock(0)),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("a.jsonl: Unix time ")));
}

TEST(SnapshotPairsTest, MapsTracerTimeToHostTime) {
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs snapshots,
                       Parse("{\"sys_ns\":0,\"tracer_ns\":10}\n{\"sys_ns\":100,\"tracer_ns\":90}"));
  ASSERT_OK_AND_ASSIGN(const ClockMap map, TracerToHostMap(snapshots, RunClock(kWallNs)));
  // Slope 100/80.
  EXPECT_EQ(map.Forward(10000), 0);
  EXPECT_EQ(map.Forward(50000), 50000);
  EXPECT_EQ(map.Forward(90000), 100000);
}

// 497 readings of a real GPU's timer between two of the host's, 50 ms apart.
TEST(SnapshotPairsTest, PredictsARealReadingFromTheOthers) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(const InputFile file,
                       InputFile::Open(FileSystem::Posix(),
                                       absl::StrCat(*shared, "/traces/gpu_clock_pairs.jsonl.gz")));
  const std::string text = absl::StrReplaceAll(file.bytes(), {{"gpu_globaltimer_ns", "tracer_ns"}});
  // The timer shows Unix time, so that any instant may serve as both W and G.
  constexpr int64_t kStartNs = 1794701278238477124;
  const std::string header =
      absl::StrCat("{\"meta\":true,\"absolute\":true,\"start_walltime_ns\":", kStartNs,
                   ",\"start_gpu_ns\":", kStartNs, "}\n");
  ASSERT_OK_AND_ASSIGN(const SnapshotPairs snapshots,
                       ParseSnapshotPairs(absl::StrCat(header, text), "gpu_clock_pairs"));
  ASSERT_EQ(snapshots.pairs.size(), 497);
  const RunClock clock(kStartNs);
  for (size_t left_out = 0; left_out < snapshots.pairs.size(); ++left_out) {
    SnapshotPairs others = snapshots;
    others.pairs.erase(others.pairs.begin() + left_out);
    ASSERT_OK_AND_ASSIGN(const ClockMap map, TracerToHostMap(others, clock));
    const SnapshotPair& pair = snapshots.pairs[left_out];
    ASSERT_OK_AND_ASSIGN(const int64_t tracer_ps, clock.ToRunPs(pair.tracer_ns, 0));
    const int64_t predicted_ns = clock.ToUnixNs(map.Forward(tracer_ps));
    const int64_t half_bracket_ns = (pair.bracket->sys_after_ns - pair.bracket->sys_before_ns) / 2;
    EXPECT_LE(std::abs(predicted_ns - pair.sys_ns), half_bracket_ns) << left_out;
  }
}

absl::StatusOr<ClockAnchors> ReadAnchors(absl::string_view text) {
  return ReadClockAnchors(JsonlRow(text, "a.jsonl", 1, "{}"));
}

TEST(ClockAnchorsTest, EachIsReadAloneOrWithTheOther) {
  ASSERT_OK_AND_ASSIGN(
      const ClockAnchors both,
      ReadAnchors(R"({"start_walltime_ns":1700000000000000001,"start_gpu_ns":-5})"));
  EXPECT_EQ(both.start_walltime_ns, 1700000000000000001);
  EXPECT_EQ(both.start_gpu_ns, -5);
  ASSERT_OK_AND_ASSIGN(const ClockAnchors gpu, ReadAnchors(R"({"start_gpu_ns":7})"));
  EXPECT_EQ(gpu.start_walltime_ns, std::nullopt);
  EXPECT_EQ(gpu.start_gpu_ns, 7);
}

TEST(ClockAnchorsTest, AWallTimeOfZeroMeansNeitherIsKnown) {
  ASSERT_OK_AND_ASSIGN(const ClockAnchors none,
                       ReadAnchors(R"({"start_walltime_ns":0,"start_gpu_ns":7})"));
  EXPECT_EQ(none.start_walltime_ns, std::nullopt);
  EXPECT_EQ(none.start_gpu_ns, std::nullopt);
}

TEST(ClockAnchorsTest, WhatIsNoIntegerIsRefused) {
  EXPECT_THAT(ReadAnchors(R"({"start_gpu_ns":1.5})"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace meridian
