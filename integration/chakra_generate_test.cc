// chakra_generate as users run it, and what others make of its traces.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "astra_bridge/engine/simulation_report.pb.h"
#include "chakra_export/run/workload_report.pb.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Flags = std::vector<std::string>;

// Rings of one chunk.
constexpr char kSystem[] = R"({"scheduling-policy": "LIFO", "endpoint-delay": 10,
  "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
  "collective-optimization": "localBWAware", $0,
  "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
  "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"]})";

// A topology that is a file.
constexpr char kCori[] = "examples/networks/cori.yml";

class ChakraGenerateTest : public ::testing::Test {
 protected:
  CommandResult Generate(const Flags& flags) {
    Flags all = {"--output=" + prefix_};
    all.insert(all.end(), flags.begin(), flags.end());
    return RunCommandLine("tools/chakra_generate", all);
  }

  // Makes a workload of its own, checks its traces and runs them on links of 50 GiB/s and 500 ns;
  // returns when the last rank is done.
  int64_t SimulatedNs(const Flags& flags, const std::string& topology = "FullyConnected") {
    prefix_ = directory_.PathOf(absl::StrCat("w", ++workloads_));
    Flags with_json = flags;
    with_json.push_back("--json");
    const CommandResult generated = Generate(with_json);
    EXPECT_EQ(generated.exit_code, 0) << generated.standard_error;
    ChakraWorkloadReport report;
    EXPECT_TRUE(
        google::protobuf::util::JsonStringToMessage(generated.standard_output, &report).ok());
    const CommandResult checked =
        RunCommandLine("tools/chakra_inspect", {"--et=" + prefix_, "--check"});
    EXPECT_EQ(checked.exit_code, 0) << checked.standard_output;
    EXPECT_THAT(checked.standard_output, HasSubstr("no problems"));
    return Simulate(report, topology);
  }

  int64_t Simulate(const ChakraWorkloadReport& report, const std::string& topology) {
    Flags flags = {
        "--workload=" + prefix_,
        "--network=" +
            (topology == kCori
                 ? topology
                 : directory_.Write("n.yml", absl::Substitute("topology: [ $0 ]\n"
                                                              "npus_count: [ $1 ]\n"
                                                              "bandwidth: [ 50 ]\n"
                                                              "latency: [ 500 ]\n",
                                                              topology, report.ranks_size()))),
        "--system=" + directory_.Write("s.json", absl::Substitute(kSystem, speeds_)), "--json"};
    if (!report.comm_groups().empty()) flags.push_back("--comm_groups=" + report.comm_groups());
    const CommandResult simulated = RunCommandLine("tools/astra_simulate", flags);
    EXPECT_EQ(simulated.exit_code, 0) << simulated.standard_error;
    SimulationReport result;
    EXPECT_TRUE(
        google::protobuf::util::JsonStringToMessage(simulated.standard_output, &result).ok());
    EXPECT_EQ(result.npus_size(), report.ranks_size());
    return result.makespan_ns();
  }

  const TemporaryDirectory directory_;
  int workloads_ = 0;
  std::string prefix_ = directory_.PathOf("w");
  std::string speeds_ = R"("local-mem-bw": 1600)";
};

// A quarter of 1 MiB takes trunc(500 + 262144 / 53.6870912) = 5382 ns, and 3 * trunc(163.84) = 489
// to add up; each step 10 ns more, and 10 at the beginning. AstraSim prints 33829 for the first.
TEST_F(ChakraGenerateTest, CollectivesTakeWhatTheRingFormulasSay) {
  EXPECT_EQ(SimulatedNs({"--pattern=all-reduce", "--ranks=4", "--bytes=1MiB"}),
            10 + 6 * (5382 + 10) + 3 * 489);
  EXPECT_EQ(SimulatedNs({"--pattern=reduce-scatter", "--ranks=4", "--bytes=1MiB"}),
            10 + 3 * (5382 + 10 + 489));
  EXPECT_EQ(SimulatedNs({"--pattern=all-to-all", "--ranks=4", "--bytes=1MiB"}),
            10 + 4 * 3 / 2 * (5382 + 10));
  // Each step moves the whole shard: trunc(500 + 1048576 / 53.6870912).
  EXPECT_EQ(SimulatedNs({"--pattern=all-gather", "--ranks=4", "--bytes=1MiB"}),
            10 + 3 * (20031 + 10));
}

// Two GPUs exchange halves of 1 MiB, trunc(500 + 9765.625) ns, add them up in 1 ns and exchange them
// again.
TEST_F(ChakraGenerateTest, AnAlgorithmOfMscclIsACustomCollective) {
  std::string xml = "<algo coll=\"allreduce\" ngpus=\"2\" nchunksperloop=\"2\">";
  for (const int gpu : {0, 1}) {
    absl::SubstituteAndAppend(&xml, R"(<gpu id="$0"><tb id="0" send="$1" recv="$1" chan="0">)", gpu,
                              1 - gpu);
    int number = 0;
    for (const char* const type : {"s", "rrc", "s", "r"}) {
      absl::SubstituteAndAppend(&xml, R"(<step s="$0" type="$1" cnt="1" depid="-1" deps="-1"/>)",
                                number++, type);
    }
    xml += "</tb></gpu>";
  }
  const std::string file = directory_.Write("a.xml", xml + "</algo>");
  const CommandResult converted = Generate({"--msccl=" + file, "--bytes=1MiB"});
  EXPECT_EQ(converted.exit_code, 0) << converted.standard_error;
  absl::StrAppend(&speeds_, R"(, "all-reduce-implementation-custom": [")", prefix_, R"("])");
  EXPECT_EQ(SimulatedNs({"--pattern=all-reduce", "--ranks=2", "--bytes=1MiB"}), 2 * 10265 + 1);
}

// Halves of 1 MiB: trunc(500 + 9765.625) and 3 * trunc(327.68).
TEST_F(ChakraGenerateTest, GroupsWorkSideBySide) {
  EXPECT_EQ(SimulatedNs({"--pattern=all-reduce", "--ranks=4", "--group_size=2"}),
            10 + 2 * (10265 + 10) + 981);
}

TEST_F(ChakraGenerateTest, RepeatsSizesAndComputationAddUp) {
  EXPECT_EQ(SimulatedNs({"--pattern=all-reduce", "--ranks=4", "--bytes=1MiB", "--repeats=3"}),
            3 * 33829);
  EXPECT_EQ(
      SimulatedNs({"--pattern=all-reduce", "--ranks=4", "--bytes=1048576,1MiB", "--compute_us=5"}),
      2 * (5000 + 33829));
}

TEST_F(ChakraGenerateTest, MessagesTakeWhatTheirLinksTake) {
  EXPECT_EQ(SimulatedNs({"--pattern=p2p-pair", "--ranks=4"}), 20031);
  EXPECT_EQ(SimulatedNs({"--pattern=p2p-ping-pong", "--ranks=4", "--repeats=2"}), 4 * 20031);
  EXPECT_EQ(SimulatedNs({"--pattern=p2p-ring", "--ranks=4", "--repeats=2"}), 2 * 20031);
  // 1 ns of computation, then trunc(500 + 512 / 53.6870912).
  EXPECT_EQ(SimulatedNs({"--pattern=p2p-pair", "--ranks=2", "--bytes=512"}), 1 + 509);
  // Up to the switch side by side, then down one after the other, trunc(19531.25) ns apart.
  EXPECT_EQ(SimulatedNs({"--pattern=p2p-incast", "--ranks=4"}, "Switch"),
            20031 + 2 * 19531 + 20031);
}

// A rank sends one message after the other, in 20031 ns each; 1 ns joins those of a round.
TEST_F(ChakraGenerateTest, GridsRunToTheEnd) {
  EXPECT_EQ(SimulatedNs({"--pattern=halo-1d", "--ranks=3", "--repeats=2"}), 4 * 20031 + 1);
  EXPECT_EQ(SimulatedNs({"--pattern=halo-2d", "--ranks=9"}), 4 * 20031);
  EXPECT_EQ(SimulatedNs({"--pattern=halo-3d", "--ranks=27"}), 6 * 20031);
  // Of two ranks each of eight octants is a computation, a message and a computation. Three of these
  // overlap: where the next wave goes the same way along the ranks.
  EXPECT_EQ(SimulatedNs({"--pattern=sweep3d", "--ranks=2", "--blocks=1", "--compute_us=5"}),
            13 * 5000 + 8 * 20031);
  // Three blocks are at the fourth rank after five messages, and back after ten, when the second has
  // two halos of six times the bytes to send, trunc(500 + 6291456 / 53.6870912) each.
  EXPECT_EQ(SimulatedNs({"--pattern=lu", "--ranks=4", "--grid=4x1", "--blocks=3"}),
            10 * 20031 + 2 * 117687);
}

TEST_F(ChakraGenerateTest, GridsRunOnCori) {
  // Within a router, 1.3 us and 8 GB/s.
  EXPECT_EQ(SimulatedNs({"--pattern=p2p-pair", "--ranks=768"}, kCori), 1300 + 131072);
  // A rank in the middle has six faces to send, of 8,192 ns each; few links join the two groups.
  const int64_t halo_ns = SimulatedNs({"--pattern=halo-3d", "--ranks=768", "--bytes=64KiB"}, kCori);
  EXPECT_GT(halo_ns, 6 * (1300 + 8192));
  EXPECT_LT(halo_ns, 1'000'000);
}

// What comes before a small message costs nothing, yet a roofline must not skip it: 65536 bytes at
// 1600 GB/s take 40 ns.
TEST_F(ChakraGenerateTest, MessagesRunToTheEndOnARoofline) {
  speeds_ = R"("local-mem-bw": 1600, "roofline-enabled": 1, "peak-perf": 1)";
  EXPECT_EQ(SimulatedNs({"--pattern=p2p-pair", "--ranks=2", "--bytes=512"}), 40 + 509);
}

// 64 tokens of hidden size 256 on four ranks: attention (8*64*256^2 + 4*64*64*256) / 4 = 9 * 2^20
// operations, MLP 16*64*256^2 / 4 = 16 * 2^20, backward twice that; the optimizer of four layers
// 12 * 4 * 12*256^2/4 = 9 * 2^20. At 2^20 operations in a microsecond these are 9, 16, 18, 32 and
// 9 us. An all-reduce has 64*256*2 = 32 KiB: steps of trunc(500 + 8192 / 53.6870912) = 652 ns and
// 3 * trunc(5.12) = 15 to add up. Of four layers and two microbatches there are 4 * 4 * 2; for the
// last of a microbatch, the gradient that leaves the first layer, nothing waits.
TEST_F(ChakraGenerateTest, ATensorParallelStepIsItsComputationAndItsAllReduces) {
  const Flags flags = {"--pattern=transformer", "--tp=4",        "--layers=4",
                       "--hidden=256",          "--sequence=64", "--batch=2",
                       "--microbatches=2",      "--vocab=0",     "--tflops=1.048576"};
  constexpr int64_t kAllReduces = 4 * 4 * 2 - 2;
  EXPECT_EQ(SimulatedNs(flags), 2 * 4 * (9000 + 16000 + 18000 + 32000) + 9000 +
                                    kAllReduces * (10 + 6 * (652 + 10) + 3 * 15));
  // A roofline of 1 TFLOPS, which memory never limits, prices the operations itself, cut to ns.
  speeds_ = R"("local-mem-bw": 1000000, "roofline-enabled": 1, "peak-perf": 1)";
  EXPECT_EQ(SimulatedNs(flags),
            2 * 4 * (9437 + 16777 + 18874 + 33554) + 9437 + kAllReduces * (10 + 6 * (652 + 10)));
}

// One layer of the above on each of two ranks, F = 36 + 64 us, B = 200 us, the optimizer 9 us; a
// message of 32 KiB takes c = trunc(500 + 32768 / 53.6870912) = 1110 ns. GPipe pays for one message
// on the way out and one on the way back. With 1F1B the second rank gets the third microbatch late:
//   rank 0  F0 F1 | until 2F+B+2c | B0 F2 to 3F+2B+2c
//   rank 1  F0 at F+c, B0 F1 B1 to 3F+2B+c | F2 at 3F+2B+3c, B2 to 4F+3B+3c
TEST_F(ChakraGenerateTest, APipelineIsItsPassesAndTheMessagesInTheWay) {
  const Flags flags = {
      "--pattern=transformer", "--pp=2",    "--layers=2",       "--hidden=256",     "--vocab=0",
      "--sequence=64",         "--batch=3", "--microbatches=3", "--tflops=1.048576"};
  Flags gpipe = flags;
  gpipe.push_back("--schedule=gpipe");
  EXPECT_EQ(SimulatedNs(gpipe), (3 + 2 - 1) * 300000 + 2 * 1110 + 9000);
  EXPECT_EQ(SimulatedNs(flags), (3 + 2 - 1) * 300000 + 4 * 1110 + 9000);
}

TEST_F(ChakraGenerateTest, ThreeDimensionsRunToTheEnd) {
  for (const char* schedule : {"--schedule=1f1b", "--schedule=gpipe"}) {
    for (const char* zero : {"--zero", "--nozero"}) {
      EXPECT_GT(SimulatedNs({"--pattern=transformer", "--tp=2", "--dp=2", "--pp=4", "--layers=8",
                             "--hidden=512", "--sequence=128", "--batch=12", "--microbatches=6",
                             schedule, zero},
                            "Switch"),
                0);
    }
  }
}

TEST_F(ChakraGenerateTest, ReportsRanksAsTheExporterDoes) {
  const CommandResult result = Generate({"--pattern=all-reduce", "--ranks=2", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_error, "");
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr(absl::StrCat("\"rank\": 1,\n   \"nodes\": 1,\n   "
                                           "\"comm_nodes\": 1,\n   \"path\": \"",
                                           prefix_, ".1.et\"")),
                    HasSubstr("\"comm_groups\": \"\"")));
  const CommandResult text = Generate({"--pattern=all-reduce", "--ranks=2"});
  EXPECT_THAT(text.standard_output, AllOf(HasSubstr("rank  nodes  comm"), HasSubstr("w.1.et")));
}

TEST_F(ChakraGenerateTest, TheSameFlagsGiveTheSameBytes) {
  const Flags flags = {
      "--pattern=transformer", "--tp=2", "--dp=2", "--pp=2", "--layers=4", "--batch=16", "--zero"};
  ASSERT_EQ(Generate(flags).exit_code, 0);
  std::vector<std::string> first;
  for (const std::string& name : directory_.List()) first.push_back(directory_.Read(name));
  ASSERT_EQ(first.size(), 9u);
  ASSERT_EQ(Generate(flags).exit_code, 0);
  std::vector<std::string> second;
  for (const std::string& name : directory_.List()) second.push_back(directory_.Read(name));
  EXPECT_EQ(first, second);
}

TEST_F(ChakraGenerateTest, BadFlagsExitWithTwoAndWriteNothing) {
  struct Case {
    Flags flags;
    std::string message;
  };
  const Case cases[] = {
      {{}, "--pattern= is none of transformer, gemm, lstm, all-reduce"},
      {{"--pattern=broadcast"},
       "--pattern=broadcast is none of transformer, gemm, lstm, all-reduce"},
      {{"--pattern=all-reduce"}, "--ranks=0: expected 2 to"},
      {{"--pattern=all-reduce", "--ranks=4", "--bytes=1X"}, "--bytes: '1X' is no size"},
      {{"--pattern=all-reduce", "--ranks=4", "--bytes="}, "--bytes names no size"},
      {{"--pattern=all-reduce", "--ranks=4", "--bytes=0"}, "--bytes=0: expected 1 to"},
      {{"--pattern=all-reduce", "--ranks=4", "--group_size=3"}, "does not divide by"},
      {{"--pattern=all-reduce", "--ranks=4", "--compute_us=9223372036854775807"}, "--compute_us"},
      {{"--pattern=all-reduce", "--ranks=4", "--tp=2"},
       "--tp means nothing with --pattern=all-reduce"},
      {{"--pattern=transformer", "--ranks=4"}, "--ranks means nothing with --pattern=transformer"},
      {{"--pattern=transformer", "--schedule=zb"}, "--schedule=zb is none of 1f1b, gpipe"},
      {{"--pattern=transformer", "--pp=5"}, "--layers=24 does not divide by --pp=5; 20 or 25"},
      {{"--pattern=transformer", "--tp=16384", "--dp=16384", "--pp=16384"}, "ranks; at most"},
      {{"--pattern=transformer", "--tp=2", "--dp=512", "--batch=2048"}, "process groups"},
      {{"--pattern=transformer", "--hidden=16777216", "--sequence=16777216"}, "64 bits"},
      {{"--pattern=transformer", "--layers=65536", "--microbatches=1048576", "--batch=1048576"},
       "nodes; at most 50,000,000"},
      {{"--pattern=transformer", "--tflops=nan"}, "--tflops=nan"},
      {{"--msccl=a.xml", "--ranks=4"}, "--ranks means nothing with --msccl"},
      {{"--msccl=a.xml", "--bytes=1,2"}, "--bytes: '1,2' is no size"},
      {{"--msccl=a.xml"}, "a.xml"},
      {{"--pattern=transformer", "--gemm=1x1x1"}, "--gemm means nothing with"},
      {{"--pattern=gemm", "--gemm=8x8"}, "--gemm has three sizes"},
      {{"--pattern=gemm", "--gemm=8x8xy"}, "--gemm=8x8xy is no grid"},
      {{"--pattern=halo-2d", "--ranks=12", "--grid=4xx3"}, "--grid=4xx3 is no grid"},
      {{"--pattern=all-reduce", "--ranks=2", "--bytes=8TiB"}, "would move 8,796,093,022,208 bytes"},
      {{"--pattern=lu", "--ranks=4", "--bytes=1TiB"}, "would move 17,592,186,044,416 bytes"},
      {{"--pattern=gemm", "--tp=2"}, "--tp means nothing with --pattern=gemm"},
      {{"--pattern=lstm", "--pp=2"}, "--pp means nothing with --pattern=lstm"},
      {{"--pattern=all-reduce", "--ranks=4", "--device=x.yml"}, "--device means nothing with"},
      {{"--pattern=lstm", "--device=x.yml", "--tflops=3"}, "--tflops is in the file of --device"},
  };
  for (const Case& bad : cases) {
    const CommandResult result = Generate(bad.flags);
    EXPECT_EQ(result.exit_code, 2) << bad.message;
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error,
                AllOf(StartsWith("chakra_generate: "), HasSubstr(bad.message)));
  }
  EXPECT_THAT(directory_.List(), IsEmpty());
  prefix_ = directory_.path() + "/";
  EXPECT_THAT(Generate({"--pattern=all-reduce", "--ranks=2"}).standard_error,
              HasSubstr("names a folder"));
  EXPECT_EQ(
      RunCommandLine("tools/chakra_generate", {"--pattern=all-reduce", "--ranks=2"}).exit_code, 2);
  // What is read is not overwritten.
  prefix_ = directory_.PathOf("a");
  for (const std::string flag : {"--msccl=", "--device="}) {
    const CommandResult result = Generate({flag + directory_.Write("a.0.et", "<algo>")});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.standard_error, HasSubstr("a.0.et is an input and would be overwritten"));
  }
}

// Each rank gathers the other half of the right factor, 8 MiB, and multiplies 2048 x 2048 matrices:
// 343.6 us at 50 operations per picosecond. On the device, two waves of 128 x 128 tiles take 354.3 us
// and the kernel 5 us more.
TEST_F(ChakraGenerateTest, ADeviceSaysHowLongProductsTake) {
  constexpr int64_t kGatherNs = 10 + 156750 + 10;
  Flags flags = {"--pattern=gemm", "--gemm=4096x2048x2048", "--grid=2", "--dtype_bytes=4",
                 "--tflops=50"};
  EXPECT_EQ(SimulatedNs(flags), kGatherNs + 344000);
  flags.back() = "--device=examples/devices/h200_fp32.yml";
  EXPECT_EQ(SimulatedNs(flags), kGatherNs + 359000);
  // A transformer's products, too: the same operations take longer.
  flags = {"--pattern=transformer", "--tp=2", "--layers=2", "--batch=4", "--tflops=50"};
  const int64_t by_operations_ns = SimulatedNs(flags);
  flags.back() = "--device=examples/devices/h200_fp32.yml";
  EXPECT_GT(SimulatedNs(flags), by_operations_ns);
}

TEST_F(ChakraGenerateTest, RecurrentNetworksRunToTheEnd) {
  // Per cell: 8 x 64 times 64 x 128 and 9 operations for each of 8 x 32 numbers, forward 1 us, 2
  // backward; 2 x 4 cells, and 1 us for the optimizer. The last layer's gradients are summed while the
  // first goes back; those of the first take 2 messages of 8 KiB, trunc(500 + 8192 / 53.6870912) ns
  // each, and 3 * trunc(5.12) to add up.
  const Flags flags = {"--pattern=lstm", "--dp=2",     "--layers=2",       "--hidden=32",
                       "--sequence=4",   "--batch=16", "--tflops=0.133376"};
  EXPECT_EQ(SimulatedNs(flags), 8 * 3000 + 10 + 2 * (652 + 10) + 15 + 1000);
}

TEST_F(ChakraGenerateTest, HelpShowsExamples) {
  const CommandResult result = Generate({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.standard_output,
              AllOf(HasSubstr("Examples:"), HasSubstr("--pattern=transformer --tp=8")));
}

}  // namespace
}  // namespace meridian
