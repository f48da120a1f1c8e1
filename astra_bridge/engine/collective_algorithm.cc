#include "astra_bridge/engine/collective_algorithm.h"

namespace meridian {

using Kind = CollectiveAlgorithm::Kind;

int32_t ReceiverOf(const CollectivePhase& phase, int32_t position, int32_t distance) {
  if (phase.algorithm.kind == Kind::kHalvingDoubling) {
    const bool is_lower = position / distance % 2 == 0;
    distance = is_lower ? distance : -distance;
  }
  const int32_t receiver = position + distance;
  if (receiver < 0) return receiver + phase.size;
  return receiver >= phase.size ? receiver - phase.size : receiver;
}

ExchangeState::ExchangeState(const CollectivePhase& phase)
    : to_send_(phase.messages), next_bytes_(phase.message_bytes) {
  if (phase.op == CollectiveKind::kAllGather) {
    next_offset_ = phase.size / 2;
    offset_grows_ = false;
  }
}

void ExchangeState::Start(const CollectivePhase& phase, AlgorithmHost& host) {
  for (int32_t i = 0; i < phase.parallel; ++i) PreparePacket(phase, host);
}

void ExchangeState::OnReceived(const CollectivePhase& phase, AlgorithmHost& host) {
  ++received_;
  PreparePacket(phase, host);
}

void ExchangeState::PreparePacket(const CollectivePhase& phase, AlgorithmHost& host) {
  if (plain_left_ == 0 && reduced_left_ == 0) {
    plain_left_ = phase.parallel;
    reduced_left_ = phase.reduced_run;
    turn_is_odd_ = !turn_is_odd_;
  }
  bool reduce = false;
  if (plain_left_ > 0) {
    --plain_left_;
  } else {
    --reduced_left_;
    reduce = phase.op == CollectiveKind::kReduceScatter ||
             (phase.op == CollectiveKind::kAllReduce && turn_is_odd_);
  }
  ++packets_;
  packet_bytes_ = next_bytes_;
  packet_offset_ = next_offset_;
  if (phase.algorithm.kind == Kind::kHalvingDoubling) AdvanceHalvingDoubling(phase);
  host.Prepare(reduce ? packet_bytes_ : 0);
}

void ExchangeState::AdvanceHalvingDoubling(const CollectivePhase& phase) {
  if (offset_grows_) {
    next_offset_ *= 2;
    next_bytes_ /= 2;
    if (next_offset_ < phase.size || phase.op != CollectiveKind::kAllReduce) return;
    offset_grows_ = false;
  }
  next_offset_ /= 2;
  next_bytes_ *= 2;
}

void ExchangeState::OnPrepared(const CollectivePhase& phase, int32_t position,
                               AlgorithmHost& host) {
  ++ready_;
  // The second half of a direct all-reduce begins when all of the first is there.
  const bool is_second_half = phase.algorithm.kind == Kind::kDirect &&
                              phase.op == CollectiveKind::kAllReduce && to_send_ <= phase.size - 1;
  if (is_second_half) {
    if (received_ < static_cast<uint32_t>(phase.size - 1)) return;
    for (int32_t i = 0; i < phase.parallel && TrySend(phase, position, host); ++i) {
    }
  } else {
    TrySend(phase, position, host);
  }
  if (to_send_ == 0 && ready_ == phase.parallel) host.Finish();
}

bool ExchangeState::TrySend(const CollectivePhase& phase, int32_t position, AlgorithmHost& host) {
  if (sent_ == packets_ || to_send_ == 0 || ready_ == 0) return false;
  const uint32_t sequence = sent_++;
  --to_send_;
  --ready_;
  host.Send(ReceiverOf(phase, position, Distance(phase, sequence)), sequence, packet_bytes_);
  host.Expect(sequence);
  return true;
}

int32_t ExchangeState::Distance(const CollectivePhase& phase, uint32_t sequence) const {
  if (phase.algorithm.kind == Kind::kHalvingDoubling) return packet_offset_;
  if (phase.algorithm.kind != Kind::kDirect) return phase.direction;
  return phase.direction * (static_cast<int32_t>(sequence) % (phase.size - 1) + 1);
}

TreeState::TreeState(const CollectivePhase& phase, int32_t position, bool root_is_highest)
    : place_(PlaceInTree(position, phase.size, root_is_highest)),
      is_left_child_(position < place_.parent) {}

void TreeState::Expect(Sequence sequence, AlgorithmHost& host) {
  expected_ = static_cast<uint8_t>(expected_ | 1 << sequence);
  host.Expect(sequence);
}

void TreeState::Start(AlgorithmHost& host) {
  if (children() == 0) {
    host.Prepare(0);
    return;
  }
  if (place_.left_child >= 0) Expect(kFromLeftChild, host);
  if (place_.right_child >= 0) Expect(kFromRightChild, host);
}

void TreeState::OnReceived(const CollectivePhase& phase, AlgorithmHost& host) {
  host.Prepare(children() == 0 ? 0 : phase.data_bytes);
}

void TreeState::OnPrepared(const CollectivePhase& phase, AlgorithmHost& host) {
  if (step_ == Step::kDown) {
    SendDown(phase, host);
    return;
  }
  if (children() > 0 && ++reduced_ < children()) return;
  step_ = Step::kDown;
  if (IsRoot()) {
    SendDown(phase, host);
    return;
  }
  host.Send(place_.parent, is_left_child_ ? kFromLeftChild : kFromRightChild, phase.data_bytes);
  Expect(kFromParent, host);
}

void TreeState::SendDown(const CollectivePhase& phase, AlgorithmHost& host) {
  if (place_.left_child >= 0) host.Send(place_.left_child, kFromParent, phase.data_bytes);
  if (place_.right_child >= 0) host.Send(place_.right_child, kFromParent, phase.data_bytes);
  host.Finish();
}

void PhaseState::Start(const CollectivePhase& phase, int32_t position, int32_t tree,
                       AlgorithmHost& host) {
  if (phase.algorithm.kind == Kind::kDoubleBinaryTree) {
    state_.emplace<TreeState>(phase, position, tree % 2 == 0).Start(host);
  } else {
    state_.emplace<ExchangeState>(phase).Start(phase, host);
  }
}

void PhaseState::OnPrepared(const CollectivePhase& phase, int32_t position, AlgorithmHost& host) {
  if (ExchangeState* const exchange = std::get_if<ExchangeState>(&state_)) {
    exchange->OnPrepared(phase, position, host);
  } else {
    std::get<TreeState>(state_).OnPrepared(phase, host);
  }
}

void PhaseState::OnReceived(const CollectivePhase& phase, AlgorithmHost& host) {
  if (ExchangeState* const exchange = std::get_if<ExchangeState>(&state_)) {
    exchange->OnReceived(phase, host);
  } else {
    std::get<TreeState>(state_).OnReceived(phase, host);
  }
}

bool PhaseState::Expects(uint32_t sequence) const {
  const ExchangeState* const exchange = std::get_if<ExchangeState>(&state_);
  return exchange != nullptr ? exchange->Expects(sequence)
                             : std::get<TreeState>(state_).Expects(sequence);
}

}  // namespace meridian
