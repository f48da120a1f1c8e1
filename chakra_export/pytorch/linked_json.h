// SPDX-License-Identifier: Apache-2.0
// The host trace with the profile's times and device work in it: PyTorch's format, with these
// members added to the operators that the profile shows,
//
//   ts, inclusive_dur, exclusive_dur   microseconds; ts since the Unix epoch. Exclusive time is
//                                      without what the operator called and without waiting
//   inter_thread_dep, sync_dep         ids of the operator of another thread, and of the device
//                                      work, that the thread had waited for
//
// and the device work as further nodes (cat, ph, stream, pg_name; inputs, outputs and attributes of
// the operator that launched it, which is what they depend on). Ids of operators stay as they are;
// those of device work follow. It is what chakra_trace_link writes, and chakra_converter reads it.
#ifndef CHAKRA_EXPORT_PYTORCH_LINKED_JSON_H_
#define CHAKRA_EXPORT_PYTORCH_LINKED_JSON_H_

#include "absl/status/status.h"
#include "chakra_export/pytorch/host_device_link.h"
#include "chakra_export/pytorch/host_trace.h"
#include "chakra_export/pytorch/matched_communication.h"
#include "chakra_export/pytorch/rank_timeline.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/events/event_table.h"

namespace meridian {

absl::Status WriteLinkedJson(const HostTrace& host, const EventTable& table,
                             const HostDeviceLink& link, const RankTimeline& timeline,
                             const RankCommunication& communication, ByteSink* sink);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_LINKED_JSON_H_
