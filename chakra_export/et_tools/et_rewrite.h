// SPDX-License-Identifier: Apache-2.0
// New Chakra traces from given ones: with fewer nodes, or without what they say about a program.
//
// Both functions write PREFIX.<rank>.et for each file and the groups, in place of an earlier workload
// when the files are those of a prefix (see EtWorkloadWriter::Commit). Nothing is written when a file
// is bad. The reports lack the name of the output.
#ifndef CHAKRA_EXPORT_ET_TOOLS_ET_REWRITE_H_
#define CHAKRA_EXPORT_ET_TOOLS_ET_REWRITE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "xla_profiler/base/files/file_system.h"

namespace ChakraProtoMsg {
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

class ChakraRewriteReport;

// Says whether a node is chosen.
using NodeFilter = std::function<bool(const ChakraProtoMsg::Node& node)>;

// Returns the filter of nodes that are of one of the types ("COMP_NODE,COMM_COLL_NODE"), have a name
// in which the regular expression is found, and an id of the range ("1..4"); an empty text chooses
// all. Errors say --types, --names or --ids.
absl::StatusOr<NodeFilter> ParseNodeFilter(absl::string_view types, const std::string& names,
                                           absl::string_view ids);

struct EtFilterOptions : EtReaderOptions {
  // True for the nodes to keep.
  NodeFilter keep;
  // The groups of the traces; written beside the new ones.
  CommGroups groups;
};

// Takes nodes out so that the rest still runs in the same order: what waited for a node that goes
// waits for what that node waited for. A dependency that takes the place of others has their kinds
// and stays a data or a control dependency; nodes and fields are otherwise as they were.
// InvalidArgument for ids that occur twice, removed nodes that wait for each other, when over a
// million dependencies, and over 16 times those of a trace, would take the place of others, and when
// no node is to be kept.
absl::StatusOr<ChakraRewriteReport> FilterEtFiles(FileSystem& file_system, const EtFiles& files,
                                                  const EtFilterOptions& options,
                                                  const std::string& output_prefix);

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

// Makes traces that can be given away: a simulation of them gives the same result, and they say
// nothing else about the program.
//
//   kept       ids, types, dependencies and their kinds, durations, and the attributes that
//              simulators and this project read (sizes, peers, groups, streams, num_ops, ...)
//   replaced   names, the same ones by the same ones on all ranks; threads by 1, 2, ...; groups whose
//              name is no number
//   shifted    start times, so that the first is kFirstStartNs
//   left out   inputs and outputs, all other attributes, descriptions, metadata, unknown fields
absl::StatusOr<ChakraRewriteReport> ObfuscateEtFiles(FileSystem& file_system, const EtFiles& files,
                                                     const EtObfuscatorOptions& options,
                                                     const std::string& output_prefix);

// Return the reports as text for people.
std::string FormatFilterReport(const ChakraRewriteReport& report);
std::string FormatObfuscationReport(const ChakraRewriteReport& report);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_TOOLS_ET_REWRITE_H_
