// SPDX-License-Identifier: Apache-2.0
// A network between nodes on one machine: each node talks to ports of the relay instead of the other
// nodes, and the relay passes packets on late, or not at all.
//
//   node i --> port(i, j) --> [loss, delay, queueing] --> port(j, i) --> node j
//
// Delays count from the kernel's stamps. A packet whose turn the relay misses, since the machine is
// busy, is lost: it would be late by more than the path is said to be.
#ifndef CLUSTER_PROBE_TESTING_UDP_RELAY_H_
#define CLUSTER_PROBE_TESTING_UDP_RELAY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cluster/probe/udp_socket.h"

namespace meridian {

// How packets fare; the same for sockets and for made-up networks.
struct PathModel {
  int64_t delay_ns = 100000;
  int64_t jitter_ns = 20000;
  // Packets from lower to higher nodes take so much longer than the mean of both ways, as a part of
  // the delay; those back so much less.
  double asymmetry = 0;
  double loss = 0;
  // Every so often a queue builds up for a while and delays packets by up to so much.
  int64_t burst_period_ns = 0;
  int64_t burst_ns = 0;
  int64_t burst_delay_ns = 0;
};

// Returns how long a packet takes from node to node at that time, or -1 when it is lost.
int64_t PathDelayNs(const PathModel& model, size_t from, size_t to, int64_t now_ns,
                    std::mt19937_64& random);

class UdpRelay {
 public:
  // Is called with all packets that pass, by the relay's thread.
  using Observer = std::function<void(const std::string& bytes)>;

  // `node_ports` are the ports that nodes listen at.
  UdpRelay(std::vector<int> node_ports, const PathModel& model, Observer observer = nullptr);
  ~UdpRelay();

  // The port that node `from` is to take for node `to`.
  int Port(size_t from, size_t to) const { return sockets_[from * nodes_ + to].port(); }

 private:
  struct Waiting {
    int64_t due_ns = 0;
    size_t from = 0;
    size_t to = 0;
    std::string bytes;
    bool operator<(const Waiting& other) const { return due_ns > other.due_ns; }
  };

  void Run();

  const std::vector<int> node_ports_;
  const size_t nodes_;
  const PathModel model_;
  // By nodes, from * nodes_ + to; those from a node to itself are not used.
  std::vector<UdpSocket> sockets_;
  const Observer observer_;
  std::priority_queue<Waiting> waiting_;
  std::mt19937_64 random_{1};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace meridian

#endif  // CLUSTER_PROBE_TESTING_UDP_RELAY_H_
