// SPDX-License-Identifier: Apache-2.0
// Dumps of PyTorch's flight recorder (version 2.5 and later): what a rank has asked its process
// groups for last, and how far that got. Every job has it in memory and writes it when it hangs:
//
//   nccl_trace_rank_3, a pickle, or JSON of the same: {"version": "2.10",
//    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
//    "pg_status": {...},
//    "entries": [{"record_id": 27, "pg_id": 0, "process_group": ["0", "default_pg"],
//      "collective_seq_id": 31, "p2p_seq_id": 0, "is_p2p": false, "profiling_name":
//      "nccl:all_reduce", "input_sizes": [[2048, 2048]], "input_dtypes": ["Float"], ...,
//      "time_created_ns": ..., "state": "completed", "time_discovered_completed_ns": ...}]}
//
//   rank      the last number in the file's name; the dump has none
//   identity  group, name and collective_seq_id. Each rank counts its own messages; these are paired
//             in order
//   batches   their calls share a number and have no times; "coalesced" behind them has those of
//             all. Collectives of a batch count as one, with the bytes of all
//   times     a thread looks at kernels every 100 ms, so what it "discovered" is late by up to that.
//             A collective is shown as long as it can have run: from when it was enqueued to when
//             its end was seen. How long it ran (LoggedCollective::ran_ns) is only known of jobs
//             with TORCH_NCCL_ENABLE_TIMING=1
#ifndef XLA_PROFILER_FLIGHT_RECORDER_FLIGHT_RECORDER_H_
#define XLA_PROFILER_FLIGHT_RECORDER_FLIGHT_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/sources/collective_log.h"
#include "xla_profiler/sources/file_head.h"
#include "xla_profiler/sources/trace_source.h"

namespace meridian {

// The group is a key of FlightDump::groups, the name PyTorch's: "all_reduce", "send". Launch and
// start are when it was enqueued; the end is 0 unless it was seen.
struct FlightEntry : LoggedCollective {
  // Counts the group's collectives alike on all ranks, and a rank's messages for itself.
  int64_t number = 0;
  std::string dtype;
  // "scheduled", "started" or "completed".
  std::string state;
  // Where the program called it, "train.py:35"; empty where the dump has no stacks.
  std::string where;

  bool is_completed() const { return state == "completed"; }
};

struct FlightGroup {
  // "0 (default_pg)".
  std::string name;
  std::vector<int64_t> ranks;
};

struct FlightDump {
  // Its position among the files that were read.
  size_t file = 0;
  std::string path;
  int64_t rank = 0;
  // By a name that no other group has.
  std::map<std::string, FlightGroup> groups;
  // In the order of the calls.
  std::vector<FlightEntry> entries;
  // The ring buffer no longer has the first calls.
  bool is_overwritten = false;
};

// InvalidArgument, which names the path, for what is no dump, for one that is damaged, and for one
// whose rank is not known.
absl::StatusOr<FlightDump> ParseFlightDump(absl::string_view bytes, const std::string& path);

// Reads the dumps of a run. Those that cannot be read are left out with a note; an error when no
// other is left. InvalidArgument also when two are of one rank.
absl::StatusOr<std::vector<FlightDump>> ReadFlightDumps(size_t files,
                                                        TraceSource::OpenFunction open,
                                                        std::vector<std::string>* notes);

// All entries of a run's dumps are in memory at once, at some 300 bytes each.
class FlightRecorderSource : public TraceSource {
 public:
  absl::string_view noun() const override { return "a flight recorder dump"; }
  std::vector<absl::string_view> suffixes() const override { return {".json", ".pickle"}; }
  bool TellsWhyJobsHang() const override { return true; }
  bool Detect(const FileHead& head) const override;
  absl::StatusOr<std::vector<std::string>> Convert(size_t files, OpenFunction open,
                                                   const ConversionOptions& options,
                                                   WriteFunction write) const override;
};

}  // namespace meridian

#endif  // XLA_PROFILER_FLIGHT_RECORDER_FLIGHT_RECORDER_H_
