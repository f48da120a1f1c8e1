// chakra_inspect as users run it: on whole workloads, with wrong flags and with broken files.
#include <random>
#include <string>
#include <vector>

#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

CommandResult Inspect(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/chakra_inspect", arguments);
}

bool IsJson(const std::string& text) {
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  return parser.parse(text).get(document) == simdjson::SUCCESS;
}

// A directory with a workload "w" of two ranks.
class Workload {
 public:
  Workload() { WriteWorkload(directory_, "w", TrainingStep()); }

  std::string Et() const { return "--et=" + directory_.PathOf("w"); }
  std::string PathOf(const std::string& name) const { return directory_.PathOf(name); }
  const TemporaryDirectory& directory() const { return directory_; }

 private:
  TemporaryDirectory directory_;
};

TEST(ChakraInspectTest, ShowsStatisticsAndProblems) {
  const Workload workload;
  const CommandResult result = Inspect({workload.Et()});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("COMM_COLL_NODE      6"), HasSubstr("no problems")));
  EXPECT_THAT(Inspect({workload.Et(), "--stats"}).standard_output, Not(HasSubstr("problems")));
  EXPECT_EQ(Inspect({workload.Et(), "--check"}).standard_output, "no problems\n");
}

TEST(ChakraInspectTest, JsonHasTheFieldsThatOthersRelyOn) {
  const Workload workload;
  const CommandResult result = Inspect({workload.Et(), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_TRUE(IsJson(result.standard_output));
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("\"nodes\": 14,"), HasSubstr("\"COMP_NODE\": 6\n"),
                    HasSubstr("\"edges\": 16,"), HasSubstr("\"roots\": 2,"),
                    HasSubstr("\"problems\": []")));
}

TEST(ChakraInspectTest, TakesOneFileAndGzip) {
  const Workload workload;
  EXPECT_THAT(Inspect({"--et=" + workload.PathOf("w.1.et"), "--json"}).standard_output,
              HasSubstr("\"nodes\": 7,"));
  const std::string gzip =
      workload.directory().Write("z.0.et.gz", GzipText(EncodeEt({CompNode(1, 1)})));
  const CommandResult result = Inspect({"--et", gzip, "--check"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.standard_output, StartsWith("error gzip: 1\n  rank 0: the file is gzip"));
}

TEST(ChakraInspectTest, CheckFailsOnErrorsOnly) {
  const TemporaryDirectory directory;
  Node host = CompNode(1, 1);
  host.mutable_attr(0)->set_bool_val(true);
  WriteWorkload(directory, "warning", {{host}});
  WriteWorkload(directory, "error", {{CompNode(1, 1, {2})}});
  const CommandResult warning = Inspect({"--et=" + directory.PathOf("warning"), "--check"});
  EXPECT_EQ(warning.exit_code, 0);
  EXPECT_THAT(warning.standard_output, HasSubstr("0 errors, 1 warnings"));
  const std::string error = "--et=" + directory.PathOf("error");
  EXPECT_EQ(Inspect({error, "--check"}).exit_code, 1);
  EXPECT_EQ(Inspect({error, "--check", "--json"}).exit_code, 1);
  EXPECT_EQ(Inspect({error}).exit_code, 0);
}

TEST(ChakraInspectTest, GroupsComeFromTheFileBeside) {
  const TemporaryDirectory directory;
  const Node node = CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 8, {}, "1");
  WriteWorkload(directory, "w", {{node}, {node}});
  const std::string et = "--et=" + directory.PathOf("w");
  EXPECT_THAT(Inspect({et, "--check"}).standard_output, HasSubstr("warning no_groups: 2"));
  directory.Write("w.comm_groups.json", "{\"1\": [0, 1]}");
  EXPECT_EQ(Inspect({et, "--check"}).standard_output, "no problems\n");
  const std::string other = directory.Write("other.json", "{\"1\": [0]}");
  const CommandResult result = Inspect({et, "--check", "--comm_groups=" + other});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("group_of_one: 2"), HasSubstr("not_a_member: 1")));
  EXPECT_EQ(Inspect({et, "--comm_groups=" + directory.Write("bad.json", "{")}).exit_code, 2);
}

TEST(ChakraInspectTest, WritesJsonDotAndTimeline) {
  const Workload workload;
  const CommandResult json = Inspect({workload.Et(), "--to_json"});
  EXPECT_EQ(json.exit_code, 0) << json.standard_error;
  EXPECT_TRUE(IsJson(json.standard_output));
  EXPECT_THAT(json.standard_output, HasSubstr("\"name\":\"pipeline_handover\""));

  const CommandResult dot = Inspect({workload.Et(), "--dot"});
  EXPECT_EQ(dot.exit_code, 0) << dot.standard_error;
  EXPECT_EQ(dot.standard_error, "");
  EXPECT_THAT(dot.standard_output, StartsWith("digraph chakra {\n"));

  const std::string et = workload.Et().substr(workload.Et().find('=') + 1);
  for (const char* flag : {"--timeline", "--to_json"}) {
    const CommandResult refused = Inspect({workload.Et(), flag, "--output=" + et + ".0.et"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.standard_error, HasSubstr("would be overwritten"));
  }
  EXPECT_EQ(Inspect({workload.Et(), "--obfuscate=" + et}).exit_code, 2);

  const CommandResult timeline =
      Inspect({workload.Et(), "--timeline", "--output=" + workload.PathOf("t.json")});
  EXPECT_EQ(timeline.exit_code, 0) << timeline.standard_error;
  EXPECT_EQ(timeline.standard_output, "");
  EXPECT_TRUE(IsJson(workload.directory().Read("t.json")));
  EXPECT_EQ(
      Inspect({workload.Et(), "--to_json", "--output=" + workload.PathOf("n.json.gz")}).exit_code,
      0);
  EXPECT_THAT(workload.directory().Read("n.json.gz"), StartsWith("\x1f\x8b"));
}

TEST(ChakraInspectTest, DiffFailsOnDifferences) {
  const Workload workload;
  const CommandResult equal = Inspect({workload.Et(), "--diff=" + workload.PathOf("w")});
  EXPECT_EQ(equal.exit_code, 0);
  EXPECT_EQ(equal.standard_output, "no difference in 14 nodes\n");
  const CommandResult differ = Inspect(
      {"--et=" + workload.PathOf("w.0.et"), "--diff=" + workload.PathOf("w.1.et"), "--json"});
  EXPECT_EQ(differ.exit_code, 1);
  EXPECT_TRUE(IsJson(differ.standard_output));
  EXPECT_THAT(differ.standard_output, HasSubstr("\"different\": 7,"));
}

TEST(ChakraInspectTest, AGraphTooLargeToDrawIsRefused) {
  const TemporaryDirectory directory;
  std::vector<Node> nodes;
  for (uint64_t id = 1; id <= 1001; ++id) nodes.push_back(CompNode(id, 1));
  WriteWorkload(directory, "w", {nodes});
  const CommandResult result = Inspect({"--et=" + directory.PathOf("w"), "--dot"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.standard_output, "");
  EXPECT_THAT(result.standard_error,
              AllOf(HasSubstr("the graph has 1001 nodes"), HasSubstr("draw one rank")));
}

TEST(ChakraInspectTest, ObfuscatedTracesSimulateAlike) {
  const Workload workload;
  const CommandResult result = Inspect({workload.Et(), "--obfuscate=" + workload.PathOf("o")});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("o.1.et"));
  EXPECT_THAT(workload.directory().Read("o.0.et"), Not(HasSubstr("secret")));
  EXPECT_THAT(Inspect({"--et=" + workload.PathOf("o"), "--json"}).standard_output,
              AllOf(HasSubstr("\"nodes\": 14,"), HasSubstr("\"problems\": []")));
}

// A workload whose collectives are of a group that the file beside names.
void WriteGroupedWorkload(const TemporaryDirectory& directory) {
  const Node node = CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, 4096, {}, "4");
  WriteWorkload(directory, "w", {{node, CompNode(2, 5, {1})}, {node}});
  directory.Write("w.comm_groups.json", "{\"4\": [1, 0]}");
}

CommandResult Simulate(const TemporaryDirectory& directory, const std::string& workload) {
  const std::string network = directory.Write(
      "network.yml", "topology: [Ring]\nnpus_count: [2]\nbandwidth: [50]\nlatency: [500]\n");
  const std::string system = directory.Write("system.json", R"({
      "scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
      "preferred-dataset-splits": 1, "collective-optimization": "localBWAware",
      "local-mem-bw": 1600, "all-reduce-implementation": ["ring"],
      "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
      "all-to-all-implementation": ["ring"]})");
  return RunCommandLine(
      "tools/astra_simulate",
      {"--workload=" + directory.PathOf(workload), "--network=" + network, "--system=" + system,
       "--comm_groups=" + directory.PathOf(workload + ".comm_groups.json")});
}

TEST(ChakraInspectTest, NewTracesHaveTheirGroupsBesideThem) {
  const TemporaryDirectory directory;
  WriteGroupedWorkload(directory);
  const std::string et = "--et=" + directory.PathOf("w");
  const CommandResult hidden = Inspect({et, "--obfuscate=" + directory.PathOf("o")});
  EXPECT_EQ(hidden.exit_code, 0) << hidden.standard_error;
  EXPECT_THAT(hidden.standard_output,
              HasSubstr("groups: " + directory.PathOf("o.comm_groups.json") + "\n"));
  EXPECT_EQ(directory.Read("o.comm_groups.json"), "{\n  \"4\": [1, 0]\n}\n");
  EXPECT_EQ(Inspect({"--et=" + directory.PathOf("o"), "--check"}).standard_output, "no problems\n");
  // To the same nanosecond.
  EXPECT_EQ(Simulate(directory, "o").standard_output, Simulate(directory, "w").standard_output);
  // Of files elsewhere, too.
  const std::string groups = directory.Write("elsewhere.json", "{\"4\": [0, 1]}");
  EXPECT_EQ(
      Inspect({et, "--comm_groups=" + groups, "--obfuscate=" + directory.PathOf("g")}).exit_code,
      0);
  EXPECT_EQ(directory.Read("g.comm_groups.json"), "{\n  \"4\": [0, 1]\n}\n");
}

TEST(ChakraInspectTest, NewTracesReplaceAnEarlierWorkload) {
  const Workload workload;
  const std::string task = "--obfuscate=" + workload.PathOf("out");
  for (const char* name : {"out.1.et.gz", "out.7.et", "out.comm_groups.json", "out.7.txt"}) {
    workload.directory().Write(name, "{}");
  }
  const CommandResult result = Inspect({workload.Et(), task});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  for (const char* name : {"out.1.et.gz", "out.7.et", "out.comm_groups.json"}) {
    EXPECT_THAT(result.standard_output,
                HasSubstr("removed: " + workload.PathOf(name) + " of an earlier workload\n"));
  }
  EXPECT_THAT(workload.directory().List(),
              UnorderedElementsAre("w.0.et", "w.1.et", "out.0.et", "out.1.et", "out.7.txt"));
  // One file is one rank; the others stay.
  EXPECT_EQ(Inspect({"--et=" + workload.PathOf("w.1.et"), task}).exit_code, 0);
  EXPECT_THAT(workload.directory().List(),
              UnorderedElementsAre("w.0.et", "w.1.et", "out.0.et", "out.1.et", "out.7.txt"));
}

TEST(ChakraInspectTest, NewTracesNeverReplaceTheirInputs) {
  const TemporaryDirectory directory;
  WriteGroupedWorkload(directory);
  const std::string gzip = directory.Write("z.0.et.gz", GzipText(EncodeEt({CompNode(1, 1)})));
  const std::string groups = directory.Write("g.comm_groups.json", "{\"4\": [0, 1]}");
  const std::vector<std::vector<std::string>> wrong = {
      {"--et=" + directory.PathOf("w"), "--obfuscate=" + directory.PathOf("w")},
      {"--et=" + directory.PathOf("w.0.et"), "--obfuscate=" + directory.PathOf("w")},
      {"--et=" + gzip, "--obfuscate=" + directory.PathOf("z")},
      {"--et=" + gzip, "--comm_groups=" + groups, "--obfuscate=" + directory.PathOf("g")},
      {"--et=" + gzip, "--obfuscate=" + directory.path() + "/"},
  };
  const auto before = directory.List();
  for (const std::vector<std::string>& arguments : wrong) {
    EXPECT_EQ(Inspect(arguments).exit_code, 2) << ::testing::PrintToString(arguments);
  }
  EXPECT_EQ(directory.List(), before);
}

TEST(ChakraInspectTest, HelpShowsExamplesAndSucceeds) {
  const CommandResult result = Inspect({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.standard_output, AllOf(HasSubstr("--obfuscate"),
                                            HasSubstr("chakra_inspect --et=run/w --check --json")));
}

TEST(ChakraInspectTest, WrongUsageExitsWithTwo) {
  const Workload workload;
  const std::string et = workload.Et();
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"--ett=x"},
      {"w.0.et"},
      {et, "--dot", "--timeline"},
      {et, "--check", "--to_json"},
      {et, "--diff=" + workload.PathOf("missing")},
      {"--et=" + workload.PathOf("missing")},
      {"--et=" + workload.directory().path()},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    const CommandResult result = Inspect(arguments);
    EXPECT_EQ(result.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, StartsWith("chakra_inspect: "));
  }
  EXPECT_THAT(workload.directory().List(), ElementsAre("w.0.et", "w.1.et"));
}

TEST(ChakraInspectTest, FlagsWithoutTheirTaskAreRefused) {
  const Workload workload;
  struct Mistake {
    std::vector<std::string> flags;
    const char* message;
  };
  const std::vector<Mistake> mistakes = {
      {{"--output=" + workload.PathOf("out")}, "--output needs --to_json or --dot or --timeline\n"},
      {{"--to_json", "--comm_groups=" + workload.PathOf("groups.json")}, "--comm_groups needs "},
  };
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> arguments = mistake.flags;
    arguments.push_back(workload.Et());
    const CommandResult result = Inspect(arguments);
    EXPECT_EQ(result.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, HasSubstr(mistake.message));
  }
  EXPECT_THAT(workload.directory().List(), ElementsAre("w.0.et", "w.1.et"));
}

// A file that is refused, with what must be said about it.
struct BrokenFile {
  const char* name;
  std::string contents;
  const char* reason;
};

std::vector<BrokenFile> BrokenFiles() {
  const std::string whole = EncodeEt(TrainingStep()[0]);
  const std::string gzip = GzipText(whole);
  std::string bad_text = whole;
  bad_text[bad_text.find("secret")] = '\xFF';
  return {
      {"empty", "", "offset 0: the file is empty"},
      {"torn in a node", whole.substr(0, 60), "offset 8: the record has 231 bytes"},
      {"torn in a length", whole.substr(0, 9), "offset 8: the file ends within the length"},
      {"torn in the metadata", whole.substr(0, 4), "offset 0: the record has 7 bytes"},
      {"garbage", std::string(100, '\xFF'), "offset 0: the record has no valid length"},
      {"JSON", "{\"schema\": \"1.1.1-chakra.0.0.4\"}", "offset 0: the record has 123 bytes"},
      {"no metadata", whole.substr(8), "offset 0: the first record is a node"},
      {"invalid UTF-8", bad_text, "text is not UTF-8"},
      {"duplicate id", EncodeEt({CompNode(1, 1), CompNode(1, 1)}), "offset 35: node id 1 occurs"},
      {"truncated gzip", gzip.substr(0, gzip.size() - 6), "truncated"},
      {"gzip of nothing", GzipText(""), "the file is empty"},
  };
}

TEST(ChakraInspectTest, BrokenFilesExitWithTwoOffsetAndReason) {
  const TemporaryDirectory directory;
  for (const BrokenFile& broken : BrokenFiles()) {
    SCOPED_TRACE(broken.name);
    const std::string path = directory.Write("broken.0.et", broken.contents);
    for (const char* task : {"--stats", "--timeline", "--diff=", "--obfuscate="}) {
      std::string flag = task;
      if (flag.back() == '=') flag += flag == "--diff=" ? path : directory.PathOf("out");
      const bool reads_ids = flag != "--obfuscate=" + directory.PathOf("out");
      if (!reads_ids && broken.name == std::string("duplicate id")) continue;
      const CommandResult result = Inspect({"--et=" + path, flag});
      EXPECT_EQ(result.exit_code, 2) << flag;
      EXPECT_EQ(result.standard_output, "");
      EXPECT_THAT(result.standard_error, AllOf(StartsWith("chakra_inspect: " + path),
                                               HasSubstr("offset "), HasSubstr(broken.reason)))
          << flag;
    }
  }
  EXPECT_THAT(directory.List(), ElementsAre("broken.0.et"));
}

TEST(ChakraInspectTest, CutAndDamagedFilesNeverCrash) {
  const TemporaryDirectory directory;
  const std::string whole = EncodeEt(TrainingStep()[1]);
  std::mt19937_64 random(7);
  for (int i = 0; i < 60; ++i) {
    const std::string bytes =
        i % 2 == 0 ? whole.substr(0, random() % whole.size()) : Damage(whole, random);
    const std::string et = "--et=" + directory.Write("w.1.et", bytes);
    for (const char* task : {"--check", "--to_json", "--dot", "--timeline"}) {
      const CommandResult result = Inspect({et, task});
      EXPECT_THAT(result.exit_code, ::testing::AnyOf(0, 1, 2)) << result.standard_error;
      if (result.exit_code == 2) {
        EXPECT_EQ(result.standard_output, "");
      }
    }
  }
}

TEST(ChakraInspectTest, TextOfAFileDoesNotSteerTheTerminal) {
  const TemporaryDirectory directory;
  Node node = CompNode(1, 5, {9});
  node.set_name("\x1b[2J");
  WriteWorkload(directory, "w", {{node, CollectiveNode(2, ChakraProtoMsg::BARRIER, 1)}});
  for (const char* task : {"--stats", "--check", "--dot"}) {
    const CommandResult result = Inspect({"--et=" + directory.PathOf("w"), task});
    EXPECT_THAT(result.standard_output + result.standard_error, Not(HasSubstr("\x1b")));
  }
}

TEST(ChakraInspectTest, AFullDiskIsTheEnvironments) {
  const Workload workload;
  const CommandResult result = RunCommandLine(
      "/bin/sh", {"-c", "tools/chakra_inspect " + workload.Et() + " --to_json > /dev/full"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.standard_error, HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace meridian
