// SPDX-License-Identifier: Apache-2.0
// The loop between a ProbeNode, a socket, the clocks and the files.
#ifndef CLUSTER_PROBE_PROBE_DAEMON_H_
#define CLUSTER_PROBE_PROBE_DAEMON_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/probe/clock_source.h"
#include "cluster/probe/probe_hosts.h"
#include "cluster/probe/probe_node.h"
#include "cluster/probe/udp_socket.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct ProbeDaemonOptions {
  std::vector<ProbeHost> hosts;
  // Which of the hosts this is.
  size_t host = 0;
  // Equal on all hosts of a job, and for no other.
  std::string key;
  uint64_t seed = 12345;
  double packets_per_s = 100;
  // Stops by itself after so long; 0: never.
  int64_t duration_ns = 0;
  std::string output_folder;
};

// Measures until `stop` or until the time is over, and writes what is measured up to then.
absl::StatusOr<ProbeCounts> RunProbeDaemon(const ProbeDaemonOptions& options, UdpSocket& socket,
                                           ClockSource& clock, FileSystem& file_system,
                                           const std::atomic<bool>& stop);

}  // namespace meridian

#endif  // CLUSTER_PROBE_PROBE_DAEMON_H_
