// SPDX-License-Identifier: Apache-2.0
// The files that clock_probe leaves, each written a few whole lines at a time, so that whoever ends
// the daemon however roughly loses a window at most:
//
//   probes_node<N>.jsonl         raw probes, {"src":0,"dst":1,"t1":..,"t2":..,"t3":..,"t4":..}
//   probe_windows_node<N>.jsonl  a fit per neighbour and window (trace_alignment/probes)
//   clocks_node<N>.jsonl         the two clocks of the host, as snapshot pairs
//
// A file that has become too large is renamed to ...<N>.<K>.jsonl, K counting up, and the oldest of
// them goes; so is one that is there when the daemon begins.
#ifndef CLUSTER_PROBE_PROBE_WRITER_H_
#define CLUSTER_PROBE_PROBE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cluster/probe/clock_source.h"
#include "cluster/probe/probe_hosts.h"
#include "cluster/probe/probe_node.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct RotationOptions {
  int64_t max_file_bytes = 64 << 20;
  // How many full files are kept of each kind.
  int64_t kept_files = 16;
};

class RotatingFile {
 public:
  // Every file begins with the header, which may be empty. Nothing is there before the first line.
  RotatingFile(FileSystem& file_system, std::string folder, std::string name, std::string header,
               const RotationOptions& options);

  // Appends whole lines in one piece.
  absl::Status Append(absl::string_view lines);

 private:
  std::string Path(absl::string_view middle) const;
  absl::Status MakeRoom();

  FileSystem& file_system_;
  const std::string folder_;
  // Without ".jsonl".
  const std::string name_;
  const std::string header_;
  const RotationOptions options_;
  std::unique_ptr<WritableFile> file_;
  int64_t bytes_ = 0;
};

// Snapshot pairs: the node's clock S beside a second clock R.
class SnapshotWriter {
 public:
  // `header` has further members of the header, beginning with a comma, or is empty.
  SnapshotWriter(FileSystem& file_system, const std::string& folder, const std::string& name,
                 int64_t node_id, absl::string_view header, const RotationOptions& options);

  absl::Status Write(const ClockReading& reading);

 private:
  RotatingFile file_;
};

class ProbeWriter {
 public:
  // `neighbours` are those of the host, in the order of its ProbeNode.
  ProbeWriter(FileSystem& file_system, const std::string& folder, ProbeHost host,
              std::vector<ProbeHost> neighbours, int64_t window_ns, const RotationOptions& options);

  // Besides what was measured, says that the host's own nodes share one clock, which probes with four
  // equal times do.
  absl::Status Write(const ProbeWindow& window);

 private:
  const ProbeHost host_;
  const std::vector<ProbeHost> neighbours_;
  const int64_t window_ns_;
  RotatingFile probes_;
  RotatingFile windows_;
};

}  // namespace meridian

#endif  // CLUSTER_PROBE_PROBE_WRITER_H_
