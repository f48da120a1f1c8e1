#include "xla_profiler/base/files/input_paths.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

bool HasSuffix(absl::string_view name, const std::vector<std::string>& suffixes) {
  return suffixes.empty() ||
         std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const std::string& suffix) { return absl::EndsWith(name, suffix); });
}

std::string QuoteGlob(absl::string_view path) {
  return absl::StrReplaceAll(path, {{"\\", "\\\\"}, {"*", "\\*"}, {"?", "\\?"}, {"[", "\\["}});
}

// Expands one item after the other and watches for files that come twice.
class Expander {
 public:
  Expander(FileSystem& file_system, const ExpandOptions& options)
      : file_system_(file_system), options_(options) {}

  absl::Status AddItem(const std::string& item) {
    if (item.empty()) return InvalidArgument("an item of the list is empty");
    const size_t size_before = paths_.size();
    const std::string path = ResolvePath(item, options_.working_directory);
    const absl::StatusOr<FileKind> kind = file_system_.Kind(path);
    if (kind.ok()) {
      RETURN_IF_ERROR(AddPath(path, *kind, item));
    } else if (absl::IsNotFound(kind.status())) {
      RETURN_IF_ERROR(AddGlob(item));
    } else {
      return kind.status();
    }
    if (paths_.size() == size_before) return NothingFound(item, kind.ok());
    return absl::OkStatus();
  }

  std::vector<std::string> TakePaths() { return std::move(paths_); }

 private:
  absl::Status AddGlob(const std::string& item) {
    const std::string pattern = ResolvePath(item, QuoteGlob(options_.working_directory));
    ASSIGN_OR_RETURN(std::vector<std::string> matches, file_system_.Glob(pattern));
    std::sort(matches.begin(), matches.end(), NaturalLess);
    for (const std::string& match : matches) {
      ASSIGN_OR_RETURN(const FileKind kind, file_system_.Kind(match));
      RETURN_IF_ERROR(AddPath(match, kind, item));
    }
    return absl::OkStatus();
  }

  absl::Status AddPath(const std::string& path, FileKind kind, const std::string& item) {
    return kind == FileKind::kDirectory ? AddFolder(path, item) : AddFile(path, item);
  }

  absl::Status AddFolder(const std::string& folder, const std::string& item) {
    ASSIGN_OR_RETURN(std::vector<std::string> names, file_system_.List(folder));
    std::sort(names.begin(), names.end(), NaturalLess);
    for (const std::string& name : names) {
      if (!HasSuffix(name, options_.folder_suffixes)) continue;
      const std::string path = ResolvePath(name, folder);
      ASSIGN_OR_RETURN(const FileKind kind, file_system_.Kind(path));
      if (kind == FileKind::kRegular) RETURN_IF_ERROR(AddFile(path, item));
    }
    return absl::OkStatus();
  }

  absl::Status AddFile(const std::string& path, const std::string& item) {
    const std::string normal_path = std::filesystem::path(path).lexically_normal().string();
    const auto [first, is_new] = items_.emplace(normal_path, item);
    if (!is_new) {
      return InvalidArgument(path, ": named twice, by ", first->second, " and by ", item);
    }
    paths_.push_back(path);
    return absl::OkStatus();
  }

  absl::Status NothingFound(const std::string& item, bool is_folder) const {
    if (!is_folder) return NotFound(item, ": no such file or folder");
    return NotFound(item, ": no ",
                    options_.folder_suffixes.empty()
                        ? "file"
                        : absl::StrCat(absl::StrJoin(options_.folder_suffixes, " or "), " file"),
                    " in this folder");
  }

  FileSystem& file_system_;
  const ExpandOptions& options_;
  std::vector<std::string> paths_;
  // The item that named each file first.
  std::map<std::string, std::string> items_;
};

}  // namespace

bool NaturalLess(const std::string& a, const std::string& b) {
  return strverscmp(a.c_str(), b.c_str()) < 0;
}

std::string ResolvePath(absl::string_view path, absl::string_view working_directory) {
  if (path.empty() || path[0] == '/' || working_directory.empty()) return std::string(path);
  return absl::StrCat(working_directory, absl::EndsWith(working_directory, "/") ? "" : "/", path);
}

absl::StatusOr<std::vector<std::string>> ExpandPaths(FileSystem& file_system,
                                                     absl::string_view comma_list,
                                                     const ExpandOptions& options) {
  if (comma_list.empty()) return InvalidArgument("the list of files is empty");
  Expander expander(file_system, options);
  for (absl::string_view item : absl::StrSplit(comma_list, ',')) {
    RETURN_IF_ERROR(expander.AddItem(std::string(item)));
  }
  return expander.TakePaths();
}

}  // namespace meridian
