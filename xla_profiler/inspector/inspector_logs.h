// SPDX-License-Identifier: Apache-2.0
// Logs of NCCL Inspector, the profiler plugin of NCCL 2.28 and later that runs beside jobs in
// production, taken for Kineto traces, so that whatever reads these reads logs, too:
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
#ifndef XLA_PROFILER_INSPECTOR_INSPECTOR_LOGS_H_
#define XLA_PROFILER_INSPECTOR_INSPECTOR_LOGS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

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
  // "_RING_LL", where the log has it.
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
  // What the plugin says it had to drop.
  int64_t dropped = 0;
};

// InvalidArgument, which names the path, when there is no record at all.
absl::StatusOr<InspectorLog> ParseInspectorLog(absl::string_view text, const std::string& path);

enum class InspectorTimes {
  // When operations ran must be known.
  kNeeded,
  // How long they took is enough, and clocks of hosts that were not aligned would only mislead: all
  // ranks of a collective are taken to end together, one collective after the other.
  kDurationsSuffice,
};

// Makes a Kineto trace of each log and hands it over; returns notes. InvalidArgument, which names a
// log, when times are needed and missing, for logs that contradict each other about a communicator,
// and for processes with several ranks of one, whose ranks in others can not be told.
absl::StatusOr<std::vector<std::string>> InspectorToKineto(
    const std::vector<InspectorLog>& logs, InspectorTimes times,
    absl::FunctionRef<absl::Status(size_t log, const std::string& trace)> write);

// Returns a file system in which those of the paths that are logs are the Kineto traces made of
// them, in temporary files; the base's own when none is. The base must outlive it. Notes are
// appended. All operations are in memory at once, at some 200 bytes each.
absl::StatusOr<std::shared_ptr<FileSystem>> InspectorLogsAsKineto(
    FileSystem& base, const std::vector<std::string>& paths, const InputFileOptions& options,
    InspectorTimes times, std::vector<std::string>* notes);

}  // namespace meridian

#endif  // XLA_PROFILER_INSPECTOR_INSPECTOR_LOGS_H_
