// SPDX-License-Identifier: Apache-2.0
// What one member does in one phase of a chunk: a state machine that prepares packets, sends them,
// and reacts to what it receives.
//
//   Start --> Prepare --(endpoint delay, reduction)--> OnPrepared --> Send
//                ^                                                     :
//                +------------------- OnReceived <--(network)..........+
//
// Sequence numbers label messages so that both ends agree: the message that a member sends as
// number k is the one its receiver expects as number k.
#ifndef ASTRA_BRIDGE_ENGINE_COLLECTIVE_ALGORITHM_H_
#define ASTRA_BRIDGE_ENGINE_COLLECTIVE_ALGORITHM_H_

#include <cstdint>
#include <variant>

#include "astra_bridge/engine/collective_plan.h"

namespace meridian {

// What a state machine asks of its surroundings. None of these functions calls the machine before
// it has returned.
class AlgorithmHost {
 public:
  virtual ~AlgorithmHost() = default;

  // Prepares a packet. OnPrepared follows after the endpoint delay and, unless reduce_bytes is 0,
  // the time to reduce that many bytes.
  virtual void Prepare(int64_t reduce_bytes) = 0;

  virtual void Send(int32_t to_position, uint32_t sequence, int64_t bytes) = 0;

  // Says that from now on the machine Expects that message; OnReceived follows when it is there.
  virtual void Expect(uint32_t sequence) = 0;

  // Says that the phase is over for this member; the machine is not called any more.
  virtual void Finish() = 0;
};

// Returns the position that gets a message of the member at `position` when the one at position 0
// sends it that far: that many places ahead, or the partner at that distance with halving-doubling.
int32_t ReceiverOf(const CollectivePhase& phase, int32_t position, int32_t distance);

// Ring, direct and halving-doubling: a member sends and receives in step, `parallel` messages at
// once.
class ExchangeState {
 public:
  explicit ExchangeState(const CollectivePhase& phase);

  void Start(const CollectivePhase& phase, AlgorithmHost& host);
  void OnPrepared(const CollectivePhase& phase, int32_t position, AlgorithmHost& host);
  void OnReceived(const CollectivePhase& phase, AlgorithmHost& host);

  bool Expects(uint32_t sequence) const { return sequence < sent_; }

 private:
  void PreparePacket(const CollectivePhase& phase, AlgorithmHost& host);
  // Sends the next message. False when there is none, or none that can be sent at the moment.
  bool TrySend(const CollectivePhase& phase, int32_t position, AlgorithmHost& host);
  // Returns how far the message goes.
  int32_t Distance(const CollectivePhase& phase, uint32_t sequence) const;
  void AdvanceHalvingDoubling(const CollectivePhase& phase);

  // Messages that are still to be sent.
  int32_t to_send_;
  // Packets whose preparation has begun, messages sent and received so far.
  uint32_t packets_ = 0;
  uint32_t sent_ = 0;
  uint32_t received_ = 0;
  // Packets that are prepared and not yet sent.
  int32_t ready_ = 0;
  // How many packets are left of the current turn (CollectivePhase::reduced_run): plain ones, and
  // those that may be reduced.
  int32_t plain_left_ = 0;
  int64_t reduced_left_ = 0;
  bool turn_is_odd_ = false;

  // Halving-doubling: bytes of the last packet and distance to its receiver; the same of the next.
  int64_t packet_bytes_ = 0;
  int32_t packet_offset_ = 0;
  int64_t next_bytes_;
  int32_t next_offset_ = 1;
  bool offset_grows_ = true;
};

// Double binary tree: always reduces all data up to the root and hands the result down.
class TreeState {
 public:
  // Labels of the messages that a member receives.
  enum Sequence : uint32_t { kFromLeftChild, kFromRightChild, kFromParent };

  TreeState(const CollectivePhase& phase, int32_t position, bool root_is_highest);

  void Start(AlgorithmHost& host);
  void OnPrepared(const CollectivePhase& phase, AlgorithmHost& host);
  void OnReceived(const CollectivePhase& phase, AlgorithmHost& host);

  bool Expects(uint32_t sequence) const { return (expected_ >> sequence & 1) != 0; }

 private:
  enum class Step : uint8_t { kUp, kDown };

  bool IsRoot() const { return place_.parent < 0; }
  int32_t children() const { return (place_.left_child >= 0) + (place_.right_child >= 0); }
  void Expect(Sequence sequence, AlgorithmHost& host);
  void SendDown(const CollectivePhase& phase, AlgorithmHost& host);

  TreePlace place_;
  bool is_left_child_ = false;
  Step step_ = Step::kUp;
  // How many children's data has been reduced.
  int8_t reduced_ = 0;
  // Bit s: the message with sequence number s is expected.
  uint8_t expected_ = 0;
};

// The state machine of a phase, whatever its algorithm.
class PhaseState {
 public:
  // Begins the phase of the member at that position. `tree` is the number of the double binary tree
  // that the chunk takes, if it takes one.
  void Start(const CollectivePhase& phase, int32_t position, int32_t tree, AlgorithmHost& host);
  void OnPrepared(const CollectivePhase& phase, int32_t position, AlgorithmHost& host);
  void OnReceived(const CollectivePhase& phase, AlgorithmHost& host);
  bool Expects(uint32_t sequence) const;

 private:
  std::variant<std::monostate, ExchangeState, TreeState> state_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_COLLECTIVE_ALGORITHM_H_
