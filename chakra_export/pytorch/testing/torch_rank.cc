#include "chakra_export/pytorch/testing/torch_rank.h"

#include <utility>

#include "absl/status/statusor.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

template <typename T>
T Checked(absl::StatusOr<T> value) {
  MERIDIAN_CHECK(value.ok());
  return *std::move(value);
}

}  // namespace

TorchRank::TorchRank(const HostTraceText& host_text, const KinetoText& device_text)
    : host_text(host_text.Text()),
      device_text(device_text.Text()),
      host(Checked(ReadHostTrace(this->host_text, "et.json"))),
      device(Checked(LoadTraceJson(this->device_text, "kineto.json"))),
      link(LinkHostTrace(host, device.table, this->device_text)),
      timeline(BuildRankTimeline(device.table, this->device_text, link)) {}

TimelineIndex TorchRank::DeviceNode(absl::string_view name) const {
  for (TimelineIndex node = 0; node < timeline.nodes.size(); ++node) {
    if (!timeline.nodes[node].on_host && device.table.name(timeline.nodes[node].row) == name) {
      return node;
    }
  }
  return kNoTimelineNode;
}

}  // namespace meridian
