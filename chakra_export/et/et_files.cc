#include "chakra_export/et/et_files.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Ranks are int32 wherever a node names a peer.
constexpr int64_t kMaxRank = std::numeric_limits<int32_t>::max();

// Removes ".<rank>.et" or ".<rank>.et.gz" from the end of the name and returns the rank.
std::optional<int64_t> ConsumeRank(absl::string_view* name) {
  absl::string_view rest = *name;
  absl::ConsumeSuffix(&rest, ".gz");
  if (!absl::ConsumeSuffix(&rest, ".et")) return std::nullopt;
  const size_t dot = rest.rfind('.');
  if (dot == absl::string_view::npos) return std::nullopt;
  const absl::string_view digits = rest.substr(dot + 1);
  int64_t rank = 0;
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &rank) || rank > kMaxRank) {
    return std::nullopt;
  }
  *name = rest.substr(0, dot);
  return rank;
}

}  // namespace

std::string EtPath(absl::string_view prefix, int64_t rank) {
  return absl::StrCat(prefix, ".", rank, ".et");
}

absl::StatusOr<std::vector<EtFile>> ListEtFiles(FileSystem& file_system,
                                                const std::string& prefix) {
  const std::filesystem::path path(prefix);
  const std::filesystem::path directory = path.parent_path();
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   file_system.List(directory.empty() ? "." : directory.string()));
  std::vector<EtFile> files;
  for (const std::string& name : names) {
    absl::string_view stem = name;
    const std::optional<int64_t> rank = ConsumeRank(&stem);
    if (!rank.has_value() || stem != path.filename().string()) continue;
    files.push_back({*rank, (directory / name).string()});
  }
  return files;
}

absl::StatusOr<EtFiles> FindEtFiles(FileSystem& file_system, const std::string& prefix_or_file) {
  const absl::StatusOr<FileKind> kind = file_system.Kind(prefix_or_file);
  if (kind.ok() && *kind != FileKind::kDirectory) {
    absl::string_view name = prefix_or_file;
    EtFiles one;
    one.files.push_back({ConsumeRank(&name).value_or(0), prefix_or_file});
    return one;
  }
  if (!kind.ok() && !absl::IsNotFound(kind.status())) return kind.status();
  EtFiles found;
  found.is_prefix = true;
  ASSIGN_OR_RETURN(found.files, ListEtFiles(file_system, prefix_or_file));
  if (found.files.empty()) {
    return NotFound(prefix_or_file, ": neither a file nor the prefix of any (there is no ",
                    EtPath(prefix_or_file, 0), "); expected PREFIX of PREFIX.<rank>.et");
  }
  std::sort(found.files.begin(), found.files.end(), [](const EtFile& a, const EtFile& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.path < b.path;
  });
  int64_t next_rank = 0;
  for (size_t i = 0; i < found.files.size(); ++i) {
    const EtFile& file = found.files[i];
    if (file.rank < next_rank) {
      return InvalidArgument(found.files[i - 1].path, " and ", file.path, " are both of rank ",
                             file.rank, "; remove one of them");
    }
    if (file.rank > next_rank) found.missing_ranks.push_back({next_rank, file.rank - 1});
    next_rank = file.rank + 1;
  }
  return found;
}

absl::Status CheckNoRankIsMissing(const EtFiles& files, absl::string_view prefix) {
  if (files.missing_ranks.empty()) return absl::OkStatus();
  const int64_t rank = files.missing_ranks[0].first;
  const std::string example = EtPath(prefix, rank);
  return NotFound(prefix, ": no file for rank ", rank, "; expected ", example, " or ", example,
                  ".gz");
}

}  // namespace meridian
