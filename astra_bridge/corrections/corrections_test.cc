#include "astra_bridge/corrections/corrections.h"

#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/gzip_text.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kTwoSegments[] = R"({
  "all-reduce": [{"up_to_bytes": 8192, "overhead_ns": 41000, "efficiency": 0.5},
                 {"up_to_bytes": null, "overhead_ns": -300.25, "efficiency": 1.25}]})";

TEST(CorrectionsTest, ASegmentEndsWithItsLastByte) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ParseCorrections(kTwoSegments, "c.json"));
  // 41000 + 1000 / 0.5; 1000 / 1.25 - 300.25 = 499.75.
  EXPECT_EQ(corrections.CorrectedNs(CollectiveKind::kAllReduce, 8192, 1000), 43000);
  EXPECT_EQ(corrections.CorrectedNs(CollectiveKind::kAllReduce, 8193, 1000), 500);
}

TEST(CorrectionsTest, OtherKindsKeepTheEnginesTime) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ParseCorrections(kTwoSegments, "c.json"));
  EXPECT_EQ(corrections.CorrectedNs(CollectiveKind::kAllGather, 1, 1000.125), 1000.125);
  EXPECT_EQ(Corrections().CorrectedNs(CollectiveKind::kAllReduce, 1, 7), 7);
}

TEST(CorrectionsTest, WhatIsWrittenIsReadAgainExactly) {
  Corrections corrections;
  corrections.segments[static_cast<size_t>(CollectiveKind::kAllToAll)] = {
      {4096, 1.0 / 3, 0.1}, {1 << 30, -41000.7, 1.0 / 7}};
  corrections.segments[static_cast<size_t>(CollectiveKind::kAllToAll)].push_back(
      CorrectionSegment());
  corrections.segments[static_cast<size_t>(CollectiveKind::kPointToPoint)] = {CorrectionSegment()};
  ASSERT_OK_AND_ASSIGN(const Corrections read,
                       ParseCorrections(CorrectionsToJson(corrections), "c.json"));
  for (size_t kind = 0; kind < corrections.segments.size(); ++kind) {
    ASSERT_EQ(read.segments[kind].size(), corrections.segments[kind].size());
    for (size_t i = 0; i < read.segments[kind].size(); ++i) {
      EXPECT_EQ(read.segments[kind][i].up_to_bytes, corrections.segments[kind][i].up_to_bytes);
      EXPECT_EQ(read.segments[kind][i].overhead_ns, corrections.segments[kind][i].overhead_ns);
      EXPECT_EQ(read.segments[kind][i].efficiency, corrections.segments[kind][i].efficiency);
    }
  }
  EXPECT_OK(ParseCorrections(CorrectionsToJson(Corrections()), "c.json").status());
}

TEST(CorrectionsTest, NoTimeIsBelowZero) {
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ParseCorrections(kTwoSegments, "c.json"));
  EXPECT_EQ(corrections.CorrectedNs(CollectiveKind::kAllReduce, 8193, 100), 0);
}

TEST(CorrectionsTest, NoTimeIsBeyondAnInt64) {
  for (const char* overhead : {"0", "3.6e12", "-3.6e12"}) {
    const std::string json = absl::StrCat(R"({"p2p":[{"up_to_bytes":null,"overhead_ns":)", overhead,
                                          R"(,"efficiency":1e-6}]})");
    ASSERT_OK_AND_ASSIGN(const Corrections corrections, ParseCorrections(json, "c.json"));
    const double ns = corrections.CorrectedNs(CollectiveKind::kPointToPoint, 1, 1e18);
    EXPECT_TRUE(ns == 0 || ns == 4611686018427387904.0) << ns;
  }
}

TEST(CorrectionsTest, AFileMayBeCompressed) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("c.json.gz", GzipText(kTwoSegments));
  ASSERT_OK_AND_ASSIGN(const Corrections corrections, ReadCorrections(FileSystem::Posix(), path));
  EXPECT_EQ(corrections.CorrectedNs(CollectiveKind::kAllReduce, 1, 0), 41000);
  EXPECT_THAT(ReadCorrections(FileSystem::Posix(), directory.PathOf("missing.json")),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(CorrectionsTest, WhatIsWrongIsNamed) {
  const struct {
    const char* json;
    const char* reason;
  } kCases[] = {
      {"", "offset 0"},
      {"[]", "offset 0"},
      {"{} {}", "text follows the object"},
      {R"({"broadcast":[]})", "c.json: broadcast is no kind"},
      {R"({"all-reduce":[]})", "c.json: all-reduce: there are no segments"},
      {R"({"all-reduce":{}})", "c.json: all-reduce: this is no array"},
      {R"({"all-reduce":[1]})", "c.json: all-reduce: segment 1: this is no object"},
      {R"({"p2p":[{"up_to_bytes":null,"overhead_ns":1,"efficiency":0}]})",
       "c.json: p2p: segment 1: efficiency is 0, not above 0"},
      {R"({"p2p":[{"up_to_bytes":null,"overhead_ns":1,"efficiency":1e-300}]})",
       "not from a millionth to a million"},
      {R"({"p2p":[{"up_to_bytes":null,"overhead_ns":1e18,"efficiency":1}]})",
       "not within an hour either way"},
      {R"({"p2p":[{"up_to_bytes":null,"overhead_ns":1}]})",
       "c.json: p2p: segment 1: efficiency is missing"},
      {R"({"p2p":[{"overhead_ns":1,"efficiency":1}]})", "up_to_bytes is missing"},
      {R"({"p2p":[{"up_to_bytes":null,"efficiency":1}]})", "overhead_ns is missing"},
      {R"({"p2p":[{"up_to_bytes":-1,"overhead_ns":1,"efficiency":1}]})",
       "up_to_bytes is -1, not a number of bytes or null"},
      {R"({"p2p":[{"up_to_bytes":null,"overhead_ns":Infinity,"efficiency":1}]})",
       "overhead_ns is Infinity, not a number"},
      {R"({"p2p":[{"up_to_bytes":null,"overhead_ns":1,"eficiency":1}]})",
       "the key eficiency is not known"},
      {R"({"p2p":[{"up_to_bytes":9,"overhead_ns":1,"efficiency":1}]})", "must be null"},
      {R"({"p2p":[{"up_to_bytes":9,"overhead_ns":1,"efficiency":1},
                  {"up_to_bytes":9,"overhead_ns":1,"efficiency":1}]})",
       "segment 2: up_to_bytes is not above"},
      {R"({"p2p":[{"up_to_bytes":null,"overhead_ns":1,"efficiency":1}],
           "p2p":[{"up_to_bytes":null,"overhead_ns":1,"efficiency":1}]})",
       "p2p occurs twice"},
  };
  for (const auto& wrong : kCases) {
    EXPECT_THAT(ParseCorrections(wrong.json, "c.json"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(StartsWith("c.json: "), HasSubstr(wrong.reason),
                               HasSubstr("; expected e.g. {"))))
        << wrong.json;
  }
}

TEST(CorrectionsTest, DamagedTextIsReadOrRefused) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string damaged = Damage(kTwoSegments, random);
    const absl::StatusOr<Corrections> corrections = ParseCorrections(damaged, "c.json");
    EXPECT_TRUE(corrections.ok() || absl::IsInvalidArgument(corrections.status())) << damaged;
    if (corrections.ok()) {
      EXPECT_GE(corrections->CorrectedNs(CollectiveKind::kAllReduce, 9000, 1000), 0) << damaged;
    }
  }
}

}  // namespace
}  // namespace meridian
