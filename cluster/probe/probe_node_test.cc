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
    EXPECT_GT(hosts.counts(0).queued, 0);
    EXPECT_GT(hosts.counts(0).lost, 0);
    EXPECT_GT(hosts.counts(0).clean, hosts.counts(0).queued);
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
    options.all_nodes = {0, 1, 2};
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
  ProbeNode node_{Options(), At(0), [this](const ProbePacket& packet, const std::string&) {
                    sent_.push_back(packet);
                  }};
};

TEST_F(LoneNodeTest, AnswersAQuestionOnce) {
  for (const uint64_t sequence : {100, 100, 101, 100, 101, 98, 98, 20}) {
    node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, sequence), "", kStartNs, At(1000));
  }
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[0].sequence, 100u);
  EXPECT_EQ(sent_[0].first_ns, kStartNs);
  EXPECT_EQ(sent_[0].second_ns, kStartNs + 1000);
  EXPECT_EQ(sent_[2].sequence, 98u);
  EXPECT_EQ(node_.counts().replayed, 5);
  // A daemon that begins anew with lower numbers is believed after a while.
  node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, 5), "", kStartNs, At(61 * kSecond));
  EXPECT_EQ(sent_.size(), 4u);
}

TEST_F(LoneNodeTest, TellsWhenAnswersLeftOncePerPair) {
  node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, 100), "", kStartNs, At(1000));
  node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, 101), "", kStartNs + 10, At(2000));
  const ProbePacket first = sent_[0], second = sent_[1];
  node_.Sent(first, kStartNs + 1100);
  node_.Sent(second, kStartNs + 2100);
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[2].kind, ProbePacket::Kind::kSentTimes);
  EXPECT_EQ(sent_[2].first_ns, kStartNs + 1100);
  EXPECT_EQ(sent_[2].second_ns, kStartNs + 2100);
}

TEST_F(LoneNodeTest, StrangersAndNonsenseChangeNothing) {
  node_.Receive(Packet(ProbePacket::Kind::kQuestion, 3, 1), "", kStartNs, At(1000));
  ProbePacket elsewhere = Packet(ProbePacket::Kind::kQuestion, 1, 1);
  elsewhere.dst = 2;
  node_.Receive(elsewhere, "", kStartNs, At(1000));
  node_.Receive(Packet(ProbePacket::Kind::kQuestion, 0, 1), "", kStartNs, At(1000));
  EXPECT_EQ(node_.counts().misdirected, 3);
  EXPECT_TRUE(sent_.empty());

  node_.Wake(At(2000));
  ASSERT_EQ(sent_.size(), 1u);
  const uint64_t sequence = sent_[0].sequence;
  const auto answer = [&](uint32_t src, uint64_t number, int64_t first_ns, int64_t second_ns) {
    node_.Receive(Packet(ProbePacket::Kind::kAnswer, src, number, first_ns, second_ns), "",
                  kStartNs + 50'000, At(60'000));
  };
  answer(2, sequence, kStartNs, kStartNs);      // Not the one who was asked.
  answer(1, sequence + 1, kStartNs, kStartNs);  // Not asked yet.
  answer(1, sequence + 2, kStartNs, kStartNs);  // Never asked.
  answer(1, sequence, kStartNs, kStartNs - 1);  // Answered before asked.
  answer(1, sequence, -1, kStartNs);            // No time.
  answer(1, sequence, kStartNs + 10, int64_t{1} << 62);
  EXPECT_TRUE(node_.TakeWindows(At(60'000), true).at(0).probes[0].empty());
}

TEST_F(LoneNodeTest, QueuedPairsAreLeftOutOnceThereIsACleanOne) {
  // Asks a pair when its turn comes; the two take so long to arrive.
  int64_t at_ns = 0;
  const auto ask = [&](int64_t first_ns, int64_t second_ns) {
    sent_.clear();
    at_ns = node_.next_wake_ns() - kSecond;
    node_.Wake(At(at_ns));
    node_.Wake(At(at_ns + 200'000));
    ASSERT_EQ(sent_.size(), 2u);
    const int64_t arrived_ns[] = {at_ns + first_ns, at_ns + 200'000 + second_ns};
    for (int i = 0; i < 2; ++i) {
      const int64_t there_ns = kStartNs + arrived_ns[i];
      node_.Receive(Packet(ProbePacket::Kind::kAnswer, 1, sent_[i].sequence, there_ns, there_ns),
                    "", there_ns + 100'000, At(arrived_ns[i] + 110'000));
    }
  };
  ask(300'000, 100'000);
  ask(900'000, 150'000);
  std::vector<ProbeWindow> windows = node_.TakeWindows(At(at_ns), true);
  ASSERT_EQ(windows.size(), 1u);
  // The fastest.
  ASSERT_EQ(windows[0].probes[0].size(), 1u);
  EXPECT_EQ(windows[0].probes[0][0].dst_received_ns, kStartNs + 300'000);
  EXPECT_EQ(node_.counts().queued, 4);

  ask(300'000, 100'000);
  ask(120'000, 130'000);
  const int64_t clean_ns = at_ns;
  ask(10'000, 130'000);
  windows = node_.TakeWindows(At(at_ns), true);
  ASSERT_EQ(windows[0].probes[0].size(), 2u);
  EXPECT_EQ(windows[0].probes[0][0].dst_received_ns, kStartNs + clean_ns + 120'000);
  EXPECT_EQ(node_.counts().queued, 8);
}

// The older of two daemons with one id has lower sequence numbers, and another address.
TEST_F(LoneNodeTest, TwoDaemonsWithOneIdAreNoticed) {
  const auto ask = [&](uint64_t sequence, const char* from) {
    node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, sequence), from, kStartNs, At(0));
  };
  ask(1000, "older");
  ask(1000, "older");
  EXPECT_EQ(node_.counts().replayed_elsewhere, 0);
  ask(9000, "newer");
  ask(1002, "older");
  EXPECT_EQ(node_.counts().replayed, 2);
  EXPECT_EQ(node_.counts().replayed_elsewhere, 1);
}

// Somebody with the key asks 10,000 times in a second.
TEST_F(LoneNodeTest, AnswersAtABoundedRate) {
  for (int i = 0; i < 10'000; ++i) {
    node_.Receive(Packet(ProbePacket::Kind::kQuestion, 1, 1000 + static_cast<uint64_t>(i)), "",
                  kStartNs + i * 100'000, At(i * 100'000));
  }
  EXPECT_LE(sent_.size(), 60u);
  EXPECT_GE(node_.counts().over_rate, 9'900);
}

}  // namespace
}  // namespace meridian
