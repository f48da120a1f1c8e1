#include "trace_alignment/clocks/offset_samples.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBaseNs = 1794701451000000000;
constexpr int64_t kSecondNs = 1000000000;
constexpr int64_t kSecondPs = 1000 * kSecondNs;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// A row of a window that is 4 s long and begins start_s seconds after the base on the node's clock.
std::string Row(int round, int64_t node, int64_t start_s, absl::string_view rest) {
  const int64_t start_ns = kBaseNs + start_s * kSecondNs;
  return absl::StrCat(
      "{\"round_id\":", round, ",\"window_id\":", round, ",\"window_start_ns\":", start_ns,
      ",\"window_end_ns\":", start_ns + 4 * kSecondNs, ",\"node_id\":", node, ",", rest, "}\n");
}

std::string GoodRow(int round, int64_t node, int64_t start_s, absl::string_view offset_ns) {
  return Row(round, node, start_s,
             absl::StrCat("\"offset_ns\":", offset_ns,
                          ",\"drift_ppm\":0.5,\"residual\":2.5,\"reachable\":true,"
                          "\"converged\":true"));
}

absl::StatusOr<OffsetSamples> Parse(absl::string_view text,
                                    std::optional<int64_t> reference = std::nullopt) {
  return OffsetSamples::Parse(text, "o.jsonl", reference);
}

TEST(OffsetSamplesTest, TakesTheReferenceNodesMidpoint) {
  // Node 1 is 10 s ahead, and so are its windows: M is still 2 s and 6 s after the base.
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets,
                       Parse(GoodRow(0, 0, 0, "0") + GoodRow(0, 1, 10, "1e10") +
                             GoodRow(1, 1, 14, "10000000000.25") + GoodRow(1, 0, 4, "0")));
  EXPECT_EQ(offsets.reference_node(), 0);
  EXPECT_THAT(offsets.NodeIds(), ElementsAre(0, 1));
  const std::vector<OffsetSample>& samples = offsets.SamplesOf(1);
  ASSERT_EQ(samples.size(), 2);
  EXPECT_EQ(samples[0].midpoint_ref_ns, kBaseNs + 2 * kSecondNs);
  EXPECT_EQ(samples[0].offset_ps, 10 * kSecondPs);
  EXPECT_EQ(samples[1].midpoint_ref_ns, kBaseNs + 6 * kSecondNs);
  EXPECT_EQ(samples[1].offset_ps, 10 * kSecondPs + 250);
  EXPECT_EQ(samples[1].drift_ppm, 0.5);
  EXPECT_TRUE(offsets.SamplesOf(7).empty());
}

TEST(OffsetSamplesTest, TakesTheOwnWindowOnlyWithoutReferenceRows) {
  ASSERT_OK_AND_ASSIGN(const OffsetSamples alone, Parse(GoodRow(0, 1, 10, "-750.8")));
  EXPECT_EQ(alone.reference_node(), std::nullopt);
  EXPECT_EQ(alone.SamplesOf(1)[0].midpoint_ref_ns, kBaseNs + 12 * kSecondNs);
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples with_reference,
      Parse(GoodRow(0, 0, 0, "0") + GoodRow(0, 1, 10, "-750.8") + GoodRow(1, 1, 14, "-750.8")));
  EXPECT_EQ(with_reference.SamplesOf(1).size(), 1);
  EXPECT_EQ(with_reference.rows_not_used().without_reference, 1);
}

TEST(OffsetSamplesTest, OffsetsFarFromTheRunNameTheirFile) {
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets,
                       Parse(GoodRow(0, 0, 0, "0") + GoodRow(0, 1, 0, "5000")));
  EXPECT_THAT(offsets.OffsetMap(1, RunClock(0)),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("o.jsonl: Unix time ")));
}

TEST(OffsetSamplesTest, SubtractsTheOffset) {
  // D1: a node that is 5 us ahead reads 5 us more than the reference at the same instant.
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets,
                       Parse(GoodRow(0, 0, 0, "0") + GoodRow(0, 1, 0, "5000") +
                             GoodRow(1, 0, 4, "0") + GoodRow(1, 1, 4, "7000")));
  const RunClock clock(kBaseNs);
  ASSERT_OK_AND_ASSIGN(const ClockMap map, offsets.OffsetMap(1, clock));
  // Knots (2 s + 5 us -> 2 s) and (6 s + 7 us -> 6 s).
  EXPECT_EQ(map.Forward(2 * kSecondPs + 5000000), 2 * kSecondPs);
  EXPECT_EQ(map.Forward(4 * kSecondPs + 6000000), 4 * kSecondPs);
  EXPECT_EQ(map.Forward(6 * kSecondPs + 7000000), 6 * kSecondPs);
  ASSERT_OK_AND_ASSIGN(const ClockMap reference, offsets.OffsetMap(0, clock));
  EXPECT_EQ(reference.Forward(123), 123);
}

TEST(OffsetSamplesTest, ReadsWhatGraphCalcPrints) {
  // Default stream precision: 6 digits and an exponent.
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples offsets,
      Parse(GoodRow(0, 0, 0, "0") + GoodRow(0, 1, 0, "1.23457e+07") + GoodRow(0, 2, 0, "-7.5e-1") +
            Row(0, 3, 0, "\"offset_ns\":1,\"slope_ppm\":-3.25")));
  EXPECT_EQ(offsets.SamplesOf(1)[0].offset_ps, 12345700000);
  EXPECT_EQ(offsets.SamplesOf(2)[0].offset_ps, -750);
  EXPECT_EQ(offsets.SamplesOf(3)[0].drift_ppm, -3.25);
}

TEST(OffsetSamplesTest, DoesNotUseUnreachableOrUnconvergedRows) {
  // D7: unreachable rows say 0, which would be a step of 5 us.
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples offsets,
      Parse(GoodRow(0, 0, 0, "0") + GoodRow(0, 1, 0, "5000") + GoodRow(1, 0, 4, "0") +
            Row(1, 1, 4, "\"offset_ns\":0,\"reachable\":false,\"converged\":true") +
            Row(1, 2, 4, "\"offset_ns\":NaN,\"reachable\":true,\"converged\":false")));
  EXPECT_EQ(offsets.SamplesOf(1).size(), 1);
  EXPECT_EQ(offsets.rows_not_used().unreachable, 1);
  EXPECT_EQ(offsets.rows_not_used().not_converged, 1);
  EXPECT_THAT(
      offsets.OffsetMap(2, RunClock(kBaseNs)),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("o.jsonl: no usable offset for node 2"),
                     HasSubstr("nodes with usable offsets: 0, 1"), HasSubstr("1 not converged"))));
}

TEST(OffsetSamplesTest, ReadsTheLegacyForm) {
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples offsets,
      Parse(absl::StrCat("{\"node_id\":1,\"midpoint_sys_ns\":", kBaseNs, ",\"offset_ns\":-750.8}"),
            0));
  ASSERT_OK_AND_ASSIGN(const ClockMap map, offsets.OffsetMap(1, RunClock(kBaseNs)));
  // One sample: a constant shift.
  EXPECT_EQ(map.Forward(0), 750800);
  EXPECT_EQ(map.Forward(kSecondPs), kSecondPs + 750800);
  EXPECT_OK(offsets.OffsetMap(0, RunClock(kBaseNs)));
}

TEST(OffsetSamplesTest, FollowsTheDriftOfASingleWindow) {
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples offsets,
      Parse(GoodRow(0, 0, 0, "0") + Row(0, 1, 0, "\"offset_ns\":3000,\"drift_ppm\":100")));
  ASSERT_OK_AND_ASSIGN(const ClockMap map,
                       offsets.OffsetMap(1, RunClock(kBaseNs), OffsetSamples::Slope::kDriftPpm));
  // 10 s of reference time after M = 2 s the node has gained 10 s * 100 ppm = 1 ms.
  EXPECT_EQ(map.Forward(2 * kSecondPs + 3000000), 2 * kSecondPs);
  EXPECT_EQ(map.Forward(12 * kSecondPs + 3000000 + 1000000000), 12 * kSecondPs);
  EXPECT_EQ(map.Inverted().Forward(-8 * kSecondPs), -8 * kSecondPs + 3000000 - 1000000000);
}

TEST(OffsetSamplesTest, FollowsTheDriftAroundEachOfManyWindows) {
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets,
                       Parse(GoodRow(0, 0, 0, "0") + GoodRow(1, 0, 4, "0") +
                             Row(0, 1, 0, "\"offset_ns\":0,\"drift_ppm\":10") +
                             Row(1, 1, 4, "\"offset_ns\":90000,\"drift_ppm\":30")));
  ASSERT_OK_AND_ASSIGN(const ClockMap map,
                       offsets.OffsetMap(1, RunClock(kBaseNs), OffsetSamples::Slope::kDriftPpm));
  // M = 2 s and 6 s; the lines rule 1 s to either side.
  EXPECT_EQ(map.Inverted().Forward(2 * kSecondPs + kSecondPs / 2),
            2 * kSecondPs + kSecondPs / 2 + 5000000);
  EXPECT_EQ(map.Inverted().Forward(5 * kSecondPs), 5 * kSecondPs + 60000000);
  EXPECT_EQ(map.Inverted().Forward(7 * kSecondPs), 7 * kSecondPs + 120000000);
  // Halfway from 3 s (10 us) to 5 s (60 us).
  EXPECT_EQ(map.Inverted().Forward(4 * kSecondPs), 4 * kSecondPs + 35000000);
}

TEST(OffsetSamplesTest, TheDriftSlopeNeedsADrift) {
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets, Parse(Row(0, 1, 0, "\"offset_ns\":3"), 0));
  EXPECT_THAT(offsets.OffsetMap(1, RunClock(kBaseNs), OffsetSamples::Slope::kDriftPpm),
              StatusIs(kInvalid, HasSubstr("without drift_ppm")));
}

TEST(OffsetSamplesTest, MissingWindowsAreSkippedOrTheLastOneHeld) {
  // M = 2, 6, 10, 14, 18 s. Node 1 has no row in the second, is not reachable in the third, has one
  // in the fourth, and none in the last.
  std::string rows;
  for (int round = 0; round < 5; ++round) rows += GoodRow(round, 0, 4 * round, "0");
  rows += Row(0, 1, 0, "\"offset_ns\":5000,\"drift_ppm\":1") +
          Row(2, 1, 8, "\"offset_ns\":0,\"reachable\":false") +
          Row(3, 1, 12, "\"offset_ns\":17000,\"drift_ppm\":2");
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets, Parse(rows));
  using Slope = OffsetSamples::Slope;
  // Returns the offset in ns at so many seconds of reference time.
  const auto offset_ns = [&](Slope slope, bool holds, int64_t second) {
    const auto map = (holds ? offsets.WithLastHeld({1}, slope, 100) : offsets)
                         .OffsetMap(1, RunClock(kBaseNs), slope);
    return (map->Inverted().Forward(second * kSecondPs) - second * kSecondPs) / 1000;
  };
  // 12 us in 12 s.
  EXPECT_EQ(offset_ns(Slope::kInterpolate, false, 6), 9000);
  EXPECT_EQ(offset_ns(Slope::kInterpolate, false, 10), 13000);
  EXPECT_EQ(offset_ns(Slope::kInterpolate, false, 18), 21000);
  EXPECT_EQ(offset_ns(Slope::kInterpolate, true, 6), 5000);
  EXPECT_EQ(offset_ns(Slope::kInterpolate, true, 10), 5000);
  EXPECT_EQ(offset_ns(Slope::kInterpolate, true, 12), 11000);
  EXPECT_EQ(offset_ns(Slope::kInterpolate, true, 14), 17000);
  EXPECT_EQ(offset_ns(Slope::kInterpolate, true, 18), 17000);
  // The lines of 1 ppm and 2 ppm go on.
  EXPECT_EQ(offset_ns(Slope::kDriftPpm, true, 10), 13000);
  EXPECT_EQ(offset_ns(Slope::kDriftPpm, true, 18), 25000);
}

// Without round ids a node's times are not quite the reference's. Rounds are 4 s apart; node 1 has none
// in the third.
TEST(OffsetSamplesTest, RoundsWithoutIdsAreToldByTheirTimes) {
  std::string rows;
  const auto add = [&](int64_t node, int64_t at_ms, int64_t offset_ns) {
    absl::StrAppend(&rows, "{\"node_id\":", node,
                    ",\"midpoint_sys_ns\":", kBaseNs + at_ms * 1000000,
                    ",\"offset_ns\":", offset_ns, "}\n");
  };
  for (const int64_t at_ms : {0, 4000, 8000, 12000}) add(0, at_ms, 0);
  add(1, 3, 100);
  add(1, 3995, 200);
  add(1, 12007, 300);
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets, Parse(rows));
  const OffsetSamples filled =
      offsets.WithLastHeld(offsets.NodeIds(), OffsetSamples::Slope::kInterpolate, 100);
  std::vector<int64_t> held;
  for (const OffsetSample& sample : filled.SamplesOf(1)) {
    held.push_back((sample.midpoint_ref_ns - kBaseNs) / 1000000);
  }
  EXPECT_THAT(held, ElementsAre(3, 3995, 8000, 12007));
}

// 100 ppm of 4 s are 400 us.
TEST(OffsetSamplesTest, TheUncertaintyOfAnOffsetThatHoldsGrows) {
  std::vector<OffsetSample> samples;
  for (const int64_t second : {0, 4, 8}) samples.push_back({0, second * kSecondNs, 0, 0, 0});
  samples.push_back({1, 0, 5000, {}, 250});
  const OffsetSamples held = OffsetSamples("probes", 0, samples)
                                 .WithLastHeld({0, 1, 2}, OffsetSamples::Slope::kInterpolate, 100);
  std::vector<double> uncertainties_ns;
  for (const OffsetSample& sample : held.SamplesOf(1)) {
    uncertainties_ns.push_back(*sample.uncertainty_ns);
  }
  EXPECT_THAT(uncertainties_ns, ElementsAre(250, 400250, 800250));
}

TEST(OffsetSamplesTest, RepairsAnOffsetThatRunsBackwards) {
  // In round 1 the node seems to have fallen back by 9 s within 4 s.
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples offsets,
      Parse(GoodRow(0, 0, 0, "0") + GoodRow(1, 0, 4, "0") + GoodRow(2, 0, 8, "0") +
            GoodRow(0, 1, 0, "1000") + GoodRow(1, 1, 4, "-9e9") + GoodRow(2, 1, 8, "1000")));
  ASSERT_OK_AND_ASSIGN(const ClockMap map, offsets.OffsetMap(1, RunClock(kBaseNs)));
  EXPECT_EQ(map.knots_repaired(), 1);
  EXPECT_EQ(map.Forward(6 * kSecondPs + 1000000), 6 * kSecondPs);
}

TEST(OffsetSamplesTest, ReadsTheHeader) {
  ASSERT_OK_AND_ASSIGN(
      const OffsetSamples offsets,
      Parse(absl::StrCat("{\"meta\":true,\"nodes\":[{\"node_id\":0,\"start_walltime_ns\":5,"
                         "\"start_gpu_ns\":6}, {\"node_id\":1,\"start_walltime_ns\":0,"
                         "\"start_gpu_ns\":0}]}\n",
                         GoodRow(0, 0, 0, "0"))));
  EXPECT_EQ(offsets.AnchorsOf(0).start_walltime_ns, 5);
  EXPECT_EQ(offsets.AnchorsOf(0).start_gpu_ns, 6);
  // D7: zeros stand for nodes that the writer knows nothing about.
  EXPECT_EQ(offsets.AnchorsOf(1).start_walltime_ns, std::nullopt);
  EXPECT_EQ(offsets.AnchorsOf(1).start_gpu_ns, std::nullopt);
  EXPECT_EQ(offsets.AnchorsOf(9).start_walltime_ns, std::nullopt);
}

TEST(OffsetSamplesTest, DropsIdenticalRowsAndNamesContradictions) {
  const std::string reference = GoodRow(0, 0, 0, "0");
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets, Parse(reference + GoodRow(0, 1, 0, "5") +
                                                          GoodRow(0, 1, 0, "5.000") + reference));
  EXPECT_EQ(offsets.SamplesOf(1).size(), 1);
  EXPECT_EQ(offsets.rows_not_used().identical, 2);
  EXPECT_THAT(Parse(reference + GoodRow(0, 1, 0, "5") + GoodRow(0, 1, 0, "6")),
              StatusIs(kInvalid, HasSubstr("o.jsonl:3: contradicts line 2: both are for node 1")));
  EXPECT_THAT(Parse(reference + GoodRow(0, 0, 4, "0")),
              StatusIs(kInvalid, HasSubstr("o.jsonl:2: contradicts line 1")));
}

TEST(OffsetSamplesTest, TheReferenceMustBeTheFiles) {
  const std::string text = GoodRow(0, 0, 0, "0") + GoodRow(0, 1, 0, "5");
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets, Parse(text, 0));
  EXPECT_EQ(offsets.reference_node(), 0);
  EXPECT_THAT(Parse(text, 1), StatusIs(kInvalid, AllOf(HasSubstr("o.jsonl:2: node 1"),
                                                       HasSubstr("relative to another node"))));
}

TEST(OffsetSamplesTest, NamesTheLineThatCannotBeRead) {
  const std::pair<std::string, absl::string_view> kCases[] = {
      {Row(0, 1, 0, "\"offset_ns\":NaN"), "offset_ns is NaN, not a number"},
      {Row(0, 1, 0, "\"offset_ns\":\"x\""), "offset_ns is \"x\", not a number"},
      {Row(0, 1, 0, "\"offset_ns\":1e30"), "offset_ns is 1e30, not a number"},
      {Row(0, 1, 0, "\"offset_ns\":1e17"), "offset_ns is 1e17, not within 106 days"},
      {Row(0, 1, 0, "\"drift_ppm\":1"), "offset_ns is missing"},
      {Row(0, 1, 0, "\"offset_ns\":1,\"drift_ppm\":inf"), "drift_ppm is inf, not a number"},
      {Row(0, 1, 0, "\"offset_ns\":1,\"drift_ppm\":-1e6"), "runs backwards"},
      {Row(0, 1, 0, "\"offset_ns\":1,\"reachable\":1"), "reachable is 1, not true or false"},
      {"{\"node_id\":1,\"offset_ns\":1}", "round_id is missing"},
      {"{\"round_id\":1,\"node_id\":1,\"window_start_ns\":2,\"window_end_ns\":1}",
       "window_end_ns is before window_start_ns"},
      {"{\"offset_ns\":1}", "node_id is missing"},
      {"offset_ns", "the line is no JSON object"},
      {"{\"meta\":true}", "the header is not the first line"},
  };
  for (const auto& [row, reason] : kCases) {
    EXPECT_THAT(Parse(GoodRow(0, 0, 0, "0") + row),
                StatusIs(kInvalid, AllOf(HasSubstr("o.jsonl:2: "), HasSubstr(std::string(reason)),
                                         HasSubstr("expected e.g. {"))))
        << row;
  }
  EXPECT_THAT(Parse("{\"meta\":true,\"nodes\":7}\n"),
              StatusIs(kInvalid, HasSubstr("o.jsonl:1: nodes is no array")));
  EXPECT_THAT(Parse("{\"meta\":true,\"nodes\":[]}\n"), StatusIs(kInvalid, HasSubstr("no offsets")));
  EXPECT_THAT(Parse(""), StatusIs(kInvalid, HasSubstr("the file is empty")));
}

TEST(OffsetSamplesTest, LoadsGzip) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("offsets", GzipText(GoodRow(0, 1, 0, "5")));
  ASSERT_OK_AND_ASSIGN(const OffsetSamples offsets,
                       OffsetSamples::Load(FileSystem::Posix(), path, 0));
  EXPECT_EQ(offsets.SamplesOf(1).size(), 1);
}

}  // namespace
}  // namespace meridian
