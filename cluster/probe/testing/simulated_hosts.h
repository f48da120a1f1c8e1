// SPDX-License-Identifier: Apache-2.0
// Hosts that probe each other in made-up time on a made-up network: the same state machine and the
// same files as the daemon's, thousands of windows in a second, and nothing depends on luck.
#ifndef CLUSTER_PROBE_TESTING_SIMULATED_HOSTS_H_
#define CLUSTER_PROBE_TESTING_SIMULATED_HOSTS_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cluster/probe/probe_hosts.h"
#include "cluster/probe/probe_node.h"
#include "cluster/probe/testing/udp_relay.h"

namespace meridian {

struct SimulatedClock {
  int64_t offset_ns = 0;
  double drift_ppm = 0;
  // The clock is set forward by so much after so long; 0: never.
  int64_t step_ns = 0;
  int64_t step_after_ns = 0;
};

class SimulatedHosts {
 public:
  // One clock per host. `start_ns` is the true Unix time at which drifts are 0 and probing begins.
  SimulatedHosts(std::vector<SimulatedClock> clocks, const PathModel& model, int64_t start_ns,
                 uint64_t seed, int64_t nodes_per_host = 1);

  // Probes for so long and writes each host's files into the folder.
  absl::Status Run(int64_t duration_ns, const std::string& folder);

  // What the host's clock shows at a true time, and the true time when it shows that (of a clock
  // that is not set).
  int64_t Shown(size_t host, int64_t true_ns) const;
  int64_t TrueTime(size_t host, int64_t shown_ns) const;

  const ProbeCounts& counts(size_t host) const { return nodes_[host]->counts(); }

 private:
  struct Arrival {
    int64_t due_ns = 0;
    size_t from = 0;
    size_t to = 0;
    ProbePacket packet;
    bool operator<(const Arrival& other) const { return due_ns > other.due_ns; }
  };

  ClockReading ReadingAt(size_t host, int64_t true_ns) const;
  // Lets the packets leave that a host wants to send.
  void Deliver(size_t host, int64_t true_ns);

  const std::vector<SimulatedClock> clocks_;
  const PathModel model_;
  const int64_t start_ns_;
  std::mt19937_64 random_;
  std::vector<ProbeHost> hosts_;
  // By host.
  std::vector<std::vector<ProbePacket>> outboxes_;
  std::vector<std::unique_ptr<ProbeNode>> nodes_;
  std::priority_queue<Arrival> arrivals_;
};

}  // namespace meridian

#endif  // CLUSTER_PROBE_TESTING_SIMULATED_HOSTS_H_
