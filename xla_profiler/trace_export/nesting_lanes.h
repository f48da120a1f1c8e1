// SPDX-License-Identifier: Apache-2.0
// Viewers draw the events of one track as a stack of calls: events nest or follow each other. Some
// lines have events that overlap otherwise (kernels of a CUDA graph, asynchronous copies); these
// are spread over lanes within which all nest:
//
//   line    [ A     ]            lane 0  [ A     ]   [ D ]
//              [ B     ]                   [ C ]
//            [ C ]               lane 1      [ B     ]
//                    [ D ]
#ifndef XLA_PROFILER_TRACE_EXPORT_NESTING_LANES_H_
#define XLA_PROFILER_TRACE_EXPORT_NESTING_LANES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace meridian {

class NestingLanes {
 public:
  // The end of an event that was placed before.
  struct End {
    size_t lane = 0;
    int64_t end_ps = 0;

    friend bool operator==(const End& a, const End& b) {
      return a.lane == b.lane && a.end_ps == b.end_ps;
    }
  };

  // What more lanes would cost a hostile file is quadratic.
  static constexpr size_t kMaxLanes = 256;

  // Returns the first lane in which the event nests, a new one if need be; nullopt when there are
  // too many. Events must come in order: start ascending, then duration descending. An instant is
  // inside what ends later, not inside what ends with it.
  //
  // Appends to `ends` which events have ended by start_ps in the lanes that were tried: in each
  // lane, the ends and the starts are in order of time, and as parentheses would be.
  std::optional<size_t> Place(int64_t start_ps, int64_t end_ps, std::vector<End>* ends) {
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

  // Appends the ends of all that is still open, and begins anew.
  void Clear(std::vector<End>* ends) {
    for (size_t lane = 0; lane < open_.size(); ++lane) {
      EndUntil(std::numeric_limits<int64_t>::max(), lane, ends);
    }
    open_.clear();
  }

 private:
  void EndUntil(int64_t time_ps, size_t lane, std::vector<End>* ends) {
    std::vector<int64_t>& open = open_[lane];
    for (; !open.empty() && open.back() <= time_ps; open.pop_back()) {
      ends->push_back({lane, open.back()});
    }
  }

  // Per lane the ends of its open events, the innermost last.
  std::vector<std::vector<int64_t>> open_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_TRACE_EXPORT_NESTING_LANES_H_
