// SPDX-License-Identifier: Apache-2.0
// The files of one workload: PREFIX.<rank>.et, plain or gzip (PREFIX.<rank>.et.gz), one per rank;
// and how much of a run they hold.
#ifndef CHAKRA_EXPORT_ET_ET_FILES_H_
#define CHAKRA_EXPORT_ET_ET_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/number_range.h"

namespace meridian {

struct EtFile {
  int64_t rank = 0;
  std::string path;
};

struct EtFiles {
  // In the order of the ranks; at least one.
  std::vector<EtFile> files;
  // True for all the files of a prefix, false for one file that was named by its path.
  bool is_prefix = false;
  // Ranks below the highest that have no file. A range is long when a file has an odd name.
  std::vector<NumberRange> missing_ranks;
};

// Returns "PREFIX.<rank>.et".
std::string EtPath(absl::string_view prefix, int64_t rank);

// Returns the files of the prefix in no particular order, also several of one rank.
absl::StatusOr<std::vector<EtFile>> ListEtFiles(FileSystem& file_system, const std::string& prefix);

// Takes a prefix, or the path of one existing file (rank 0 when its name has no .<rank>.et at the
// end; then no ranks are missing, either way). NotFound when there are no such files;
// InvalidArgument naming both when two are of one rank.
absl::StatusOr<EtFiles> FindEtFiles(FileSystem& file_system, const std::string& prefix_or_file);

// OK when every rank up to the highest has a file, else NotFound that names the first without:
// "w: no file for rank 3; expected w.3.et or w.3.et.gz".
absl::Status CheckNoRankIsMissing(const EtFiles& files, absl::string_view prefix);

enum class EtFlavor : uint8_t {
  // What simulators run to the end: device work only, hosts as gaps, communication in one order.
  kSimulation,
  // All that is known: hosts' calls as nodes, groups as a METADATA node.
  kFull,
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_ET_FILES_H_
