#include "astra_bridge/corrections/corrections.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kTwoPoints[] = R"({
  "all-reduce": [{"bytes": 1024, "ratio": 4}, {"bytes": 16384, "ratio": 0.25}]})";

TEST(CorrectionsTest, RatiosLieOnStraightLinesOfLogarithms) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ParseCorrections(kTwoPoints, "c.json"));
  const auto corrected_ns = [&](int64_t bytes) {
    return corrections.CorrectedNs({CollectiveKind::kAllReduce, bytes}, 1000);
  };
  EXPECT_EQ(corrected_ns(1024), 4000);
  // Half way from 1024 to 16384 by their ratio, and a quarter of it.
  EXPECT_EQ(corrected_ns(4096), 1000);
  EXPECT_EQ(corrected_ns(2048), 2000);
  EXPECT_EQ(corrected_ns(16384), 250);
}

TEST(CorrectionsTest, RatiosStayTheSameBeyondTheEnds) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ParseCorrections(kTwoPoints, "c.json"));
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kAllReduce, 1}, 1000), 4000);
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kAllReduce, int64_t{1} << 40}, 1000), 250);
}

TEST(CorrectionsTest, RatiosLieBetweenThoseOfFewerAndOfMoreRanks) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ParseCorrections(R"({"all-gather": [
      {"bytes": 1024, "ratio": 4, "ranks": 2}, {"bytes": 1048576, "ratio": 1, "ranks": 2},
      {"bytes": 1048576, "ratio": 8, "ranks": 4},
      {"bytes": 1024, "ratio": 0.25, "ranks": 8}, {"bytes": 1048576, "ratio": 2, "ranks": 8}]})",
                                                                       "c.json"));
  const auto corrected_ns = [&](int64_t bytes, double ranks) {
    return corrections.CorrectedNs({CollectiveKind::kAllGather, bytes, ranks}, 1000);
  };
  EXPECT_EQ(corrected_ns(1024, 2), 4000);
  EXPECT_EQ(corrected_ns(1024, 1), 4000);
  EXPECT_EQ(corrected_ns(1024, 100), 250);
  // Half way from 2 to 8; the curve of 4 has nothing near that size.
  EXPECT_EQ(corrected_ns(1024, 4), 1000);
  EXPECT_EQ(corrected_ns(1 << 20, 4), 8000);
  EXPECT_EQ(corrected_ns(1 << 20, std::sqrt(32.0)), 4000);
  // No curve comes near: all have a say.
  EXPECT_EQ(corrected_ns(int64_t{1} << 40, 4), 8000);
}

TEST(CorrectionsTest, OtherKindsKeepTheEnginesTime) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ParseCorrections(kTwoPoints, "c.json"));
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kAllGather, 1}, 1000.125), 1000.125);
  EXPECT_EQ(Corrections().CorrectedNs({CollectiveKind::kAllReduce, 1}, 7), 7);
}

// Ratios are to one nanosecond where the engine has none.
TEST(CorrectionsTest, WhatTakesTheEngineNoTimeTakesSome) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections,
                       ParseCorrections(R"({"p2p":[{"bytes":8,"ratio":41000}]})", "c.json"));
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kPointToPoint, 8}, 0), 41000);
}

TEST(CorrectionsTest, MessagesOneWayHavePointsOfTheirOwn) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ParseCorrections(R"({
      "p2p": [{"bytes": 8, "ratio": 2}], "p2p_one_way": [{"bytes": 8, "ratio": 1.5}]})",
                                                                       "c.json"));
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kPointToPoint, 8}, 100), 200);
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kPointToPoint, 8, 1, true}, 100), 150);
  ASSERT_OK_AND_ASSIGN(const Corrections again,
                       ParseCorrections(CorrectionsToJson(corrections), "c.json"));
  EXPECT_EQ(again.CorrectedNs({CollectiveKind::kPointToPoint, 8, 1, true}, 100), 150);
  // Files without them treat all messages alike.
  ASSERT_OK_AND_ASSIGN(const Corrections old,
                       ParseCorrections(R"({"p2p": [{"bytes": 8, "ratio": 2}]})", "c.json"));
  EXPECT_EQ(old.CorrectedNs({CollectiveKind::kPointToPoint, 8, 1, true}, 100), 200);
}

// 1.5 x (100 + 50), and 1 x (100 + 50) for a kind without points.
TEST(CorrectionsTest, EveryTransferHasTheOverhead) {
  ASSERT_OK_AND_ASSIGN(
      const Corrections corrections,
      ParseCorrections(R"({"overhead_ns": 50, "all-reduce": [{"bytes": 8, "ratio": 1.5}]})", "c"));
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kAllReduce, 8}, 100), 225);
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kAllGather, 8}, 100), 150);
  ASSERT_OK_AND_ASSIGN(const Corrections again,
                       ParseCorrections(CorrectionsToJson(corrections), "c"));
  EXPECT_EQ(again.overhead_ns, 50);
  for (const char* wrong : {"-1", "1e300", "null"}) {
    EXPECT_THAT(ParseCorrections(absl::StrCat(R"({"overhead_ns": )", wrong, "}"), "c"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overhead_ns")))
        << wrong;
  }
}

TEST(CorrectionsTest, WhatIsWrittenIsReadAgainExactly) {
  Corrections corrections;
  corrections.points[static_cast<size_t>(CollectiveKind::kAllToAll)] = {
      {4096, 1.0 / 3}, {1 << 30, 1.0 / 7}, {int64_t{1} << 40, 41000.7}};
  corrections.points[static_cast<size_t>(CollectiveKind::kPointToPoint)] = {{1, 0.1}, {1, 0.2, 2}};
  ASSERT_OK_AND_ASSIGN(const Corrections read,
                       ParseCorrections(CorrectionsToJson(corrections), "c.json"));
  for (size_t kind = 0; kind < corrections.points.size(); ++kind) {
    ASSERT_EQ(read.points[kind].size(), corrections.points[kind].size());
    for (size_t i = 0; i < read.points[kind].size(); ++i) {
      EXPECT_EQ(read.points[kind][i].bytes, corrections.points[kind][i].bytes);
      EXPECT_EQ(read.points[kind][i].ratio, corrections.points[kind][i].ratio);
      EXPECT_EQ(read.points[kind][i].ranks, corrections.points[kind][i].ranks);
    }
  }
  EXPECT_OK(ParseCorrections(CorrectionsToJson(Corrections()), "c.json").status());
}

TEST(CorrectionsTest, NoTimeIsBeyondAnInt64) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections,
                       ParseCorrections(R"({"p2p":[{"bytes":8,"ratio":1e9}]})", "c.json"));
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kPointToPoint, 1}, 1e18), kMaxCorrectedNs);
}

TEST(CorrectionsTest, AFileMayBeCompressed) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("c.json.gz", GzipText(kTwoPoints));
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ReadCorrections(FileSystem::Posix(), path));
  EXPECT_EQ(corrections.CorrectedNs({CollectiveKind::kAllReduce, 1}, 10), 40);
  EXPECT_THAT(ReadCorrections(FileSystem::Posix(), directory.PathOf("missing.json")),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(CorrectionsTest, WhatIsWrongIsNamed) {
  const struct {
    const char* json;
    const char* reason;
  } kCases[] = {
      {"", "c.json: expected keys and values"},
      {"[]", "c.json: expected keys and values"},
      {"{} {}", "c.json: text after the end of the document"},
      {R"({"broadcast":[]})", "c.json: broadcast: not known; there are all-gather, all-reduce"},
      {R"({"all-reduce":[]})", "c.json: all-reduce: there are no points"},
      {R"({"all-reduce":{}})", "c.json: all-reduce: expected a list"},
      {R"({"p2p":[{"bytes":8,"ratio":2,"ranks":4},{"bytes":16,"ratio":2,"ranks":2}]})",
       "p2p[1]: points are to be in ascending order of ranks"},
      {R"({"p2p":[{"bytes":8,"ratio":2,"ranks":0.5}]})", "ranks: expected a number of ranks"},
      {R"({"p2p":[{"bytes":8,"ratio":2,"ranks":1e300}]})", "expected a number of ranks"},
      {R"({"all-reduce":[1]})", "c.json: all-reduce[0]: expected keys and values"},
      {R"({"p2p":[{"bytes":8,"ratio":0}]})",
       "c.json: p2p[0].ratio: expected a number from a billionth to a billion"},
      {R"({"p2p":[{"bytes":8,"ratio":1e300}]})", "expected a number from a billionth"},
      {R"({"p2p":[{"bytes":8,"ratio":Infinity}]})", "expected a number from a billionth"},
      {R"({"p2p":[{"bytes":8}]})", "c.json: p2p[0]: ratio is missing"},
      {R"({"p2p":[{"ratio":1}]})", "bytes is missing"},
      {R"({"p2p":[{"bytes":0,"ratio":1}]})", "bytes: expected a positive number of bytes"},
      {R"({"p2p":[{"bytes":8,"ration":1}]})", "p2p[0].ration: not known; there are bytes"},
      {R"({"p2p":[{"bytes":9,"ratio":1},{"bytes":9,"ratio":1}]})",
       "p2p[1]: points are to be in ascending order of ranks"},
      {R"({"p2p":[{"bytes":8,"ratio":1}],"p2p":[{"bytes":8,"ratio":1}]})", "p2p occurs twice"},
  };
  for (const auto& wrong : kCases) {
    EXPECT_THAT(ParseCorrections(wrong.json, "c.json"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(StartsWith("c.json:"), HasSubstr(wrong.reason))))
        << wrong.json;
  }
}

TEST(CorrectionsTest, DamagedTextIsReadOrRefused) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string damaged = Damage(kTwoPoints, random);
    const absl::StatusOr<Corrections> corrections = ParseCorrections(damaged, "c.json");
    EXPECT_TRUE(corrections.ok() || absl::IsInvalidArgument(corrections.status())) << damaged;
    if (corrections.ok()) {
      EXPECT_GE(corrections->CorrectedNs({CollectiveKind::kAllReduce, 9000}, 1000), 0) << damaged;
    }
  }
}

}  // namespace
}  // namespace meridian
