#include "tools/profiles.h"

#include <cstdio>
#include <set>
#include <utility>

#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tools/command.h"
#include "tools/pipeline/run_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/trace_kind/trace_kind.h"

ABSL_FLAG(std::string, run_dir, "",
          "The folder of a run, in place of a list: its profiles, or those of the run below its "
          "plugins/profile/.");

namespace meridian {

absl::StatusOr<std::vector<std::string>> UserProfiles(const absl::Flag<std::string>& flag,
                                                      absl::string_view example) {
  std::string list = absl::GetFlag(FLAGS_run_dir);
  if (list.empty()) {
    RETURN_IF_ERROR(RequiredPath(flag, "file", example).status());
    list = absl::GetFlag(flag);
  } else if (!absl::GetFlag(flag).empty()) {
    return absl::InvalidArgumentError(absl::StrCat("give either --run_dir or --",
                                                   absl::GetFlagReflectionHandle(flag).Name(),
                                                   ": both name the profiles"));
  } else {
    // Says so when it is none, or holds none.
    RETURN_IF_ERROR(FindRunFolders(FileSystem::Posix(), UserPath(FLAGS_run_dir)).status());
  }
  const ExpandOptions options = {
      UserDirectory(), {".xplane.pb", ".xplane.pb.gz", ".json", ".json.gz", ".log", ".log.gz"}};
  // A folder without profiles of its own may hold them below plugins/profile/.
  std::vector<std::string> items;
  for (absl::string_view item : absl::StrSplit(list, ',')) {
    const std::string path = UserPath(std::string(item));
    const absl::StatusOr<FileKind> kind = FileSystem::Posix().Kind(path);
    const bool is_folder = kind.ok() && *kind == FileKind::kDirectory;
    if (!is_folder || ExpandPaths(FileSystem::Posix(), item, options).ok()) {
      items.push_back(std::string(item));
      continue;
    }
    const absl::StatusOr<std::vector<std::string>> folders =
        FindRunFolders(FileSystem::Posix(), path);
    if (absl::IsNotFound(folders.status())) {
      items.push_back(std::string(item));
      continue;
    }
    RETURN_IF_ERROR(folders.status());
    items.insert(items.end(), folders->begin(), folders->end());
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> files,
                   ExpandPaths(FileSystem::Posix(), absl::StrJoin(items, ","), options));
  std::set<std::string> kept;
  for (std::string& file : KeepProfiles(FileSystem::Posix(), files)) kept.insert(std::move(file));
  // What is named is read, or refused.
  for (absl::string_view item : absl::StrSplit(list, ',')) {
    kept.insert(UserPath(std::string(item)));
  }
  std::vector<std::string> profiles;
  for (const std::string& file : files) {
    if (kept.count(file) > 0) {
      profiles.push_back(file);
    } else if (const absl::StatusOr<TraceKind> kind = TellTraceKind(FileSystem::Posix(), file);
               kind.ok() && *kind == TraceKind::kTraceJson) {
      // It might be meant: execution traces and logs of others can not.
      std::fprintf(stderr, "note: %s is %s and left out\n", Printable(file).c_str(),
                   std::string(TraceKindText(*kind)).c_str());
    }
  }
  return profiles;
}

absl::StatusOr<std::shared_ptr<FileSystem>> ProfileFileSystem(
    const std::vector<std::string>& profiles, InspectorTimes times) {
  std::vector<std::string> notes;
  absl::StatusOr<std::shared_ptr<FileSystem>> files =
      InspectorLogsAsKineto(FileSystem::Posix(), profiles, UserInputOptions(), times, &notes);
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  return files;
}

}  // namespace meridian
