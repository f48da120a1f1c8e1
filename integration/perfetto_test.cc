// What is written for Perfetto, read as Perfetto reads it: over the examples, and over every recording
// where there are more. Where MERIDIAN_TRACE_PROCESSOR names a trace_processor_shell, that is asked,
// too.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "integration/testing/perfetto_reader.h"
#include "third_party/perfetto/perfetto_trace.pb.h"
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

// What commands are told to read, by framework.
struct Recordings {
  std::vector<std::string> jax = {"--run_dir=examples/jax_tp_cuda4_skewed"};
  std::vector<std::string> torch = {"--run_dir=examples/torch_pipeline4"};
};

// Adds all that lies beside the checkout. A file that is neither a trace nor known for something else
// fails the test.
void AddShared(const std::string& traces, Recordings* all) {
  std::set<std::string> jax, torch;
  const auto follow = std::filesystem::directory_options::follow_directory_symlink;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(traces, follow)) {
    if (!entry.is_regular_file()) continue;
    const std::filesystem::path& path = entry.path();
    const std::string name = path.filename().string(), folder = path.parent_path().string();
    if (absl::StrContains(name, ".xplane.pb")) {
      jax.insert("--run_dir=" + folder);
    } else if (absl::StartsWith(name, "kineto_") || absl::StrContains(name, ".pt.trace.json")) {
      torch.insert("--run_dir=" + folder);
    } else if (absl::StartsWith(name, "fr_")) {
      torch.insert("--traces=" + folder + "/fr_*" + path.extension().string());
    } else if (absl::StrContains(name, ".csv")) {
      torch.insert("--traces=" + path.string());
    } else {
      const bool is_execution_trace =
          absl::StartsWith(name, "et_") || absl::StartsWith(name, "dlrm_eg_");
      const bool is_clocks = absl::StartsWith(name, "gpu_clock_pairs");
      EXPECT_TRUE(is_execution_trace || is_clocks || path.extension() == ".txt" ||
                  path.extension() == ".md")
          << path << " is not read";
    }
  }
  all->jax.insert(all->jax.end(), jax.begin(), jax.end());
  all->torch.insert(all->torch.end(), torch.begin(), torch.end());
}

// The examples and, where there are more recordings, all of those.
const Recordings& Runs() {
  static const Recordings& runs = *[] {
    auto* all = new Recordings;
    const std::optional<std::string> shared = SharedDataDirectory();
    if (shared.has_value()) AddShared(*shared + "/traces", all);
    return all;
  }();
  return runs;
}

std::vector<std::string> AllRuns() {
  std::vector<std::string> runs = Runs().jax;
  runs.insert(runs.end(), Runs().torch.begin(), Runs().torch.end());
  return runs;
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

void RunWell(const std::vector<std::string>& arguments) {
  const CommandResult result = RunCommandLine("tools/meridian", arguments);
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

// The same of Perfetto's own format: an arrow goes to what begins later.
TEST(PerfettoTest, TheReaderOfProtosCountsWhatIsLost) {
  namespace pp = ::perfetto::protos;
  pp::Trace trace;
  const auto describe = [&](uint64_t id, uint64_t parent) {
    pp::TrackDescriptor* track = trace.add_packet()->mutable_track_descriptor();
    track->set_uuid(id);
    if (parent == 0) track->mutable_process()->set_process_name(absl::StrCat("process ", id));
    if (parent != 0) track->set_parent_uuid(parent);
  };
  const auto add = [&](uint64_t time_ns, pp::TrackEvent::Type type, uint64_t track, uint64_t name) {
    pp::TracePacket* packet = trace.add_packet();
    packet->set_timestamp(time_ns);
    packet->mutable_track_event()->set_type(type);
    packet->mutable_track_event()->set_track_uuid(track);
    packet->mutable_track_event()->set_name_iid(name);
    if (type == pp::TrackEvent::TYPE_SLICE_END) packet->mutable_track_event()->clear_name_iid();
    return packet;
  };
  describe(1, 0);
  describe(2, 0);
  describe(3, 1);
  describe(4, 2);
  pp::TracePacket* first = add(20, pp::TrackEvent::TYPE_SLICE_BEGIN, 3, 1);
  first->mutable_track_event()->add_flow_ids(7);
  pp::InternedName* name = first->mutable_interned_data()->add_event_names();
  name->set_iid(1);
  name->set_name("a");
  name = first->mutable_interned_data()->add_event_names();
  name->set_iid(2);
  name->set_name("b");
  add(10, pp::TrackEvent::TYPE_SLICE_BEGIN, 4, 2)->mutable_track_event()->add_flow_ids(7);
  add(30, pp::TrackEvent::TYPE_SLICE_END, 4, 0);
  add(40, pp::TrackEvent::TYPE_SLICE_END, 4, 0);
  add(UINT64_MAX, pp::TrackEvent::TYPE_INSTANT, 4, 1);
  const PerfettoReading reading = ReadProtoAsPerfetto(trace.SerializeAsString());
  EXPECT_THAT(reading.RowNames(), ElementsAre("process 1", "process 2"));
  EXPECT_EQ(reading.slices, 2);
  // `a` does not end, and nothing began that ends at 40.
  EXPECT_EQ(reading.overlapping_slices, 2);
  EXPECT_EQ(reading.negative_times, 1);
  ASSERT_THAT(reading.arrows, SizeIs(1));
  EXPECT_EQ(reading.arrows[0].from_name, "b");
  EXPECT_EQ(reading.arrows[0].to_name, "a");
}

// Whether a profiler wrote the run's traces, and they are not made of logs.
bool IsProfiled(absl::string_view run) { return absl::StartsWith(run, "--run_dir="); }

TEST(PerfettoTest, MergedKinetoTracesLoseNothing) {
  for (const std::string& run : Runs().torch) {
    SCOPED_TRACE(run);
    const TemporaryDirectory directory;
    const std::string json = directory.PathOf("run.json.gz"), tar = directory.PathOf("run.tar");
    RunWell({"combine", run, "--output=" + json});
    const PerfettoReading merged = ReadJsonAsPerfetto(ReadWhole(json));
    EXPECT_EQ(merged.negative_times, 0);
    EXPECT_EQ(merged.lost_arrow_ends.count("collective"), 0u);
    EXPECT_GT(merged.CountArrows("collective"), 10);
    for (const PerfettoReading::Arrow& arrow : merged.arrows) {
      if (arrow.category != "collective") continue;
      EXPECT_NE(arrow.from_pid, arrow.to_pid);
      EXPECT_THAT(absl::AsciiStrToLower(arrow.to_name), HasSubstr("nccl"));
    }
    if (IsProfiled(run)) ExpectRowsByRank(merged);

    RunWell({"combine", run, "--output=" + tar});
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

// What arrows lead to, in order.
std::vector<std::string> EndsOfArrows(const PerfettoReading& reading) {
  std::vector<std::string> names;
  for (const PerfettoReading::Arrow& arrow : reading.arrows) names.push_back(arrow.to_name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(PerfettoTest, ExportsLoseNothing) {
  for (const std::string& run : AllRuns()) {
    SCOPED_TRACE(run);
    const TemporaryDirectory directory;
    const std::string json = directory.PathOf("run.json.gz");
    const std::string perfetto = directory.PathOf("run.pftrace");
    RunWell({"combine", run, "--trace_json=" + json, "--perfetto=" + perfetto});
    const PerfettoReading reading = ReadJsonAsPerfetto(ReadWhole(json));
    EXPECT_EQ(reading.negative_times, 0);
    EXPECT_EQ(reading.overlapping_slices, 0);
    EXPECT_EQ(reading.lost_arrow_ends.count("collective"), 0u);
    EXPECT_GT(reading.CountArrows("collective"), 10);
    const std::vector<std::string> rows = reading.RowNames();
    ASSERT_GT(rows.size(), 1u);
    EXPECT_EQ(rows[0], "Collectives");
    const PerfettoReading proto = ReadProtoAsPerfetto(ReadWhole(perfetto));
    EXPECT_EQ(proto.negative_times, 0);
    EXPECT_EQ(proto.overlapping_slices, 0);
    EXPECT_EQ(proto.slices, reading.slices);
    EXPECT_EQ(proto.RowNames(), rows);
    // In what is made of logs a call, its kernel and the collective may begin at once: some arrows
    // between them are lost in JSON.
    if (IsProfiled(run)) {
      EXPECT_EQ(EndsOfArrows(proto), EndsOfArrows(reading));
    }
    ExpectPerfettoLosesNothing(directory, json, reading.arrows.size());
    ExpectPerfettoLosesNothing(directory, perfetto, std::nullopt);
  }
}

// Reads the trace of each rank on the common clock, by the names of the files.
std::map<std::string, PerfettoReading> ReadAligned(const TemporaryDirectory& directory,
                                                   const std::string& run) {
  RunWell({"combine", run, "--method=collectives", "--stages=align",
           "--output_dir=" + directory.PathOf("out")});
  std::map<std::string, PerfettoReading> readings;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(directory.PathOf("out/plugins"))) {
    if (!file.is_regular_file()) continue;
    readings[file.path().filename()] = ReadJsonAsPerfetto(ReadWhole(file.path()));
  }
  EXPECT_GT(readings.size(), 1u);
  return readings;
}

// Kineto's own files stay as good as they were.
TEST(PerfettoTest, AlignedKinetoTracesLoseNothing) {
  for (const std::string& run : Runs().torch) {
    SCOPED_TRACE(run);
    const TemporaryDirectory directory;
    for (const auto& [name, aligned] : ReadAligned(directory, run)) {
      EXPECT_EQ(aligned.negative_times, 0) << name;
      absl::string_view folder = run;
      if (!absl::ConsumePrefix(&folder, "--run_dir=")) continue;
      const std::string text = ReadWhole(absl::StrCat(folder, "/", name));
      const PerfettoReading original = ReadJsonAsPerfetto(text);
      EXPECT_EQ(aligned.slices, original.slices) << name;
      // A double holds no nanoseconds of times that count from 1970: Perfetto rounds them apart.
      if (!absl::StrContains(text, "baseTimeNanoseconds")) continue;
      EXPECT_EQ(aligned.overlapping_slices, original.overlapping_slices) << name;
      EXPECT_EQ(aligned.lost_arrow_ends, original.lost_arrow_ends) << name;
    }
  }
}

// The clock of rank 1 is 50 ms ahead, so that its events move before where the first of them was.
TEST(PerfettoTest, ConvertedTracesThatMoveBackLoseNothing) {
  const TemporaryDirectory directory;
  std::string rows = "rank,kind,group,bytes,start_ns,end_ns\n";
  for (int64_t i = 0; i < 20; ++i) {
    for (const int64_t rank : {0, 1}) {
      const int64_t start_ns = 1794701451000000000 + i * 10'000'000 + rank * 50'000'000;
      absl::StrAppend(&rows, rank, ",all-reduce,0 1,1048576,", start_ns, ",", start_ns + 1'000'000,
                      "\n");
    }
  }
  const std::string table = directory.Write("run.csv", rows);
  for (const auto& [name, aligned] : ReadAligned(directory, "--traces=" + table)) {
    EXPECT_EQ(aligned.negative_times, 0) << name;
    EXPECT_GE(aligned.slices, 20) << name;
  }
}

// Of a single trace's own arrows those stay whose slices do.
TEST(PerfettoTest, OverlaysOfOneTraceHaveNoLooseArrows) {
  for (const std::string& run : Runs().torch) {
    if (!absl::StartsWith(run, "--run_dir=") || !absl::StrContains(run, "_nccl4")) continue;
    SCOPED_TRACE(run);
    const TemporaryDirectory directory;
    const std::string json = directory.PathOf("overlay.json");
    const std::string trace(absl::StripPrefix(run, "--run_dir="));
    RunWell({"critical_path", "--trace=" + trace + "/kineto_0.json.gz", "--overlay=" + json});
    const PerfettoReading reading = ReadJsonAsPerfetto(ReadWhole(json));
    EXPECT_THAT(reading.lost_arrow_ends, IsEmpty());
    EXPECT_GT(reading.CountArrows("critical_path"), 0);
  }
}

TEST(PerfettoTest, OverlaysOfJobsLoseNothing) {
  for (const std::string& run : AllRuns()) {
    SCOPED_TRACE(run);
    const TemporaryDirectory directory;
    for (const bool all : {false, true}) {
      const std::string json = directory.PathOf("overlay.json.gz");
      RunWell({"critical_path", run, "--allow_violations", "--overlay=" + json,
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
