#include "astra_bridge/engine/collective_recorder.h"

namespace meridian {

void CollectiveRecorder::Begin(CollectiveRecord record, size_t members) {
  record.was_alone = under_way_.empty() && sends_ == 0;
  record.durations_ns.assign(members, 0);
  NobodyIsAlone();
  under_way_.emplace(record.id, std::move(record));
}

void CollectiveRecorder::EndMember(const CollectiveId& id, int32_t member, int64_t now_ns) {
  CollectiveRecord& record = under_way_.at(id);
  record.durations_ns[member] = now_ns - record.begin_ns;
}

void CollectiveRecorder::End(const CollectiveId& id) {
  const auto record = under_way_.find(id);
  records_.push_back(std::move(record->second));
  under_way_.erase(record);
}

void CollectiveRecorder::BeginSend() {
  ++sends_;
  NobodyIsAlone();
}

void CollectiveRecorder::NobodyIsAlone() {
  for (auto& [id, record] : under_way_) record.was_alone = false;
}

}  // namespace meridian
