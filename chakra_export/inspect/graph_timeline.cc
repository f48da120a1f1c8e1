#include "chakra_export/inspect/graph_timeline.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/trace_json/trace_json_writer.h"

namespace meridian {
namespace {

constexpr int64_t kMaxNs = std::numeric_limits<int64_t>::max() / kPsPerNs;

// Rank 0 is process 1: viewers hide process 0.
int64_t Pid(int64_t rank) { return rank + 1; }

class TimelineWriter {
 public:
  TimelineWriter(const ExecutionGraph& graph, const NodeTimes& times, ByteSink* sink)
      : graph_(graph), times_(times), writer_(sink) {}

  absl::Status Write() {
    RETURN_IF_ERROR(WriteNames());
    int64_t base_ns = std::numeric_limits<int64_t>::max();
    for (const TimeInterval& interval : times_.intervals) {
      if (IsKnown(interval)) base_ns = std::min(base_ns, interval.start_ns);
    }
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      const TimeInterval& interval = times_.intervals[node];
      if (IsKnown(interval) && interval.end_ns - base_ns > kMaxNs) {
        return absl::OutOfRangeError(
            absl::StrCat(graph_.Describe(node),
                         " ends over 106 days after the first start; a timeline has no "
                         "room for that"));
      }
      if (IsKnown(interval)) RETURN_IF_ERROR(WriteNode(node, interval.start_ns - base_ns));
    }
    return writer_.Finish();
  }

 private:
  // False for a measured node without a start, whose interval is {0, 0}.
  bool IsKnown(const TimeInterval& interval) const {
    return !times_.measured || interval.start_ns != 0 || interval.end_ns != 0;
  }

  bool IsReceive(NodeIndex node) const {
    return graph_.type(node) == ChakraProtoMsg::COMM_RECV_NODE;
  }

  // Threads are numbered from 1, two for each resource: the second is for receives.
  int64_t Tid(NodeIndex node) const {
    return 2 * static_cast<int64_t>(graph_.resource_index(node)) + (IsReceive(node) ? 2 : 1);
  }

  absl::Status WriteNames() {
    for (const int64_t rank : graph_.Ranks()) {
      RETURN_IF_ERROR(writer_.WriteProcessName(Pid(rank), absl::StrCat("rank ", rank)));
      RETURN_IF_ERROR(writer_.WriteProcessSortIndex(Pid(rank), rank));
    }
    std::set<int64_t> named;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (!named.insert(Tid(node)).second) continue;
      const std::string name =
          absl::StrCat(ResourceName(graph_.resource(node)), IsReceive(node) ? " (receive)" : "");
      RETURN_IF_ERROR(writer_.WriteThreadName(Pid(graph_.rank(node)), Tid(node), name));
    }
    return absl::OkStatus();
  }

  absl::Status WriteNode(NodeIndex node, int64_t start_ns) {
    args_.Clear();
    args_.AddUint64("id", graph_.id(node));
    if (const Communication* communication = graph_.communication(node)) {
      args_.AddInt64("bytes", communication->bytes);
      if (graph_.type(node) == ChakraProtoMsg::COMM_COLL_NODE) {
        args_.AddString("group", graph_.groups()[communication->group].name);
      } else {
        args_.AddInt64("source", communication->source);
        args_.AddInt64("target", communication->target);
      }
    }
    const std::string waits_for = absl::StrJoin(
        graph_.dependencies(node), ",",
        [this](std::string* out, NodeIndex source) { absl::StrAppend(out, graph_.id(source)); });
    args_.AddJson("waits_for", absl::StrCat("[", waits_for, "]"));
    TraceJsonFields fields;
    fields.pid = Pid(graph_.rank(node));
    fields.tid = Tid(node);
    fields.name = graph_.name(node);
    const std::string category = ChakraProtoMsg::NodeType_Name(graph_.type(node));
    fields.category = category;
    fields.ts_ps = start_ns * kPsPerNs;
    fields.args = &args_;
    const TimeInterval& interval = times_.intervals[node];
    return writer_.WriteComplete(fields, (interval.end_ns - interval.start_ns) * kPsPerNs);
  }

  const ExecutionGraph& graph_;
  const NodeTimes& times_;
  TraceJsonWriter writer_;
  TraceJsonArgs args_;
};

}  // namespace

std::optional<NodeTimes> MeasuredTimes(const ExecutionGraph& graph) {
  NodeTimes times;
  times.intervals.resize(graph.node_count());
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const int64_t start_ns = graph.start_ns(node);
    const int64_t duration_ns = graph.duration_ns(node);
    if (start_ns != kNoTimeNs) {
      times.measured = true;
      times.intervals[node] = {start_ns, start_ns + duration_ns};
    } else if (duration_ns > 0) {
      return std::nullopt;
    }
  }
  return times.measured ? std::make_optional(std::move(times)) : std::nullopt;
}

NodeTimes ReplayedTimes(const GraphReplay& replay) {
  NodeTimes times;
  times.intervals.resize(replay.starts_ns.size());
  for (size_t node = 0; node < times.intervals.size(); ++node) {
    times.intervals[node] = {replay.starts_ns[node], replay.ends_ns[node]};
  }
  return times;
}

absl::Status WriteGraphTimeline(const ExecutionGraph& graph, const NodeTimes& times,
                                ByteSink* sink) {
  return TimelineWriter(graph, times, sink).Write();
}

}  // namespace meridian
