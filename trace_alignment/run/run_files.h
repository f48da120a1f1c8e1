// SPDX-License-Identifier: Apache-2.0
// Which files a run consists of.
#ifndef TRACE_ALIGNMENT_RUN_RUN_FILES_H_
#define TRACE_ALIGNMENT_RUN_RUN_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct RunFiles {
  // Paths of the profiles, one for each node.
  std::vector<std::string> traces;
  // One per trace, or none at all; empty where a trace has none.
  std::vector<std::string> snapshots;
  // Logs of what keeps the hosts' clocks (clock_log.h): one per trace, or none at all; empty where a
  // trace has none.
  std::vector<std::string> clock_logs;
  // Path of the offsets file; empty when the run has none.
  std::string offsets;
  std::vector<std::string> probes;
  // The folder's own name, when the traces were found in one; of several the first one's.
  std::string name;
  // What a person should know, e.g. that several folders were joined.
  std::vector<std::string> notes;
};

// What need not be looked for, since the user names it.
struct RunFilesOptions {
  bool find_snapshots = true;
  bool find_offsets = true;
  bool find_probes = true;
};

// Returns the folders that hold the profiles of a run: the folder itself, or those below its
// `plugins/profile/`, or below it, that hold some. Each host may have written a folder of its own,
// named after when it did: several are those of one run when no host is in two of them.
// InvalidArgument that lists them else.
absl::StatusOr<std::vector<std::string>> FindRunFolders(FileSystem& file_system,
                                                        const std::string& run_dir);

// Finds the files of a run in a folder, or in the one run below its `plugins/profile/`:
//
//   what a source tells as its own              a node's profile: <host>.xplane.pb[.gz], *.json[.gz]
//   <host>.snapshots.jsonl, .snapshot_pairs.pb  its snapshot pairs: by the same <host>, else by the
//                                               last number in the name
//   round_offsets.jsonl, *offsets*.jsonl        offsets
//   probe_windows_node<N>.jsonl, *probes*.jsonl probes
//
// NotFound when there is no profile. InvalidArgument that lists what was found when there are
// several runs (profiles in the folder itself are one), several offsets files or several snapshots
// for one profile; and for what is named like a profile but is a link to nowhere or a pipe. JSON that
// is damaged is taken for a profile, for its reader to refuse.
absl::StatusOr<RunFiles> FindRunFiles(FileSystem& file_system, const std::string& run_dir,
                                      const RunFilesOptions& options = {});

// Returns the run's profiles alone; adds what a person should know to the notes.
absl::StatusOr<std::vector<std::string>> FindRunTraces(FileSystem& file_system,
                                                       const std::string& run_dir,
                                                       std::vector<std::string>* notes = nullptr);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_RUN_RUN_FILES_H_
