// SPDX-License-Identifier: Apache-2.0
// A table of what ranks did, one row each, as a Kineto trace of each rank: the way in for everything
// that no profiler recorded. It is CSV, also with ; or tabs, or a JSON object a line:
//
//   rank,stream,name,kind,group,peer,seq,start_ns,end_ns,step,bytes
//   0,dp,grads,reduce-scatter,0 4,,0,2625271337,2652358072,25,4194304
//   0,compute,forward,compute,,,0,2668892145,2732220240,25,
//   0,pp,forward-send,send,,1,0,2732224035,2732602644,25,1048576
//
//   rank, start_ns, end_ns   needed. Times that do not count from 1970 are shown as of 2001; ranks
//            that no row names do not exist, and the others are counted without them
//   kind     needed: compute (device work), host (a thread's), send, recv, or a collective as
//            PyTorch names it: all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, ...
//   stream   what runs one after the other, or the thread; without, one for each kind
//   group    the ranks of a collective: "0 4"; without, all ranks of the table
//   peer     of a message: the other rank; without, the other one of a group of two
//   seq      which one of its name in its step and group, of a message which one of its sender and
//            receiver, equal on all ranks; without, and of equal ones, counted
//   step     equal on all ranks; without, the run has none
//   bytes    what a rank puts in, of different amounts the most; without, it is not known
//
// A table does not say what work waited for, so that times have to tell:
//
// - Work that begins just when other work of its rank ends has waited for that. Where clocks let it
//   begin a little earlier, it is shown from that end on.
// - When all work of a rank has ended and nothing begins, its host waited for the work and was busy:
//   with its rows of that time, if it has some.
// - Some recorders show collectives and messages only while their data move, on all ranks at once.
//   A rank whose work had ended before waited for the others, as it would within a kernel of NCCL:
//   they are shown from there on.
// - Messages of one stream with the same times are exchanged together.
#ifndef XLA_PROFILER_TABLE_TRACES_TABLE_TRACES_H_
#define XLA_PROFILER_TABLE_TRACES_TABLE_TRACES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/sources/file_head.h"
#include "xla_profiler/sources/trace_source.h"

namespace meridian {

// What is beyond these is refused.
inline constexpr int64_t kMaxTableRank = (1 << 14) - 1;
inline constexpr size_t kMaxTableRows = size_t{1} << 22;
inline constexpr size_t kMaxTableFieldBytes = size_t{1} << 17;
// A hundred days.
inline constexpr int64_t kMaxTableNs = int64_t{100} * 86400 * 1'000'000'000;

// All rows of a run are in memory at once, at some 350 bytes each. Errors name file, line and column:
// "run.csv:17: end_ns: '5'; expected ...".
class TableSource : public TraceSource {
 public:
  absl::string_view noun() const override { return "a table of operations"; }
  std::vector<absl::string_view> suffixes() const override { return {".csv", ".jsonl"}; }
  // Rank or kind may be missing, which Convert then says.
  bool Detect(const FileHead& head) const override;
  absl::StatusOr<std::vector<std::string>> Convert(size_t files, OpenFunction open,
                                                   const ConversionOptions& options,
                                                   WriteFunction write) const override;
};

}  // namespace meridian

#endif  // XLA_PROFILER_TABLE_TRACES_TABLE_TRACES_H_
