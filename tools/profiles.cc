#include "tools/profiles.h"

#include <cstdio>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/command.h"
#include "trace_alignment/run/run_files.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/collectives/communication_kernel.h"
#include "xla_profiler/sources/trace_sources.h"

namespace meridian {

Flag<std::string> FLAGS_run_dir(
    "run_dir", "",
    "The folder of a run, in place of a list: its profiles, or those of the run below its "
    "plugins/profile/. For combine also its snapshot pairs, offsets and probes.");

Flag<std::string> FLAGS_collective_kernels(
    "collective_kernels", "",
    "A file that names more kernels that communicate, a line each: a regular expression (RE2), a "
    "comma and the kind (all-reduce, all-gather, reduce-scatter, all-to-all, barrier, unknown).");

absl::Status UseCollectiveKernels() {
  if (FLAGS_collective_kernels.value().empty()) return absl::OkStatus();
  const std::string path = UserPath(FLAGS_collective_kernels);
  ASSIGN_OR_RETURN(const InputFile file,
                   InputFile::Open(FileSystem::Posix(), path, UserInputOptions()));
  return AddCommunicationKernels(file.bytes(), path);
}

absl::Status CheckIsTraceJson(const std::string& path, absl::string_view remedy) {
  ASSIGN_OR_RETURN(const DetectedFile file, DetectFile(FileSystem::Posix(), path));
  const bool is_json =
      file.source == nullptr
          ? file.other == OtherFile::kTraceJson || file.other == OtherFile::kCombinedKineto ||
                absl::StartsWith(file.noun(), "JSON")
          : file.source->form() == TraceForm::kKineto && !file.source->NeedsConversion();
  if (is_json) return absl::OkStatus();
  return InvalidArgument(Printable(path), " is ", file.noun(), "; expected a Kineto trace, ",
                         remedy);
}

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
      std::vector<std::string> notes;
      const absl::StatusOr<std::vector<std::string>> run = FindRunTraces(file_system, path, &notes);
      PrintNotes(notes);
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
               detected.ok() &&
               (detected->other == OtherFile::kTraceJson || detected->source != nullptr)) {
      // It might be meant: execution traces and logs of others cannot.
      PrintNotes({absl::StrCat(file, " was left out: it is ", detected->noun())});
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
  std::vector<std::string> notes;
  ASSIGN_OR_RETURN(std::vector<std::string> traces,
                   FindRunTraces(FileSystem::Posix(), UserPath(FLAGS_run_dir), &notes));
  PrintNotes(notes);
  return traces;
}

absl::StatusOr<std::vector<std::optional<int64_t>>> ListedOrAbsent(const Flag<std::string>& flag) {
  std::vector<std::optional<int64_t>> numbers;
  if (flag.value().empty()) return numbers;
  for (const absl::string_view part : absl::StrSplit(flag.value(), ',')) {
    int64_t number = 0;
    if (!part.empty() && (!absl::SimpleAtoi(part, &number) || number < 0)) {
      return InvalidArgument("--", flag.name(), "=", flag.value(), ": '", part,
                             "' is no number from 0; expected e.g. 0,1,2");
    }
    numbers.push_back(part.empty() ? std::nullopt : std::make_optional(number));
  }
  return numbers;
}

absl::StatusOr<std::vector<int64_t>> ListedNumbers(const Flag<std::string>& flag) {
  ASSIGN_OR_RETURN(const std::vector<std::optional<int64_t>> listed, ListedOrAbsent(flag));
  std::vector<int64_t> numbers;
  for (const std::optional<int64_t>& number : listed) {
    if (!number.has_value()) return InvalidArgument("--", flag.name(), ": a number is missing");
    numbers.push_back(*number);
  }
  return numbers;
}

void PrintWarnings(const google::protobuf::RepeatedPtrField<std::string>& warnings) {
  if (JsonWanted()) return;
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "warning: %s\n", Printable(warning).c_str());
  }
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    std::fprintf(stderr, "note: %s\n", Printable(note).c_str());
  }
}

absl::StatusOr<InputFile> OpenOnlyTrace(const TraceFiles& files) {
  if (files.size() == 1) return files.Open(0);
  return InvalidArgument(Printable(files.FileOf(0)), " holds ", files.size(), " traces (",
                         files.PartOf(0), ", ", files.PartOf(1),
                         "...); combine --traces=... --output_dir=... makes a file of each");
}

}  // namespace meridian
