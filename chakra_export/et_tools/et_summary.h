// SPDX-License-Identifier: Apache-2.0
// Looks through the Chakra traces of a workload and says what is in them, in numbers or as JSON, what is
// wrong, and what differs from another workload's.
#ifndef CHAKRA_EXPORT_ET_TOOLS_ET_SUMMARY_H_
#define CHAKRA_EXPORT_ET_TOOLS_ET_SUMMARY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/et_tools/et_check.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Returns statistics and problems. Dependencies on nodes that do not exist are problems, and left
// out of the graph. When there is no graph (ids that occur twice, values that cannot be meant) one
// problem is no_graph and the report has no statistics; with `needs_graph` that is an error.
// Errors are those of files that cannot be read, with file, offset and reason.
absl::StatusOr<ChakraReport> SummarizeEtFiles(FileSystem& file_system, const EtFiles& files,
                                              const EtGraphReaderOptions& options = {},
                                              bool needs_graph = false);

// Return the statistics, and the problems, as text for people.
std::string FormatChakraStats(const ChakraReport& report);
std::string FormatChakraProblems(const ChakraReport& report);

// Compares nodes of equal rank and id; an id that occurs twice in a file is InvalidArgument. The
// order of nodes in a file, of dependencies and of attributes is no difference.
absl::StatusOr<ChakraDiffReport> DiffEtFiles(FileSystem& file_system, const EtFiles& first,
                                             const EtFiles& second,
                                             const EtReaderOptions& options = {});

// Returns the report as text for people.
std::string FormatDiff(const ChakraDiffReport& report);

// Writes Chakra traces as one JSON document, node by node:
//
//   {"ranks":[
//   {"rank":0,"path":"w.0.et","metadata":{"version":"1.0.0","attr":[]},"nodes":[
//   {"id":1,"name":"matmul","type":"COMP_NODE","ctrl_deps":[],"data_deps":[],
//    "start_time_micros":0,"duration_micros":5,
//    "attr":[{"name":"is_cpu_op","doc_string":"","bool_val":false}]}
//   ]}
//   ]}
//
// Numbers are numbers, also beyond 2^53; bytes are base64; fields that the schema does not know are
// left out.
// Every file is read once before anything is written: a bad one leaves no half document.
absl::Status WriteEtJson(FileSystem& file_system, const EtFiles& files,
                         const EtReaderOptions& options, ByteSink* sink);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_TOOLS_ET_SUMMARY_H_
