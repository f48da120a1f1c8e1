// SPDX-License-Identifier: Apache-2.0
// One host's part of the measurement, as a state machine that knows neither sockets nor clocks: it
// is told what time it is, what came and when, and says what to send.
//
//   asks      each neighbour in turn
//   answers   questions of other hosts, at a bounded rate, each once
//
// Delays do not matter: a probe never proves anything false, since messages only ever arrive after
// they were sent, and whoever fits the clocks goes by the fastest. What would prove something false
// is a clock that is set. So every packet says how often its sender's clock was, and what was
// measured across such a moment is forgotten.
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
  // This host's node id, that of its first node, and those of the hosts that it asks or is asked by.
  uint32_t node_id = 0;
  std::vector<uint32_t> partners;
  // Node ids of the hosts to ask.
  std::vector<uint32_t> neighbours;
  uint64_t seed = 0;
  // How many packets the host sends at most, questions and answers together.
  double packets_per_s = 100;
  // How long a window is, as trace_alignment/probes divides time.
  int64_t window_ns = TwoWayOptions().window_ns;
  // What is not answered by then is lost.
  int64_t timeout_ns = 500000000;
};

// What came of asking in one window.
struct ProbeWindow {
  // The window is the window_id-th since the Unix epoch, on the node's clock.
  int64_t window_id = 0;
  // The questions that were answered, in the order in which they were asked.
  std::vector<TwoWayProbe> probes;
};

struct ProbeCounts {
  int64_t packets_sent = 0;
  // Packets of this job that came, and datagrams that were none.
  int64_t packets_received = 0;
  int64_t foreign = 0;
  // Packets of this job that were not for this host, make no sense, were seen before or came too
  // late.
  int64_t refused = 0;
  // Questions that were not answered, to keep to the rate.
  int64_t over_rate = 0;
  // How often this host's clock was set, and how often that of a neighbour.
  int64_t own_steps = 0;
  int64_t neighbour_steps = 0;
  // What became of the questions that this host asked.
  int64_t answered = 0;
  int64_t lost = 0;
};

class ProbeNode {
 public:
  // Sends the packet to where the list of hosts says that packet.dst lives: whatever address a
  // question seems to come from, no stranger gets an answer.
  using Send = std::function<void(const ProbePacket& packet)>;

  ProbeNode(ProbeNodeOptions options, const ClockReading& start, Send send);

  // Does what is due. Times here are the second clock's.
  void Wake(const ClockReading& now);
  // When to call Wake next at the latest.
  int64_t next_wake_ns() const { return next_question_ns_; }

  // A packet with the right key came, at `received_ns` of the node's clock at the latest. `now` was
  // read after that.
  void Receive(const ProbePacket& packet, int64_t received_ns, const ClockReading& now);
  // The kernel says when a packet left, on the node's clock.
  void Sent(const ProbePacket& packet, int64_t sent_ns);
  void CountForeign() { ++counts_.foreign; }

  // Returns the windows that are over, each once; with `all`, unfinished ones too.
  std::vector<ProbeWindow> TakeWindows(const ClockReading& now, bool all);

  const ProbeCounts& counts() const { return counts_; }

 private:
  // A question under way.
  struct Question {
    // Position among the neighbours.
    size_t neighbour = 0;
    uint64_t sequence = 0;
    // When it was asked, on the second clock.
    int64_t begun_ns = 0;
    // Stamps are 0 until they are known.
    TwoWayProbe probe;
  };
  struct Neighbour {
    // How often the neighbour's clock was set, as it says; absent before its first answer.
    std::optional<uint32_t> steps;
    // Questions asked earlier are not used, on the second clock.
    int64_t quiet_until_ns = 0;
  };
  // Somebody who asks: its newest question, and when that came on the second clock.
  struct Asker {
    uint64_t sequence = 0;
    int64_t last_ns = 0;
  };

  void NoteStep(const ClockReading& now);
  void NoteNeighbourSteps(size_t neighbour, uint32_t steps, const ClockReading& now);
  void Ask(const ClockReading& now);
  void FinishQuestions(const ClockReading& now, bool all);
  // False for packets that are refused.
  bool Take(const ProbePacket& packet, int64_t received_ns, const ClockReading& now);
  bool Answer(const ProbePacket& packet, int64_t received_ns, const ClockReading& now);
  bool MayAnswer(const ClockReading& now);
  void SendPacket(ProbePacket packet, uint32_t dst);
  Question* FindQuestion(uint64_t sequence);

  const ProbeNodeOptions options_;
  const Send send_;
  std::mt19937_64 random_;
  StepDetector step_detector_;
  uint32_t steps_ = 0;
  uint64_t next_sequence_ = 0;
  // Both on the second clock: when the next question's turn begins, and within it the question.
  int64_t turn_ns_ = 0;
  int64_t next_question_ns_ = 0;
  size_t next_neighbour_ = 0;
  // The questions under way, in the order in which they were asked.
  std::deque<Question> questions_;
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
