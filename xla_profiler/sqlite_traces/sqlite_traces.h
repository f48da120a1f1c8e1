// SPDX-License-Identifier: Apache-2.0
// A trace source in SQLite databases: what `nsys export --type=sqlite` writes, and rocpd, which
// rocprofv3 writes. Versions differ in which columns a table has, so it is read by their names.
//
//   nsys (schema 1 to 3)               rocpd (schema 3 and 4; a suffix _<uuid> for each process)
//   CUPTI_ACTIVITY_KIND_KERNEL         rocpd_kernel_dispatch      kernels
//   CUPTI_ACTIVITY_KIND_MEMCPY, _SET   rocpd_memory_copy          copies
//   CUPTI_ACTIVITY_KIND_RUNTIME        rocpd_region               calls of the runtime
//   NVTX_EVENTS, NVTX_PAYLOAD_*        rocpd_region of markers    ranges, NCCL's calls
//   StringIds                          rocpd_string               names
//   TARGET_INFO_SESSION_START_TIME     none: time since boot      wall clock
//   TARGET_INFO_SYSTEM_ENV             rocpd_info_process, _node  host, rank
//
// Times in rocpd's schema 4 are in rocpd_timestamp, and where things ran is in rocpd_track. nsys
// packs host, process and thread in one number: <hardware:8><machine:8><process:24><thread:24>.
//
// Each process becomes a Kineto trace:
//
//   ranges   of the program (NVTX, roctx) are annotations. Those called "step", "iteration" or
//            "iter", whatever stands before, and a number are steps: "train_step_12". Where several
//            names or threads have such ranges, those of the first one are the steps
//   NCCL     annotates what its calls communicate, and its kernels are launched by a call or by the
//            end of its group. That is written as PyTorch writes batches (kineto_collectives.h):
//
//     thread  [GroupStart] [AllReduce: communicator, bytes] [GroupEnd  [launch] ]
//     stream                                                             [ncclDevKernel_AllReduce]
//
//   rank     what the process's environment says. Where that says nothing, with a note: the rank in
//            the largest communicator, if all such processes are in it; else what the files' names
//            tell (node_ids.h); else a free rank, in the order of the numbers in names
//   groups   communicators, whose ids are equal on all ranks
//   clock    where no file tells the time of day, all hosts are taken to begin together
#ifndef XLA_PROFILER_SQLITE_TRACES_SQLITE_TRACES_H_
#define XLA_PROFILER_SQLITE_TRACES_SQLITE_TRACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/sources/file_head.h"
#include "xla_profiler/sources/trace_source.h"

namespace meridian {

class SqliteTraceSource : public TraceSource {
 public:
  absl::string_view noun() const override { return "a database of nsys or rocprofv3"; }
  std::vector<absl::string_view> suffixes() const override { return {".sqlite", ".db"}; }
  bool Detect(const FileHead& head) const override;
  // Files are read twice, first for their ranks, so that only one is in memory at a time.
  absl::StatusOr<std::vector<std::string>> Convert(size_t files, OpenFunction open,
                                                   const ConversionOptions& options,
                                                   WriteFunction write) const override;
};

}  // namespace meridian

#endif  // XLA_PROFILER_SQLITE_TRACES_SQLITE_TRACES_H_
