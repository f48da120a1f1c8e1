#include "tools/profiles.h"

#include <cstdio>
#include <set>
#include <utility>

#include "absl/strings/str_split.h"
#include "tools/command.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/sources/trace_sources.h"

namespace meridian {

Flag<std::string> FLAGS_run_dir(
    "run_dir", "",
    "The folder of a run, in place of a list: its profiles, or those of the run below its "
    "plugins/profile/. For combine also its snapshot pairs, offsets and probes.");

absl::StatusOr<std::vector<std::string>> ListedProfiles(const Flag<std::string>& flag,
                                                        absl::string_view example) {
  FileSystem& file_system = FileSystem::Posix();
  RETURN_IF_ERROR(RequiredPath(flag, "file", example).status());
  const ExpandOptions options = {UserDirectory(), ProfileSuffixes()};
  std::vector<std::string> files;
  // What is named is read, or refused.
  std::set<std::string> kept;
  for (absl::string_view item : absl::StrSplit(flag.value(), ',')) {
    const std::string path = UserPath(std::string(item));
    kept.insert(path);
    const absl::StatusOr<FileKind> kind = file_system.Kind(path);
    if (kind.ok() && *kind == FileKind::kDirectory) {
      // Its profiles, or those of the run below plugins/profile/.
      const absl::StatusOr<std::vector<std::string>> run = FindRunTraces(file_system, path);
      if (run.ok()) {
        files.insert(files.end(), run->begin(), run->end());
        continue;
      }
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> expanded,
                     ExpandPaths(file_system, item, options));
    files.insert(files.end(), expanded.begin(), expanded.end());
  }
  for (std::string& file : KeepProfiles(file_system, files)) kept.insert(std::move(file));
  std::vector<std::string> profiles;
  for (const std::string& file : files) {
    if (kept.count(file) > 0) {
      profiles.push_back(file);
    } else if (const absl::StatusOr<DetectedFile> detected = DetectFile(file_system, file);
               detected.ok() && detected->other == OtherFile::kTraceJson) {
      // It might be meant: execution traces and logs of others cannot.
      std::fprintf(stderr, "note: %s was left out: it is %s\n", Printable(file).c_str(),
                   std::string(detected->noun()).c_str());
    }
  }
  return profiles;
}

absl::StatusOr<std::vector<std::string>> UserProfiles(const Flag<std::string>& flag,
                                                      absl::string_view example) {
  if (FLAGS_run_dir.value().empty()) return ListedProfiles(flag, example);
  if (!flag.value().empty()) {
    return InvalidArgument("give either --run_dir or --", flag.name(), ": both name the profiles");
  }
  return FindRunTraces(FileSystem::Posix(), UserPath(FLAGS_run_dir));
}

void PrintWarnings(const google::protobuf::RepeatedPtrField<std::string>& warnings) {
  if (JsonWanted()) return;
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "warning: %s\n", Printable(warning).c_str());
  }
}

void PrintNotes(const TraceFiles& files) {
  for (const std::string& note : files.notes()) {
    std::fprintf(stderr, "note: %s\n", Printable(note).c_str());
  }
}

}  // namespace meridian
