// SPDX-License-Identifier: Apache-2.0
// Logs of NCCL Inspector, the profiler plugin of NCCL 2.28 and later that runs beside jobs in
// production, as Kineto traces of jobs that do nothing but communicate:
//
//   <host>-pid<pid>.log, one JSON object a line, one per finished operation:
//   {"header": {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1},
//    "metadata": {..., "dump_timestamp_us": ..., "hostname": "a", "pid": 16394},
//    "coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 4194304,
//                  "coll_exec_time_us": 412, ..., "event_trace_ts": {...}}}
//
//   rank      that in the communicator with the most ranks. The header's is the rank inside of its
//             own communicator. A log without operations of all gets a rank that is left
//   run       logs that share communicators, whose ids differ from run to run
//   identity  communicator, kind and coll_sn, which counts each kind of a communicator from 0. Ends
//             of messages number their own; they are paired in order
//   bytes     one rank's share of an all-gather and of what a reduce-scatter gives, else the buffer
//   times     only logs with NCCL_INSPECTOR_DUMP_VERBOSE=1 have them. A thread of the host notes
//             when it sees that a kernel has begun and has ended, both somewhat late; how long it
//             took is the GPU's. So the end is the earlier of the seen end and of the seen start
//             plus that time
//
// A log may lack operations: versions before 2.30 keep the last one of each interval, all lose what
// is finished behind the last dump, and small ones may be left out.
#ifndef XLA_PROFILER_NCCL_LOGS_NCCL_LOGS_H_
#define XLA_PROFILER_NCCL_LOGS_NCCL_LOGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/sources/file_head.h"
#include "xla_profiler/sources/trace_source.h"

namespace meridian {

// A finished operation of one rank.
struct InspectorOp {
  std::string communicator;
  // The rank's number in the communicator, and how many that has.
  int64_t rank = 0;
  int64_t ranks = 0;
  // "AllReduce", ..., "Send" or "Recv".
  std::string name;
  int64_t number = 0;
  // Of a message: the other rank of the communicator.
  std::optional<int64_t> peer;
  int64_t bytes = 0;
  // "RING_LL"; empty where the log does not have it.
  std::string protocol;
  int64_t took_us = 0;
  int64_t dumped_us = 0;
  // Unix time of the host; none in logs that are not verbose.
  std::optional<int64_t> launched_us;
  std::optional<int64_t> ended_us;
};

struct InspectorLog {
  std::string path;
  std::string hostname;
  int64_t pid = 0;
  std::vector<InspectorOp> ops;
  // Lines that are no record, e.g. a last one that was cut off.
  int64_t unread_lines = 0;
  // Collectives that have the number of another one, which differs.
  int64_t repeated = 0;
  // Operations with a kernel that stops before it starts.
  int64_t inverted = 0;
  // What the plugin says it had to drop.
  int64_t dropped = 0;
};

// InvalidArgument, which names the path, when there is no record at all.
absl::StatusOr<InspectorLog> ParseInspectorLog(absl::string_view text, const std::string& path);

// Makes a Kineto trace of each log and hands it over; returns notes. InvalidArgument, which names a
// log, when times are needed and missing, for logs that contradict each other about a communicator,
// and for processes with several ranks of one, whose ranks in others cannot be told. Where durations
// suffice, times are made up even if the log has some, since clocks of hosts that were not aligned
// would only mislead: all ranks of a collective are taken to end together, one collective after the
// other.
absl::StatusOr<std::vector<std::string>> InspectorToKineto(const std::vector<InspectorLog>& logs,
                                                           const ConversionOptions& options,
                                                           TraceSource::WriteFunction write);

// All operations of a run's logs are in memory at once, at some 200 bytes each.
class NcclLogSource : public TraceSource {
 public:
  absl::string_view noun() const override { return "a log of NCCL Inspector"; }
  std::vector<absl::string_view> suffixes() const override { return {".log"}; }
  bool Detect(const FileHead& head) const override;
  absl::StatusOr<std::vector<std::string>> Convert(size_t files, OpenFunction open,
                                                   const ConversionOptions& options,
                                                   WriteFunction write) const override;
};

}  // namespace meridian

#endif  // XLA_PROFILER_NCCL_LOGS_NCCL_LOGS_H_
