// Puts the files of one workload in their places, so that a prefix never holds files of two:
//
//   PREFIX.<rank>.et         of each rank
//   PREFIX.comm_groups.json  the ranks of groups, if there are any beside that of all ranks
#ifndef CHAKRA_EXPORT_ET_ET_WORKLOAD_FILES_H_
#define CHAKRA_EXPORT_ET_ET_WORKLOAD_FILES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_writer.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// A trace on the disk, under no name yet.
struct PreparedTrace {
  EtFile file;
  std::unique_ptr<EtWriter> writer;
};

struct WrittenWorkload {
  // In the order of ranks.
  std::vector<EtFile> files;
  // Empty when no group is other than that of all ranks.
  std::string comm_groups;
  // Files of an earlier workload that are gone.
  std::vector<std::string> removed;
};

// Gives the traces their names and writes the groups, if there are any. Then removes what an
// earlier workload left under the prefix and readers would take for part of this one: traces of
// other ranks from `rank_count` on (smaller ones may have been written by another run), a rank's
// trace in the other form (.et or .et.gz), and the groups when this workload has none. Without a
// count these are some ranks of a workload that may have others: only other forms of theirs are
// removed. No file is replaced before all are on the disk.
absl::StatusOr<WrittenWorkload> CommitWorkload(FileSystem& file_system, const std::string& prefix,
                                               const std::vector<PreparedTrace>& traces,
                                               const CommGroups& groups,
                                               std::optional<int64_t> rank_count);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_ET_WORKLOAD_FILES_H_
