// Writes down how collectives went: which were alone on the network, and how long they took.
#ifndef ASTRA_BRIDGE_ENGINE_COLLECTIVE_RECORDER_H_
#define ASTRA_BRIDGE_ENGINE_COLLECTIVE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "astra_bridge/engine/engine_collective.h"

namespace meridian {

// The k-th collective of a group, from 0 on.
struct CollectiveId {
  uint32_t group = 0;
  int64_t ordinal = 0;

  template <typename H>
  friend H AbslHashValue(H h, const CollectiveId& id) {
    return H::combine(std::move(h), id.group, id.ordinal);
  }
  friend bool operator==(const CollectiveId& a, const CollectiveId& b) {
    return a.group == b.group && a.ordinal == b.ordinal;
  }
};

struct CollectiveRecord {
  CollectiveId id;
  EngineCollective op = EngineCollective::kAllReduce;
  int64_t bytes = 0;
  // Between the last join and the end, no other collective that all had joined was under way, and
  // no message of a send.
  bool was_alone = true;
  // When the last member joined.
  int64_t begin_ns = 0;
  // By member: from then to its end.
  std::vector<int64_t> durations_ns;
};

class CollectiveRecorder {
 public:
  // All members have joined. `record` has id, op, bytes and begin_ns.
  void Begin(CollectiveRecord record, size_t members);
  void EndMember(const CollectiveId& id, int32_t member, int64_t now_ns);
  // It is over for all.
  void End(const CollectiveId& id);

  // The message of a send is on the network, or has arrived.
  void BeginSend();
  void EndSend() { --sends_; }

  // In the order of their ends.
  const std::vector<CollectiveRecord>& records() const { return records_; }

 private:
  void NobodyIsAlone();

  absl::flat_hash_map<CollectiveId, CollectiveRecord> under_way_;
  int64_t sends_ = 0;
  std::vector<CollectiveRecord> records_;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_COLLECTIVE_RECORDER_H_
