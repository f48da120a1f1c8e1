// SPDX-License-Identifier: Apache-2.0
// The collectives of a Kineto trace. Kineto copies what PyTorch recorded about a collective call
// into the args of the kernels that the call launched:
//
//   ncclDevKernel_AllReduce_Sum_f32_RING_LL   Collective name: allreduce   dtype: Float
//     In msg nelems: 1312768   Out msg nelems: 1312768   Group size: 4
//     Process Group Name: 0    Process Group Ranks: [0, 1, 2, 3]   (Seq: 17)
//
// A collective is a kernel that communicates (communication_kernel.h). Other kernels may have such
// args, too (copies that the call made).
//
// The kernels of a batch (batch_isend_irecv) are launched when it ends, and have no args:
//
//   host     [record_param_comms: send to 2] [record_param_comms: recv from 0] [nccl:coalesced]
//   stream                                                                        [kernel]
//
// They do all that the thread's calls since the batch before had recorded and no kernel of their
// own has done; calls of one kind, group, type and peer are one event.
//
// Kernels that neither describes (of older traces, other libraries, replayed graphs) are what the
// host's operator and annotation around the launch say, else what their name says. In a graph they
// are known by their place in the replay. Such ops are matched by order (CollectiveOp::by_order),
// within the only group that they can be of. Counted as unresolved is what may be of several
// groups, and what was launched before the profiler was active: how many, differs by rank.
//
//   kind      by collective name; by the function in the kernel's symbol for names not known here
//   bytes     element counts times the element type's size, as PyTorch recorded them
//   group     the ranks of the process group (process_groups.h)
//   pairs     of send and recv: the trace's own rank and the peer
//   op        module = the process group; instruction = name, type and element counts, which agree
//             on all ranks. Ragged exchanges are without counts, since each rank has its own; both
//             ends of a transfer are "transfer <source>-><target>"
//   device    a trace is of one process, which is one rank: the header's
//   run_id    Comms Id, where there is one; else
//             process group and Seq, which counts a group's collectives alike on all its ranks.
//             Point-to-point calls each rank counts for itself: kMessageIdKey, else process group
//             and step instead
//   step      the ProfilerStep on the host, on any thread, in which the kernel was launched
//
// Kernels that one call launched are one event. The root of a rooted collective is not told.
#ifndef XLA_PROFILER_KINETO_KINETO_COLLECTIVES_H_
#define XLA_PROFILER_KINETO_KINETO_COLLECTIVES_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/kineto/event_table_json.h"

namespace meridian {

// A member of traces that were combined of those of several ranks: how many.
inline constexpr absl::string_view kCombinedRanksKey = "combinedRanks";

// A member that tells the host, where the file's name does not.
inline constexpr absl::string_view kHostNameKey = "hostName";

// An argument of kernels whose times are only bounds: CollectiveEvent::ran_ps, in ns.
inline constexpr absl::string_view kRanKey = "Ran ns";
// An argument of a message that tells which one it is, equal on both ends.
inline constexpr absl::string_view kMessageIdKey = "Message Id";

// InvalidArgument for such a trace: its ranks cannot be told apart.
absl::Status CheckOneRank(const TraceJsonTable& trace, absl::string_view name);

// The trace must have been loaded from the text. Times count from the trace's base, exactly. A
// trace without collectives has no events.
ProfileCollectives ReadKinetoCollectives(const TraceJsonTable& trace, absl::string_view text,
                                         absl::string_view name);

// Loads the file first; errors are those of LoadTraceJson and CheckOneRank.
absl::StatusOr<ProfileCollectives> ReadKinetoCollectives(const InputFile& file);

}  // namespace meridian

#endif  // XLA_PROFILER_KINETO_KINETO_COLLECTIVES_H_
