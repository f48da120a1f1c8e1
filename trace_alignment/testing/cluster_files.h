// SPDX-License-Identifier: Apache-2.0
// A synthetic cluster as a folder of files:
//
//   node0.xplane.pb, node1.xplane.pb, ...       what the profilers wrote
//   node0.snapshots.jsonl, ...                  snapshot pairs
//   offsets.jsonl                               offsets, round by round
//   probe_windows_node0.jsonl, ...              fitted probes
//   probes.jsonl                                the probes themselves
//   truth.json                                  how far off the clocks are
#ifndef TRACE_ALIGNMENT_TESTING_CLUSTER_FILES_H_
#define TRACE_ALIGNMENT_TESTING_CLUSTER_FILES_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "trace_alignment/testing/clock_readings.h"
#include "trace_alignment/testing/synthetic_cluster.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// What is written beside the profiles and the truth; absent: nothing.
struct ClusterFilesOptions {
  std::optional<SnapshotOptions> snapshots;
  std::optional<OffsetsOptions> offsets;
  std::optional<ProbeOptions> probe_windows;
  std::optional<ProbeOptions> probes;
  // Called before each node's files; may be null.
  std::function<void(int64_t node)> progress;
};

// Returns where the profiles are, in the order of the nodes.
std::vector<std::string> ClusterTracePaths(const SyntheticCluster& cluster,
                                           const std::string& folder);
std::string SnapshotsPath(const std::string& folder, int64_t node);
std::string OffsetsPath(const std::string& folder);
std::string ProbeWindowsPath(const std::string& folder, int64_t node);
std::string ProbesPath(const std::string& folder);
std::string TruthPath(const std::string& folder);

// Makes the folder when there is none, and replaces files of these names.
absl::Status WriteCluster(FileSystem& file_system, const SyntheticCluster& cluster,
                          const ClusterFilesOptions& options, const std::string& folder);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_CLUSTER_FILES_H_
