// combine as users run it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "chakra_export/xspace/testing/device_profile.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "report/run_report.pb.h"
#include "third_party/xplane/xplane.pb.h"
#include "trace_alignment/combine/combine_report.pb.h"
#include "trace_alignment/testing/cluster_files.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr char kSkewed[] = "examples/jax_tp_cuda4_skewed";
constexpr char kTrue[] = "examples/jax_cuda2";

CommandResult Combine(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/combine", arguments);
}

CombineReport ParseReport(const std::string& json) {
  CombineReport report;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &report).ok()) << json;
  return report;
}

// The truth is in examples/README.md.
TEST(CombineTest, TheBundledExampleIsAlignedWithinWhatItStates) {
  const TemporaryDirectory directory;
  const CommandResult result =
      Combine({std::string("--run_dir=") + kSkewed,
               "--output=" + directory.PathOf("combined.xplane.pb"), "--validate", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const CombineReport report = ParseReport(result.standard_output);
  EXPECT_EQ(report.method(), "collectives");
  EXPECT_EQ(report.happens_before().checked(), 528);
  EXPECT_EQ(report.happens_before().violations_before(), 504);
  EXPECT_EQ(report.happens_before().violations_after(), 0);
  EXPECT_EQ(report.happens_before().checked_on(), "written file");
  EXPECT_EQ(report.happens_before().incomplete(), 0);
  EXPECT_EQ(report.steps(), 6);
  EXPECT_EQ(report.steps_on_all_ranks(), 6);
  constexpr int64_t kStartNs = 1794701757320158512;
  const std::vector<std::pair<int64_t, double>> truth = {
      {0, 0}, {12345678, 18}, {-31000000, -42.5}, {47000000, 7.25}};
  ASSERT_EQ(report.nodes_size(), 4);
  for (int n = 0; n < 4; ++n) {
    const CombinedNode& node = report.nodes(n);
    const double offset_ns =
        static_cast<double>(truth[n].first) +
        truth[n].second * 1e-6 * static_cast<double>(node.offset_at_ns() - kStartNs);
    EXPECT_LE(std::abs(static_cast<double>(node.offset_ns()) - offset_ns),
              static_cast<double>(node.uncertainty_ns() + 1));
    EXPECT_LE(node.uncertainty_ns(), 600000);
    EXPECT_EQ(node.events(), 4448);
  }
  const CommandResult check = RunCommandLine(
      "tools/validate_collectives", {"--traces=" + directory.PathOf("combined.xplane.pb")});
  EXPECT_EQ(check.exit_code, 0);
  EXPECT_THAT(check.standard_output, HasSubstr("0 violation(s) in 528 checked"));
}

// What xspace_inspect refuses, no command takes; and what a command writes, xspace_inspect reads.
TEST(CombineTest, NoCommandTakesAProfileThatInspectRefuses) {
  const TemporaryDirectory directory;
  ASSERT_OK_AND_ASSIGN(const auto sound,
                       FileSystem::Posix().Map(absl::StrCat(kTrue, "/rank0.xplane.pb")));
  const std::string trace = directory.PathOf("rank0.xplane.pb");
  ASSERT_OK_AND_ASSIGN(const auto other,
                       FileSystem::Posix().Map(absl::StrCat(kTrue, "/rank1.xplane.pb")));
  const std::string traces =
      absl::StrCat(trace, ",", directory.Write("rank1.xplane.pb", other->bytes()));
  const std::string aligned = directory.PathOf("aligned.xplane.pb");
  const std::string combined = directory.PathOf("combined.xplane.pb");
  const std::vector<std::pair<std::string, std::vector<std::string>>> commands = {
      {"tools/xprof_trace_align", {"--trace=" + trace, "--output=" + aligned}},
      {"tools/combine", {"--traces=" + traces, "--output=" + combined, "--method=none"}},
      {"tools/combine", {"--traces=" + traces, "--validate", "--method=none"}},
      {"tools/validate_collectives", {"--traces=" + traces}},
      {"tools/astra_calibrate", {"--traces=" + traces, "--allow_violations"}},
      {"tools/critical_path", {"--traces=" + traces, "--allow_violations"}}};
  const std::string whole(sound->bytes());
  // In the second a plane that nobody looks at has an event whose stat is a text that is not UTF-8.
  std::vector<std::string> profiles = {
      whole, whole + "\x0a\x12\x12\x07/nobody\x1a\x07\x22\x05\x22\x03\x2a\x01\xff"};
  std::mt19937_64 random(22);
  while (profiles.size() < 42) profiles.push_back(Damage(whole, random));
  int refused = 0;
  for (size_t round = 0; round < profiles.size(); ++round) {
    directory.Write("rank0.xplane.pb", profiles[round]);
    const CommandResult inspected = RunCommandLine("tools/xspace_inspect", {"--trace=" + trace});
    if (round < 2) {
      EXPECT_EQ(inspected.exit_code, round == 0 ? 0 : 2) << inspected.standard_error;
    }
    refused += inspected.exit_code == 2;
    for (const auto& [command, arguments] : commands) {
      const CommandResult result = RunCommandLine(command, arguments);
      if (round == 0 || inspected.exit_code == 2) {
        EXPECT_EQ(result.exit_code, inspected.exit_code)
            << round << " " << command << ": " << inspected.standard_error << result.standard_error;
      }
      for (const std::string& output : {aligned, combined}) {
        if (!FileSystem::Posix().Kind(output).ok()) continue;
        EXPECT_EQ(RunCommandLine("tools/xspace_inspect", {"--trace=" + output}).exit_code, 0)
            << round << " " << command;
        ASSERT_OK(FileSystem::Posix().Delete(output));
      }
    }
  }
  EXPECT_GT(refused, 10);
}

// Host names are whatever the profiles say; no file is named after them.
TEST(CombineTest, HostNamesThatLookLikePathsNeverBecomePaths) {
  const TemporaryDirectory directory;
  const auto combine = [&](const std::vector<std::string>& hosts, const std::string& out) {
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      const std::string name = absl::StrCat("rank", rank, ".xplane.pb");
      const absl::StatusOr<InputFile> sound =
          InputFile::Open(FileSystem::Posix(), absl::StrCat(kTrue, "/", name));
      EXPECT_OK(sound);
      // The first name counts.
      ::tensorflow::profiler::XSpace host;
      host.add_hostnames(hosts[rank]);
      directory.Write("run/" + name, absl::StrCat(host.SerializeAsString(), sound->bytes()));
    }
    const CommandResult result = Combine({"--run_dir=" + directory.PathOf("run"),
                                          "--output_dir=" + directory.PathOf(out + "/b/c/d/out")});
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    EXPECT_THAT(result.standard_output, HasSubstr("2 hosts"));
  };
  const auto files = [&](const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(directory.PathOf(folder))) {
      names.push_back(entry.path().lexically_relative(directory.PathOf(folder)));
    }
    std::sort(names.begin(), names.end());
    return names;
  };
  combine({"host-a", "host-b"}, "plain");
  const std::vector<std::vector<std::string>> hostile = {
      {"../../evil", directory.PathOf("evil/x")},
      {std::string("a\0/../../evil", 13), "b\n/../../evil"}};
  for (const std::vector<std::string>& hosts : hostile) {
    combine(hosts, "hostile");
    EXPECT_EQ(files("hostile"), files("plain"));
    EXPECT_THAT(directory.List(), ElementsAre("hostile", "plain", "run"));
  }
}

// Each run is a process of its own, in which libprotobuf's maps have an order of their own.
TEST(CombineTest, RepeatedRunsWriteTheSameBytes) {
  const TemporaryDirectory directory;
  const std::vector<std::pair<std::string, std::vector<std::string>>> runs = {
      {kSkewed,
       {"--output=combined.xplane.pb", "--trace_json=trace.json",
        "--perfetto=trace.perfetto-trace"}},
      {kTrue, {"--output=prefix.xplane.pb", "--plane_naming=node_prefix"}},
      {"examples/torch_pipeline4", {"--output=kineto.json", "--perfetto=kineto.perfetto-trace"}},
      {"examples/torch_pipeline4",
       {"--output=kineto.xplane.pb", "--perfetto=other.perfetto-trace"}}};
  for (const auto& [run, outputs] : runs) {
    std::vector<std::string> first;
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::vector<std::string> arguments = {"--run_dir=" + run}, written;
      for (const std::string& output : outputs) {
        const size_t equals = output.find('=');
        const bool is_file = output.find('.') != std::string::npos;
        arguments.push_back(is_file ? absl::StrCat(output.substr(0, equals + 1),
                                                   directory.PathOf(output.substr(equals + 1)))
                                    : output);
      }
      const CommandResult result = Combine(arguments);
      ASSERT_EQ(result.exit_code, 0) << result.standard_error;
      for (const std::string& output : outputs) {
        const size_t equals = output.find('=');
        if (output.find('.') == std::string::npos) continue;
        written.push_back(directory.Read(output.substr(equals + 1)));
      }
      if (repeat == 0) first = written;
      for (size_t i = 0; i < written.size(); ++i) {
        EXPECT_TRUE(written[i] == first[i]) << run << " " << outputs[i] << " differs";
      }
    }
  }
}

// The first thing that anybody tries.
TEST(CombineTest, WithoutFlagsTheExampleIsCombined) {
  const TemporaryDirectory directory;
  ASSERT_EQ(setenv("BUILD_WORKING_DIRECTORY", directory.path().c_str(), /*overwrite=*/1), 0);
  const CommandResult result = Combine({});
  ASSERT_EQ(unsetenv("BUILD_WORKING_DIRECTORY"), 0);
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("bundled example"));
  // The answers, in sentences.
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("4 ranks on 1 host: 6 steps of "), HasSubstr("No rank keeps"),
                    HasSubstr("Clocks were up to 47.0 ms off and are now known within "),
                    HasSubstr("of the critical path is exposed communication"),
                    HasSubstr("On links twice as fast a step would take "),
                    HasSubstr("The simulated network gives this run's collectives within "),
                    HasSubstr("meridian_out/report.html")));
  for (const char* name :
       {"combined.xplane.pb", "trace.json.gz", "trace.perfetto-trace", "report.html", "report.json",
        "combine.json", "chakra/job.3.et", "calibration/calibration.json"}) {
    EXPECT_GT(directory.Read(std::string("meridian_out/") + name).size(), 1000u) << name;
  }
}

RunReport ParseRunReport(const std::string& json) {
  RunReport report;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &report).ok());
  return report;
}

std::map<std::string, std::string> StagesOf(const RunReport& report) {
  std::map<std::string, std::string> states;
  for (const ReportedStage& stage : report.stages()) states[stage.name()] = stage.state();
  return states;
}

// A process that sleeps is found, and what did not change is not done again.
TEST(CombineTest, TheChainFindsWhoSlept) {
  const TemporaryDirectory directory;
  const std::string out = directory.PathOf("out");
  const std::vector<std::string> flags = {"--run_dir=examples/jax_scan4", "--output_dir=" + out};
  const CommandResult first = Combine(flags);
  ASSERT_EQ(first.exit_code, 0) << first.standard_error;
  const RunReport report = ParseRunReport(directory.Read("out/report.json"));
  EXPECT_THAT(StagesOf(report), ElementsAre(Pair("align", "done"), Pair("chakra", "done"),
                                            Pair("path", "done"), Pair("simulate", "done")));
  // Process 2 sleeps 4 ms at the beginning of steps 2 and 4.
  for (int64_t step : {2, 4}) {
    const auto part =
        std::find_if(report.blame().begin(), report.blame().end(),
                     [&](const BlamePart& candidate) { return candidate.step() == step; });
    ASSERT_NE(part, report.blame().end()) << step;
    EXPECT_EQ(part->rank(), 2) << step;
    EXPECT_NEAR(part->caused_ms(), 4, 1.5) << step;
    EXPECT_THAT(part->reason(), HasSubstr("the trace does not show")) << step;
  }
  EXPECT_GT(report.timeline().events().lane_size(), 1000);
  EXPECT_GT(report.timeline().collectives_size(), 10);
  EXPECT_GE(report.what_if_size(), 3);
  EXPECT_GT(report.forecasts_size(), 8);
  ASSERT_EQ(report.combine().nodes_size(), 4);
  EXPECT_GT(report.combine().nodes(1).clock_offset_ns_size(), 10);
  const CommandResult again = Combine(flags);
  ASSERT_EQ(again.exit_code, 0) << again.standard_error;
  EXPECT_EQ(again.standard_output, first.standard_output);
  // What was made of another run does not stay beside this one's.
  EXPECT_GT(directory.Read("out/chakra/job.1.et").size(), 0u);
  ASSERT_EQ(Combine({std::string("--run_dir=") + kSkewed, "--output_dir=" + out, "--stages=align"})
                .exit_code,
            0);
  for (const char* name : {"/chakra/job.1.et", "/report.html", "/report.json"}) {
    EXPECT_FALSE(FileSystem::Posix().Kind(out + name).ok()) << name;
  }
  std::vector<std::string> some = flags;
  some.push_back("--stages=align,path,report");
  ASSERT_EQ(Combine(some).exit_code, 0);
  EXPECT_THAT(StagesOf(ParseRunReport(directory.Read("out/report.json"))),
              ElementsAre(Pair("align", "done"), Pair("chakra", "skipped"), Pair("path", "done"),
                          Pair("simulate", "skipped")));
  // The clocks as they are contradict the collectives: nothing is said about who waits for whom.
  const CommandResult violated = Combine({std::string("--run_dir=") + kSkewed, "--method=none",
                                          "--output_dir=" + directory.PathOf("bad")});
  EXPECT_EQ(violated.exit_code, 0) << violated.standard_error;
  EXPECT_THAT(violated.standard_output, HasSubstr("Clocks contradict 504 of 528 collectives."));
  EXPECT_THAT(violated.standard_output, testing::Not(HasSubstr("What would help")));
  EXPECT_EQ(Combine({"--run_dir=examples/jax_scan4", "--sweep=x"}).exit_code, 2);
  std::vector<std::string> unknown = flags;
  unknown.push_back("--stages=magic");
  EXPECT_EQ(Combine(unknown).exit_code, 2);
}

// Profiles begin one after the other in the middle of the run, and none marks steps.
TEST(CombineTest, TheChainSaysEachNoteOnceAndCountsExecutions) {
  const TemporaryDirectory directory;
  ClusterOptions options;
  options.nodes = 4;
  options.steps = 40;
  options.session_spread_ns = 6'000'000;
  ASSERT_OK(
      WriteCluster(FileSystem::Posix(), SyntheticCluster(options), {}, directory.PathOf("run")));
  const CommandResult result =
      Combine({"--run_dir=" + directory.PathOf("run"), "--output_dir=" + directory.PathOf("out")});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const RunReport report = ParseRunReport(directory.Read("out/report.json"));
  const std::set<std::string> notes(report.notes().begin(), report.notes().end());
  EXPECT_THAT(notes, Contains(HasSubstr(" collective(s) have no counterpart")));
  EXPECT_EQ(notes.size(), static_cast<size_t>(report.notes_size())) << absl::StrJoin(notes, "\n");
  EXPECT_EQ(report.evidence().steps(), report.run().steps());
  EXPECT_GT(report.evidence().common_steps(), 0);
  EXPECT_LT(report.evidence().common_steps(), report.evidence().steps());
}

// The aligned profiles are read back before they have their names.
TEST(CombineTest, NotesNameFilesThatAreThere) {
  const TemporaryDirectory directory;
  for (const char* name : {"rank0.xplane.pb", "rank1.xplane.pb"}) {
    ASSERT_OK_AND_ASSIGN(const auto sound, FileSystem::Posix().Map(absl::StrCat(kTrue, "/", name)));
    // Nothing says any more which rank it is.
    directory.Write(
        absl::StrCat("run/", name),
        absl::StrReplaceAll(sound->bytes(), {{"replica", "nowhere"}, {"partition", "elsewhere"}}));
  }
  const CommandResult result =
      Combine({"--run_dir=" + directory.PathOf("run"), "--output_dir=" + directory.PathOf("out")});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const std::string report = directory.Read("out/report.json");
  EXPECT_THAT(report, HasSubstr("rank0.xplane.pb: nothing in it says which rank it is"));
  EXPECT_THAT(report, Not(HasSubstr(".tmp")));
}

// PyTorch, with its execution traces beside the profiles.
TEST(CombineTest, TheChainTakesPytorch) {
  const TemporaryDirectory directory;
  const CommandResult result =
      Combine({"--run_dir=examples/torch_pipeline4", "--output_dir=" + directory.PathOf("out")});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const RunReport report = ParseRunReport(directory.Read("out/report.json"));
  EXPECT_EQ(report.run().framework(), "PyTorch");
  EXPECT_EQ(StagesOf(report).at("chakra"), "done");
  EXPECT_EQ(StagesOf(report).at("path"), "done");
  // Process 1 sleeps 5 ms in step 3.
  const auto part = std::find_if(report.blame().begin(), report.blame().end(),
                                 [](const BlamePart& b) { return b.step() == 3; });
  ASSERT_NE(part, report.blame().end());
  EXPECT_EQ(part->rank(), 1);
  EXPECT_GT(directory.Read("out/chakra/job.0.et").size(), 1000u);
}

TEST(CombineTest, TracesThatLieWhereTheChainWritesAreKept) {
  const TemporaryDirectory directory;
  std::string traces;
  for (const int rank : {0, 1, 2, 3}) {
    const std::string from = absl::StrCat("examples/torch_pipeline4/kineto_", rank, ".json.gz");
    const std::string to =
        directory.PathOf(rank == 0 ? "trace.json.gz" : absl::StrCat("r", rank, ".json.gz"));
    std::filesystem::copy_file(from, to);
    absl::StrAppend(&traces, traces.empty() ? "" : ",", to);
  }
  const std::string original = directory.Read("trace.json.gz");
  const CommandResult result =
      Combine({"--traces=" + traces, "--output_dir=" + directory.PathOf(".")});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(directory.Read("trace.json.gz"), original);
}

TEST(CombineTest, AllOutputsAreWritten) {
  const TemporaryDirectory directory;
  const CommandResult result = Combine(
      {std::string("--traces=") + kSkewed, "--output=" + directory.PathOf("c.xplane.pb.gz"),
       "--trace_json=" + directory.PathOf("t.json"), "--perfetto=" + directory.PathOf("t.perfetto"),
       "--report=" + directory.PathOf("r.html")});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(directory.List(), ElementsAre("c.xplane.pb.gz", "r.html", "t.json", "t.perfetto"));
  EXPECT_THAT(directory.Read("t.json"), HasSubstr("Node 3: /host:CPU"));
  EXPECT_THAT(directory.Read("r.html"), HasSubstr("id=\"data\""));
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("4 node(s) on the clock of node 0, method collectives"),
                    HasSubstr("504 violations before, 0 after")));
}

TEST(CombineTest, TrueClocksAreLeftAlone) {
  const CommandResult result = Combine({std::string("--run_dir=") + kTrue, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const CombineReport report = ParseReport(result.standard_output);
  EXPECT_EQ(report.method(), "none");
  for (const CombinedNode& node : report.nodes()) {
    EXPECT_EQ(node.max_correction_ns(), 0);
    EXPECT_EQ(node.offset_ns(), 0);
  }
}

// Their kernels are stamped by GPUs, which leaves 120 us.
TEST(CombineTest, WhatHostsKnowOfTheirClocksNarrowsTheRanges) {
  const TemporaryDirectory directory;
  const std::string run = "--run_dir=examples/jax_tp_cuda4";
  const auto range_ns = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {run, "--json"});
    const CommandResult result = Combine(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    return ParseReport(result.standard_output).nodes(2).uncertainty_ns();
  };
  const auto logs = [&](const char* row) {
    // Of one host all processes have the same log; node 1 has none.
    const std::string log = directory.Write("ptp4l.log", row);
    return absl::StrCat("--clock_logs=", log, ",,", log, ",", log);
  };
  EXPECT_GT(range_ns({}), 300'000);
  EXPECT_LE(range_ns({"--clock_prior=10us"}), 130'000);
  // Both are within 20 us.
  EXPECT_NEAR(
      range_ns({"--clock_prior=1ms",
                logs("ptp4l[5374018.735]: master offset  -20000 s2 freq +2 path delay 10\n")}),
      155'000, 5'000);
  const CommandResult unlocked =
      Combine({run, logs("ptp4l[5374018.735]: master offset  -20000 s0 freq +2 path delay 10\n")});
  EXPECT_EQ(unlocked.exit_code, 2);
  EXPECT_THAT(unlocked.standard_error, HasSubstr("ptp4l.log: the clock is never locked"));
}

TEST(CombineTest, ValidationExitsWithOneOnlyWhenItFails) {
  const std::string run_dir = std::string("--run_dir=") + kSkewed;
  EXPECT_EQ(Combine({run_dir, "--method=none", "--validate"}).exit_code, 1);
  EXPECT_EQ(Combine({run_dir, "--method=none"}).exit_code, 0);
}

TEST(CombineTest, ARunThatIsTheFolderItselfHasAFolderOfItsName) {
  const TemporaryDirectory directory;
  const std::string run = std::string(kSkewed) + "/../jax_tp_cuda4_skewed/.";
  const CommandResult result =
      Combine({"--run_dir=" + run, "--output_dir=" + directory.PathOf("out"),
               "--report=" + directory.PathOf("r.html")});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> runs,
                       FileSystem::Posix().List(directory.PathOf("out/plugins/profile")));
  EXPECT_THAT(runs, ElementsAre("jax_tp_cuda4_skewed"));
}

TEST(CombineTest, ProfilesOfAnotherRunInItsFolderAreNotMixedWithIt) {
  const TemporaryDirectory directory;
  const std::string other = "out/plugins/profile/jax_cuda2/rank7.xplane.pb";
  const std::string path = directory.Write(other, "of another run");
  const std::vector<std::string> arguments = {absl::StrCat("--run_dir=", kTrue), "--stages=align",
                                              "--output_dir=" + directory.PathOf("out")};
  const CommandResult result = Combine(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error,
              HasSubstr("rank7.xplane.pb is there, but no node of this run"));
  EXPECT_EQ(directory.Read(other), "of another run");
  ASSERT_OK(FileSystem::Posix().Delete(path));
  EXPECT_EQ(Combine(arguments).exit_code, 0);
  // Its own profiles may be there.
  EXPECT_EQ(Combine({arguments[0], arguments[1], arguments[2], "--method=none"}).exit_code, 0);
}

// One profile of a run alone says nothing about the clocks.
TEST(CombineTest, WhatCheckedNothingIsToldOf) {
  const CommandResult result = RunCommandLine(
      "tools/validate_collectives", {absl::StrCat("--traces=", kTrue, "/rank0.xplane.pb")});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("warning: nothing was checked"));
}

struct BadUsage {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(CombineTest, WrongFlagsSayWhatToDo) {
  const std::string run_dir = std::string("--run_dir=") + kTrue;
  const std::vector<BadUsage> cases = {
      {{"--output=x"}, "either --run_dir or --traces"},
      {{run_dir, std::string("--traces=") + kTrue}, "either --run_dir or --traces"},
      {{run_dir, "--method=magic"}, "none of auto, offsets, probes, collectives, none"},
      {{run_dir, "--method=offsets"}, "needs --offsets"},
      {{run_dir, "--output=x", "--stages=align"}, "--stages is for the whole chain"},
      {{run_dir, "--plane_naming=magic"}, "none of viewer, node_prefix"},
      {{run_dir, "--node_ids=0"}, "node"},
      {{run_dir, "--node_ids=3,3"}, "3"},
      {{run_dir, "--node_ids=0,x"}, "'x' is no number"},
      {{run_dir, "--reference_node=9"}, "the reference node, 9, is none of 0, 1"},
      {{run_dir, "--snapshots=examples/jax_cuda2/rank0.xplane.pb"}, "one per trace"},
      {{run_dir, "--clock_logs=examples/jax_cuda2/rank0.xplane.pb"}, "one per trace"},
      {{run_dir, "--clock_prior=1"}, "expected e.g. 1ms"},
      {{run_dir, "--max_drift_ppm=-1"}, "expected 0 to 1000000"},
      {{run_dir, "--ranks=0"}, "rank"},
      {{"--run_dir=examples"}, "runs of the same hosts; give one of"},
      {{"--run_dir=nowhere"}, "nowhere"},
      {{"--traces=nowhere.xplane.pb"}, "nowhere.xplane.pb"},
      {{run_dir, "--offsets=nowhere.jsonl"}, "nowhere.jsonl"},
      {{"surprise"}, "unexpected argument"},
  };
  for (const BadUsage& bad : cases) {
    const CommandResult result = Combine(bad.arguments);
    EXPECT_EQ(result.exit_code, 2) << bad.arguments.back() << "\n" << result.standard_error;
    EXPECT_THAT(result.standard_error, HasSubstr(bad.message));
    EXPECT_THAT(result.standard_output, IsEmpty());
  }
}

TEST(CombineTest, BrokenInputLeavesNoOutputBehind) {
  const TemporaryDirectory directory;
  const TemporaryDirectory out;
  const CommandResult written =
      Combine({std::string("--run_dir=") + kTrue, "--output_dir=" + directory.PathOf("ok"),
               "--method=none"});
  ASSERT_EQ(written.exit_code, 0) << written.standard_error;
  const std::string whole = directory.Read("ok/plugins/profile/jax_cuda2/rank1.xplane.pb");
  struct Case {
    std::string contents;
    std::string message;
  };
  const std::vector<Case> cases = {
      {whole.substr(0, whole.size() / 2), "offset"},
      {"", "empty"},
      {"{\"traceEvents\":[]}",
       "is Chrome trace JSON that PyTorch's profiler did not write; "
       "expected a Kineto trace"},
  };
  for (const Case& broken : cases) {
    const std::string path = directory.Write("rank1.xplane.pb", broken.contents);
    const CommandResult result =
        Combine({"--traces=examples/jax_cuda2/rank0.xplane.pb," + path,
                 "--output=" + out.PathOf("c.xplane.pb"), "--report=" + out.PathOf("r.html")});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.standard_error, AllOf(HasSubstr(path), HasSubstr(broken.message)));
    EXPECT_THAT(out.List(), IsEmpty());
  }
}

TEST(CombineTest, ProfilesOfDifferentRunsAreNotMixed) {
  const CommandResult result =
      Combine({"--traces=examples/jax_cuda2/rank0.xplane.pb,"
               "examples/jax_tp_cuda4_skewed/rank1.xplane.pb.gz"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("of one run"));
}

TEST(CombineTest, BadOffsetsAreNamedWithTheirLine) {
  const TemporaryDirectory directory;
  struct Case {
    std::string contents;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"{\"node_id\":1,\"midpoint_sys_ns\":1794701450000000000,\"offset_ns\":\"NaN\"}\n", ":1: "},
      {"{\"node_id\":1,\"midpoint_sys_ns\":1794701450000000000,\"offset_ns\":5}\n"
       "{\"node_id\":1,\"midpoint_sys_ns\":1794701450000000000,\"offset_ns\":6}\n",
       "2"},
      {"", "offsets.jsonl"},
      {"{\"node_id\":7,\"midpoint_sys_ns\":1794701450000000000,\"offset_ns\":5}\n", "node 1"},
  };
  for (const Case& bad : cases) {
    const std::string path = directory.Write("offsets.jsonl", bad.contents);
    const CommandResult result = Combine({std::string("--run_dir=") + kTrue, "--offsets=" + path});
    EXPECT_EQ(result.exit_code, 2) << bad.contents << result.standard_error;
    EXPECT_THAT(result.standard_error, HasSubstr(bad.message));
  }
}

TEST(CombineTest, HelpShowsAnExample) {
  const CommandResult result = Combine({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.standard_output, AllOf(HasSubstr("combine --run_dir=logs/"),
                                            HasSubstr("--plane_naming"), HasSubstr("--stages")));
}

// Four ranks of PyTorch; the clock of rank 2 is set back by 20 ms.
TEST(CombineTest, KinetoTracesArePutOnOneClock) {
  const TemporaryDirectory in, out;
  std::vector<std::string> traces;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string example = absl::StrCat("examples/torch_pipeline4/kineto_", rank, ".json.gz");
    const absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), example);
    ASSERT_OK(file.status());
    std::string text(file->bytes());
    const std::string key = "\"baseTimeNanoseconds\": ";
    const size_t base = text.find(key);
    ASSERT_NE(base, std::string::npos);
    if (rank == 2) {
      const size_t digits = base + key.size();
      const size_t end = text.find_first_not_of("0123456789", digits);
      const int64_t old_ns = std::stoll(text.substr(digits, end - digits));
      text.replace(digits, end - digits, absl::StrCat(old_ns - 20'000'000));
    }
    traces.push_back(in.Write(absl::StrCat("kineto_", rank, ".json"), text));
    in.Write(absl::StrCat("et_", rank, ".json"), R"({"schema": "1.1.1", "nodes": []})");
  }
  // The execution traces beside them do not matter.
  const CommandResult result =
      Combine({"--run_dir=" + in.PathOf(""), "--method=collectives", "--validate", "--json",
               "--output_dir=" + out.PathOf("aligned"), "--output=" + out.PathOf("all.json.gz")});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const CombineReport report = ParseReport(result.standard_output);
  ASSERT_EQ(report.nodes_size(), 4);
  EXPECT_GT(report.happens_before().violations_before(), 0);
  EXPECT_EQ(report.happens_before().violations_after(), 0);
  EXPECT_EQ(report.happens_before().checked_on(), "written file");
  for (const CombinedNode& node : report.nodes()) {
    const int64_t truth_ns = node.node_id() == 2 ? -20'000'000 : 0;
    EXPECT_LE(std::abs(node.offset_ns() - truth_ns), node.uncertainty_ns() + 1000)
        << node.node_id();
  }
  // Whose ranks cannot be told apart any more is refused.
  for (const char* command :
       {"tools/validate_collectives", "tools/critical_path", "tools/combine"}) {
    const CommandResult merged = RunCommandLine(command, {"--traces=" + out.PathOf("all.json.gz")});
    EXPECT_EQ(merged.exit_code, 2) << command;
    EXPECT_THAT(merged.standard_error, HasSubstr("what combine made of ranks'"));
  }
  // As an XSpace and in Perfetto's own format, too.
  const CommandResult converted = Combine({"--run_dir=" + in.PathOf(""), "--method=collectives",
                                           "--json", "--output=" + out.PathOf("all.xplane.pb"),
                                           "--perfetto=" + out.PathOf("all.pftrace")});
  ASSERT_EQ(converted.exit_code, 0) << converted.standard_error;
  const CommandResult inspected =
      RunCommandLine("tools/xspace_inspect", {"--trace=" + out.PathOf("all.xplane.pb")});
  EXPECT_THAT(inspected.standard_output,
              AllOf(HasSubstr("/device:GPU:0"), HasSubstr("/device:GPU:3"), HasSubstr("Node 2: ")));
  EXPECT_THAT(out.Read("all.pftrace"), HasSubstr("Collectives"));
  // critical_path takes what it refuses otherwise.
  const auto critical_path = [](const std::string& folder) {
    return RunCommandLine("tools/critical_path", {"--traces=" + folder});
  };
  EXPECT_NE(critical_path(in.PathOf("kineto_*.json")).exit_code, 0);
  const CommandResult aligned =
      critical_path(out.PathOf("aligned/plugins/profile/*/kineto_*.json"));
  EXPECT_EQ(aligned.exit_code, 0) << aligned.standard_error;
}

// Writes two ranks that ran on processors alone; the operation of the second took so long.
void WriteRanksWithoutKernels(const TemporaryDirectory& directory, int64_t duration_us) {
  for (int rank = 0; rank < 2; ++rank) {
    directory.Write(absl::StrCat("run/kineto_", rank, ".json"),
                    absl::StrCat(R"({"schemaVersion": 1, "distributedInfo": {"rank": )", rank,
                                 R"(, "world_size": 2}, "baseTimeNanoseconds": 1794701783837386000,
                        "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "gloo:all_reduce",
                        "pid": 1, "tid": 1, "ts": 5, "dur": )",
                                 rank == 0 ? 3 : duration_us, "}]}"));
  }
}

TEST(CombineTest, KinetoEventsThatCanNotBeReadAreToldOf) {
  const TemporaryDirectory directory;
  WriteRanksWithoutKernels(directory, -3);
  const CommandResult result = Combine({"--run_dir=" + directory.PathOf("run"), "--method=none"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              HasSubstr("kineto_1.json: events are written as they are, but taken for nothing: "
                        "1 with a negative duration"));
}

TEST(CombineTest, KinetoTracesAreNotAlignedTwice) {
  const TemporaryDirectory directory;
  const std::string once = directory.PathOf("once");
  ASSERT_EQ(
      Combine({"--run_dir=examples/torch_pipeline4", "--output_dir=" + once, "--stages=align"})
          .exit_code,
      0);
  const std::string aligned = once + "/plugins/profile/torch_pipeline4";
  const CommandResult twice = Combine({"--run_dir=" + aligned, "--output=" + once + "/c.json"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.standard_error, HasSubstr("kineto_0.json.gz: is aligned already"));
  EXPECT_EQ(
      Combine({"--run_dir=" + aligned, "--method=none", "--output=" + once + "/c.json"}).exit_code,
      0);
  const std::vector<std::string> align = {"--trace=" + aligned + "/kineto_1.json.gz",
                                          "--output=" + once + "/k.json"};
  EXPECT_THAT(RunCommandLine("tools/xprof_trace_align", align).standard_error,
              HasSubstr("is aligned already; give --force"));
}

// It would work once.
TEST(CombineTest, TheFolderOfTheRunIsNoOutputFolder) {
  const TemporaryDirectory directory;
  const std::string run = directory.PathOf("run");
  std::filesystem::copy("examples/jax_cuda2", run);
  std::filesystem::create_symlink("run", directory.PathOf("link"));
  for (const std::string& traces : {"--run_dir=" + run, "--traces=examples/jax_cuda2," + run}) {
    const CommandResult refused = Combine({traces, "--output_dir=" + directory.PathOf("link")});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.standard_error, HasSubstr("is the folder of the run"));
  }
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(Combine({"--run_dir=" + run, "--output_dir=" + run + "/meridian", "--stages=align"})
                  .exit_code,
              0);
  }
}

// As kill -9 leaves them.
TEST(CombineTest, WhatAKilledRunLeftIsRemoved) {
  const TemporaryDirectory directory;
  std::vector<std::string> left;
  for (const char* folder : {"", "chakra/", "calibration/", "plugins/profile/jax_cuda2/"}) {
    left.push_back(absl::StrCat("out/", folder, ".x.0123456789abcdef.tmp"));
    directory.Write(left.back(), "half");
  }
  const std::string mine = directory.Write("out/notes.tmp", "mine");
  ASSERT_EQ(Combine({"--run_dir=examples/jax_cuda2", "--output_dir=" + directory.PathOf("out"),
                     "--stages=align"})
                .exit_code,
            0);
  for (const std::string& name : left) {
    EXPECT_FALSE(std::filesystem::exists(directory.PathOf(name))) << name;
  }
  EXPECT_TRUE(std::filesystem::exists(mine));
}

// Nothing in their traces ties them together.
TEST(CombineTest, KinetoTracesWithoutCommunicationAreRefused) {
  const TemporaryDirectory directory;
  WriteRanksWithoutKernels(directory, 3);
  const std::string run = "--run_dir=" + directory.PathOf("run");
  const CommandResult refused = Combine({run, "--output_dir=" + directory.PathOf("out")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.standard_error, HasSubstr("no kernels that are known to communicate"));
  EXPECT_THAT(directory.List(), ElementsAre("run"));
  EXPECT_EQ(Combine({run, "--method=none"}).exit_code, 0);
  EXPECT_EQ(RunCommandLine("tools/validate_collectives", {run}).exit_code, 2);
}

// Rank 1's clock is 40 ms ahead. Collectives of 100 us, every millisecond, whose last member comes
// 80 us before their end, now this one, now that.
TEST(CombineTest, InspectorLogsArePutOnOneClock) {
  const TemporaryDirectory directory;
  constexpr int64_t kEpochUs = 1776150229000000;
  for (int rank = 0; rank < 2; ++rank) {
    std::string log;
    for (int number = 0; number < 50; ++number) {
      const int64_t took_us = number % 2 == rank ? 100 : 80;
      const int64_t end_us = kEpochUs + number * 1000 + rank * 40000;
      absl::StrAppend(&log, R"({"header":{"id":"0xabc","rank":)", rank,
                      R"(,"n_ranks":2,"nnodes":2},)", R"("metadata":{"dump_timestamp_us":)",
                      end_us + 9000, R"(,"hostname":"h","pid":7},)",
                      R"("coll_perf":{"coll":"AllReduce","coll_sn":)", number,
                      R"(,"coll_msg_size_bytes":65536,"coll_exec_time_us":)", took_us,
                      R"(,"event_trace_ts":{"coll_start_ts":)", end_us - took_us - 9,
                      R"(,"kernel_events":[{"channel_id":0,"kernel_start_ts":)", end_us - took_us,
                      R"(,"kernel_record_ts":)", end_us, "}]}}}\n");
    }
    directory.Write(absl::StrCat("logs/h", rank, "-pid7.log"), log);
  }
  // Others' logs do not matter.
  directory.Write("logs/stdout.log", "loss 3.14");
  directory.Write("logs/empty.log", "");
  directory.Write("logs/newline.log", "\nepoch 1\n");
  const std::string out = directory.PathOf("out");
  const CommandResult result =
      Combine({"--run_dir=" + directory.PathOf("logs"), "--output_dir=" + out,
               "--output=" + directory.PathOf("run.json.gz"), "--validate", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  const CombineReport report = ParseReport(result.standard_output);
  EXPECT_EQ(report.happens_before().violations_before(), 50);
  EXPECT_EQ(report.happens_before().violations_after(), 0);
  ASSERT_EQ(report.nodes_size(), 2);
  EXPECT_EQ(report.nodes(1).hostname(), "h1");
  EXPECT_NEAR(static_cast<double>(report.nodes(1).offset_ns()), 40e6,
              static_cast<double>(report.nodes(1).uncertainty_ns()));
  EXPECT_LT(report.nodes(1).uncertainty_ns(), 101000);
  for (const char* command : {"tools/validate_collectives", "tools/critical_path"}) {
    const CommandResult check = RunCommandLine(command, {"--traces=" + out});
    EXPECT_EQ(check.exit_code, 0) << check.standard_error;
  }
  const CommandResult refused =
      RunCommandLine("tools/validate_collectives", {"--traces=" + directory.PathOf("logs")});
  EXPECT_EQ(refused.exit_code, 1) << refused.standard_error;
}

// A call a second that takes 100 ms, though its end is seen 300 ms after it was enqueued; the last
// does not end. 0.8 of 7.3 s are transfers.
TEST(CombineTest, DumpsOfAHangAreMeasuredByDurations) {
  const TemporaryDirectory directory;
  std::string entries;
  for (int64_t i = 0; i < 9; ++i) {
    const int64_t created_ns = 1794889542000000000 + i * 1000000000;
    absl::StrAppend(
        &entries, i == 0 ? "" : ",", R"({"record_id":)", i,
        R"(,"process_group":["0",""],"profiling_name":"nccl:all_reduce",)",
        R"("input_sizes":[[9]],"input_dtypes":["Float"],"collective_seq_id":)", i,
        R"(,"time_created_ns":)", created_ns, R"(,"state":)",
        i == 8 ? R"("started"})"
               : absl::StrCat(R"("completed","duration_ms":100,)",
                              R"("time_discovered_completed_ns":)", created_ns + 300000000, "}"));
  }
  for (const char* dump : {"run/fr_0.json", "run/fr_1.json"}) {
    directory.Write(
        dump, absl::StrCat(R"({"pg_config":{"0":{"ranks":"[0, 1]"}},"entries":[)", entries, "]}"));
  }
  const CommandResult result =
      Combine({"--run_dir=" + directory.PathOf("run"), "--output_dir=" + directory.PathOf("out")});
  ASSERT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("moves data for 11 % of the time"), Not(HasSubstr("period")),
                    HasSubstr("note: 2 calls of rank(s) 0-1 were not seen to end and are left out; "
                              "validate_collectives --traces=")));
  EXPECT_THAT(result.standard_output, Not(HasSubstr("hangs")));
  // Where one rank has not come to the last call, that is said first.
  directory.Write("run/fr_1.json",
                  absl::StrCat(R"({"pg_config":{"0":{"ranks":"[0, 1]"}},"entries":[)",
                               entries.substr(0, entries.rfind(R"(,{"record_id")")), "]}"));
  const CommandResult hung =
      Combine({"--run_dir=" + directory.PathOf("run"), "--output_dir=" + directory.PathOf("out")});
  ASSERT_EQ(hung.exit_code, 0) << hung.standard_error;
  EXPECT_THAT(hung.standard_output,
              StartsWith("The job hangs: it waits for rank 1. Call 8 of group 0"));
}

TEST(CombineTest, ExportsNeedNoCombinedFile) {
  const TemporaryDirectory out;
  const CommandResult alone =
      Combine({"--run_dir=examples/jax_cuda2", "--trace_json=" + out.PathOf("a.json")});
  EXPECT_EQ(alone.exit_code, 0) << alone.standard_error;
  EXPECT_THAT(out.List(), ElementsAre("a.json"));
  const CommandResult both =
      Combine({"--run_dir=examples/jax_cuda2", "--trace_json=" + out.PathOf("b.json"),
               "--output=" + out.PathOf("c.xplane.pb")});
  EXPECT_EQ(both.exit_code, 0) << both.standard_error;
  EXPECT_EQ(out.Read("a.json"), out.Read("b.json"));
}

TEST(CombineTest, FoldersOfOutputsAreMade) {
  const TemporaryDirectory out;
  const CommandResult result =
      Combine({"--run_dir=examples/jax_cuda2", "--output=" + out.PathOf("a/b/c.xplane.pb"),
               "--report=" + out.PathOf("r/page.html")});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_NE(out.Read("a/b/c.xplane.pb"), "");
  EXPECT_NE(out.Read("r/page.html"), "");
}

// Rank 1's host is late; times count from anywhere, and ranks that are not there do not exist.
TEST(CombineTest, ATableIsReportedByWhatItSays) {
  const TemporaryDirectory directory;
  std::string table = "rank,kind,name,start_ns,end_ns,step\n";
  for (int step = 0; step < 6; ++step) {
    for (const int rank : {0, 5}) {
      const int64_t at = 10'000'000 * step, ready = at + (rank == 5 ? 3'000'000 : 1'000'000);
      absl::StrAppend(&table, rank, ",host,load,", at, ",", ready, ",", step, "\n", rank,
                      ",compute,fwd,", ready, ",", ready + 2'000'000, ",", step, "\n", rank,
                      ",all-reduce,sum,", ready + 2'000'000, ",", at + 9'000'000, ",", step, "\n");
    }
  }
  const std::string trace = directory.Write("run.csv", table);
  const CommandResult result =
      Combine({"--traces=" + trace, "--output_dir=" + directory.PathOf("out")});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("2 ranks: 6 steps"), HasSubstr("Rank 1 is late"), HasSubstr("(load)"),
                    Not(HasSubstr("Recorded")), Not(HasSubstr("No profile"))));
  const std::string computing =
      directory.Write("c.csv", "rank,kind,start_ns,end_ns\n0,compute,1,2\n1,compute,1,2\n");
  EXPECT_THAT(Combine({"--traces=" + computing}).standard_error,
              HasSubstr("in a table they are rows of a kind such as all-reduce or send"));
  const std::string alone = directory.Write("d.csv", "rank,kind,start_ns,end_ns\n0,compute,1,2\n");
  EXPECT_THAT(
      Combine({"--traces=" + alone, "--output_dir=" + directory.PathOf("alone")}).standard_output,
      Not(HasSubstr("executions matched")));
}

TEST(CombineTest, TracesOfDifferentProfilersAreNotMixed) {
  const CommandResult result = Combine(
      {"--traces=examples/jax_cuda2/rank0.xplane.pb,examples/torch_pipeline4/kineto_1.json.gz"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error,
              AllOf(HasSubstr("rank0.xplane.pb is an XSpace"),
                    HasSubstr("kineto_1.json.gz is a Kineto trace"), HasSubstr("not mixed")));
}

// Two recordings of other jobs: whatever is said, a run against itself is the same.
TEST(CompareTest, ARunIsTheSameAsItself) {
  const TemporaryDirectory directory;
  const std::string out = directory.PathOf("out");
  ASSERT_EQ(Combine({"--run_dir=examples/jax_scan4", "--output_dir=" + out}).exit_code, 0);
  const CommandResult same = RunCommandLine(
      "tools/compare", {"examples/jax_scan4", out, "--output_dir=" + directory.PathOf("page")});
  ASSERT_EQ(same.exit_code, 0) << same.standard_error;
  EXPECT_THAT(same.standard_output, HasSubstr("No difference: a step takes "));
  EXPECT_THAT(same.standard_error, IsEmpty());
  const RunReport page = ParseRunReport(directory.Read("page/report.json"));
  EXPECT_EQ(page.findings(0).topic(), "comparison");
  EXPECT_GT(page.comparison().operations_size(), 10);
  EXPECT_THAT(directory.Read("page/report.html"), HasSubstr("No difference"));
}

TEST(CompareTest, ALongerStepFailsTheCheckThatWasAskedFor) {
  const TemporaryDirectory directory;
  const std::string out = directory.PathOf("out");
  ASSERT_EQ(Combine({"--run_dir=examples/jax_scan4", "--output_dir=" + out}).exit_code, 0);
  RunReport slower = ParseRunReport(directory.Read("out/report.json"));
  double later_ms = 0;
  for (ReportedStep& step : *slower.mutable_steps()) {
    step.set_start_ms(step.start_ms() + later_ms);
    later_ms += step.end_ms() + later_ms - step.start_ms();
    step.set_end_ms(step.end_ms() + later_ms);
  }
  std::string json;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(slower, &json).ok());
  const std::string path = directory.Write("slower.json", json);
  const auto compare = [&](const std::vector<std::string>& arguments) {
    return RunCommandLine("tools/compare", arguments);
  };
  const CommandResult result = compare({out, path, "--max_regression=5%"});
  EXPECT_EQ(result.exit_code, 1) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("more than before"));
  EXPECT_EQ(compare({path, out, "--max_regression=5%"}).exit_code, 0);
  EXPECT_EQ(compare({out, path, "--max_regression=500%"}).exit_code, 0);
  EXPECT_EQ(Combine({"--run_dir=examples/jax_scan4", "--baseline=" + path,
                     "--output_dir=" + directory.PathOf("again"), "--max_regression=5%"})
                .exit_code,
            0);
  // What is wrong is said.
  EXPECT_THAT(compare({out}).standard_error, HasSubstr("--after names no run"));
  EXPECT_THAT(compare({out, path, "--max_regression=x"}).standard_error,
              HasSubstr("is no share; expected e.g. 5% or 0.05"));
  EXPECT_EQ(compare({out, directory.Write("bad.json", "{\"steps\": 5}")}).exit_code, 2);
  EXPECT_EQ(Combine({"--run_dir=examples/jax_scan4", "--max_regression=5%",
                     "--output_dir=" + directory.PathOf("none")})
                .exit_code,
            2);
}

// As XLA writes it on MI300: one process with a plane for each GPU, streams named by what runs on
// them, kernels as the ROCm runtime names them, no collective. The third GPU did nothing.
TEST(CombineTest, AnMi300ProfileIsOfAllItsDevices) {
  HloModuleBuilder program = PartitionedProgram(4);
  const auto* x = program.Add("x", "parameter", ArrayShape(xla::F32, {64}));
  program.Add("loop_transpose_fusion", "fusion", ArrayShape(xla::F32, {64}), {x});
  XSpaceProto space = GpuProfile(
      0, program,
      {{7, 10000, {{"loop_transpose_fusion.kd", "loop_transpose_fusion", 14, 40000, 90000, ""}}},
       {8,
        110000,
        {{"loop_transpose_fusion.kd", "loop_transpose_fusion", 14, 140000, 190000, ""}}}});
  for (tensorflow::profiler::XPlane& plane : *space.mutable_planes()) {
    if (plane.name() != "/device:GPU:0") continue;
    plane.mutable_lines(0)->set_name("Stream #14(Kernel)");
    const tensorflow::profiler::XPlane first = plane;
    for (const int device : {1, 2, 3}) {
      tensorflow::profiler::XPlane& copy = *space.add_planes();
      copy = first;
      copy.set_name(absl::StrCat("/device:GPU:", device));
      if (device == 2) copy.clear_lines();
    }
    break;
  }
  const TemporaryDirectory directory;
  directory.Write("run/mi300.xplane.pb", space.SerializeAsString());
  const CommandResult result =
      Combine({"--run_dir=" + directory.PathOf("run"), "--output_dir=" + directory.PathOf("out")});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  // No collective says which ranks the GPUs are, so that none can be said to be missing; the device of
  // rank 2 is there, and did nothing.
  EXPECT_THAT(result.standard_output, AllOf(HasSubstr("JAX run of 1 profile:"),
                                            Not(HasSubstr("No profile has the work of")),
                                            Not(HasSubstr("not done: chakra"))))
      << result.standard_error;
  EXPECT_GT(directory.Read("out/chakra/job.2.et").size(), 0u);
}

// Node 1 is 5 ms ahead; it has a window in the first of three rounds, 10 s apart, and in the last.
TEST(CombineTest, MissingWindowsAreSkippedOrTheLastOneHeld) {
  const TemporaryDirectory directory;
  HloModuleBuilder program = PartitionedProgram(2);
  program.Add("x", "parameter", ArrayShape(xla::F32, {64}));
  for (const int node : {0, 1}) {
    directory.Write(absl::StrCat("rank", node, ".xplane.pb"),
                    GpuProfile(node, program, {{7, 10000, {{"kernel", "", 14, 40000, 90000, ""}}}})
                        .SerializeAsString());
  }
  std::string rows;
  const auto add = [&](int64_t second, int node, int64_t offset_ns) {
    const int64_t at_ns = kProfileStartNs + second * 1'000'000'000;
    absl::StrAppend(&rows, "{\"round_id\":", second, ",\"window_start_ns\":", at_ns,
                    ",\"window_end_ns\":", at_ns, ",\"node_id\":", node,
                    ",\"offset_ns\":", offset_ns, "}\n");
  };
  for (const int64_t second : {-10, 0, 10}) add(second, 0, 0);
  add(-10, 1, 5'000'000);
  add(10, 1, 5'010'000);
  const std::string offsets = directory.Write("offsets.jsonl", rows);
  // Returns how long after that of node 0 the kernel of node 1 starts, on one clock.
  const auto after_ns = [&](const std::string& choice) {
    const CommandResult result =
        Combine({"--traces=" + directory.PathOf("rank0.xplane.pb") + "," +
                     directory.PathOf("rank1.xplane.pb"),
                 "--offsets=" + offsets, "--method=offsets",
                 "--output=" + directory.PathOf("out.xplane.pb"), "--plane_naming=node_prefix",
                 "--missing_windows=" + choice, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    // What is stated was measured.
    EXPECT_THAT(result.standard_output, HasSubstr("5010000"));
    EXPECT_EQ(absl::StrContains(result.standard_output,
                                "node 1 has no offset in 1 of 3 rounds: its last one before holds"),
              choice == "hold");
    XSpaceProto space;
    EXPECT_TRUE(space.ParseFromString(directory.Read("out.xplane.pb")));
    std::vector<int64_t> starts_ns(2);
    for (const tensorflow::profiler::XPlane& plane : space.planes()) {
      for (const int node : {0, 1}) {
        if (plane.name() != absl::StrCat("/node:", node, "/device:GPU:0")) continue;
        const tensorflow::profiler::XLine& line = plane.lines(0);
        starts_ns[node] = line.timestamp_ns() + line.events(0).offset_ps() / 1000;
      }
    }
    return starts_ns[1] - starts_ns[0];
  };
  // Halfway between the windows node 1 is 5.005 ms ahead, or still 5 ms.
  EXPECT_NEAR(after_ns("skip"), -5'005'000, 10);
  EXPECT_NEAR(after_ns("hold"), -5'000'000, 10);
  EXPECT_THAT(
      Combine({std::string("--run_dir=") + kTrue, "--missing_windows=guess"}).standard_error,
      HasSubstr("--missing_windows=guess is none of skip, hold"));
  const CommandResult without =
      Combine({"--traces=" + directory.PathOf("rank0.xplane.pb") + "," +
                   directory.PathOf("rank1.xplane.pb"),
               "--output=" + directory.PathOf("out.xplane.pb"), "--missing_windows=hold"});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.standard_error,
              HasSubstr("--missing_windows=hold means nothing without --offsets or --probes"));
}

}  // namespace
}  // namespace meridian
