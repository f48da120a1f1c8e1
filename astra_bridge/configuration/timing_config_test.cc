#include "astra_bridge/configuration/timing_config.h"

#include <random>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr char kWhole[] = R"(
network_backend:
  model: astra
  astra:
    backend: analytical
    congestion: unaware
    mode: snapshot
    binary: bin/AstraSim
    timeout_s: 2.5
topologies:
  default: node.yml
  pod: {network: /etc/pod.yml, system: pod.json}
system: system.json
corrections: c.json
rank_to_device: {8: 0, 9: 1}
groups:
  tp0: [3, 1]
  7: [0]
group_topologies: {tp0: pod}
cache: c
)";

TEST(TimingConfigTest, ReadsEveryKey) {
  ASSERT_OK_AND_ASSIGN(const TimingConfig config, ParseTimingConfig(kWhole, "conf/timing.yml"));
  EXPECT_EQ(config.model, TimingModel::kAstra);
  EXPECT_EQ(config.congestion, Congestion::kUnaware);
  EXPECT_EQ(config.mode, TimingMode::kSnapshot);
  EXPECT_EQ(config.astra_binary, "conf/bin/AstraSim");
  EXPECT_EQ(config.astra_timeout, absl::Milliseconds(2500));
  ASSERT_EQ(config.topologies.size(), 2u);
  EXPECT_EQ(config.topologies.at("default").network, "conf/node.yml");
  EXPECT_EQ(config.topologies.at("default").system, "conf/system.json");
  EXPECT_EQ(config.topologies.at("pod").network, "/etc/pod.yml");
  EXPECT_EQ(config.topologies.at("pod").system, "conf/pod.json");
  EXPECT_EQ(config.corrections, "conf/c.json");
  EXPECT_THAT(config.layout.rank_to_device, ElementsAre(Pair(8, 0), Pair(9, 1)));
  EXPECT_THAT(config.layout.groups,
              ElementsAre(Pair("7", ElementsAre(0)), Pair("tp0", ElementsAre(3, 1))));
  EXPECT_THAT(config.layout.group_topologies, ElementsAre(Pair("tp0", "pod")));
  EXPECT_EQ(config.cache_folder, "conf/c");
}

TEST(TimingConfigTest, WhatIsLeftOutHasItsDefault) {
  ASSERT_OK_AND_ASSIGN(const TimingConfig config,
                       ParseTimingConfig("topologies: {default: n.yml}", "t.yml"));
  EXPECT_EQ(config.model, TimingModel::kEmbedded);
  EXPECT_EQ(config.congestion, Congestion::kAware);
  EXPECT_EQ(config.mode, TimingMode::kIsolated);
  EXPECT_EQ(config.topologies.at("default").network, "n.yml");
  EXPECT_EQ(config.topologies.at("default").system, "");
  EXPECT_EQ(config.cache_folder, "");
}

TEST(TimingConfigTest, ErrorsNameFileAndKey) {
  const struct {
    const char* yaml;
    const char* reason;
  } kCases[] = {
      {"", "t.yml: expected keys and values"},
      {"[1]", "t.yml: expected keys and values"},
      {"a: [", "t.yml:1: "},
      {"netwrk_backend: {}", "t.yml: netwrk_backend: not known; there are cache, corrections"},
      {"network_backend: {model: magic}",
       "t.yml: network_backend.model: is magic, not one of analytical, embedded, astra"},
      {"network_backend: astra", "t.yml: network_backend: expected keys and values"},
      {"network_backend: {astra: {backend: ns3}}",
       "t.yml: network_backend.astra.backend: is ns3, not analytical"},
      {"network_backend: {astra: {mode: fast}}", "network_backend.astra.mode: is fast, not one of"},
      {"network_backend: {astra: {mode: [isolated]}}", "astra.mode: expected one value"},
      {"network_backend: {astra: {timeout_s: 0}}", "timeout_s: expected a number above 0"},
      {"network_backend: {astra: {timeout_s: .nan}}", "timeout_s: expected a number above 0"},
      {"network_backend: {astra: {timeout_s: 1e30}}", "timeout_s: is too long"},
      {"topologies: {pod: {system: s.json}}", "t.yml: topologies.pod: network is missing"},
      {"topologies: {pod: }", "t.yml: topologies.pod: expected keys and values"},
      {"rank_to_device: []", "t.yml: rank_to_device: is empty"},
      {"rank_to_device: [0, -1]", "t.yml: rank_to_device[1]: expected a whole number from 0 on"},
      {"rank_to_device: {x: 1}", "t.yml: rank_to_device.x: the key is no rank"},
      {"groups: {tp: [0, 1, 0]}", "t.yml: groups.tp[2]: 0 occurs twice"},
      {"group_topologies: {tp: pod}", "t.yml: group_topologies.tp: pod is none of the topologies"},
      {"groups: {tp: 3}", "t.yml: groups.tp: expected a list"},
      {"groups: {tp: [0, 1], tp: [1, 2]}", "t.yml: groups: tp occurs twice"},
      {"cache: [a]", "t.yml: cache: expected one value"},
  };
  for (const auto& wrong : kCases) {
    EXPECT_THAT(ParseTimingConfig(wrong.yaml, "t.yml"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(StartsWith("t.yml:"), HasSubstr(wrong.reason))))
        << wrong.yaml;
  }
}

TEST(TimingConfigTest, DeepOrLongDocumentsAreRefusedNotFollowed) {
  EXPECT_THAT(ParseTimingConfig(std::string(100000, '['), "t.yml"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseTimingConfig(std::string(5 << 20, '#'), "t.yml"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too long")));
}

TEST(TimingConfigTest, DamagedDocumentsAreReadOrRefused) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    const std::string damaged = Damage(kWhole, random);
    const absl::Status status = ParseTimingConfig(damaged, "t.yml").status();
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << damaged;
  }
}

TEST(TimingFlagsTest, ReplaceWhatTheConfigurationSays) {
  ASSERT_OK_AND_ASSIGN(TimingConfig config,
                       ParseTimingConfig("topologies: {a: a.yml, b: {network: b.yml}}\n"
                                         "corrections: c.json\n",
                                         "t.yml"));
  TimingFlags flags;
  ASSERT_OK(ApplyTimingFlags(flags, &config));
  EXPECT_THAT(FilesOf(config), ElementsAre("c.json", "a.yml", "", "b.yml", ""));
  flags.fabric.system = "s.json";
  flags.engine = "sidecar";
  flags.mode = "snapshot";
  flags.astra_timeout_s = 5;
  ASSERT_OK(ApplyTimingFlags(flags, &config));
  EXPECT_THAT(FilesOf(config), ElementsAre("c.json", "a.yml", "s.json", "b.yml", "s.json"));
  EXPECT_EQ(config.model, TimingModel::kAstra);
  EXPECT_EQ(config.mode, TimingMode::kSnapshot);
  EXPECT_EQ(config.astra_timeout, absl::Seconds(5));
  flags.fabric = {"n.yml", ""};
  flags.corrections = "other.json";
  ASSERT_OK(ApplyTimingFlags(flags, &config));
  EXPECT_THAT(FilesOf(config), ElementsAre("other.json", "n.yml", ""));
}

TEST(TimingFlagsTest, WhatIsNoValueIsNamedWithTheFlag) {
  TimingConfig config;
  TimingFlags flags;
  flags.congestion = "some";
  EXPECT_THAT(ApplyTimingFlags(flags, &config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--congestion=some is none of aware, unaware, fair"));
  flags.congestion = "";
  flags.astra_timeout_s = -1;
  EXPECT_THAT(
      ApplyTimingFlags(flags, &config),
      StatusIs(absl::StatusCode::kInvalidArgument, "--astra_timeout_s=-1 is no time above 0"));
}

}  // namespace
}  // namespace meridian
