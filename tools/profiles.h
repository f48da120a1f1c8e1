// SPDX-License-Identifier: Apache-2.0
// The profiles that a command reads: what --traces lists, or --run_dir holds.
#ifndef TOOLS_PROFILES_H_
#define TOOLS_PROFILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "xla_profiler/base/command_line/flag.h"
#include "xla_profiler/sources/trace_files.h"

namespace meridian {

// The folder of a run, in place of a list. Every command with profiles has it.
extern Flag<std::string> FLAGS_run_dir;

// Returns the profiles that the flag lists: files, folders and globs; of a folder also those below
// its plugins/profile/. Of folders and globs that also hold something else (execution traces, what
// viewers made), only profiles. InvalidArgument when the flag is not given.
absl::StatusOr<std::vector<std::string>> ListedProfiles(const Flag<std::string>& flag,
                                                        absl::string_view example);

// Returns the same, or the profiles that --run_dir holds. InvalidArgument when neither is given, or
// both.
absl::StatusOr<std::vector<std::string>> UserProfiles(const Flag<std::string>& flag,
                                                      absl::string_view example);

// Prints a report's warnings on standard error, unless its JSON is wanted, which has them.
void PrintWarnings(const google::protobuf::RepeatedPtrField<std::string>& warnings);

// Prints on standard error what the source of the files has to say about them.
void PrintNotes(const TraceFiles& files);

}  // namespace meridian

#endif  // TOOLS_PROFILES_H_
