#include "cluster/probe/probe_node.h"

#include <algorithm>
#include <cmath>

#include "cluster/probe/testing/simulated_hosts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trace_alignment/probes/probe_offsets.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

constexpr int64_t kSecond = 1000000000;
constexpr int64_t kStartNs = 1790000000 * kSecond;

// What combine makes of the files in the folder.
absl::StatusOr<ProbeOffsets> Load(const TemporaryDirectory& directory) {
  std::vector<std::string> files;
  for (const std::string& name : directory.List()) files.push_back(directory.PathOf(name));
  return LoadProbeOffsets(FileSystem::Posix(), files, 0, 100);
}

// Checks that every reported interval holds the truth, and returns the largest error.
double LargestErrorNs(const SimulatedHosts& hosts, const ProbeOffsets& offsets, size_t num_hosts,
                      size_t min_windows) {
  double largest_ns = 0;
  for (size_t host = 1; host < num_hosts; ++host) {
    const std::vector<OffsetSample>& samples =
        offsets.samples.SamplesOf(static_cast<int64_t>(host));
    EXPECT_GE(samples.size(), min_windows) << host;
    for (const OffsetSample& sample : samples) {
      const int64_t true_ns = hosts.TrueTime(0, sample.midpoint_ref_ns);
      const double truth_ns =
          static_cast<double>(hosts.Shown(host, true_ns) - sample.midpoint_ref_ns);
      const double error_ns = std::abs(static_cast<double>(sample.offset_ps) / 1000 - truth_ns);
      // The truth itself is rounded.
      EXPECT_LE(error_ns, sample.uncertainty_ns.value_or(0) + 2) << host;
      largest_ns = std::max(largest_ns, error_ns);
    }
  }
  return largest_ns;
}

PathModel HardPath() {
  PathModel model;
  model.asymmetry = 0.3;
  model.loss = 0.05;
  model.burst_period_ns = 700'000'000;
  model.burst_ns = 200'000'000;
  model.burst_delay_ns = 3'000'000;
  return model;
}

const std::vector<SimulatedClock> kClocks = {{0, 0},           {3'000'000, 20}, {-20'000'000, -35},
                                             {900'000'000, 8}, {17, 0},         {-1, 49}};

TEST(ProbeNodeTest, IntervalsHoldTheTruthOnAHardPathInEveryWindow) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const TemporaryDirectory directory;
    SimulatedHosts hosts(kClocks, HardPath(), kStartNs, seed);
    ASSERT_OK(hosts.Run(60 * kSecond, directory.path()));
    ASSERT_OK_AND_ASSIGN(const ProbeOffsets offsets, Load(directory));
    LargestErrorNs(hosts, offsets, kClocks.size(), 14);
    EXPECT_GT(hosts.counts(0).lost, 0);
    EXPECT_GT(hosts.counts(0).answered, hosts.counts(0).lost);
  }
}

// Windows are counted on clocks that differ by many of them.
TEST(ProbeNodeTest, IntervalsHoldTheTruthOfClocksThatAreFarApart) {
  std::vector<SimulatedClock> clocks = kClocks;
  clocks[1].offset_ns = -10 * kSecond;
  clocks[3].offset_ns = 3600 * kSecond;
  const TemporaryDirectory directory;
  SimulatedHosts hosts(clocks, HardPath(), kStartNs, 1);
  ASSERT_OK(hosts.Run(60 * kSecond, directory.path()));
  ASSERT_OK_AND_ASSIGN(const ProbeOffsets offsets, Load(directory));
  LargestErrorNs(hosts, offsets, clocks.size(), 10);
}

TEST(ProbeNodeTest, ASymmetricPathIsFoundTo10Us) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const TemporaryDirectory directory;
    PathModel model = HardPath();
    model.asymmetry = 0;
    SimulatedHosts hosts(kClocks, model, kStartNs, seed);
    ASSERT_OK(hosts.Run(60 * kSecond, directory.path()));
    ASSERT_OK_AND_ASSIGN(const ProbeOffsets offsets, Load(directory));
    const double error_ns = LargestErrorNs(hosts, offsets, kClocks.size(), 14);
    EXPECT_LT(error_ns, 10'000);
    RecordProperty("error_ns", std::to_string(error_ns));
  }
}

// Packets are counted over a minute.
TEST(ProbeNodeTest, KeepsToItsRate) {
  const TemporaryDirectory directory;
  SimulatedHosts hosts(std::vector<SimulatedClock>(40), PathModel(), kStartNs, 1);
  ASSERT_OK(hosts.Run(60 * kSecond, directory.path()));
  for (size_t host = 0; host < 40; ++host) {
    EXPECT_LE(hosts.counts(host).packets_sent, 100 * 60);
    EXPECT_GE(hosts.counts(host).packets_sent, 85 * 60);
    EXPECT_EQ(hosts.counts(host).over_rate, 0);
  }
}

// Node 1's clock is set by 150 us, which fits between the bounds of a slow path unnoticed.
TEST(ProbeNodeTest, WhatIsMeasuredWhileAClockIsSetIsForgotten) {
  for (const int64_t step_ns : {int64_t{150'000}, 50 * kSecond / 10, -3 * kSecond}) {
    SCOPED_TRACE(step_ns);
    std::vector<SimulatedClock> clocks(3);
    clocks[1] = {1'700'000'000, 10, step_ns, 22 * kSecond + 300'000'000};
    const TemporaryDirectory directory;
    SimulatedHosts hosts(clocks, PathModel(), kStartNs, 1);
    ASSERT_OK(hosts.Run(60 * kSecond, directory.path()));
    EXPECT_EQ(hosts.counts(1).own_steps, 1);
    EXPECT_GE(hosts.counts(0).neighbour_steps + hosts.counts(2).neighbour_steps, 1);
    ASSERT_OK_AND_ASSIGN(const ProbeOffsets offsets, Load(directory));
    // Node 0's clock is the true one.
    LargestErrorNs(hosts, offsets, clocks.size(), 9);
  }
}

TEST(ProbeNodeTest, NodesOfAHostShareItsClock) {
  const TemporaryDirectory directory;
  SimulatedHosts hosts({{0, 0}, {5'000'000, 30}}, PathModel(), kStartNs, 1, 4);
  ASSERT_OK(hosts.Run(20 * kSecond, directory.path()));
  ASSERT_OK_AND_ASSIGN(const ProbeOffsets offsets, Load(directory));
  for (int64_t node = 0; node < 8; ++node) {
    const std::vector<OffsetSample>& samples = offsets.samples.SamplesOf(node);
    const std::vector<OffsetSample>& first = offsets.samples.SamplesOf(node < 4 ? 0 : 4);
    ASSERT_GE(samples.size(), 4u) << node;
    ASSERT_EQ(samples.size(), first.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(samples[i].offset_ps),
                  static_cast<double>(first[i].offset_ps), 10'000);
      EXPECT_NEAR(*samples[i].uncertainty_ns, *first[i].uncertainty_ns, 10);
    }
  }
}

// A node by itself, with what it sends at hand.
class LoneNodeTest : public ::testing::Test {
 protected:
  static ClockReading At(int64_t ns) { return {kStartNs + ns, kStartNs + ns + 50, kSecond + ns}; }

  static ProbeNodeOptions Options() {
    ProbeNodeOptions options;
    options.node_id = 0;
    options.partners = {1, 2};
    options.neighbours = {1};
    return options;
  }

  ProbePacket Packet(ProbePacket::Kind kind, uint32_t src, uint64_t sequence, int64_t first_ns = 0,
                     int64_t second_ns = 0) {
    ProbePacket packet;
    packet.kind = kind;
    packet.src = src;
    packet.dst = 0;
    packet.sequence = sequence;
    packet.first_ns = first_ns;
    packet.second_ns = second_ns;
    return packet;
  }

  std::vector<ProbePacket> sent_;
  ProbeNode node_{Options(), At(0), [this](const ProbePacket& packet) { sent_.push_back(packet); }};
};

TEST_F(LoneNodeTest, AnswersAQuestionOnce) {
  for (const uint64_t sequence : {100, 100, 101, 100, 101, 98}) {
    node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, sequence), kStartNs, At(1000));
  }
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[0].sequence, 100u);
  EXPECT_EQ(sent_[0].first_ns, kStartNs);
  EXPECT_EQ(sent_[0].second_ns, kStartNs + 1000);
  EXPECT_EQ(sent_[1].sequence, 101u);
  EXPECT_EQ(node_.counts().refused, 4);
  // A daemon that begins anew with lower numbers is believed after a while.
  node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, 5), kStartNs, At(61 * kSecond));
  EXPECT_EQ(sent_.size(), 3u);
}

TEST_F(LoneNodeTest, TellsWhenAnAnswerLeft) {
  node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, 100), kStartNs, At(1000));
  const ProbePacket answer = sent_[0];
  node_.Sent(answer, kStartNs + 1100);
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[1].kind, ProbePacket::Kind::kSentTime);
  EXPECT_EQ(sent_[1].sequence, 100u);
  EXPECT_EQ(sent_[1].first_ns, kStartNs + 1100);
}

TEST_F(LoneNodeTest, StrangersAndNonsenseChangeNothing) {
  node_.Receive(Packet(ProbePacket::Kind::kQuestion, 3, 1), kStartNs, At(1000));
  ProbePacket elsewhere = Packet(ProbePacket::Kind::kQuestion, 1, 1);
  elsewhere.dst = 2;
  node_.Receive(elsewhere, kStartNs, At(1000));
  node_.Receive(Packet(ProbePacket::Kind::kQuestion, 0, 1), kStartNs, At(1000));
  EXPECT_EQ(node_.counts().refused, 3);
  EXPECT_TRUE(sent_.empty());

  node_.Wake(At(2000));
  ASSERT_EQ(sent_.size(), 1u);
  const uint64_t sequence = sent_[0].sequence;
  const auto answer = [&](uint32_t src, uint64_t number, int64_t first_ns, int64_t second_ns) {
    node_.Receive(Packet(ProbePacket::Kind::kAnswer, src, number, first_ns, second_ns),
                  kStartNs + 50'000, At(60'000));
  };
  answer(2, sequence, kStartNs, kStartNs);      // Not the one who was asked.
  answer(1, sequence + 1, kStartNs, kStartNs);  // Never asked.
  answer(1, sequence, kStartNs, kStartNs - 1);  // Answered before asked.
  answer(1, sequence, -1, kStartNs);            // No time.
  answer(1, sequence, kStartNs + 10, int64_t{1} << 62);
  EXPECT_EQ(node_.counts().refused, 8);
  EXPECT_TRUE(node_.TakeWindows(At(60'000), true).at(0).probes.empty());
}

// What the kernels say of when packets left takes the place of what the programs knew.
TEST_F(LoneNodeTest, AnAnsweredQuestionIsAProbe) {
  node_.Wake(At(2000));
  ASSERT_EQ(sent_.size(), 1u);
  const ProbePacket question = sent_[0];
  node_.Sent(question, kStartNs + 2500);
  node_.Receive(
      Packet(ProbePacket::Kind::kAnswer, 1, question.sequence, kStartNs + 9000, kStartNs + 9100),
      kStartNs + 20'000, At(21'000));
  node_.Receive(Packet(ProbePacket::Kind::kSentTime, 1, question.sequence, kStartNs + 9900),
                kStartNs + 30'000, At(31'000));
  const std::vector<ProbeWindow> windows = node_.TakeWindows(At(40'000), true);
  ASSERT_EQ(windows.size(), 1u);
  ASSERT_EQ(windows[0].probes.size(), 1u);
  const TwoWayProbe& probe = windows[0].probes[0];
  EXPECT_EQ(probe.dst, 1);
  EXPECT_EQ(probe.src_sent_ns, kStartNs + 2500);
  EXPECT_EQ(probe.dst_received_ns, kStartNs + 9000);
  EXPECT_EQ(probe.dst_sent_ns, kStartNs + 9900);
  EXPECT_EQ(probe.src_received_ns, kStartNs + 20'000);
  EXPECT_EQ(node_.counts().answered, 1);
}

// Somebody with the key asks 10,000 times in a second.
TEST_F(LoneNodeTest, AnswersAtABoundedRate) {
  for (int i = 0; i < 10'000; ++i) {
    node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, 1000 + static_cast<uint64_t>(i)),
                  kStartNs + i * 100'000, At(i * 100'000));
  }
  EXPECT_LE(sent_.size(), 60u);
  EXPECT_GE(node_.counts().over_rate, 9'900);
}

}  // namespace
}  // namespace meridian
