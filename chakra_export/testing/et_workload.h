// SPDX-License-Identifier: Apache-2.0
// The traces of a small workload on disk.
#ifndef CHAKRA_EXPORT_TESTING_ET_WORKLOAD_H_
#define CHAKRA_EXPORT_TESTING_ET_WORKLOAD_H_

#include <string>
#include <vector>

#include "chakra_export/et/et_files.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {

// Writes DIRECTORY/NAME.<rank>.et for the nodes of each rank and returns what FindEtFiles finds.
EtFiles WriteWorkload(const TemporaryDirectory& directory, const std::string& name,
                      const std::vector<std::vector<ChakraProtoMsg::Node>>& ranks);

// A step of training on two ranks, timed, with the names and shapes of a program: layers of
// matmuls, an all-reduce of each, a message from rank 0 to rank 1.
std::vector<std::vector<ChakraProtoMsg::Node>> TrainingStep();

// Returns the nodes of a file.
std::vector<ChakraProtoMsg::Node> ReadNodes(const std::string& path);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_TESTING_ET_WORKLOAD_H_
