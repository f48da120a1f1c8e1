// SPDX-License-Identifier: Apache-2.0
// The hosts that clock_probe runs on, which of them this one is, and whom each asks.
#ifndef CLUSTER_PROBE_PROBE_HOSTS_H_
#define CLUSTER_PROBE_PROBE_HOSTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

// A host runs one daemon and any number of nodes of the job (processes with a profile each), which
// share its clock. Nodes are numbered through, host by host.
struct ProbeHost {
  std::string name;
  int port = 0;
  int64_t first_node = 0;
  int64_t nodes = 1;
};

// Reads one host a line, or a comma list: "host", "host:port", "[::1]:port", each also with
// "slots=8" behind it, as MPI's host files have it, for the number of nodes. '#' begins a comment.
// Port and nodes are those of `defaults` where a line does not say. InvalidArgument "file:line:
// reason" for what cannot be read, and when there are fewer than two.
absl::StatusOr<std::vector<ProbeHost>> ParseProbeHosts(absl::string_view contents,
                                                       absl::string_view file,
                                                       const ProbeHost& defaults);

// Variables that launchers set; empty where they did not.
struct LauncherVariables {
  // SLURM_NODEID.
  std::string slurm_node_id;
  // OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE.
  std::string mpi_rank;
  std::string mpi_size;
};

// Returns which of the hosts this one is: `index` if that is not negative, else what the launcher
// says, else the one that has this machine's name, whole or up to the first dot. InvalidArgument when
// that is none or several, or when the launcher started more or fewer daemons than there are hosts.
absl::StatusOr<size_t> FindThisHost(const std::vector<ProbeHost>& hosts, int64_t index,
                                    const LauncherVariables& variables,
                                    absl::string_view machine_name);

// Returns the hosts, by position, that the host asks: about log2 of their number. Every host asks
// and is asked by equally many, all are connected, and the same seed gives the same on every host:
// the hosts stand in a ring in random order, and each asks the next one and some at random
// distances, the same for all.
std::vector<size_t> NeighboursOf(size_t host, size_t num_hosts, uint64_t seed);

// Returns the hosts that ask the host.
std::vector<size_t> AskersOf(size_t host, size_t num_hosts, uint64_t seed);

}  // namespace meridian

#endif  // CLUSTER_PROBE_PROBE_HOSTS_H_
