// SPDX-License-Identifier: Apache-2.0
// Makes a workload of Chakra execution traces, PREFIX.<rank>.et, as AstraSim reads them.
//
//   COMP_NODE        duration_micros, is_cpu_op; under a roofline num_ops and tensor_size
//   COMM_COLL_NODE   comm_type, comm_size; pg_name, involved_dim
//   COMM_SEND_NODE   comm_dst, comm_size, comm_tag
//   COMM_RECV_NODE   comm_src, comm_size, comm_tag
//
// Nodes wait for their data_deps and ctrl_deps. Other types of nodes are refused.
#ifndef ASTRA_BRIDGE_ENGINE_ET_WORKLOAD_H_
#define ASTRA_BRIDGE_ENGINE_ET_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "astra_bridge/engine/network_config.h"
#include "astra_bridge/engine/system_config.h"
#include "astra_bridge/engine/workload.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"

namespace meridian {

struct EtWorkloadOptions {
  InputFileOptions input;
  // Keep the names of nodes; they take memory.
  bool names = false;
  // Told how many ranks have been read. May be null.
  std::function<void(uint64_t ranks)> progress;
};

// Says how many ranks the network is too small for, which are left out as AstraSim does; empty when
// there are none.
std::string DescribeRanksLeftOut(FileSystem& file_system, const std::string& prefix,
                                 const NetworkConfig& network);

// Reads a file per NPU of the network, plain or gzip. The configurations say what nodes must have:
// with replay-only, communication is not looked at. Also reads the custom algorithms that the system
// names. Errors name the file, and node and attribute.
absl::StatusOr<Workload> ReadEtWorkload(FileSystem& file_system, const std::string& prefix,
                                        const NetworkConfig& network, const SystemConfig& system,
                                        const EtWorkloadOptions& options);

// Says which custom algorithms carry out collectives of other sizes than they were written for, or do
// not say what for: they move the bytes of their traces all the same.
std::vector<std::string> DescribeCustomSizes(const Workload& workload, const SystemConfig& system);

// Reads communicator groups, {"1": [0, 1], "2": [2, 3]}, into the workload.
absl::Status ReadWorkloadGroups(FileSystem& file_system, const std::string& path,
                                Workload* workload);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_ET_WORKLOAD_H_
