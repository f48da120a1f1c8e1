// SPDX-License-Identifier: Apache-2.0
// One rank's traces, made up and read, as the passes after reading take them.
#ifndef CHAKRA_EXPORT_PYTORCH_TESTING_TORCH_RANK_H_
#define CHAKRA_EXPORT_PYTORCH_TESTING_TORCH_RANK_H_

#include <string>

#include "absl/strings/string_view.h"
#include "chakra_export/pytorch/host_device_link.h"
#include "chakra_export/pytorch/host_trace.h"
#include "chakra_export/pytorch/rank_timeline.h"
#include "chakra_export/pytorch/testing/torch_traces.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {

// The texts must be sound: reading them is not what is tested. Stays where it is, since what was
// read points into the texts.
class TorchRank {
 public:
  TorchRank(const HostTraceText& host_text, const KinetoText& device_text);
  TorchRank(const TorchRank&) = delete;
  TorchRank& operator=(const TorchRank&) = delete;

  // Returns the device's node of that name; kNoTimelineNode when there is none.
  TimelineIndex DeviceNode(absl::string_view name) const;

  const std::string host_text;
  const std::string device_text;
  const HostTrace host;
  const TraceJsonTable device;
  const HostDeviceLink link;
  const RankTimeline timeline;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_TESTING_TORCH_RANK_H_
