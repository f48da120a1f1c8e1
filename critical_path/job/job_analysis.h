// SPDX-License-Identifier: Apache-2.0
// From the traces of a job, of any kind, to one graph: that of all its ranks joined where they
// meet, or that of one rank.
#ifndef CRITICAL_PATH_JOB_JOB_ANALYSIS_H_
#define CRITICAL_PATH_JOB_JOB_ANALYSIS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/xspace/device_work.h"
#include "chakra_export/xspace/work_nodes.h"
#include "critical_path/graph/graph_source.h"
#include "critical_path/job/rank_join.h"
#include "critical_path/job/trace_analysis.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/collective_table.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/number_range.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {

// The files of a job: either traces or a prefix is given.
struct JobInput {
  // Profiles, all of one source, told by their contents.
  std::vector<std::string> traces;
  // What the traces hold as far as that was read already; it is emptied. May be empty; null for traces
  // that are no XSpaces.
  ProfiledRun* profiled = nullptr;
  // What the names of Chakra traces begin with, or the name of one of them.
  std::string et_prefix;
  // Execution traces of PyTorch, one for each of the traces, which are Kineto's; or none.
  std::vector<InputFile> host_traces;
  InputFileOptions files;
  // Parts of names of the host's events that load data; only for Kineto traces.
  std::vector<std::string> data_load_events;
};

struct JobOptions {
  WindowChoice window;
  // The only rank that is wanted; ranks that it waits for may then be missing. Absent: all ranks.
  std::optional<int64_t> rank;
  // Go on when collectives end before they began elsewhere.
  bool allow_violations = false;
  // Go on when several ranks have a trace, but not all: waiting for the others looks like
  // communication.
  bool allow_missing_ranks = false;
  // Called with how much has been read so far: files, or bytes of Chakra traces; may be null.
  std::function<void(size_t done)> progress;
};

// All ranks are joined when no rank is chosen and there are several. Errors name a trace; they are
// those of the readers below, and InvalidArgument when the chosen rank is not there.
absl::StatusOr<TraceAnalysis> AnalyzeJob(FileSystem& file_system, const JobInput& input,
                                         const JobOptions& options);

// A stretch of a job.
struct JobWindow : TraceAnalysis {
  // The steps that it stands for; absent for all of the job. The graph has the step before them and
  // the one after, too, so that nothing is lost that crosses the window's ends.
  std::optional<NumberRange> steps;
  // Which of the windows it is, from 0, and how many there are.
  size_t number = 0;
  size_t count = 1;

  // The middle one is described last and alone: who keeps its graph has no other beside it.
  bool IsMiddle() const { return number == count / 2; }
};

// How much device work of all ranks, or events of Kineto traces, a window has at least, unless it is told
// otherwise; where that is but a few steps, up to 32 times as much, since two more are beside them. Its
// graph takes up to 1 KB for each.
inline constexpr size_t kWindowWork = size_t{1} << 15;

// Visits a job that may be too long for one graph: profiles in windows of consecutive steps; Chakra
// traces, chosen steps or ranks, and what has no windows (FindWindows), as one.
// `describe` is called for several windows at once, `merge` with the numbers of those that are
// described, in order, but for the middle one, which comes last. Errors are those of AnalyzeJob and of `describe`.
absl::Status VisitWindows(FileSystem& file_system, const JobInput& input, const JobOptions& options,
                          size_t window_work,
                          absl::FunctionRef<absl::Status(JobWindow window)> describe,
                          absl::FunctionRef<void(size_t number)> merge);

// The graphs of a job's ranks and the meetings between them. Of the source, trace and window are for
// the caller to set.
struct LoadedJob : GraphSource {
  JobGraph job;
};

// Some steps of a run, to be looked at together with the step before them and the one after.
struct RunWindow {
  NumberRange steps;
  // From the step before to the one after, as far as the run has them; of Kineto traces to those that
  // hosts begin before the devices have done the window's.
  NumberRange with_beside;
  // How much work these have.
  size_t size = 0;
  // Of XSpaces: which work that is.
  WorkWindow work;
};

// Cuts steps, given with how much work each has, into windows that have so much at least; none when
// there would be less than four.
std::vector<RunWindow> CutSteps(const std::map<int64_t, size_t>& work_of_step, size_t window_work);

// A run whose traces were read. The options that they were read with must outlive it.
class OpenedRun {
 public:
  virtual ~OpenedRun() = default;

  // None, too, when the ranks' steps are not in the order of their numbers.
  virtual std::vector<RunWindow> FindWindows(size_t window_work) const = 0;

  // Loads a window, several at once if need be, or with null all of the run, which is of no use
  // afterwards.
  virtual absl::StatusOr<LoadedJob> Load(const RunWindow* window) = 0;
};

// Reads profiles (XSpace), one or many, or a combined one. Events are the device work, the host's
// calls that launched it, and the gaps between those; edges are those that chakra_export finds:
// launches, streams, data, the host that waited for the device. Ranks meet in the collectives that
// trace_alignment matches. The window of a chosen step lasts on each rank from when the rank begins
// it until the last work that it launched in it has ended.
//
// FailedPrecondition for clocks with violations and an empty window; InvalidArgument for profiles
// of different runs, and when some, but not all ranks have one; NotFound for steps that are not
// there.
absl::StatusOr<std::unique_ptr<OpenedRun>> ReadXSpaceRun(FileSystem& file_system,
                                                         const JobInput& input,
                                                         const JobOptions& options);

// OpenedRun::FindWindows of XSpaces.
std::vector<RunWindow> FindXSpaceWindows(const ProfiledRun& run, size_t window_work);

// Reads the Kineto traces of a job's ranks, or what others were converted to. Each rank's graph is that of trace/trace_graph.h, with
// a window that is chosen on each rank for itself. Ranks meet in the collectives that PyTorch
// describes in the arguments of their kernels. There are no windows when ranks mark other steps than
// others, or most collectives are of steps that ranks number differently.
//
// Errors are those of trace_graph.h, each naming its file; FailedPrecondition for clocks with
// violations; InvalidArgument for traces of different jobs, two traces of one rank, and when some,
// but not all ranks have one.
absl::StatusOr<std::unique_ptr<OpenedRun>> ReadKinetoRun(FileSystem& file_system,
                                                         const TraceFiles& files,
                                                         const JobInput& input,
                                                         const JobOptions& options);

// Reads the Chakra traces of a workload, with the groups that stand beside the prefix. Times are
// those of a replay (chakra_export/graph/graph_replay.h) of the traces' durations and dependencies,
// so that traces without times, or on clocks that disagree, have a path, too; for traces that
// chakra_export wrote they are nearly the measured ones. Ranks meet in collectives and in messages,
// which both ends wait for. Steps are the nodes' attribute `step`, called "step#<n>".
//
// NotFound when there are no such files, a rank of the prefix has none, or for steps that are not
// there; InvalidArgument when ranks communicate with one that has no trace; FailedPrecondition when
// the ranks do not communicate alike or wait for each other for ever.
absl::StatusOr<LoadedJob> LoadEtJob(FileSystem& file_system, const JobInput& input,
                                    const JobOptions& options);

// A Meeting (rank_join.h) of members of a collective.
struct MemberMeeting {
  const CollectiveInstance* instance = nullptr;
  std::vector<const CollectiveMember*> arrivals;
  std::vector<const CollectiveMember*> departures;
};

// Returns what the members of a meeting move; nullopt for messages of several sources to one target.
std::optional<GraphTransfer> TransferOf(const CollectiveTable& table, const MemberMeeting& meeting);

// Returns where the ranks of a run meet, in the order of the instances: all members of a collective
// that synchronises wait for all; otherwise whoever is the target of pairs waits for their sources.
// Who sends a message waits for its receiver, unless the message was gone before that came.
std::vector<MemberMeeting> FindMeetings(const CollectiveTable& table);

// FailedPrecondition when the clocks of the ranks disagree, unless that is allowed; then it is
// noted.
absl::Status CheckClocks(const CollectiveRun& run, const JobOptions& options,
                         std::vector<std::string>* notes);

// Checks that the job has the traces it needs: `present` are the ranks that have one, in ascending
// order, out of the ranks 0 to rank_count - 1. InvalidArgument when several ranks have a trace, but
// not all, and no rank was chosen. When one rank has a trace, or is chosen, the missing ranks are
// only noted.
absl::Status CheckRanks(const std::vector<int64_t>& present, int64_t rank_count,
                        const JobOptions& options, std::vector<std::string>* notes);

}  // namespace meridian

#endif  // CRITICAL_PATH_JOB_JOB_ANALYSIS_H_
