// SPDX-License-Identifier: Apache-2.0
// Takes nodes out of Chakra traces so that the rest still runs in the same order: what waited for a
// node that goes waits for what that node waited for.
#ifndef CHAKRA_EXPORT_INSPECT_ET_FILTER_H_
#define CHAKRA_EXPORT_INSPECT_ET_FILTER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "xla_profiler/base/files/file_system.h"

namespace ChakraProtoMsg {
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

class ChakraRewriteReport;

struct EtFilterOptions : EtReaderOptions {
  // True for the nodes to keep.
  std::function<bool(const ChakraProtoMsg::Node& node)> keep;
  // The groups of the traces; written beside the new ones.
  CommGroups groups;
};

// Writes PREFIX.<rank>.et for each file and the groups, in place of an earlier workload when the
// files are those of a prefix (see EtWorkloadWriter::Commit). A dependency that takes the place of
// others has their kinds and stays a data or a control dependency; nodes and fields are otherwise
// as they were. The report lacks the name of the output. InvalidArgument, and nothing is written,
// for ids that occur twice, removed nodes that wait for each other, when over a million dependencies,
// and over 16 times those of a trace, would take the place of others, and when no node is to be kept.
absl::StatusOr<ChakraRewriteReport> FilterEtFiles(FileSystem& file_system, const EtFiles& files,
                                                  const EtFilterOptions& options,
                                                  const std::string& output_prefix);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_ET_FILTER_H_
