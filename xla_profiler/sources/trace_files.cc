#include "xla_profiler/sources/trace_files.h"

#include <utility>

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
                         absl::StrJoin(nouns, " or "));
}

const TraceSource* XSpaces() { return TraceSources().back(); }

}  // namespace

absl::StatusOr<const TraceSource*> DetectOneSource(FileSystem& file_system,
                                                   const std::vector<std::string>& paths) {
  // What all are so far, and the first file that is.
  const TraceSource* common = nullptr;
  std::string first;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const DetectedFile file, DetectFile(file_system, path));
    // It may be a broken one of the same source, of which its reader says more.
    if (!file.is_known()) continue;
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
  return common == nullptr ? XSpaces() : common;
}

absl::StatusOr<TraceFiles> TraceFiles::Create(FileSystem& file_system,
                                              std::vector<std::string> paths,
                                              TraceFilesOptions options) {
  TraceFiles files;
  files.file_system_ = &file_system;
  files.paths_ = std::move(paths);
  files.options_ = std::move(options);
  std::vector<std::string> own;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!files.options_.is_own || files.options_.is_own(i)) own.push_back(files.paths_[i]);
  }
  if (own.empty()) own.push_back(files.paths_[0]);
  ASSIGN_OR_RETURN(files.source_, DetectOneSource(file_system, own));
  if (!files.source_->NeedsConversion()) return files;
  const InputFileOptions& input = files.options_.input;
  std::vector<std::unique_ptr<MappedRegion>> converted(files.size());
  ASSIGN_OR_RETURN(
      files.notes_,
      files.source_->Convert(
          files.size(),
          [&](size_t file) { return InputFile::Open(file_system, files.paths_[file], input); },
          files.options_.conversion,
          [&](size_t file, const std::string& trace) -> absl::Status {
            ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> temporary,
                             file_system.CreateTemporary(input.temporary_directory));
            RETURN_IF_ERROR(temporary->Append(trace));
            ASSIGN_OR_RETURN(converted[file], file_system.MapTemporary(*temporary));
            return absl::OkStatus();
          }));
  files.converted_ = std::move(converted);
  return files;
}

absl::StatusOr<InputFile> TraceFiles::Open(size_t file) const {
  if (converted_.empty()) return InputFile::Open(*file_system_, paths_[file], options_.input);
  MERIDIAN_CHECK(converted_[file] != nullptr);
  return InputFile::OfBytes(converted_[file]->bytes(), paths_[file]);
}

}  // namespace meridian
