// SPDX-License-Identifier: Apache-2.0
// The profiles that a command reads: what --traces lists, or --run_dir holds.
#ifndef TOOLS_PROFILES_H_
#define TOOLS_PROFILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/command_line/flag.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/inspector/inspector_logs.h"

namespace meridian {

// The folder of a run, in place of a list. Every command with profiles has it.
extern Flag<std::string> FLAGS_run_dir;

// Returns the profiles that the flag lists, or --run_dir holds: XSpaces, Kineto traces and logs of
// NCCL Inspector, also those below a folder's plugins/profile/. Of folders and globs that also hold
// something else (execution traces, what viewers made), only these. InvalidArgument when neither is
// given, or both.
absl::StatusOr<std::vector<std::string>> UserProfiles(const Flag<std::string>& flag,
                                                      absl::string_view example);

// Returns the file system that these profiles are to be read from, in which logs of NCCL Inspector
// are Kineto traces (inspector_logs.h). What to know about the logs is appended to the notes, or
// printed on standard error.
absl::StatusOr<std::shared_ptr<FileSystem>> ProfileFileSystem(
    const std::vector<std::string>& profiles, InspectorTimes times = InspectorTimes::kNeeded,
    std::vector<std::string>* notes = nullptr);

}  // namespace meridian

#endif  // TOOLS_PROFILES_H_
