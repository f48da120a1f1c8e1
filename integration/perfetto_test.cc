// What is written for Perfetto, read as Perfetto reads it: over the examples, and over every recording
// where there are more. Where MERIDIAN_TRACE_PROCESSOR names a trace_processor_shell, that is asked,
// too.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "integration/testing/perfetto_reader.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Returns the example and, where there are more recordings, those.
std::vector<std::string> RunsOf(const std::string& example, const std::vector<std::string>& names) {
  std::vector<std::string> runs = {example};
  const std::optional<std::string> shared = SharedDataDirectory();
  for (const std::string& name : names) {
    if (shared.has_value()) runs.push_back(absl::StrCat(*shared, "/traces/", name));
  }
  return runs;
}

std::vector<std::string> TorchRuns() {
  return RunsOf("examples/torch_pipeline4", {"fsdp_nccl4", "graph_nccl4", "torch_nccl4",
                                             "net/net1g_fsdp4", "net/net2g_fsdp4", "public/dlrm8"});
}

std::vector<std::string> JaxRuns() {
  return RunsOf("examples/jax_tp_cuda4_skewed",
                {"jax_cpu4", "jax_cuda2", "jax_tp_cuda4", "scan_cuda4", "net/net1g_moe4",
                 "net/net1g_tp4", "net/net1g_tp8"});
}

std::string ReadWhole(const std::string& path) {
  absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
  EXPECT_OK(file.status());
  return file.ok() ? std::string(file->bytes()) : "";
}

// Asks Perfetto itself, where there is one.
void ExpectPerfettoLosesNothing(const TemporaryDirectory& directory, const std::string& trace,
                                std::optional<int64_t> arrows) {
  const char* const program = std::getenv("MERIDIAN_TRACE_PROCESSOR");
  if (program == nullptr) return;
  const auto ask = [&](const std::string& query) {
    const CommandResult result =
        RunCommandLine(program, {"-q", directory.Write("query.sql", query), trace});
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    return result.standard_output;
  };
  EXPECT_EQ(ask("select count(*) as lost from stats where value > 0 and severity in "
                "('error', 'data_loss');"),
            "\"lost\"\n0\n");
  if (!arrows.has_value()) return;
  EXPECT_EQ(ask("select count(*) as arrows from flow;"),
            absl::StrCat("\"arrows\"\n", *arrows, "\n"));
}

void RunWell(const std::string& command, const std::vector<std::string>& arguments) {
  const CommandResult result = RunCommandLine(command, arguments);
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
}

// Rank 0's rows come before rank 1's, and say whose they are.
void ExpectRowsByRank(const PerfettoReading& reading) {
  int64_t last_rank = 0;
  for (const std::string& name : reading.RowNames()) {
    const std::vector<std::string> words = absl::StrSplit(name, ' ');
    ASSERT_EQ(words[0], "rank") << name;
    EXPECT_GE(std::stoll(words[1]), last_rank) << name;
    last_rank = std::stoll(words[1]);
  }
  EXPECT_GT(last_rank, 0);
  EXPECT_THAT(reading.RowNames(), Contains(HasSubstr("GPU 0")));
}

// The reader sees what it should: an end before its start, what overlaps, a negative time, and a sort
// index beyond 32 bits.
TEST(PerfettoTest, TheReaderCountsWhatIsLost) {
  const PerfettoReading reading = ReadJsonAsPerfetto(R"([
    {"ph":"M","pid":1,"name":"process_name","args":{"name":"second"}},
    {"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":4294967298}},
    {"ph":"M","pid":2,"name":"process_name","args":{"name":"first"}},
    {"ph":"M","pid":2,"name":"process_sort_index","args":{"sort_index":1}},
    {"ph":"X","pid":1,"tid":1,"ts":1.0005,"dur":2.0005,"name":"a"},
    {"ph":"X","pid":1,"tid":1,"ts":3.001,"dur":1,"name":"overlaps"},
    {"ph":"X","pid":2,"tid":1,"ts":1.001,"dur":2,"name":"b"},
    {"ph":"X","pid":2,"tid":1,"ts":-1,"dur":1,"name":"before"},
    {"ph":"f","pid":2,"tid":1,"ts":1.5,"cat":"c","name":"n","id":1,"bp":"e"},
    {"ph":"s","pid":1,"tid":1,"ts":1.5,"cat":"c","name":"n","id":1},
    {"ph":"s","pid":1,"tid":1,"ts":1.5,"cat":"c","name":"n","id":2},
    {"ph":"t","pid":2,"tid":1,"ts":1.5,"cat":"c","name":"n","id":2},
    {"ph":"f","pid":1,"tid":1,"ts":1.6,"cat":"c","name":"n","id":2,"bp":"e"}])");
  EXPECT_THAT(reading.RowNames(), ElementsAre("first", "second"));
  EXPECT_EQ(reading.slices, 3);
  EXPECT_EQ(reading.overlapping_slices, 1);
  EXPECT_EQ(reading.negative_times, 1);
  EXPECT_THAT(reading.lost_arrow_ends, ElementsAre(Pair("c", 1)));
  ASSERT_THAT(reading.arrows, SizeIs(2));
  EXPECT_EQ(reading.arrows[0].from_name, "a");
  EXPECT_EQ(reading.arrows[0].to_name, "b");
  EXPECT_EQ(reading.arrows[1].from_name, "b");
}

TEST(PerfettoTest, MergedKinetoTracesLoseNothing) {
  for (const std::string& run : TorchRuns()) {
    SCOPED_TRACE(run);
    const TemporaryDirectory directory;
    const std::string json = directory.PathOf("run.json.gz"), tar = directory.PathOf("run.tar");
    RunWell("tools/combine", {"--run_dir=" + run, "--output=" + json});
    const PerfettoReading merged = ReadJsonAsPerfetto(ReadWhole(json));
    EXPECT_EQ(merged.negative_times, 0);
    EXPECT_EQ(merged.lost_arrow_ends.count("collective"), 0u);
    EXPECT_GT(merged.CountArrows("collective"), 10);
    for (const PerfettoReading::Arrow& arrow : merged.arrows) {
      if (arrow.category != "collective") continue;
      EXPECT_NE(arrow.from_pid, arrow.to_pid);
      EXPECT_THAT(absl::AsciiStrToLower(arrow.to_name), HasSubstr("nccl"));
    }
    ExpectRowsByRank(merged);

    RunWell("tools/combine", {"--run_dir=" + run, "--output=" + tar});
    const auto files = ReadTarAsPerfetto(ReadWhole(tar));
    ASSERT_GT(files.size(), 2u);
    EXPECT_EQ(files[0].first, "perfetto_manifest.json");
    int64_t slices = 0, overlapping = 0;
    for (size_t i = 1; i < files.size(); ++i) {
      EXPECT_THAT(files[0].second, HasSubstr(absl::StrCat("\"path\": \"", files[i].first, "\"")));
      const PerfettoReading one = ReadJsonAsPerfetto(files[i].second);
      EXPECT_EQ(one.negative_times, 0);
      slices += one.slices;
      overlapping += one.overlapping_slices;
    }
    EXPECT_EQ(slices, merged.slices);
    EXPECT_EQ(overlapping, merged.overlapping_slices);
    // Kernels of a CUDA graph overlap in Kineto's own files, which Perfetto reports.
    if (overlapping == 0) ExpectPerfettoLosesNothing(directory, tar, std::nullopt);
  }
}

TEST(PerfettoTest, ExportsOfJaxRunsLoseNothing) {
  for (const std::string& run : JaxRuns()) {
    SCOPED_TRACE(run);
    const TemporaryDirectory directory;
    const std::string json = directory.PathOf("run.json.gz");
    const std::string perfetto = directory.PathOf("run.pftrace");
    RunWell("tools/combine",
            {"--run_dir=" + run, "--trace_json=" + json, "--perfetto=" + perfetto});
    const PerfettoReading reading = ReadJsonAsPerfetto(ReadWhole(json));
    EXPECT_EQ(reading.negative_times, 0);
    EXPECT_EQ(reading.overlapping_slices, 0);
    EXPECT_EQ(reading.lost_arrow_ends.count("collective"), 0u);
    EXPECT_GT(reading.CountArrows("collective"), 10);
    const std::vector<std::string> rows = reading.RowNames();
    ASSERT_GT(rows.size(), 1u);
    EXPECT_EQ(rows[0], "Collectives");
    ExpectPerfettoLosesNothing(directory, json, reading.arrows.size());
    ExpectPerfettoLosesNothing(directory, perfetto, std::nullopt);
  }
}

// Of a single trace's own arrows those stay whose slices do.
TEST(PerfettoTest, OverlaysOfOneTraceHaveNoLooseArrows) {
  for (const std::string& run : TorchRuns()) {
    if (!absl::StrContains(run, "_nccl4")) continue;
    SCOPED_TRACE(run);
    const TemporaryDirectory directory;
    const std::string json = directory.PathOf("overlay.json");
    RunWell("tools/critical_path", {"--trace=" + run + "/kineto_0.json.gz", "--overlay=" + json});
    const PerfettoReading reading = ReadJsonAsPerfetto(ReadWhole(json));
    EXPECT_THAT(reading.lost_arrow_ends, IsEmpty());
    EXPECT_GT(reading.CountArrows("critical_path"), 0);
  }
}

TEST(PerfettoTest, OverlaysOfJobsLoseNothing) {
  std::vector<std::string> runs = TorchRuns();
  runs.push_back("examples/jax_cuda2");
  for (const std::string& run : runs) {
    SCOPED_TRACE(run);
    const TemporaryDirectory directory;
    for (const bool all : {false, true}) {
      const std::string json = directory.PathOf("overlay.json.gz");
      RunWell("tools/critical_path", {"--run_dir=" + run, "--allow_violations", "--overlay=" + json,
                                      absl::StrCat("--only_critical=", all ? "false" : "true")});
      const PerfettoReading reading = ReadJsonAsPerfetto(ReadWhole(json));
      EXPECT_EQ(reading.negative_times, 0);
      EXPECT_EQ(reading.overlapping_slices, 0);
      EXPECT_THAT(reading.lost_arrow_ends, IsEmpty());
      EXPECT_GT(reading.CountArrows("critical_path"), 0);
      EXPECT_THAT(reading.RowNames(), Each(StartsWith("rank ")));
      ExpectPerfettoLosesNothing(directory, json, reading.arrows.size());
    }
  }
}

}  // namespace
}  // namespace meridian
