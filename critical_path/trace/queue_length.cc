#include "critical_path/trace/queue_length.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// The queue of a stream grows or shrinks.
struct Step {
  TrackId track = 0;
  int64_t time_ps = 0;
  // 1 for a launch, -1 for the start of work.
  int change = 0;
};

}  // namespace

std::vector<StreamQueue> FindQueueLengths(const EventTable& table,
                                          const DeviceDependencies& dependencies) {
  std::vector<Step> steps;
  for (const DeviceDependency& edge : dependencies.edges) {
    if (edge.kind != DeviceDependencyKind::kLaunch) continue;
    const TrackId track = table.track_id(edge.to);
    steps.push_back({track, table.start_ps(edge.from), 1});
    steps.push_back({track, table.start_ps(edge.to), -1});
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return std::tie(a.track, a.time_ps, a.change) < std::tie(b.track, b.time_ps, b.change);
  });
  std::vector<StreamQueue> queues;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i == 0 || steps[i].track != steps[i - 1].track) {
      const Track& track = table.track(steps[i].track);
      queues.push_back({track.process, track.thread, {}});
    }
    std::vector<QueuePoint>& points = queues.back().points;
    const int64_t before = points.empty() ? 0 : points.back().length;
    points.push_back({steps[i].time_ps, before + steps[i].change});
  }
  return queues;
}

std::string QueueLengthCsv(absl::Span<const StreamQueue> queues) {
  std::string out = "device,stream,time_us,queue_length\n";
  for (const StreamQueue& queue : queues) {
    const std::string prefix =
        absl::StrCat(CsvField(queue.device), ",", CsvField(queue.stream), ",");
    for (const QueuePoint& point : queue.points) {
      out += prefix;
      AppendPicosAsMicros(point.time_ps, &out);
      absl::StrAppend(&out, ",", point.length, "\n");
    }
  }
  return out;
}

}  // namespace meridian
