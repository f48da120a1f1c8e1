// SPDX-License-Identifier: Apache-2.0
// The file of raw probes that clock_probe leaves, probes_node<N>.jsonl with lines
//
//   {"src":0,"dst":1,"t1":..,"t2":..,"t3":..,"t4":..}
//
// written a few whole lines at a time, so that whoever ends the daemon however roughly loses a
// window at most.
//
// A file that has become too large is renamed to ...<N>.<K>.jsonl, K counting up, and the oldest of
// them goes; so is one that is there when the daemon begins.
#ifndef CLUSTER_PROBE_PROBE_WRITER_H_
#define CLUSTER_PROBE_PROBE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cluster/probe/probe_hosts.h"
#include "cluster/probe/probe_node.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct RotationOptions {
  int64_t max_file_bytes = 64 << 20;
  // How many full files are kept.
  int64_t kept_files = 16;
};

class RotatingFile {
 public:
  // Nothing is there before the first line.
  RotatingFile(FileSystem& file_system, std::string folder, std::string name,
               const RotationOptions& options = {});

  // Appends whole lines in one piece.
  absl::Status Append(absl::string_view lines);

 private:
  std::string Path(absl::string_view middle) const;
  absl::Status MakeRoom();

  FileSystem& file_system_;
  const std::string folder_;
  // Without ".jsonl".
  const std::string name_;
  const RotationOptions options_;
  std::unique_ptr<WritableFile> file_;
  int64_t bytes_ = 0;
};

// Returns the lines of a window of so many ns. Besides what was measured, they say that the host's
// own nodes share one clock, which probes with four equal times do.
std::string ProbeLines(const ProbeHost& host, const ProbeWindow& window, int64_t window_ns);

}  // namespace meridian

#endif  // CLUSTER_PROBE_PROBE_WRITER_H_
