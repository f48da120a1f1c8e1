#include "xla_profiler/trace_export/nesting_lanes.h"

#include <limits>

namespace meridian {

std::optional<size_t> NestingLanes::Place(int64_t start_ps, int64_t end_ps,
                                          std::vector<End>* ends) {
  size_t lane = 0;
  for (; lane < open_.size(); ++lane) {
    EndUntil(start_ps, lane, ends);
    if (open_[lane].empty() || end_ps <= open_[lane].back()) break;
  }
  if (lane == kMaxLanes) return std::nullopt;
  if (lane == open_.size()) open_.emplace_back();
  if (start_ps != end_ps) open_[lane].push_back(end_ps);
  return lane;
}

void NestingLanes::Clear(std::vector<End>* ends) {
  for (size_t lane = 0; lane < open_.size(); ++lane) {
    EndUntil(std::numeric_limits<int64_t>::max(), lane, ends);
  }
  open_.clear();
}

void NestingLanes::EndUntil(int64_t time_ps, size_t lane, std::vector<End>* ends) {
  std::vector<int64_t>& open = open_[lane];
  for (; !open.empty() && open.back() <= time_ps; open.pop_back()) {
    ends->push_back({lane, open.back()});
  }
}

}  // namespace meridian
