// chakra_link as a user runs it.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CommandResult Link(const std::vector<std::string>& arguments) {
  return RunCommandLine("tools/chakra_link", arguments);
}

class ChakraLinkTest : public ::testing::Test {
 protected:
  ChakraLinkTest() {
    directory_.Write("host/et_0.json", HostTraceText().Op(2, 1, "aten::mul").Text());
    directory_.Write("device/kineto_0.json", KinetoText()
                                                 .Op("aten::mul", 1, 0, 10, 2)
                                                 .Call("cudaLaunchKernel", 1, 5, 2, 1)
                                                 .Kernel("mul", 7, 20, 10, 1)
                                                 .Text());
  }

  std::vector<std::string> Arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        absl::StrCat("--host_traces=", directory_.PathOf("host")),
        absl::StrCat("--device_traces=", directory_.PathOf("device/*.json")),
        absl::StrCat("--output=", directory_.PathOf("w"))};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  TemporaryDirectory directory_;
};

TEST_F(ChakraLinkTest, ConvertsAndSaysWhatItDid) {
  const CommandResult result = Link(Arguments());
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("w.0.et"));
  EXPECT_THAT(directory_.List(), ElementsAre("device", "host", "w.0.et"));
}

TEST_F(ChakraLinkTest, PrintsTheFieldsThatOthersRelyOn) {
  const CommandResult result = Link(Arguments({"--json", "--flavor=full"}));
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  for (const char* field : {"\"ranks\"", "\"rank\"", "\"nodes\"", "\"comm_nodes\"", "\"path\""}) {
    EXPECT_THAT(result.standard_output, HasSubstr(field));
  }
}

TEST_F(ChakraLinkTest, ExitsWithTwoOnBadUsageAndInput) {
  EXPECT_EQ(Link({}).exit_code, 2);
  EXPECT_THAT(Link({"--output=w"}).standard_error, HasSubstr("--device_traces names no file"));
  EXPECT_THAT(Link(Arguments({"--flavor=other"})).standard_error,
              HasSubstr("--flavor=other is none of simulation, full"));
  const std::string table =
      directory_.Write("device/run.csv", "rank,kind,start_ns,end_ns\n0,compute,1,2\n");
  EXPECT_THAT(Link({"--output=w", "--device_traces=" + table}).standard_error,
              HasSubstr("run.csv is a table of operations; expected a Kineto trace, combine makes "
                        "Chakra traces of others"));
  const std::string kernels = directory_.Write("device/kernels.csv", "mine");
  EXPECT_THAT(Link(Arguments({"--collective_kernels=" + kernels})).standard_error,
              HasSubstr("kernels.csv:1"));
  directory_.Write("host/et_0.json", "{\"schema\": \"9\", \"nodes\": []}");
  const CommandResult result = Link(Arguments());
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("et_0.json: schema \"9\" is not known"));
  EXPECT_THAT(result.standard_output, IsEmpty());
  EXPECT_THAT(directory_.List(), ElementsAre("device", "host"));
}

// What can be wrong with a run, each bad input that names what is wrong and writes nothing.
TEST_F(ChakraLinkTest, RefusesBadInputWithItsNameAndWritesNothing) {
  const std::string host = directory_.Read("host/et_0.json");
  const std::string device = directory_.Read("device/kineto_0.json");
  const auto expect_refused = [&](const std::vector<std::string>& words) {
    const CommandResult result = Link(Arguments());
    EXPECT_EQ(result.exit_code, 2) << result.standard_error;
    EXPECT_THAT(result.standard_output, IsEmpty());
    for (const std::string& word : words) EXPECT_THAT(result.standard_error, HasSubstr(word));
    EXPECT_THAT(directory_.List(), ElementsAre("device", "host"));
  };
  for (const std::string& bad :
       {host.substr(0, host.size() / 2), std::string("\x1f\x8b\x08zzz"), std::string("[]"),
        std::string(), std::string(100000, '['), host + "}"}) {
    directory_.Write("host/et_0.json", bad);
    expect_refused({"et_0.json"});
  }
  directory_.Write("host/et_0.json", host);
  for (const std::string& bad :
       {device.substr(0, device.size() / 2), std::string("nonsense"), std::string(),
        std::string("{\"traceEvents\": 5}"), std::string(100000, '{')}) {
    directory_.Write("device/kineto_0.json", bad);
    expect_refused({"kineto_0.json"});
  }
  // The execution trace in the profile's place.
  directory_.Write("device/kineto_0.json", host);
  expect_refused({"kineto_0.json"});
  // A node twice.
  directory_.Write("device/kineto_0.json", device);
  directory_.Write("host/et_0.json",
                   HostTraceText().Op(2, 1, "aten::mul").Op(2, 1, "aten::add").Text());
  expect_refused({"et_0.json", "node 2 occurs twice"});
}

TEST_F(ChakraLinkTest, RefusesRanksThatDoNotFitTogether) {
  const std::string host = directory_.Read("host/et_0.json");
  constexpr char kKernel[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)";
  const auto reduce = [&](int64_t rank, int64_t world, int64_t start) {
    return KinetoText(rank, world).Collective("allreduce", kKernel, 16, start, 20, 1, 64).Text();
  };
  directory_.Write("host/et_1.json", host);
  const auto expect_refused = [&](const std::vector<std::string>& words) {
    const CommandResult result = Link(Arguments());
    EXPECT_EQ(result.exit_code, 2) << result.standard_error;
    for (const std::string& word : words) EXPECT_THAT(result.standard_error, HasSubstr(word));
    EXPECT_THAT(directory_.List(), ElementsAre("device", "host"));
  };
  directory_.Write("device/kineto_0.json", reduce(0, 3, 10));
  directory_.Write("device/kineto_1.json", reduce(1, 3, 10));
  expect_refused({"kineto_0.json", "no trace of rank 2"});
  directory_.Write("device/kineto_0.json", reduce(1, 2, 10));
  directory_.Write("device/kineto_1.json", reduce(1, 2, 10));
  expect_refused({"kineto_0.json", "kineto_1.json"});
  // Rank 1 begins when rank 0 has ended.
  directory_.Write("device/kineto_0.json", reduce(0, 2, 10));
  directory_.Write("device/kineto_1.json", reduce(1, 2, 90));
  expect_refused({"the clocks of the nodes disagree", "kineto_", "rank 0", "rank 1"});
  // A group of other ranks under the same name.
  std::string other = reduce(1, 2, 10);
  other.replace(other.find("[0, 1]"), 6, "[1, 2]");
  directory_.Write("device/kineto_1.json", other);
  expect_refused({"kineto_1.json", "process group 0 has the ranks 1, 2"});
}

TEST_F(ChakraLinkTest, OverwritesNoneOfItsInputs) {
  directory_.Write("device/k.0.json", directory_.Read("device/kineto_0.json"));
  const CommandResult result =
      Link({absl::StrCat("--host_traces=", directory_.PathOf("host")),
            absl::StrCat("--device_traces=", directory_.PathOf("device/k.0.json")),
            absl::StrCat("--output=", directory_.PathOf("w")),
            absl::StrCat("--linked_json=", directory_.PathOf("host/../device/k"))});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("k.0.json is an input and would be overwritten"));
  EXPECT_THAT(directory_.List(), ElementsAre("device", "host"));
}

TEST_F(ChakraLinkTest, AFolderIsNoPrefix) {
  std::vector<std::string> arguments = Arguments();
  arguments.back() = absl::StrCat("--output=", directory_.path(), "/");
  const CommandResult result = Link(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.standard_error, HasSubstr("names a folder"));
}

TEST_F(ChakraLinkTest, RemovesWhatALargerRunLeftUnderThePrefix) {
  directory_.Write("w.1.et", "old");
  directory_.Write("w.comm_groups.json", "old");
  const CommandResult result = Link(Arguments());
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_THAT(result.standard_output, HasSubstr("w.1.et of an earlier workload"));
  EXPECT_THAT(directory_.List(), ElementsAre("device", "host", "w.0.et"));
}

TEST_F(ChakraLinkTest, SimulationOfARealRunPassesTheChecker) {
  const auto shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const CommandResult linked =
      Link({absl::StrCat("--host_traces=", *shared, "/traces/torch_nccl4/et_*.json.gz"),
            absl::StrCat("--device_traces=", *shared, "/traces/torch_nccl4/kineto_*.json.gz"),
            absl::StrCat("--output=", directory_.PathOf("w"))});
  ASSERT_EQ(linked.exit_code, 0) << linked.standard_error;
  const CommandResult checked = RunCommandLine(
      "tools/chakra_inspect", {absl::StrCat("--et=", directory_.PathOf("w")), "--check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.standard_output;
  EXPECT_THAT(checked.standard_output, HasSubstr("no problems"));

  // And it runs to the end in the embedded engine, also with a roofline, which does not like
  // computations without bytes.
  const std::string network = directory_.Write(
      "n.yml",
      "topology: [ FullyConnected ]\nnpus_count: [ 4 ]\nbandwidth: [ 10.0 ]\nlatency: [ 500.0 ]\n");
  const std::string system = directory_.Write(
      "s.json",
      R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
          "preferred-dataset-splits": 1, "collective-optimization": "localBWAware",
          "local-mem-bw": 1600, "peak-perf": 100, "roofline-enabled": 1,
          "all-reduce-implementation": ["ring"],
          "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
          "all-to-all-implementation": ["ring"]})");
  const CommandResult simulated =
      RunCommandLine("tools/astra_simulate", {absl::StrCat("--workload=", directory_.PathOf("w")),
                                              absl::StrCat("--network=", network),
                                              absl::StrCat("--system=", system), "--json"});
  EXPECT_EQ(simulated.exit_code, 0) << simulated.standard_error;
  EXPECT_THAT(simulated.standard_output, HasSubstr("\"finish_ns\""));
}

}  // namespace
}  // namespace meridian
