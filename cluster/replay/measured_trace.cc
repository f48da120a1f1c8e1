#include "cluster/replay/measured_trace.h"

#include <algorithm>
#include <cstdint>

#include "chakra_export/et/et_attributes.h"
#include "chakra_export/graph/et_graph_writer.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {

absl::StatusOr<WrittenWorkload> WriteMeasuredTrace(
    FileSystem& file_system, const CommunicationMatch& match, absl::Span<const NodeTimes> times,
    absl::Span<const NodeCost> costs, const std::string& prefix, ExecutionGraph* graph) {
  for (NodeIndex node = 0; node < graph->node_count(); ++node) {
    int64_t start_ns = times[node].start_ns;
    if (match.instance_of(node) != CommunicationMatch::kNoInstance) {
      for (const NodeIndex member : match.members(match.instance_of(node))) {
        start_ns = std::max(start_ns, times[member].start_ns);
      }
    }
    graph->set_duration_ns(node, std::max<int64_t>(0, times[node].end_ns - start_ns));
  }
  const auto decorate = [&](NodeIndex node, ChakraProtoMsg::Node* message) {
    EtAttributes* attributes = message->mutable_attr();
    message->set_start_time_micros(static_cast<uint64_t>(times[node].start_ns / 1000));
    SetIntAttribute(kStartNsAttribute, times[node].start_ns, attributes);
    if (graph->communication(node) != nullptr) {
      SetIntAttribute(kRawDurationNsAttribute, times[node].end_ns - times[node].start_ns,
                      attributes);
    } else if (costs[node].operations > 0 || costs[node].bytes > 0) {
      SetRoofline(costs[node].operations, costs[node].bytes, attributes);
    }
  };
  return WriteEtWorkload(file_system, *graph, prefix, static_cast<int64_t>(graph->Ranks().size()),
                         decorate);
}

}  // namespace meridian
