// astra_predict --et as users run it: a real run, a generated one, wrong input.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "astra_bridge/prediction/prediction_report.pb.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/run_command.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::ALL_REDUCE;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns the node on a stream of its own, so that it may overlap with others.
ChakraProtoMsg::Node OnStream(ChakraProtoMsg::Node node) {
  ChakraProtoMsg::AttributeProto* stream = node.add_attr();
  stream->set_name("stream");
  stream->set_int64_val(static_cast<int64_t>(node.id()));
  return node;
}

class AstraPredictWorkloadTest : public ::testing::Test {
 protected:
  AstraPredictWorkloadTest() {
    // Nothing of the machine's own is found or changed.
    setenv("HOME", directory_.PathOf("home").c_str(), 1);
    unsetenv("XDG_CACHE_HOME");
  }

  std::string Network(const std::string& shape, int npus) {
    return directory_.Write(shape + ".yml", "topology: [ " + shape + " ]\nnpus_count: [ " +
                                                std::to_string(npus) +
                                                " ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n");
  }

  // Returns the prefix of the bundled run's traces.
  std::string ExportExample() {
    const std::string prefix = directory_.PathOf("tp");
    const CommandResult result = RunCommandLine(
        "tools/chakra_export", {"--traces=examples/jax_tp_cuda4", "--output=" + prefix});
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    return prefix;
  }

  std::string Generate(const std::vector<std::string>& flags) {
    const std::string prefix = directory_.PathOf("made");
    std::vector<std::string> arguments = {"--pattern=transformer", "--output=" + prefix};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const CommandResult result = RunCommandLine("tools/chakra_generate", arguments);
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    return prefix;
  }

  CommandResult Run(const std::string& prefix, const std::string& network,
                    const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--et=" + prefix, "--network=" + network};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunCommandLine("tools/astra_predict", arguments);
  }

  PredictionReport Predict(const std::string& prefix, const std::string& network,
                           std::vector<std::string> more) {
    more.push_back("--json");
    const CommandResult result = Run(prefix, network, more);
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    PredictionReport report;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.standard_output, &report).ok());
    return report;
  }

  // Returns the manifest edges.json.
  PredictionReport ReadManifest() {
    PredictionReport manifest;
    EXPECT_TRUE(
        google::protobuf::util::JsonStringToMessage(directory_.Read("edges.json"), &manifest).ok());
    return manifest;
  }

  void ExpectRefused(const CommandResult& result, const ::testing::Matcher<std::string>& message) {
    EXPECT_EQ(result.exit_code, 2) << result.standard_error;
    EXPECT_EQ(result.standard_output, "");
    EXPECT_THAT(result.standard_error, AllOf(StartsWith("astra_predict: "), message));
  }

  const TemporaryDirectory directory_;
};

TEST_F(AstraPredictWorkloadTest, ARealRunTakesNoLessThanWithItsEdgesAlone) {
  const std::string prefix = ExportExample();
  const PredictionReport alone = Predict(prefix, Network("Ring", 4), {"--mode=isolated"});
  const PredictionReport ring = Predict(prefix, Network("Ring", 4), {"--mode=snapshot"});
  const PredictionReport full = Predict(prefix, Network("FullyConnected", 4), {"--mode=snapshot"});
  EXPECT_EQ(alone.edges_size(), ring.edges_size());
  EXPECT_EQ(ring.workload().isolated_iteration_ns(), alone.iteration_ns());
  EXPECT_GE(ring.iteration_ns(), alone.iteration_ns());
  EXPECT_GE(ring.inflation(), 1);
  EXPECT_EQ(ring.engine(), "embedded, congestion-aware");
  EXPECT_EQ(ring.fallbacks(), 0);
  // Links between all are worth something.
  EXPECT_LT(full.iteration_ns(), ring.iteration_ns());
  EXPECT_GE(full.iteration_ns(), full.workload().isolated_iteration_ns());
}

TEST_F(AstraPredictWorkloadTest, ASecondRunSaysTheSame) {
  const std::string prefix = Generate({"--tp=4", "--dp=2", "--pp=2", "--layers=4",
                                       "--microbatches=4", "--batch=8", "--hidden=512"});
  const std::string network = Network("Ring", 16);
  PredictionReport reports[2];
  std::string manifests[2];
  for (int i = 0; i < 2; ++i) {
    reports[i] = Predict(prefix, network,
                         {"--mode=snapshot", "--manifest=" + directory_.PathOf("edges.json")});
    manifests[i] = directory_.Read("edges.json");
  }
  EXPECT_EQ(reports[0].SerializeAsString(), reports[1].SerializeAsString());
  EXPECT_EQ(manifests[0], manifests[1]);
  // Pipeline stages and copies share the ring.
  EXPECT_GT(reports[0].iteration_ns(), reports[0].workload().isolated_iteration_ns());
  EXPECT_GT(reports[0].inflation(), 1);
}

TEST_F(AstraPredictWorkloadTest, ASecondRunIsAllCacheHits) {
  const std::string prefix =
      Generate({"--tp=4", "--pp=2", "--layers=8", "--microbatches=8", "--batch=8", "--hidden=512"});
  const std::string network = Network("Ring", 8);
  const std::vector<std::string> flags = {"--mode=snapshot",
                                          "--cache=" + directory_.PathOf("cache")};
  PredictionReport first = Predict(prefix, network, flags);
  PredictionReport second = Predict(prefix, network, flags);
  EXPECT_EQ(first.cache_hits(), 0);
  EXPECT_GT(second.cache_hits(), 0);
  EXPECT_EQ(second.iteration_ns(), first.iteration_ns());
  // A few edges over and over.
  EXPECT_LT(second.cache_hits() * 4, first.edges_size());
}

TEST_F(AstraPredictWorkloadTest, TheManifestIsTheReportWithDevices) {
  const PredictionReport report =
      Predict(ExportExample(), Network("Ring", 4),
              {"--mode=snapshot", "--manifest=" + directory_.PathOf("edges.json")});
  const PredictionReport manifest = ReadManifest();
  EXPECT_EQ(manifest.iteration_ns(), report.iteration_ns());
  ASSERT_EQ(manifest.edges_size(), report.edges_size());
  for (int i = 0; i < manifest.edges_size(); ++i) {
    EXPECT_EQ(manifest.edges(i).start_ns(), report.edges(i).start_ns());
    EXPECT_GE(manifest.edges(i).participants_size(), 2);
  }
}

TEST_F(AstraPredictWorkloadTest, PeopleGetTables) {
  const CommandResult result =
      Run(ExportExample(), Network("Ring", 4), {"--mode=snapshot", "--resources=simulator"});
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  // The example was not recorded on that ring.
  EXPECT_THAT(result.standard_error,
              StartsWith("astra_predict: note: process groups are those of " +
                         directory_.PathOf("tp.comm_groups.json") +
                         "\nastra_predict: warning: measured times are left out"));
  EXPECT_THAT(
      result.standard_output,
      AllOf(HasSubstr("all-reduce"), HasSubstr("mode       snapshot\n"), HasSubstr("x isolated")));
}

TEST_F(AstraPredictWorkloadTest, WithoutCongestionEdgesTakeAsLongAsAlone) {
  const PredictionReport report =
      Predict(ExportExample(), Network("Ring", 4), {"--congestion=unaware", "--mode=snapshot"});
  EXPECT_EQ(report.engine(), "embedded, congestion-unaware");
  EXPECT_EQ(report.iteration_ns(), report.workload().isolated_iteration_ns());
}

TEST_F(AstraPredictWorkloadTest, GroupsAreFoundBesideTheTracesUnlessGiven) {
  const std::vector<ChakraProtoMsg::Node> rank = {CollectiveNode(1, ALL_REDUCE, 64, {}, "1")};
  WriteWorkload(directory_, "w", {rank, rank, rank, rank});
  directory_.Write("w.comm_groups.json", R"({"1":[0,2,1,3]})");
  const std::string other = directory_.Write("other.json", R"({"1":[3,2,1,0]})");
  const auto participants = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--mode=snapshot", "--manifest=" + directory_.PathOf("edges.json")});
    const CommandResult result = Run(directory_.PathOf("w"), Network("Ring", 4), flags);
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    EXPECT_EQ(result.standard_error.empty(), flags.size() == 3);
    return ReadManifest().edges(0).participants();
  };
  EXPECT_THAT(participants({}), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(participants({"--comm_groups=" + other}), ElementsAre(3, 2, 1, 0));
}

TEST_F(AstraPredictWorkloadTest, CorrectionsAreApplied) {
  WriteWorkload(directory_, "w", {{SendNode(1, 0, 1, 1 << 20)}, {RecvNode(1, 0, 1, 1 << 20)}});
  const std::string corrections =
      directory_.Write("c.json", R"({"p2p":[{"bytes":1048576,"ratio":2}]})");
  EXPECT_EQ(Predict(directory_.PathOf("w"), Network("Ring", 2), {}).iteration_ns(), 20031);
  EXPECT_EQ(Predict(directory_.PathOf("w"), Network("Ring", 2), {"--corrections=" + corrections})
                .iteration_ns(),
            40062);
}

TEST_F(AstraPredictWorkloadTest, AConfigurationNamesTheNetwork) {
  // Rank 0 sends while both run an all-reduce.
  const ChakraProtoMsg::Node reduce = OnStream(CollectiveNode(2, ALL_REDUCE, 1 << 20, {}, "1"));
  WriteWorkload(
      directory_, "w",
      {{OnStream(SendNode(1, 0, 1, 1 << 20)), reduce}, {RecvNode(1, 0, 1, 1 << 20), reduce}});
  Network("Ring", 2);
  const std::string shared = directory_.Write("shared.yml", R"(
network_backend: {model: embedded, astra: {mode: snapshot}}
topologies: {default: Ring.yml}
)");
  const auto predict = [&](const std::string& file) {
    const CommandResult result = RunCommandLine(
        "tools/astra_predict", {"--et=" + directory_.PathOf("w"), "--config=" + file, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.standard_error;
    PredictionReport report;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(result.standard_output, &report).ok());
    return report;
  };
  const CommandResult refused =
      RunCommandLine("tools/astra_predict", {"--et=" + directory_.PathOf("w"), "--config=" + shared,
                                             "--manifest=" + directory_.PathOf("Ring.yml")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.standard_error, HasSubstr("Ring.yml is an input and would be overwritten"));
  const PredictionReport together = predict(shared);
  EXPECT_GT(together.iteration_ns(), together.workload().isolated_iteration_ns());
}

TEST_F(AstraPredictWorkloadTest, BadInputExitsWithTwoFileAndRemedy) {
  const std::string network = Network("Ring", 2);
  const std::string prefix = directory_.PathOf("w");
  ExpectRefused(Run(directory_.PathOf("none"), network, {}), HasSubstr("none.0.et"));

  WriteWorkload(directory_, "w", {{CompNode(1, 5)}, {CompNode(1, 5)}});
  ExpectRefused(Run(prefix, network, {}),
                AllOf(HasSubstr(prefix), HasSubstr("no node communicates")));

  WriteWorkload(directory_, "w",
                {{CollectiveNode(1, ALL_REDUCE, 64)}, {CollectiveNode(1, ALL_REDUCE, 128)}});
  ExpectRefused(Run(prefix, network, {}),
                AllOf(HasSubstr(prefix), HasSubstr("rank 0 node 1"), HasSubstr("128 bytes"),
                      HasSubstr("export all ranks")));

  WriteWorkload(
      directory_, "w",
      {{CollectiveNode(1, ALL_REDUCE, 64, {}, "1"), CollectiveNode(2, ALL_REDUCE, 64, {1}, "2")},
       {CollectiveNode(1, ALL_REDUCE, 64, {}, "2"), CollectiveNode(2, ALL_REDUCE, 64, {1}, "1")}});
  ExpectRefused(Run(prefix, network, {}),
                AllOf(HasSubstr(prefix), HasSubstr("deadlock"), HasSubstr("rank 1 node"),
                      HasSubstr("in one order")));

  WriteWorkload(directory_, "w",
                {{CompNode(1, 5, {2}), CompNode(2, 5, {1}), CollectiveNode(3, ALL_REDUCE, 64)},
                 {CollectiveNode(1, ALL_REDUCE, 64)}});
  ExpectRefused(Run(prefix, network, {}),
                AllOf(HasSubstr(prefix), HasSubstr("form a cycle: rank 0 node 1"),
                      HasSubstr("chakra_inspect")));

  WriteWorkload(directory_, "w",
                {{CollectiveNode(1, ALL_REDUCE, 64)},
                 {CollectiveNode(1, ALL_REDUCE, 64)},
                 {CollectiveNode(1, ALL_REDUCE, 64)}});
  ExpectRefused(
      Run(prefix, network, {}),
      AllOf(HasSubstr("device 2"), HasSubstr("Ring.yml has 2 NPUs"), HasSubstr("large enough")));

  WriteWorkload(directory_, "gap", {{CollectiveNode(1, ALL_REDUCE, 64)}});
  directory_.Write("gap.2.et", directory_.Read("gap.0.et"));
  ExpectRefused(Run(directory_.PathOf("gap"), network, {}), HasSubstr("no file for rank 1"));
}

TEST_F(AstraPredictWorkloadTest, FlagsThatDoNotFitAreRefused) {
  WriteWorkload(directory_, "w",
                {{CollectiveNode(1, ALL_REDUCE, 64)}, {CollectiveNode(1, ALL_REDUCE, 64)}});
  const std::string prefix = directory_.PathOf("w");
  const std::string network = Network("Ring", 2);
  ExpectRefused(Run(prefix, network, {"--edges=e.jsonl"}), HasSubstr("either"));
  ExpectRefused(Run(prefix, network, {"--resources=all"}), HasSubstr("--resources=all"));
  ExpectRefused(Run(prefix, network, {"--manifest=" + network}), HasSubstr("Ring.yml"));
  ExpectRefused(RunCommandLine("tools/astra_predict",
                               {"--edges=e.jsonl", "--network=" + network, "--manifest=m.json"}),
                HasSubstr("--manifest is for workloads"));
  EXPECT_THAT(directory_.Read("Ring.yml"), StartsWith("topology"));
}

}  // namespace
}  // namespace meridian
