// trace_columns as a user runs it: what NumPy will find.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CommandResult Columns(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/trace_columns", arguments);
}

// Returns the numbers of a column of 64-bit integers, whose file says so.
std::vector<int64_t> ReadInt64Column(const std::string& file) {
  EXPECT_EQ(file.substr(0, 8), absl::string_view("\x93NUMPY\x01\x00", 8));
  const size_t header = 10 + static_cast<uint8_t>(file[8]) + 256 * static_cast<uint8_t>(file[9]);
  EXPECT_EQ(header % 64, 0);
  EXPECT_THAT(file.substr(0, header), HasSubstr("'descr': '<i8', 'fortran_order': False"));
  std::vector<int64_t> values((file.size() - header) / sizeof(int64_t));
  EXPECT_THAT(file.substr(0, header), HasSubstr(absl::StrCat("'shape': (", values.size(), ",)")));
  std::memcpy(values.data(), file.data() + header, values.size() * sizeof(int64_t));
  return values;
}

constexpr char kKineto[] = R"({"schemaVersion": 1, "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "add", "pid": 7, "tid": 8, "ts": 10, "dur": 2.5},
    {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 11, "dur": 4,
     "args": {"correlation": 5}})";

std::string Kineto(const std::string& more) { return absl::StrCat(kKineto, more, "]}"); }

TEST(TraceColumnsTest, WritesWhatNumpyReads) {
  const TemporaryDirectory directory;
  const std::string trace = directory.Write("rank0.json", Kineto(""));
  const std::string output = directory.PathOf("columns");
  const CommandResult result = Columns({"--trace=" + trace, "--output_dir=" + output, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(JsonValue(result.standard_output).Find("events").AsInt64(), 2);
  EXPECT_THAT(ReadInt64Column(directory.Read("columns/start_ps.npy")), ElementsAre(0, 1000000));
  EXPECT_THAT(ReadInt64Column(directory.Read("columns/duration_ps.npy")),
              ElementsAre(2500000, 4000000));
  const std::string table = directory.Read("columns/table.json");
  EXPECT_EQ(JsonValue(table).Find("base_ns").AsInt64(), 1790857026000010000);
  EXPECT_EQ(JsonValue(table).Find("names").text(), R"(["add","k"])");
}

TEST(TraceColumnsTest, StatesRanksThatTheFileTells) {
  const TemporaryDirectory directory;
  const auto tracks = [&](const std::string& first, const std::string& more) {
    const std::string trace = directory.Write(
        "trace.json", absl::StrCat("{", first, absl::string_view(Kineto(more)).substr(1)));
    const CommandResult result =
        Columns({"--trace=" + trace, "--output_dir=" + directory.PathOf("columns")});
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    const std::string table = directory.Read("columns/table.json");
    std::vector<int64_t> ranks;
    for (const JsonValue& track : JsonValue(table).Find("tracks").Elements()) {
      ranks.push_back(track.Find("rank").AsInt64().value_or(-1));
    }
    return ranks;
  };
  EXPECT_THAT(tracks("", ""), ElementsAre(-1, -1));
  EXPECT_THAT(tracks(R"("distributedInfo": {"rank": 3},)", ""), ElementsAre(3, 3));
  const std::string names = R"(, {"ph": "M", "name": "process_name", "pid": 7, "tid": 0,
    "args": {"name": "rank 12 host (1246) python3"}}, {"ph": "M", "name": "process_name", "pid": 0,
    "tid": 0, "args": {"name": "rank x"}})";
  EXPECT_THAT(tracks(R"("combinedRanks": 2,)", names), ElementsAre(12, -1));
  // Whoever else names a process so does not say what rank it is.
  EXPECT_THAT(tracks("", names), ElementsAre(-1, -1));
}

TEST(TraceColumnsTest, TellsWhatWasLeftOutAndRefusesWhatIsWrong) {
  const TemporaryDirectory directory;
  const std::string output = "--output_dir=" + directory.PathOf("columns");
  const std::string odd =
      directory.Write("odd.json", Kineto(R"(, {"ph": "X", "name": "x", "ts": NaN})"));
  const CommandResult noted = Columns({"--trace=" + odd, output});
  EXPECT_EQ(noted.exit_code, 0);
  EXPECT_THAT(noted.standard_error, HasSubstr("events were left out: 1 with a ts or dur"));
  const std::string inverted =
      directory.Write("inverted.json", Kineto(R"(, {"ph": "X", "name": "x", "ts": 5, "dur": -1})"));
  EXPECT_THAT(Columns({"--trace=" + inverted, output}).standard_error,
              HasSubstr("events were left out: 1 with a negative duration"));
  EXPECT_EQ(Columns({"--trace=" + odd, "--graph=" + odd, output}).exit_code, 2);
  EXPECT_EQ(Columns({"--graph=" + odd, output}).exit_code, 2);
  EXPECT_THAT(Columns({"--trace=" + odd}).standard_error,
              HasSubstr("--output_dir names no folder"));
}

TEST(TraceColumnsTest, DoesNotOverwriteWhatItReads) {
  const TemporaryDirectory directory;
  const std::string trace = directory.Write("table.json", Kineto(""));
  const CommandResult result =
      Columns({"--trace=" + trace, "--output_dir=" + directory.PathOf(".")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(directory.Read("table.json"), Kineto(""));
}

}  // namespace
}  // namespace meridian
