// SPDX-License-Identifier: Apache-2.0
// The timeline of a run, to see its path and its collectives on: all that happened, or the longest of
// it.
#ifndef PIPELINE_TIMELINE_H_
#define PIPELINE_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"
#include "pipeline/operations.h"
#include "report/run_report.pb.h"
#include "xla_profiler/base/string_pool.h"

namespace meridian {

// Pages stay usable with so many events; the longest stay.
inline constexpr size_t kMaxTimelineEvents = 100000;

class RunTimeline {
 public:
  // Reads the part of a window's graph that it stands for.
  void Read(const PathGraph& graph, const OwnPart& own, const CollectiveEvents& collectives,
            const CriticalPath& path);

  // Adds that of a later window, whose graph begins so much later.
  void Merge(RunTimeline later, int64_t shift_ps);

  void Report(Timeline* timeline) const;

 private:
  // All times count from the start of the graph's window.
  struct Event {
    uint32_t lane = 0;
    NameId name = 0;
    PathKind::Role role = PathKind::COMPUTATION;
    int64_t start_ps = 0;
    int64_t duration_ps = 0;
    // Of one that takes part in a collective: which, and when the last had come; else kNoMeeting.
    uint32_t meeting = 0;
    int64_t met_ps = 0;
  };
  static constexpr uint32_t kNoMeeting = static_cast<uint32_t>(-1);

  struct ShownLane {
    int64_t rank = 0;
    bool is_host = false;
    // Lanes of one rank and kind keep the order of their graph.
    LaneId number = 0;
    std::string name;
  };

  struct ShownMeeting {
    NameId name = 0;
    int64_t bytes = 0;
    // What moves on the busiest link; 0 when that is not known.
    double moved_bytes = 0;
  };

  // Of the critical path.
  struct Stretch {
    uint32_t lane = 0;
    int64_t start_ps = 0;
    int64_t end_ps = 0;
    int64_t weight_ps = 0;
  };
  static constexpr uint32_t kNoLane = static_cast<uint32_t>(-1);

  void ReadPath(const PathGraph& graph, const OwnPart& own, const CriticalPath& path);
  uint32_t FindLane(const ShownLane& lane);
  void LeaveOutShortest();
  void ReportPath(const std::vector<int>& numbers, Timeline* timeline) const;

  std::vector<ShownLane> lanes_;
  StringPool names_;
  // In the order of the graph.
  std::vector<Event> events_;
  std::vector<ShownMeeting> meetings_;
  std::vector<Stretch> path_;
  bool is_truncated_ = false;
};

}  // namespace meridian

#endif  // PIPELINE_TIMELINE_H_
