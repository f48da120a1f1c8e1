#include "chakra_export/et/et_workload_files.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// Returns the traces under the prefix that `written` leaves behind.
absl::StatusOr<std::vector<std::string>> StaleTraces(FileSystem& file_system,
                                                     const std::string& prefix, int64_t rank_count,
                                                     const std::vector<EtFile>& written) {
  // A directory may be spelled in several ways; all of these are in the same.
  std::map<int64_t, std::string> names;
  for (const EtFile& file : written) names[file.rank] = FileName(file.path);
  ASSIGN_OR_RETURN(const std::vector<EtFile> found, ListEtFiles(file_system, prefix));
  std::vector<std::string> stale;
  for (const EtFile& file : found) {
    const auto name = names.find(file.rank);
    const bool is_stale =
        name == names.end() ? file.rank >= rank_count : name->second != FileName(file.path);
    if (is_stale) stale.push_back(file.path);
  }
  std::sort(stale.begin(), stale.end());
  return stale;
}

}  // namespace

absl::StatusOr<WrittenWorkload> CommitWorkload(FileSystem& file_system, const std::string& prefix,
                                               const std::vector<PreparedTrace>& traces,
                                               const CommGroups& groups,
                                               std::optional<int64_t> rank_count) {
  WrittenWorkload written;
  const std::string groups_path = CommGroupsPath(prefix);
  std::unique_ptr<AtomicFileWriter> groups_file;
  if (!groups.empty()) {
    written.comm_groups = groups_path;
    ASSIGN_OR_RETURN(groups_file, AtomicFileWriter::Create(file_system, groups_path));
    RETURN_IF_ERROR(groups_file->Append(CommGroupsJson(groups)));
    RETURN_IF_ERROR(groups_file->Prepare());
  }
  for (const PreparedTrace& trace : traces) {
    RETURN_IF_ERROR(trace.writer->Commit());
    written.files.push_back(trace.file);
  }
  if (groups_file != nullptr) RETURN_IF_ERROR(groups_file->Commit());

  constexpr int64_t kAnyRank = std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(written.removed,
                   StaleTraces(file_system, prefix, rank_count.value_or(kAnyRank), written.files));
  if (groups.empty() && rank_count.has_value() && file_system.Kind(groups_path).ok()) {
    written.removed.push_back(groups_path);
  }
  for (const std::string& path : written.removed) RETURN_IF_ERROR(file_system.Delete(path));
  return written;
}

}  // namespace meridian
