// SPDX-License-Identifier: Apache-2.0
// What is done differently with the two forms that traces have (trace_source.h) when a run is
// combined: how they are opened, written on another clock and merged.
#ifndef TRACE_ALIGNMENT_RUN_RUN_TRACES_H_
#define TRACE_ALIGNMENT_RUN_RUN_TRACES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/aligner/alignment_stats.pb.h"
#include "trace_alignment/aligner/xspace_aligner.h"
#include "trace_alignment/clocks/node_clock.h"
#include "trace_alignment/clocks/snapshot_pairs.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/collectives/collective_event.h"
#include "xla_profiler/sources/trace_files.h"
#include "xla_profiler/xplane/session_clock.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

struct CombineRequest;
struct CombineState;

// A node of a run, in the order of the traces.
struct OpenedTrace {
  explicit OpenedTrace(SessionClock start) : clock(std::move(start)) {}

  SessionInfo session;
  SessionClock clock;
  // Absent when the node has none: its tracer's clock is taken for its host's.
  std::optional<SnapshotPairs> snapshots;
  // Until they are matched.
  ProfileCollectives collectives;
  // What events that could not be read have; empty when all could.
  std::string unread_events;
  int64_t id = 0;
  // What writing the node's events on the common clock did to them.
  AlignmentStats stats;
};

class RunTraces {
 public:
  // The files must outlive the result.
  static std::unique_ptr<RunTraces> Create(FileSystem& file_system, const TraceFiles& files,
                                           const CombineRequest& request);
  virtual ~RunTraces() = default;

  // InvalidArgument for what cannot be done with traces of this form.
  virtual absl::Status CheckRequest() const = 0;

  // True when each trace is of one rank, which it states, and says of itself when it was recorded;
  // such traces must have collectives in common.
  virtual bool HaveOneRankEach() const = 0;

  // Opens the trace of the node and reads what there is to know of it but its snapshots.
  virtual absl::StatusOr<OpenedTrace> Open(size_t n) = 0;

  // Returns what ties the tracer's clock to the host's: of the file, else of the trace itself.
  virtual absl::StatusOr<std::optional<SnapshotPairs>> LoadSnapshots(
      size_t /*n*/, const OpenedTrace& /*node*/, const std::string& /*file*/,
      const SnapshotPairsOptions& /*options*/) {
    return std::nullopt;
  }

  // Returns the name that the aligned file of the node has.
  virtual std::string AlignedName(size_t n) const = 0;
  // True for names that whoever looks for such traces takes for one.
  virtual bool IsTraceName(absl::string_view name) const = 0;

  virtual absl::StatusOr<AlignmentStats> WriteAligned(size_t n, const OpenedTrace& node,
                                                      const NodeClock& clock,
                                                      const AlignOptions& options,
                                                      ByteSink& sink) = 0;

  // True when the combined file is to have the form of the traces, and that is no XSpace.
  virtual bool MergesInOwnForm() const { return false; }
  // Writes such a file of the nodes in that order, and their statistics.
  virtual absl::Status Merge(const std::vector<size_t>& /*order*/, CombineState* /*state*/,
                             ByteSink& /*sink*/) {
    return absl::InternalError("traces of this form are combined as XSpaces");
  }

  // Returns the node's trace as an XSpace, with its clock in that.
  virtual absl::StatusOr<const XSpaceReader*> AsXSpace(size_t n, OpenedTrace* node) = 0;
};

// Makes the two forms.
std::unique_ptr<RunTraces> MakeXSpaceTraces(FileSystem& file_system, const TraceFiles& files,
                                            const CombineRequest& request);
std::unique_ptr<RunTraces> MakeKinetoTraces(FileSystem& file_system, const TraceFiles& files,
                                            const CombineRequest& request);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_RUN_RUN_TRACES_H_
