// SPDX-License-Identifier: Apache-2.0
// New Chakra traces from given ones, without what they say about a program.
#ifndef CHAKRA_EXPORT_ET_TOOLS_ET_OBFUSCATOR_H_
#define CHAKRA_EXPORT_ET_TOOLS_ET_OBFUSCATOR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class ChakraWorkloadReport;

// A second after the epoch: 0 would be no start time.
inline constexpr int64_t kFirstStartNs = 1000000000;

// Makes traces that can be given away: a simulation of them gives the same result, and they say
// nothing else about the program. docs/chakra_et.md#obfuscation has what is kept, replaced, shifted
// and left out.
//
// Writes PREFIX.<rank>.et for each file and the groups of `options`, renamed, in place of an earlier
// workload when the files are those of a prefix (see EtWorkloadWriter::Commit). Nothing is written
// when a file is bad.
absl::StatusOr<ChakraWorkloadReport> ObfuscateEtFiles(FileSystem& file_system, const EtFiles& files,
                                                      const EtGraphReaderOptions& options,
                                                      const std::string& output_prefix);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_TOOLS_ET_OBFUSCATOR_H_
