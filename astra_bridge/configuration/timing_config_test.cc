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
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kWhole[] = R"(
network_backend:
  model: astra
  astra:
    congestion: unaware
    mode: snapshot
topologies:
  default: node.yml
  pod: {network: /etc/pod.yml, system: pod.json}
system: system.json
corrections: c.json
cache: c
)";

TEST(TimingConfigTest, ReadsEveryKey) {
  ASSERT_OK_AND_ASSIGN(const TimingConfig config, ParseTimingConfig(kWhole, "conf/timing.yml"));
  EXPECT_EQ(config.model, TimingModel::kAstra);
  EXPECT_EQ(config.congestion, Congestion::kUnaware);
  EXPECT_EQ(config.mode, TimingMode::kSnapshot);
  ASSERT_EQ(config.topologies.size(), 2u);
  EXPECT_EQ(config.topologies.at("default").network, "conf/node.yml");
  EXPECT_EQ(config.topologies.at("default").system, "conf/system.json");
  EXPECT_EQ(config.topologies.at("pod").network, "/etc/pod.yml");
  EXPECT_EQ(config.topologies.at("pod").system, "conf/pod.json");
  EXPECT_EQ(config.corrections, "conf/c.json");
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
      {"network_backend: {astra: {mode: fast}}", "network_backend.astra.mode: is fast, not one of"},
      {"network_backend: {astra: {mode: [isolated]}}", "astra.mode: expected one value"},
      {"topologies: {pod: {system: s.json}}", "t.yml: topologies.pod: network is missing"},
      {"topologies: {pod: }", "t.yml: topologies.pod: expected keys and values"},
      {"topologies: {tp: a.yml, tp: b.yml}", "t.yml: topologies: tp occurs twice"},
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

}  // namespace
}  // namespace meridian
