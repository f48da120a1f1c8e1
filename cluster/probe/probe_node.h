// SPDX-License-Identifier: Apache-2.0
// One host's part of the measurement, as a state machine that knows neither sockets nor clocks: it
// is told what time it is, what came and when, and says what to send.
//
//   asks      pairs of questions to each neighbour in turn, a short time apart
//   answers   questions of other hosts, at a bounded rate, each once
//
//        src  t1   t1'                      t4   t4'     A pair whose two questions arrive as far
//   -----------|----|------------------------|----|-->   apart as they left, and likewise its
//               \    \                      /    /       answers, did not queue on the way: it is
//   -------------|----|--------------------|----|---->   clean. Others are left out, unless a
//        dst    t2   t2'                  t3   t3'       window has no clean pair.
//
// Queued or not, a probe never proves anything false: messages only ever arrive after they were
// sent. What would is a clock that is set. So every packet says how often its sender's clock was,
// and what was measured across such a moment is forgotten.
#ifndef CLUSTER_PROBE_PROBE_NODE_H_
#define CLUSTER_PROBE_PROBE_NODE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/probe/clock_source.h"
#include "cluster/probe/probe_packet.h"
#include "trace_alignment/probes/two_way_probes.h"

namespace meridian {

struct ProbeNodeOptions {
  // This host's node id, that of its first node, and those of all hosts, who may ask.
  uint32_t node_id = 0;
  std::vector<uint32_t> all_nodes;
  // Node ids of the hosts to ask.
  std::vector<uint32_t> neighbours;
  uint64_t seed = 0;
  // How many packets the host sends at most, questions and answers together.
  double packets_per_s = 100;
  // How long a window is, as trace_alignment/probes divides time.
  int64_t window_ns = TwoWayOptions().window_ns;
  int64_t pair_gap_ns = 200000;
  // A pair is clean when its distance changes by no more on the way.
  int64_t max_pair_change_ns = 50000;
  // What is not answered by then is lost.
  int64_t timeout_ns = 500000000;
};

// What came of asking in one window.
struct ProbeWindow {
  // The window is the window_id-th since the Unix epoch, on the node's clock.
  int64_t window_id = 0;
  // The probes of each neighbour, in the order of ProbeNodeOptions::neighbours: those of clean pairs
  // in the order of time; without any, the fastest probe of all.
  std::vector<std::vector<TwoWayProbe>> probes;
};

struct ProbeCounts {
  int64_t packets_sent = 0;
  // Packets of this job that came, and datagrams that were none.
  int64_t packets_received = 0;
  int64_t foreign = 0;
  // Packets of this job that were not for this host or make no sense, and that were seen before or
  // came too late.
  int64_t misdirected = 0;
  int64_t replayed = 0;
  // Of the latter, questions from another address than the node's newest: somebody sends its
  // packets again, or two daemons have one id.
  int64_t replayed_elsewhere = 0;
  // Questions that were not answered, to keep to the rate.
  int64_t over_rate = 0;
  // How often this host's clock was set, and how often that of a neighbour.
  int64_t own_steps = 0;
  int64_t neighbour_steps = 0;
  // What became of the questions that this host asked: answered by clean pairs, by others, never.
  int64_t clean = 0;
  int64_t queued = 0;
  int64_t lost = 0;
};

class ProbeNode {
 public:
  // The bytes of a socket address.
  using Address = std::string;
  // Sends the packet to the address, or, if that is empty, to where the node of packet.dst lives.
  using Send = std::function<void(const ProbePacket& packet, const Address& to)>;

  ProbeNode(ProbeNodeOptions options, const ClockReading& start, Send send);

  // Does what is due. Times here are the second clock's.
  void Wake(const ClockReading& now);
  // When to call Wake next at the latest.
  int64_t next_wake_ns() const { return next_wake_ns_; }

  // A packet with the right key came, at `received_ns` of the node's clock at the latest. `now` was
  // read after that.
  void Receive(const ProbePacket& packet, const Address& from, int64_t received_ns,
               const ClockReading& now);
  // The kernel says when a packet left, on the node's clock.
  void Sent(const ProbePacket& packet, int64_t sent_ns);
  void CountForeign() { ++counts_.foreign; }

  // Returns the windows that are over, each once; with `all`, unfinished ones too.
  std::vector<ProbeWindow> TakeWindows(const ClockReading& now, bool all);

  const ProbeCounts& counts() const { return counts_; }

 private:
  // A pair of questions under way.
  struct Pair {
    // Position among the neighbours, and the first question's sequence number.
    size_t neighbour = 0;
    uint64_t sequence = 0;
    // When the first question was asked, on the second clock.
    int64_t begun_ns = 0;
    bool second_asked = false;
    // Stamps are 0 until they are known.
    TwoWayProbe probes[2];
  };
  struct Neighbour {
    // How often the neighbour's clock was set, as it says; absent before its first answer.
    std::optional<uint32_t> steps;
    // Pairs begun earlier are not used, on the second clock.
    int64_t quiet_until_ns = 0;
  };
  // Somebody who asks.
  struct Asker {
    uint64_t newest_sequence = 0;
    // Bit i: the sequence number newest_sequence - i was seen.
    uint64_t seen = 0;
    // When it asked last, on the second clock.
    int64_t last_ns = 0;
    // The address that the newest question came from.
    Address address;
    // The last pair's first question, and when the answer to it left by the kernel; 0 when unknown.
    uint64_t pair_sequence = 0;
    int64_t first_sent_ns = 0;
  };

  void NoteStep(const ClockReading& now);
  void NoteNeighbourSteps(size_t neighbour, uint32_t steps, const ClockReading& now);
  void BeginPair(const ClockReading& now);
  void Ask(Pair* pair, int which, const ClockReading& now);
  void FinishPairs(const ClockReading& now, bool all);
  void Finish(const Pair& pair);
  void Answer(const ProbePacket& packet, const Address& from, int64_t received_ns,
              const ClockReading& now);
  bool IsReplay(Asker* asker, uint64_t sequence, const Address& from, const ClockReading& now);
  bool MayAnswer(const ClockReading& now);
  void SendPacket(ProbePacket packet, uint32_t dst, const Address& to);
  Pair* FindPair(uint64_t sequence);
  void ScheduleWake();

  const ProbeNodeOptions options_;
  const Send send_;
  std::mt19937_64 random_;
  StepDetector step_detector_;
  uint32_t steps_ = 0;
  uint64_t next_sequence_ = 0;
  // All on the second clock: when the next pair's turn begins, and within it the pair.
  int64_t turn_ns_ = 0;
  int64_t next_pair_ns_ = 0;
  int64_t next_wake_ns_ = 0;
  size_t next_neighbour_ = 0;
  // The pairs under way, in the order in which they were begun.
  std::deque<Pair> pairs_;
  std::vector<Neighbour> neighbours_;
  std::map<int64_t, ProbeWindow> windows_;
  absl::flat_hash_map<uint32_t, Asker> askers_;
  // How many answers may be sent at once, and since when that is so on the second clock.
  double answers_ = 0;
  int64_t answers_at_ns_ = 0;
  ProbeCounts counts_;
};

}  // namespace meridian

#endif  // CLUSTER_PROBE_PROBE_NODE_H_
