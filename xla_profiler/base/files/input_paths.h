// SPDX-License-Identifier: Apache-2.0
// From what a user types to the files that are meant.
#ifndef XLA_PROFILER_BASE_FILES_INPUT_PATHS_H_
#define XLA_PROFILER_BASE_FILES_INPUT_PATHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// True when a comes before b with runs of digits compared as numbers: rank2 < rank10.
bool NaturalLess(const std::string& a, const std::string& b);

// Returns the path as seen from `working_directory` (empty: the process's own). `bazel run` starts
// programs elsewhere and names the user's directory in BUILD_WORKING_DIRECTORY. An empty path, as
// of a flag that was not given, stays empty.
std::string ResolvePath(absl::string_view path, absl::string_view working_directory);

struct ExpandOptions {
  // Relative paths start here; empty: the process's own.
  std::string working_directory;
  // Which files of a folder count, e.g. {".xplane.pb", ".xplane.pb.gz"}; empty: all regular files.
  std::vector<std::string> folder_suffixes;
};

// Expands a comma list of files, folders and globs. The order is the list's; within a folder or
// glob it is natural. A folder that a glob matches is expanded like one that is named. An item that
// matches nothing is NotFound; the same path twice is InvalidArgument naming both items; an empty
// list or item is InvalidArgument. A path that exists as written is never taken for a glob.
absl::StatusOr<std::vector<std::string>> ExpandPaths(FileSystem& file_system,
                                                     absl::string_view comma_list,
                                                     const ExpandOptions& options);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_FILES_INPUT_PATHS_H_
