// astra_simulate as users run it: good workloads, AstraSim beside it, wrong input.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "astra_bridge/sidecar/testing/script.h"
#include "chakra_export/testing/et_nodes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/unfinished_files.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::ALL_REDUCE;
using ::ChakraProtoMsg::Node;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kNetwork[] =
    "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n";
constexpr char kSystem[] = R"({
  "scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
  "preferred-dataset-splits": 1, "collective-optimization": "localBWAware", "local-mem-bw": 1600,
  "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
  "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"]})";

class AstraSimulateTest : public ::testing::Test {
 protected:
  AstraSimulateTest() {
    network_ = directory_.Write("network.yml", kNetwork);
    system_ = directory_.Write("system.json", kSystem);
    for (int rank = 0; rank < 4; ++rank) {
      WriteRank(rank, {CollectiveNode(1, ALL_REDUCE, 1 << 20)});
    }
    // Nothing of the machine's own is found.
    setenv("PATH", directory_.PathOf("bin").c_str(), 1);
  }

  void WriteRank(int rank, const std::vector<Node>& nodes) {
    directory_.Write(absl::StrCat("w.", rank, ".et"), EncodeEt(nodes));
  }

  CommandResult Simulate(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"--workload=" + directory_.PathOf("w"),
                                          "--network=" + network_, "--system=" + system_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunCommandLine("tools/astra_simulate", arguments);
  }

  void ExpectRefused(const CommandResult& result, int exit_code,
                     const ::testing::Matcher<std::string>& message) {
    EXPECT_EQ(result.exit_code, exit_code) << result.standard_error;
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, AllOf(StartsWith("astra_simulate: "), message));
  }

  const TemporaryDirectory directory_;
  std::string network_;
  std::string system_;
};

// What AstraSim prints for this run: 33829 cycles.
TEST_F(AstraSimulateTest, PrintsAstraSimsCycles) {
  const CommandResult result = Simulate({"--json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(result.standard_output,
              AllOf(StartsWith("{"), HasSubstr("\"engine\": \"embedded\""),
                    HasSubstr("\"congestion\": \"aware\""), HasSubstr("\"makespan_ns\": 33829,"),
                    HasSubstr("\"id\": 0,\n   \"finish_ns\": 33829,"),
                    HasSubstr("\"id\": 3,\n   \"finish_ns\": 33829,"), HasSubstr("\"nodes\": []"),
                    Not(HasSubstr("\"corrections\""))));
}

// 100 ns and 1,000 bytes at 10 bytes per ns, one rank after the other.
TEST_F(AstraSimulateTest, MemoryNodesNeedAMemory) {
  Node load = CompNode(1, 0);
  load.set_type(ChakraProtoMsg::MEM_LOAD_NODE);
  ChakraProtoMsg::AttributeProto* bytes = load.add_attr();
  bytes->set_name("tensor_size");
  bytes->set_uint64_val(1000);
  for (int rank = 0; rank < 4; ++rank) WriteRank(rank, {load});
  ExpectRefused(Simulate(), 2, HasSubstr("describe it with astra_simulate --remote_memory"));
  const std::string memory = directory_.Write(
      "memory.json",
      R"({"memory-type": "MEMORY_POOL", "remote-mem-latency": 100, "remote-mem-bw": 10, "x": 1})");
  EXPECT_THAT(Simulate({"--json", "--remote_memory=" + memory}).standard_output,
              AllOf(HasSubstr("\"makespan_ns\": 800,"),
                    HasSubstr("memory.json: x: not known and ignored")));
}

TEST_F(AstraSimulateTest, PeopleGetTables) {
  const CommandResult result = Simulate({"--node_times"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("makespan   33,829 ns"), HasSubstr("rank  finish ns"),
                    HasSubstr("rank  node  issue ns  finish ns")));
}

TEST_F(AstraSimulateTest, TellsTimesOfNodes) {
  const CommandResult result = Simulate({"--json", "--node_times"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              HasSubstr("\"rank\": 2,\n   \"id\": 1,\n   \"issue_ns\": 0,\n   "
                        "\"finish_ns\": 33829\n"));
}

TEST_F(AstraSimulateTest, CongestionAndStreamsMatter) {
  WriteRank(0, {SendNode(1, 0, 1, 1 << 20, 1), SendNode(2, 0, 1, 1 << 20, 2)});
  WriteRank(1, {RecvNode(1, 0, 1, 1 << 20, 1), RecvNode(2, 0, 1, 1 << 20, 2)});
  WriteRank(2, {CompNode(1, 0)});
  WriteRank(3, {CompNode(1, 0)});
  EXPECT_THAT(Simulate({"--json"}).standard_output, HasSubstr("\"makespan_ns\": 40062,"));
  EXPECT_THAT(Simulate({"--json", "--comm_streams=2"}).standard_output,
              HasSubstr("\"makespan_ns\": 39562,"));
  EXPECT_THAT(Simulate({"--json", "--comm_streams=2", "--congestion=unaware"}).standard_output,
              HasSubstr("\"makespan_ns\": 20031,"));
}

TEST_F(AstraSimulateTest, NotesWhatIsIgnored) {
  WriteRank(0, {SendNode(1, 0, 1, 64, 5)});
  for (int rank = 1; rank < 4; ++rank) WriteRank(rank, {CompNode(1, 0)});
  directory_.Write("network.yml", directory_.Read("network.yml") + "bandwith: [ 7 ]\n");
  const CommandResult result = Simulate({"--json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("bandwith: not known and ignored"));
}

TEST_F(AstraSimulateTest, ReadsGroups) {
  for (int rank = 0; rank < 4; ++rank) {
    WriteRank(rank, {CollectiveNode(1, ALL_REDUCE, 1 << 20, {}, rank % 2 == 0 ? "1" : "2")});
  }
  const std::string groups = directory_.Write("groups.json", R"({"1": [0, 2], "2": [1, 3]})");
  const CommandResult result = Simulate({"--json", "--comm_groups=" + groups});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  ExpectRefused(Simulate(), 2, AllOf(HasSubstr("w.0.et: node 1: "), HasSubstr("group 1")));
}

TEST_F(AstraSimulateTest, FindsGroupsBesideTheTraces) {
  for (int rank = 0; rank < 4; ++rank) {
    WriteRank(rank, {CollectiveNode(1, ALL_REDUCE, 1 << 20, {}, rank % 2 == 0 ? "1" : "2")});
  }
  const std::string beside =
      directory_.Write("w.comm_groups.json", R"({"1": [0, 2], "2": [1, 3]})");
  const CommandResult result = Simulate({"--json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_error, HasSubstr("process groups are those of " + beside));
  // The flag goes before it.
  const std::string other = directory_.Write("groups.json", R"({"1": [0, 2]})");
  ExpectRefused(Simulate({"--comm_groups=" + other}), 2, HasSubstr("group 2"));
}

TEST_F(AstraSimulateTest, AppliesCorrections) {
  const std::string corrections =
      directory_.Write("corrections.json", R"({"all-reduce": [{"bytes": 1048576, "ratio": 2}]})");
  const CommandResult result = Simulate({"--json", "--corrections=" + corrections});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  // Twice 33829.
  EXPECT_THAT(result.standard_output, HasSubstr("\"makespan_ns\": 67658,"));
  // Before the traces are read.
  directory_.Write("w.3.et", "no trace");
  ExpectRefused(Simulate({"--corrections=" + directory_.Write("bad.json", "{\"x\": []}")}), 2,
                HasSubstr("bad.json"));
}

TEST_F(AstraSimulateTest, WritesATimeline) {
  const std::string path = directory_.PathOf("timeline.json");
  const CommandResult result = Simulate({"--json", "--trace_json=" + path});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  // It has the times of nodes, which were not asked for otherwise.
  EXPECT_THAT(result.standard_output, HasSubstr("\"nodes\": []"));
  EXPECT_THAT(directory_.Read("timeline.json"),
              AllOf(HasSubstr(R"("name":"n1","cat":"communication","dur":33.829)"),
                    HasSubstr(R"("args":{"name":"rank 3"})")));
  const CommandResult compressed =
      Simulate({"--trace_json=" + directory_.PathOf("timeline.json.gz")});
  EXPECT_EQ(compressed.exit_code, 0) << compressed.standard_error;
  EXPECT_THAT(directory_.Read("timeline.json.gz"), StartsWith("\x1f\x8b"));
  EXPECT_EQ(Simulate({"--trace_json=" + directory_.PathOf("new/t.json")}).exit_code, 0);
  EXPECT_NE(directory_.Read("new/t.json"), "");
  ExpectRefused(Simulate({"--trace_json=/dev/null"}), 2, HasSubstr("is not a regular file"));
}

TEST_F(AstraSimulateTest, ATimelineTakesNoInputsPlace) {
  const std::string before = directory_.Read("network.yml");
  ExpectRefused(Simulate({"--trace_json=" + directory_.PathOf("network.yml")}), 2,
                HasSubstr("would be overwritten"));
  EXPECT_EQ(directory_.Read("network.yml"), before);
  // Nor that of a custom collective's traces.
  const std::string trace = directory_.Write("ring.0.et", EncodeEt({CompNode(1, 0)}));
  directory_.Write(
      "system.json",
      absl::StrReplaceAll(kSystem, {{"{", absl::StrCat(R"({"all-reduce-implementation-custom": [")",
                                                       directory_.PathOf("ring"), R"("],)")}}));
  ExpectRefused(Simulate({"--trace_json=" + trace}), 2, HasSubstr("would be overwritten"));
}

// The stand-in first answers the probe (2 ranks on a switch), then the run itself.
TEST_F(AstraSimulateTest, AsksTheUsersAstraSim) {
  const TemporaryDirectory work;
  setenv("TMPDIR", work.path().c_str(), 1);
  UseScript(directory_, absl::StrCat("run 1\n", FinishScript({40063, 40063}), "run 2\n",
                                     FinishScript({11, 12, 13, 14})));
  const CommandResult result =
      Simulate({"--json", "--engine=sidecar", "--astra_binary=" + ScriptedProgram()});
  unsetenv("TMPDIR");
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("\"engine\": \"sidecar\""), HasSubstr("\"makespan_ns\": 14,"),
                    HasSubstr("\"id\": 2,\n   \"finish_ns\": 13\n"),
                    Not(HasSubstr("\"astra_version\": \"\""))));
  EXPECT_EQ(ScriptRuns(directory_), 2);
  EXPECT_THAT(work.List(), IsEmpty());
}

// Files of another network are handed on as they are, to the program alone: what they say is not read.
TEST_F(AstraSimulateTest, HandsFilesOnToAnotherNetwork) {
  const std::string config = directory_.Write("config.txt", "TOPOLOGY_FILE ../ring.txt\n");
  const std::string logical = directory_.Write("logical.json", R"({"logical-dims": ["4"]})");
  network_ = config;
  const auto simulate = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--backend=ns3", "--logical_topology=" + logical});
    return Simulate(more);
  };
  UseScript(directory_, absl::StrCat("save ", directory_.PathOf("arguments"), "\n",
                                     FinishScript({11, 12, 13, 14})));
  const CommandResult result =
      simulate({"--json", "--engine=sidecar", "--astra_binary=" + ScriptedProgram()});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(
      result.standard_output,
      AllOf(HasSubstr("\"congestion\": \"ns3\""), HasSubstr("\"makespan_ns\": 14,"),
            HasSubstr("nothing here can check them"), HasSubstr("\"astra_version\": \"binary ")));
  EXPECT_THAT(directory_.Read("arguments"),
              AllOf(HasSubstr("--network-configuration=" + config + "\n"),
                    HasSubstr("--workload-configuration=" + directory_.PathOf("w") + "\n"),
                    HasSubstr("--system-configuration=" + system_ + "\n"),
                    HasSubstr("--logical-topology-configuration=" + logical + "\n"),
                    Not(HasSubstr("logging-folder"))));
  EXPECT_EQ(ScriptRuns(directory_), 1);
  // Nothing guesses which program that is.
  ExpectRefused(simulate({"--engine=sidecar"}), 2, HasSubstr("--backend=ns3 needs --astra_binary"));
  ExpectRefused(simulate({}), 2, HasSubstr("--backend is of --engine=sidecar"));
  ExpectRefused(
      simulate({"--engine=sidecar", "--astra_binary=" + ScriptedProgram(), "--trace_json=t.json"}),
      2, HasSubstr("--trace_json"));
  const auto on_program = [&](const std::string& more) {
    return simulate({"--engine=sidecar", "--astra_binary=" + ScriptedProgram(), more});
  };
  ExpectRefused(on_program("--congestion=unaware"), 2,
                HasSubstr("--congestion is in the files of another --backend"));
  ExpectRefused(Simulate({"--engine=sidecar", "--backend="}), 2, HasSubstr("names no network"));
  ExpectRefused(on_program("--comm_groups=missing.json"), 2, HasSubstr("missing.json"));
  ExpectRefused(on_program("--remote_memory=" + directory_.path()), 2,
                HasSubstr("not a regular file"));
  // The embedded engine has nothing to say about that network.
  UseScript(directory_, "exit 0\n");
  EXPECT_THAT(on_program("--json").standard_error,
              AllOf(HasSubstr("0 of 4 ranks finished"), Not(HasSubstr("embedded"))));
  EXPECT_THAT(simulate({"--engine=sidecar", "--astra_binary=nowhere/AstraSim"}).standard_error,
              AllOf(HasSubstr("nowhere/AstraSim"), Not(HasSubstr("embedded"))));
}

TEST_F(AstraSimulateTest, AnySignalEndsAstraSimAndLeavesNothing) {
  for (const int signal : kEndingSignals) {
    const TemporaryDirectory work, scripts;
    setenv("TMPDIR", work.path().c_str(), 1);
    UseScript(scripts, absl::StrCat("run 1\n", FinishScript({40063, 40063}),
                                    "run 2\nsignal_parent ", signal, "\nsleep 60000\n"));
    const CommandResult result =
        Simulate({"--engine=sidecar", "--astra_binary=" + ScriptedProgram()});
    unsetenv("TMPDIR");
    EXPECT_EQ(result.exit_code, -signal) << result.standard_error;
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(work.List(), IsEmpty()) << signal;
  }
}

TEST_F(AstraSimulateTest, AMissingAstraSimIsTheEnvironments) {
  ExpectRefused(Simulate({"--engine=sidecar"}), 3,
                AllOf(HasSubstr("there is no AstraSim"), HasSubstr("--astra_binary")));
  ExpectRefused(Simulate({"--engine=sidecar", "--astra_binary=nowhere/AstraSim"}), 3,
                HasSubstr("nowhere/AstraSim"));
}

TEST_F(AstraSimulateTest, WrongFlagsExitWithTwo) {
  ExpectRefused(RunCommandLine("tools/astra_simulate", {}), 2, HasSubstr("--workload"));
  ExpectRefused(RunCommandLine("tools/astra_simulate", {"--workload=w"}), 2,
                HasSubstr("--network"));
  ExpectRefused(Simulate({"--engine=magic"}), 2, HasSubstr("--engine=magic"));
  ExpectRefused(Simulate({"--congestion=some"}), 2, HasSubstr("--congestion=some"));
  ExpectRefused(Simulate({"--comm_streams=0"}), 2, HasSubstr("comm_streams"));
  ExpectRefused(Simulate({"--engine=sidecar", "--comm_streams=2"}), 2, HasSubstr("--comm_streams"));
  ExpectRefused(Simulate({"--engine=sidecar", "--corrections=c"}), 2, HasSubstr("--corrections"));
  ExpectRefused(Simulate({"--engine=sidecar", "--astra_timeout_s=0"}), 2,
                HasSubstr("--astra_timeout_s"));
  ExpectRefused(Simulate({"--unknown"}), 2, HasSubstr("--unknown"));
  ExpectRefused(Simulate({"--comm_groups=missing.json"}), 2, HasSubstr("missing.json"));
}

TEST_F(AstraSimulateTest, BadConfigurationsExitWithTwoFileAndKey) {
  const auto network = [&](const char* from, const char* to) {
    directory_.Write("network.yml", absl::StrReplaceAll(kNetwork, {{from, to}}));
    const CommandResult result = Simulate();
    directory_.Write("network.yml", kNetwork);
    return result;
  };
  const auto system = [&](const char* from, const char* to) {
    directory_.Write("system.json", absl::StrReplaceAll(kSystem, {{from, to}}));
    const CommandResult result = Simulate();
    directory_.Write("system.json", kSystem);
    return result;
  };
  ExpectRefused(network("[ 50 ]", "50"), 2, HasSubstr("network.yml: bandwidth: expected a list"));
  ExpectRefused(network("[ 50 ]", "[ 0 ]"), 2, HasSubstr("network.yml: bandwidth: must be pos"));
  ExpectRefused(network("[ 500 ]", "[ -1 ]"), 2, HasSubstr("network.yml: latency: must be"));
  ExpectRefused(network("[ 4 ]", "[ 1 ]"), 2, HasSubstr("network.yml: npus_count: 1"));
  ExpectRefused(network("Ring", "Star"), 2, HasSubstr("network.yml: topology: unknown shape"));
  ExpectRefused(network("topology", "\x01"), 2, HasSubstr("network.yml"));
  ExpectRefused(network("[ 4 ]", "[ 5 ]"), 2,
                AllOf(HasSubstr("w.4.et: no such file"), HasSubstr("network.yml has 5 NPUs")));
  ExpectRefused(system("\"preferred-dataset-splits\": 1", "\"preferred-dataset-splits\": 0"), 2,
                HasSubstr("system.json: preferred-dataset-splits: missing or 0"));
  ExpectRefused(system("[\"ring\"]", "[\"rung\"]"), 2,
                HasSubstr("system.json: all-reduce-implementation: unknown algorithm \"rung\""));
  ExpectRefused(system("[\"ring\"]", "[\"ring\", \"ring\"]"), 2,
                HasSubstr("system.json: all-reduce-implementation: has 2 entries"));
  ExpectRefused(system("all-reduce-impl", "all-produce-impl"), 2,
                HasSubstr("system.json: all-reduce-implementation: missing"));
  ExpectRefused(system("}", ""), 2, HasSubstr("system.json:5: "));
  directory_.Write("w.4.et", EncodeEt({CollectiveNode(1, ALL_REDUCE, 1 << 20)}));
  directory_.Write("w.5.et", EncodeEt({CollectiveNode(1, ALL_REDUCE, 1 << 20)}));
  directory_.Write("network.yml", absl::StrReplaceAll(kNetwork, {{"[ 4 ]", "[ 6 ]"}}));
  ExpectRefused(system("[\"ring\"]", "[\"halvingDoubling\"]"), 2,
                HasSubstr("system.json: all-reduce-implementation: halvingDoubling needs a power "
                          "of two of ranks, but there are 6"));
}

TEST_F(AstraSimulateTest, AGroupOfOneMemberMayBeDeclared) {
  const CommandResult result = Simulate(
      {"--comm_groups=" + directory_.Write("groups.json", R"({"1": [0], "2.0": [0, 1]})")});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("33,829 ns"));
}

TEST_F(AstraSimulateTest, BadGroupsExitWithTwoFileAndKey) {
  const auto groups = [&](const char* json) {
    return Simulate({"--comm_groups=" + directory_.Write("groups.json", json)});
  };
  ExpectRefused(groups(R"({"0": [0, 1]})"), 2, HasSubstr("groups.json: group 0: ids start at 1"));
  ExpectRefused(groups(R"({"1": [0, 9]})"), 2,
                HasSubstr("groups.json: group 1: rank 9 does not exist"));
  ExpectRefused(groups(R"({"1": []})"), 2, HasSubstr("groups.json"));
  ExpectRefused(groups(R"({"1": [0, 0]})"), 2, HasSubstr("groups.json"));
  ExpectRefused(groups(R"({"tp": [0, 1]})"), 2, HasSubstr("groups.json: \"tp\""));
  ExpectRefused(groups(R"({"1": [0, 1)"), 2, HasSubstr("groups.json"));
}

TEST_F(AstraSimulateTest, BadTracesExitWithTwoFileAndNode) {
  const auto rank1 = [&](const std::vector<Node>& nodes) {
    WriteRank(1, nodes);
    return Simulate();
  };
  ExpectRefused(rank1({CompNode(1, 0, {2}), CompNode(2, 0, {1})}), 2,
                HasSubstr("w.1.et: nodes depend on each other in a circle: 1 -> 2 -> 1"));
  ExpectRefused(rank1({CompNode(1, 0, {7})}), 2,
                HasSubstr("w.1.et: node 1 depends on node 7, which does not exist"));
  ExpectRefused(rank1({CompNode(1, 0), CompNode(1, 0)}), 2,
                HasSubstr("w.1.et: node 1: the id is there twice"));
  ExpectRefused(rank1({SendNode(1, 1, 1, 8)}), 2,
                HasSubstr("w.1.et: node 1: comm_dst 1 is the rank itself"));
  ExpectRefused(rank1({SendNode(1, 1, 99, 8)}), 2, HasSubstr("w.1.et: node 1: comm_dst 99"));
  ExpectRefused(rank1({CollectiveNode(1, ALL_REDUCE, 4096)}), 2,
                HasSubstr("w.1.et: node 1: is all-reduce of 4096 bytes, but the same collective"));
  ExpectRefused(rank1({}), 2, HasSubstr("w.1.et: has no nodes"));
  directory_.Write("w.1.et", "\x05no ET");
  ExpectRefused(Simulate(), 2, HasSubstr("w.1.et: offset "));
  directory_.Write("w.1.et", EncodeEt({CompNode(1, 0)}).substr(0, 9));
  ExpectRefused(Simulate(), 2, HasSubstr("w.1.et: offset "));
}

TEST_F(AstraSimulateTest, NamesTheRanksOfADeadlock) {
  // Crossing orders of two collectives.
  const std::string groups = directory_.Write("groups.json", R"({"1": [0, 1], "2": [1, 0]})");
  WriteRank(
      0, {CollectiveNode(1, ALL_REDUCE, 64, {}, "1"), CollectiveNode(2, ALL_REDUCE, 64, {}, "2")});
  WriteRank(
      1, {CollectiveNode(5, ALL_REDUCE, 64, {}, "2"), CollectiveNode(6, ALL_REDUCE, 64, {}, "1")});
  WriteRank(2, {CompNode(1, 0)});
  WriteRank(3, {CompNode(1, 0)});
  ExpectRefused(Simulate({"--comm_groups=" + groups}), 2,
                AllOf(HasSubstr("deadlock at "),
                      HasSubstr("w.0.et) waits in node 1 (all-reduce of group 1) for rank 1"),
                      HasSubstr("w.1.et) waits in node 5 (all-reduce of group 2) for rank 0")));
  const CommandResult untied = Simulate({"--comm_groups=" + groups, "--comm_streams=2", "--json"});
  EXPECT_EQ(untied.exit_code, 0) << untied.standard_error;
}

}  // namespace
}  // namespace meridian
