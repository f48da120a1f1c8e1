// What combine and critical_path say about jobs that were recorded on real networks, held against
// what is known of them: the same job on links twice as fast, ranks that slept, a link that is
// slow. And about every recording there is: no report contradicts itself.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "critical_path/report/path_report.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "pipeline/findings.h"
#include "report/run_report.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/statistics.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kExamples[] = "examples/networks/";

// The path of a run's report, after the edits if there are any.
PathReport PathOf(const std::string& run, const std::string& edits = "") {
  std::vector<std::string> arguments = {"--run_dir=" + run, "--json"};
  if (!edits.empty()) arguments.push_back("--what_if=" + edits);
  const CommandResult result = RunCommandLine("tools/critical_path", arguments);
  EXPECT_EQ(result.exit_code, 0) << run << ": " << result.standard_error;
  PathReport report;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.standard_output, &report).ok());
  return report;
}

// The report of the whole chain.
RunReport ReportOf(const std::string& run, const std::string& stages = "") {
  const TemporaryDirectory directory;
  const std::string out = directory.PathOf("out");
  std::vector<std::string> arguments = {"--run_dir=" + run, "--output_dir=" + out};
  if (!stages.empty()) arguments.push_back("--stages=" + stages);
  const CommandResult result = RunCommandLine("tools/combine", arguments);
  EXPECT_EQ(result.exit_code, 0) << run << ": " << result.standard_error;
  RunReport report;
  const auto json = FileSystem::Posix().Map(out + "/report.json");
  EXPECT_OK(json);
  if (!json.ok()) return report;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  EXPECT_TRUE(
      google::protobuf::util::JsonStringToMessage(std::string((*json)->bytes()), &report, options)
          .ok());
  return report;
}

std::string VerdictOn(const RunReport& report, const std::string& topic) {
  for (const Finding& finding : report.findings()) {
    if (finding.topic() == topic) return finding.verdict();
  }
  return "none";
}

double MedianStepMs(const PathReport& report) {
  std::vector<double> lengths;
  for (const PathStepReport& step : report.steps()) lengths.push_back(step.us() / 1000);
  return lengths.empty() ? 0 : Median(lengths);
}

// The true periods, between the ends of the same communication kernels in neighbouring steps, are
// 287.7 and 145.3 ms.
TEST(NetworksTest, HalfTheCommunicationIsWhatTwiceTheBandwidthGave) {
  const std::string run = absl::StrCat(kExamples, "ddp4_1g");
  const PathReport slow = PathOf(run), fast = PathOf(absl::StrCat(kExamples, "ddp4_2g"));
  EXPECT_NEAR(MedianStepMs(slow), 287.7, 0.04 * 287.7);
  EXPECT_NEAR(MedianStepMs(fast), 145.3, 0.04 * 145.3);
  EXPECT_LE(slow.breakdown_percent().at("device_not_in_trace"), 3);
  // Work that was launched before the profile: the step before the first.
  EXPECT_GT(slow.before_step_us(), 250'000);
  const PathReport half = PathOf(run, "scale category=communication 0.5");
  const double ratio = half.what_if().length_us_after() / half.what_if().length_us_before();
  EXPECT_NEAR(ratio, 145.3 / 287.7, 0.08 * 145.3 / 287.7);
  // With nothing changed it is the measured run.
  const PathReport same = PathOf(run, "scale category=communication 1");
  EXPECT_DOUBLE_EQ(same.what_if().length_us_after(), same.what_if().length_us_before());
}

// Rank 1 slept 25 ms at the beginning of steps 2 and 4.
TEST(NetworksTest, WithoutASleeperItsSleepIsGone) {
  const std::string run = absl::StrCat(kExamples, "experts4_1g");
  const PathReport level = PathOf(run, "level rank=1");
  const double saved_ms =
      (level.what_if().length_us_before() - level.what_if().length_us_after()) / 1000;
  EXPECT_NEAR(saved_ms, 50, 0.2 * 50);
  const RunReport report = ReportOf(run);
  EXPECT_THAT(FindContradictions(report), IsEmpty());
  EXPECT_EQ(VerdictOn(report, "straggler"), "bad");
  EXPECT_EQ(VerdictOn(report, "links"), "good");
  EXPECT_THAT(FindingsText(report), HasSubstr("Rank 1 is late in 2 of 6 steps (2, 4)"));
}

// Node 3's link has 400 Mbit/s, those of the others 1,000: steps of 340 ms in place of 124.
// One question has one answer in a report, wherever it is told.
TEST(NetworksTest, ForecastsAreTheOnlyAnswers) {
  const RunReport report = ReportOf(absl::StrCat(kExamples, "experts4_1g"));
  ASSERT_GT(report.forecasts_size(), 0);
  int late_ranks = 0, answers = 0;
  for (const WhatIfPart& part : report.what_if()) {
    EXPECT_NE(part.change(), WhatIfPart::HALF_THE_COMMUNICATION);
    EXPECT_NE(part.change(), WhatIfPart::HALF_THE_COMPUTATION);
    if (part.change() != WhatIfPart::RANK_AS_FAST_AS_OTHERS) continue;
    ++late_ranks;
    for (const ForecastReport& answer : report.forecasts()) {
      if (!answer.has_fix_rank() || answer.fix_rank() != part.rank() || answer.bandwidth() != 1)
        continue;
      EXPECT_EQ(answer.question(), part.what());
      EXPECT_NEAR(answer.step_ns() / 1e6, part.step_ms(), 0.01 * part.step_ms());
      ++answers;
    }
  }
  EXPECT_EQ(late_ranks, 1);
  EXPECT_EQ(answers, 1);
}

TEST(NetworksTest, ASlowLinkIsNamedAndItsCostIsWhatItCost) {
  const RunReport report = ReportOf(absl::StrCat(kExamples, "experts4_slow3"), "path,report");
  EXPECT_THAT(FindContradictions(report), IsEmpty());
  ASSERT_EQ(report.slow_links_size(), 1);
  EXPECT_EQ(report.slow_links(0).rank(), 3);
  EXPECT_NEAR(report.slow_links(0).times_slower(), 2.5, 0.25 * 2.5);
  EXPECT_NEAR(report.slow_links(0).cost_ms(), 340 - 124, 0.2 * (340 - 124));
  EXPECT_EQ(VerdictOn(report, "links"), "bad");
}

// 16 tokens of 40 ms; rank 2 slept 15 ms before tokens 5 and 11. Nothing marks the tokens.
TEST(NetworksTest, DecodingHasPeriods) {
  const RunReport report = ReportOf(absl::StrCat(kExamples, "decode4_1g"), "path,report");
  EXPECT_THAT(FindContradictions(report), IsEmpty());
  EXPECT_EQ(report.run().step_word(), "period");
  EXPECT_EQ(report.run().steps(), 16);
  EXPECT_NEAR(report.run().step_ms(), 40.4, 1);
  EXPECT_THAT(FindingsText(report), HasSubstr("Rank 2 is late in 2 of 16 periods (5, 11)"));
}

// Three of the four profiles.
TEST(NetworksTest, WithoutARankNothingIsSaidThatNeedsIt) {
  const TemporaryDirectory directory;
  const std::string run = directory.PathOf("run");
  std::filesystem::create_directory(run);
  for (const char* rank : {"0", "1", "3"}) {
    std::filesystem::copy(absl::StrCat(kExamples, "experts4_1g/rank", rank, ".xplane.pb.gz"), run);
  }
  const RunReport report = ReportOf(run, "path,report");
  EXPECT_THAT(FindContradictions(report), IsEmpty());
  ASSERT_GT(report.findings_size(), 0);
  EXPECT_EQ(report.findings(0).headline(), "No profile has the work of rank 2 of 4.");
  EXPECT_EQ(VerdictOn(report, "straggler"), "unknown");
  EXPECT_EQ(VerdictOn(report, "network"), "unknown");
  EXPECT_EQ(VerdictOn(report, "links"), "unknown");
  EXPECT_EQ(report.what_if_size(), 0);
  EXPECT_EQ(report.run().steps(), 6);
  EXPECT_GT(report.timeline().lanes_size(), 0);
}

bool HoldsProfiles(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (absl::StrContains(name, ".xplane.pb") || absl::StartsWith(name, "kineto_")) return true;
  }
  return false;
}

TEST(NetworksTest, NoReportOfAnyRecordingContradictsItself) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  int runs = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*shared + "/traces")) {
    const std::string path = entry.path().string();
    // Those of other people have kernels without arguments.
    if (!entry.is_directory() || absl::StrContains(path, "/public")) continue;
    if (!HoldsProfiles(entry.path())) continue;
    SCOPED_TRACE(path);
    const bool is_sweep = absl::StrContains(path, "sweep");
    const RunReport report = ReportOf(path, is_sweep ? "path,report" : "");
    EXPECT_THAT(FindContradictions(report), IsEmpty());
    EXPECT_EQ(report.slow_links_size(), absl::StrContains(path, "slow5") ? 1 : 0);
    ++runs;
  }
  EXPECT_GT(runs, 15);
}

}  // namespace
}  // namespace meridian
