#include "workload_model/generate/arrivals.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "workload_model/calls/rank_patterns.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using Kind = CallOperation::Kind;

// A rank on its way through its calls, and what was sent to it.
struct RunningRank {
  const std::vector<Visit>* visits = nullptr;
  size_t next = 0;
  // Whether the next call has sent what it sends.
  bool is_begun = false;
  // How many receives were begun, and which of them have nothing yet and are waited for later.
  size_t receives = 0;
  std::vector<size_t> open;
  // What was sent to it and not received.
  std::vector<PeerMessage> arrived;
  std::vector<PeerMessage> given;

  bool is_done() const { return next == visits->size(); }

  // Gives these receives what has come; false when that is too little.
  bool Take(const std::vector<size_t>& receivers, bool takes_twice) {
    std::set<std::pair<int64_t, int32_t>> seen;
    std::vector<size_t> taken;
    for (size_t i = 0; i < arrived.size() && taken.size() < receivers.size(); ++i) {
      const bool is_new = seen.insert({arrived[i].peer, arrived[i].tag}).second;
      if (is_new || takes_twice) taken.push_back(i);
    }
    if (taken.size() < receivers.size()) return false;
    given.resize(std::max(given.size(), receives));
    for (size_t i = 0; i < taken.size(); ++i) given[receivers[i]] = arrived[taken[i]];
    for (size_t i = taken.size(); i-- > 0;) {
      arrived.erase(arrived.begin() + static_cast<int64_t>(taken[i]));
    }
    return true;
  }
};

class RunningRanks {
 public:
  explicit RunningRanks(const std::vector<const std::vector<Visit>*>& visits) {
    for (const std::vector<Visit>* of_rank : visits) ranks_.emplace_back().visits = of_rank;
  }

  absl::Status Run() {
    // Whether a receive may take a second message of one sender and callsite: only where nobody goes
    // on otherwise.
    bool takes_twice = false;
    while (true) {
      bool moved = false;
      for (int64_t rank = 0; rank < count(); ++rank) {
        ASSIGN_OR_RETURN(const bool went_on, Advance(rank, takes_twice));
        moved |= went_on;
      }
      const auto waits = std::find_if(ranks_.begin(), ranks_.end(),
                                      [](const RunningRank& rank) { return !rank.is_done(); });
      if (waits == ranks_.end()) return absl::OkStatus();
      if (!moved && takes_twice) {
        const CallsiteModel& callsite = *(*waits->visits)[waits->next].callsite;
        return FailedPrecondition("rank ", waits - ranks_.begin(),
                                  " would wait for ever at callsite ", callsite.callsite(), " (",
                                  Printable(callsite.operation()),
                                  "): nobody sends what it receives");
      }
      takes_twice = !moved;
    }
  }

  std::vector<RunningRank>& ranks() { return ranks_; }

 private:
  int64_t count() const { return static_cast<int64_t>(ranks_.size()); }

  // Runs a rank until it waits; returns whether it went on.
  absl::StatusOr<bool> Advance(int64_t number, bool takes_twice) {
    RunningRank& rank = ranks_[static_cast<size_t>(number)];
    bool moved = false;
    while (!rank.is_done()) {
      const Visit& visit = (*rank.visits)[rank.next];
      const Kind kind = visit.operation.kind;
      if (!rank.is_begun) {
        RETURN_IF_ERROR(Begin(number, visit));
        rank.is_begun = true;
        moved = true;
      }
      const bool blocks = kind == Kind::kReceive && !visit.operation.is_asynchronous;
      const bool waits = kind == Kind::kWait || rank.next + 1 == rank.visits->size();
      if (blocks && !rank.Take({rank.receives - 1}, takes_twice)) return moved;
      if (waits && !rank.open.empty() && !rank.Take(rank.open, takes_twice)) return moved;
      if (waits) rank.open.clear();
      ++rank.next;
      rank.is_begun = false;
      moved = true;
    }
    return moved;
  }

  // Sends what the call sends, and counts what it wants to receive.
  absl::Status Begin(int64_t number, const Visit& visit) {
    RunningRank& rank = ranks_[static_cast<size_t>(number)];
    if (visit.operation.kind == Kind::kReceive) {
      if (visit.operation.is_asynchronous) rank.open.push_back(rank.receives);
      ++rank.receives;
    }
    if (!visit.Sends()) return absl::OkStatus();
    const bool receives = visit.operation.kind == Kind::kSendReceive;
    RETURN_IF_ERROR(CheckPeers(*visit.callsite, number, count(), visit.number, receives));
    const Peer target = TargetOf(visit.callsite->peer(), number, count(), visit.number);
    if (!receives && target.rank.has_value()) {
      ranks_[static_cast<size_t>(*target.rank)].arrived.push_back(MessageOf(visit, number));
    }
    return absl::OkStatus();
  }

  std::vector<RunningRank> ranks_;
};

}  // namespace

PeerMessage MessageOf(const Visit& visit, int64_t peer) {
  return {peer, std::max<int64_t>(1, visit.bytes),
          static_cast<int32_t>(visit.callsite->callsite() % (1 << 20))};
}

absl::StatusOr<std::vector<std::vector<PeerMessage>>> FindArrivals(
    const std::vector<const std::vector<Visit>*>& visits) {
  RunningRanks running(visits);
  RETURN_IF_ERROR(running.Run());
  std::vector<std::vector<PeerMessage>> arrivals;
  for (RunningRank& rank : running.ranks()) arrivals.push_back(std::move(rank.given));
  return arrivals;
}

}  // namespace meridian
