#include "xla_profiler/sources/trace_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"
#include "xla_profiler/sources/trace_sources.h"

namespace meridian {
namespace {

absl::Status NoProfile(const std::string& path, const DetectedFile& file) {
  std::vector<absl::string_view> nouns;
  for (const TraceSource* source : TraceSources()) nouns.push_back(source->noun());
  return InvalidArgument(Printable(path), " is ", file.noun(), "; expected ",
                         absl::StrJoin(nouns, " or "), file.remedy());
}

}  // namespace

absl::StatusOr<const TraceSource*> DetectOneSource(FileSystem& file_system,
                                                   const std::vector<std::string>& paths) {
  // What all are so far, and the first file that is.
  const TraceSource* common = nullptr;
  std::string first, strange;
  DetectedFile unknown;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const DetectedFile file, DetectFile(file_system, path));
    // It may be a broken one of the same source, of which its reader says more.
    if (!file.is_known()) {
      if (strange.empty() || (file.is_empty() && !unknown.is_empty())) {
        strange = path;
        unknown = file;
      }
      continue;
    }
    if (file.source == nullptr) return NoProfile(path, file);
    if (common == nullptr) {
      common = file.source;
      first = path;
    } else if (file.source != common) {
      return InvalidArgument(Printable(first), " is ", common->noun(), ", ", Printable(path),
                             " is ", file.noun(),
                             "; runs of different profilers are not mixed, give those of one");
    }
  }
  // A process that hangs may leave an empty dump.
  const bool may_be_empty = common != nullptr && common->TellsWhyJobsHang();
  if (common == nullptr || (unknown.is_empty() && !may_be_empty)) {
    return NoProfile(strange, unknown);
  }
  return common;
}

absl::StatusOr<TraceFiles> TraceFiles::Create(FileSystem& file_system,
                                              std::vector<std::string> paths,
                                              TraceFilesOptions options) {
  TraceFiles files;
  files.file_system_ = &file_system;
  files.paths_ = files.files_ = std::move(paths);
  files.parts_.resize(files.size());
  files.options_ = std::move(options);
  ASSIGN_OR_RETURN(files.source_, DetectOneSource(file_system, files.paths_));
  if (files.source_->NeedsConversion()) RETURN_IF_ERROR(files.Convert());
  return files;
}

absl::Status TraceFiles::Convert() {
  struct Converted {
    std::string part;
    std::unique_ptr<MappedRegion> trace;
  };
  std::vector<std::vector<Converted>> by_file(files_.size());
  const std::vector<std::string> files = std::move(files_);
  ASSIGN_OR_RETURN(
      notes_,
      source_->Convert(
          files.size(),
          [&](size_t file) { return InputFile::Open(*file_system_, files[file], options_.input); },
          options_.conversion,
          [&](size_t file, const std::string& trace, absl::string_view part) -> absl::Status {
            ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> temporary,
                             file_system_->CreateTemporary(options_.input.temporary_directory));
            RETURN_IF_ERROR(temporary->Append(trace));
            ASSIGN_OR_RETURN(std::unique_ptr<MappedRegion> mapped,
                             file_system_->MapTemporary(*temporary));
            by_file[file].push_back({std::string(part), std::move(mapped)});
            return absl::OkStatus();
          }));
  files_.clear();
  paths_.clear();
  parts_.clear();
  for (size_t file = 0; file < files.size(); ++file) {
    for (Converted& converted : by_file[file]) {
      files_.push_back(files[file]);
      paths_.push_back(converted.part.empty()
                           ? files[file]
                           : absl::StrCat(files[file], " (", converted.part, ")"));
      parts_.push_back(std::move(converted.part));
      converted_.push_back(std::move(converted.trace));
    }
  }
  MERIDIAN_CHECK(!paths_.empty());
  return absl::OkStatus();
}

absl::StatusOr<InputFile> TraceFiles::Open(size_t trace) const {
  if (converted_.empty()) return InputFile::Open(*file_system_, paths_[trace], options_.input);
  return InputFile::OfBytes(converted_[trace]->bytes(), paths_[trace]);
}

}  // namespace meridian
