// SPDX-License-Identifier: Apache-2.0
// Makes Chakra traces that can be given away: a simulation of them gives the same result, and they
// say nothing else about the program.
//
//   kept       ids, types, dependencies and their kinds, durations, and the attributes that
//              simulators and this project read (sizes, peers, groups, streams, num_ops, ...)
//   replaced   names, and words and numbers of shapes and types, the same ones by the same ones on
//              all ranks: "[[128, 1024]]" becomes "[[7, 12]]", "Tensor(float)" "w3(w4)"; threads by
//              1, 2, ...; groups whose name is no number
//   shifted    start times, so that the first is kFirstStartNs
//   left out   values of inputs and outputs, all other attributes, descriptions, metadata, unknown
//              fields
#ifndef CHAKRA_EXPORT_INSPECT_ET_OBFUSCATOR_H_
#define CHAKRA_EXPORT_INSPECT_ET_OBFUSCATOR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

class ChakraRewriteReport;

// A second after the epoch: 0 would be no start time.
inline constexpr int64_t kFirstStartNs = 1000000000;

struct EtObfuscatorOptions : EtReaderOptions {
  // Durations are multiplied by 1 - jitter to 1 + jitter, evenly, from 0 to 1. Start times are left
  // out then, since their differences would give the durations away.
  double jitter = 0;
  // The same seed gives the same jitter.
  uint64_t seed = 0;
  // The groups of the traces; written beside the new ones, with the names that these have.
  CommGroups groups;
};

// Writes PREFIX.<rank>.et for each file and the groups, in place of an earlier workload when the
// files are those of a prefix (see EtWorkloadWriter::Commit). Nothing is written when a file is
// bad. The report lacks the name of the output.
absl::StatusOr<ChakraRewriteReport> ObfuscateEtFiles(FileSystem& file_system, const EtFiles& files,
                                                     const EtObfuscatorOptions& options,
                                                     const std::string& output_prefix);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_ET_OBFUSCATOR_H_
