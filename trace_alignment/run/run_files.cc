#include "trace_alignment/run/run_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/sources/trace_sources.h"
#include "xla_profiler/xplane/node_ids.h"

namespace meridian {
namespace {

constexpr absl::string_view kSnapshotSuffixes[] = {
    ".snapshots.jsonl",         ".snapshots.jsonl.gz", ".snapshots.pb",  ".snapshot_pairs.jsonl",
    ".snapshot_pairs.jsonl.gz", ".snapshot_pairs.pb",  ".snapshot.jsonl"};

// Returns the name without the suffix that makes it one of a kind; nullopt when it has none.
template <typename Suffixes>
std::optional<absl::string_view> Stem(absl::string_view name, const Suffixes& suffixes) {
  for (const absl::string_view suffix : suffixes) {
    if (absl::EndsWith(name, suffix) && name.size() > suffix.size()) {
      return absl::StripSuffix(name, suffix);
    }
  }
  return std::nullopt;
}

bool IsJsonl(absl::string_view name) {
  return absl::EndsWith(name, ".jsonl") || absl::EndsWith(name, ".jsonl.gz");
}

bool IsJson(absl::string_view name) {
  return absl::EndsWith(absl::StripSuffix(name, ".gz"), ".json");
}

// What belongs to a run beside its profiles, by its name.
enum class SideFile { kNone, kSnapshots, kOffsets, kProbes };

SideFile SideFileOf(absl::string_view name) {
  if (Stem(name, kSnapshotSuffixes).has_value()) return SideFile::kSnapshots;
  if (!IsJsonl(name)) return SideFile::kNone;
  if (absl::StrContains(name, "offsets")) return SideFile::kOffsets;
  return absl::StrContains(name, "probe") ? SideFile::kProbes : SideFile::kNone;
}

// PyTorch names dumps of its flight recorder nccl_trace_rank_<rank>, or comm_lib_trace_rank_<rank>.
bool IsNamedLikeDumps(absl::string_view path) {
  const absl::string_view last = path.substr(path.rfind('/') + 1);
  return absl::StrContains(last, "_trace_rank_") && !absl::StrContains(last, ".");
}

std::optional<absl::string_view> StemOfTrace(absl::string_view name) {
  static const auto& suffixes = *new std::vector<std::string>(ProfileSuffixes());
  if (IsNamedLikeDumps(name)) return name;
  return SideFileOf(name) == SideFile::kNone ? Stem(name, suffixes) : std::nullopt;
}

// Returns whether all of the file is JSON, one value or one after the other, whatever it says; an
// empty one is not.
bool IsWholeJson(FileSystem& file_system, const std::string& path) {
  const absl::StatusOr<InputFile> file = InputFile::Open(file_system, path, {});
  if (!file.ok() || file->bytes().empty()) return false;
  JsonCutter cutter(file->bytes(), 0, JsonChecks::kAll);
  while (cutter.status().ok() && !cutter.AtEnd()) cutter.CutValue();
  return cutter.status().ok();
}

// Files that are named like profiles and are none: execution traces, reports, what viewers made,
// logs of others. What only XSpaces are named after, and JSON that is damaged, so that it cannot be
// told, is for its reader to refuse. Says of the others whether they are known, and whether they only
// lie beside profiles.
bool IsNoProfile(FileSystem& file_system, const std::string& path, bool* is_known,
                 bool* lies_beside) {
  *is_known = absl::StrContains(path, ".xplane.pb");
  if (*is_known || !StemOfTrace(path).has_value()) return false;
  const absl::StatusOr<DetectedFile> file = DetectFile(file_system, path);
  *is_known = file.ok() && file->source != nullptr;
  // An empty dump is known by its name alone.
  *lies_beside = *is_known ? file->source->TellsWhyJobsHang()
                           : file.ok() && !file->is_known() && IsNamedLikeDumps(path);
  if (*lies_beside) return false;
  if (!IsJson(path)) {
    return !file.ok() || file->source == nullptr ||
           !Stem(absl::StripSuffix(path, ".gz"), file->source->suffixes()).has_value();
  }
  if (!file.ok()) return false;
  return file->is_known() ? file->source == nullptr : IsWholeJson(file_system, path);
}

bool HasTraces(const std::vector<std::string>& files) {
  return std::any_of(files.begin(), files.end(), [](const std::string& name) {
    return SideFileOf(name) == SideFile::kNone && StemOfTrace(name).has_value();
  });
}

// The names of regular files in the folder, in natural order, without JSON that is no profile. What
// is named like a profile and leads nowhere, or is a pipe, is an error: without it the run would be
// another. Notes what is left out since it only lies beside profiles.
absl::StatusOr<std::vector<std::string>> FilesIn(FileSystem& file_system, const std::string& folder,
                                                 std::vector<std::string>* notes = nullptr) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, file_system.List(folder));
  std::vector<std::string> files, beside;
  bool has_profiles = false;
  for (std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    const absl::StatusOr<FileKind> kind = file_system.Kind(path);
    const bool may_be_profile = StemOfTrace(name).has_value() && IsNamedLikeProfiles(name);
    if (absl::IsNotFound(kind.status())) {
      if (!may_be_profile) continue;
      return InvalidArgument(path,
                             ": a link that leads nowhere; remove it, or put the profile there");
    }
    if (!kind.ok()) return kind.status();
    if (*kind == FileKind::kOther && may_be_profile) {
      return InvalidArgument(path, ": not a regular file");
    }
    if (*kind != FileKind::kRegular) continue;
    const bool is_side_file = SideFileOf(name) != SideFile::kNone;
    bool is_known = false, lies_beside = false;
    if (!is_side_file && IsNoProfile(file_system, path, &is_known, &lies_beside)) continue;
    has_profiles |= is_known && !lies_beside;
    (lies_beside ? beside : files).push_back(std::move(name));
  }
  // What is not known may be a damaged one of either.
  if (!has_profiles) {
    files.insert(files.end(), beside.begin(), beside.end());
  } else if (!beside.empty() && notes != nullptr) {
    notes->push_back(
        absl::StrCat(folder, ": ", beside.size(),
                     " flight recorder dump(s) beside the profiles were not read; "
                     "validate_collectives --traces=... of them says whether the job hangs"));
  }
  std::sort(files.begin(), files.end(), NaturalLess);
  return files;
}

// The folders below `folder` that hold profiles.
absl::StatusOr<std::vector<std::string>> RunsBelow(FileSystem& file_system,
                                                   const std::string& folder) {
  std::vector<std::string> runs;
  const absl::StatusOr<FileKind> kind = file_system.Kind(folder);
  if (absl::IsNotFound(kind.status())) return runs;
  if (!kind.ok()) return kind.status();
  if (*kind != FileKind::kDirectory) return runs;
  ASSIGN_OR_RETURN(std::vector<std::string> names, file_system.List(folder));
  std::sort(names.begin(), names.end(), NaturalLess);
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    const absl::StatusOr<FileKind> below = file_system.Kind(path);
    if (!below.ok() || *below != FileKind::kDirectory) continue;
    ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesIn(file_system, path));
    if (HasTraces(files)) runs.push_back(path);
  }
  return runs;
}

// True when no host's profile is in two of the folders.
absl::StatusOr<bool> AreOfDifferentHosts(FileSystem& file_system,
                                         const std::vector<std::string>& folders) {
  std::set<std::string> hosts;
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesIn(file_system, folder));
    for (const std::string& name : files) {
      const std::optional<absl::string_view> host = StemOfTrace(name);
      if (host.has_value() && !hosts.insert(std::string(*host)).second) return false;
    }
  }
  return true;
}

// Returns the one of the snapshot files that belongs to the trace: of the same stem, else of the
// same last number; empty when there is none.
absl::StatusOr<std::string> SnapshotsOf(const std::string& trace,
                                        const std::vector<std::string>& snapshots) {
  const absl::string_view stem = *StemOfTrace(trace);
  std::vector<std::string> same_stem, same_number;
  const std::optional<int64_t> number = LastIntegerInFileName(stem);
  for (const std::string& file : snapshots) {
    const absl::string_view other = *Stem(file, kSnapshotSuffixes);
    if (other == stem) same_stem.push_back(file);
    if (number.has_value() && LastIntegerInFileName(other) == number) same_number.push_back(file);
  }
  const std::vector<std::string>& found = same_stem.empty() ? same_number : same_stem;
  if (found.size() > 1) {
    return InvalidArgument("several snapshot files may be of ", trace, ": ",
                           absl::StrJoin(found, ", "), "; name them with --snapshots");
  }
  return found.empty() ? std::string() : found[0];
}

// Returns what the folder is called: the last of ".", "run/" and "run/sub/.." is none.
std::string NameOfFolder(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(folder, error).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindRunFolders(FileSystem& file_system,
                                                        const std::string& run_dir) {
  ASSIGN_OR_RETURN(const FileKind kind, file_system.Kind(run_dir));
  if (kind != FileKind::kDirectory) {
    return InvalidArgument("--run_dir=", run_dir, " is no folder; name single files with --traces");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesIn(file_system, run_dir));
  ASSIGN_OR_RETURN(std::vector<std::string> runs,
                   RunsBelow(file_system, absl::StrCat(run_dir, "/plugins/profile")));
  if (HasTraces(files)) {
    if (runs.empty()) return std::vector<std::string>{run_dir};
    return InvalidArgument(
        "--run_dir=", run_dir, " holds profiles, and plugins/profile/ below it ", runs.size(),
        " run(s); name the files of one with --traces, or give one of --run_dir=",
        absl::StrJoin(runs, ", --run_dir="));
  }
  if (runs.empty()) {
    ASSIGN_OR_RETURN(runs, RunsBelow(file_system, run_dir));
  }
  if (runs.empty()) {
    std::string other;
    ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system.List(run_dir));
    for (const std::string& name : names) {
      const absl::StatusOr<DetectedFile> file = DetectFile(file_system, run_dir + "/" + name);
      if (!other.empty() || !StemOfTrace(name).has_value() || !file.ok()) continue;
      other = absl::StrCat("; ", Printable(name), " is ", file->noun());
    }
    return NotFound("--run_dir=", run_dir,
                    ": neither it nor plugins/profile/<run>/ below it holds *.xplane.pb files, "
                    "Kineto traces, .pftrace files, databases of nsys or rocprofv3, flight "
                    "recorder dumps, logs of NCCL Inspector or tables of operations",
                    other);
  }
  ASSIGN_OR_RETURN(const bool are_one, AreOfDifferentHosts(file_system, runs));
  if (are_one) return runs;
  return InvalidArgument(
      "--run_dir=", run_dir, " holds ", runs.size(),
      " runs of the same hosts; give one of --run_dir=", absl::StrJoin(runs, ", --run_dir="));
}

absl::StatusOr<RunFiles> FindRunFiles(FileSystem& file_system, const std::string& run_dir,
                                      const RunFilesOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> folders, FindRunFolders(file_system, run_dir));
  RunFiles run;
  run.name = NameOfFolder(folders[0]);
  if (folders.size() > 1) {
    run.notes.push_back(absl::StrCat("the profiles of ", folders.size(), " folders below ", run_dir,
                                     " are taken for one run, since no host is in two of them"));
  }
  std::vector<std::string> traces, snapshots, offsets;
  std::map<std::string, std::string> folder_of;
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(const std::vector<std::string> files,
                     FilesIn(file_system, folder, &run.notes));
    for (const std::string& name : files) {
      folder_of.insert({name, folder});
      switch (SideFileOf(name)) {
        case SideFile::kSnapshots:
          if (options.find_snapshots) snapshots.push_back(name);
          break;
        case SideFile::kOffsets:
          if (options.find_offsets) offsets.push_back(name);
          break;
        case SideFile::kProbes:
          if (options.find_probes) run.probes.push_back(absl::StrCat(folder, "/", name));
          break;
        case SideFile::kNone:
          if (StemOfTrace(name).has_value()) traces.push_back(name);
      }
    }
  }
  const auto in_folder = [&](const std::string& name) {
    return absl::StrCat(folder_of.at(name), "/", name);
  };
  std::sort(traces.begin(), traces.end(), NaturalLess);
  if (offsets.size() > 1) {
    return InvalidArgument("--run_dir=", run_dir,
                           " holds several files of offsets: ", absl::StrJoin(offsets, ", "),
                           "; name one with --offsets");
  }
  if (!offsets.empty()) run.offsets = in_folder(offsets[0]);
  for (const std::string& trace : traces) {
    run.traces.push_back(in_folder(trace));
    if (snapshots.empty()) continue;
    ASSIGN_OR_RETURN(const std::string found, SnapshotsOf(trace, snapshots));
    run.snapshots.push_back(found.empty() ? found : in_folder(found));
  }
  return run;
}

absl::StatusOr<std::vector<std::string>> FindRunTraces(FileSystem& file_system,
                                                       const std::string& run_dir,
                                                       std::vector<std::string>* notes) {
  RunFilesOptions options;
  options.find_snapshots = options.find_offsets = options.find_probes = false;
  ASSIGN_OR_RETURN(RunFiles run, FindRunFiles(file_system, run_dir, options));
  if (notes != nullptr) notes->insert(notes->end(), run.notes.begin(), run.notes.end());
  return std::move(run.traces);
}

}  // namespace meridian
