// SPDX-License-Identifier: Apache-2.0
// The profiles that a command reads: what --traces lists, or --run_dir holds.
#ifndef TOOLS_PROFILES_H_
#define TOOLS_PROFILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "xla_profiler/base/command_line/flag.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {

// The folder of a run, in place of a list. Every command with profiles has it.
extern Flag<std::string> FLAGS_run_dir;

// Rows for the table of communication kernels (communication_kernel.h).
extern Flag<std::string> FLAGS_collective_kernels;

// Adds the rows of --collective_kernels, if it is given. Call it before profiles are read.
absl::Status UseCollectiveKernels();

// Returns the profiles that the flag lists: files, folders and globs; of a folder also those below
// its plugins/profile/. Of folders and globs that also hold something else (execution traces, what
// viewers made), only profiles. InvalidArgument when the flag is not given.
absl::StatusOr<std::vector<std::string>> ListedProfiles(const Flag<std::string>& flag,
                                                        absl::string_view example);

// Returns the same, or the profiles that --run_dir holds. InvalidArgument when neither is given, or
// both.
absl::StatusOr<std::vector<std::string>> UserProfiles(const Flag<std::string>& flag,
                                                      absl::string_view example);

// Returns the numbers, from 0, of a comma list: of one that has them all, and of one in which some
// may be absent, ",,1794701451000". InvalidArgument names what is none.
absl::StatusOr<std::vector<int64_t>> ListedNumbers(const Flag<std::string>& flag);
absl::StatusOr<std::vector<std::optional<int64_t>>> ListedOrAbsent(const Flag<std::string>& flag);

// Returns an error, with what to do with others, for files that are something else than trace events
// in JSON.
absl::Status CheckIsTraceJson(const std::string& path, absl::string_view remedy);

// Prints a report's warnings on standard error, unless its JSON is wanted, which has them.
void PrintWarnings(const google::protobuf::RepeatedPtrField<std::string>& warnings);

// Prints on standard error what a person should know, e.g. what the source of files says of them.
void PrintNotes(const std::vector<std::string>& notes);

// Returns the trace of the files of a command that takes one. InvalidArgument when there are several
// in one file.
absl::StatusOr<InputFile> OpenOnlyTrace(const TraceFiles& files);

}  // namespace meridian

#endif  // TOOLS_PROFILES_H_
