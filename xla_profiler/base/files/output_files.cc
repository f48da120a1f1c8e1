#include "xla_profiler/base/files/output_files.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// Returns the same for two names of one file, also of one that does not exist yet. A link that would
// be replaced is not what it leads to.
std::filesystem::path PlaceOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path name(path);
  return std::filesystem::weakly_canonical(name.parent_path().empty() ? "." : name.parent_path(),
                                           error) /
         name.filename();
}

}  // namespace

absl::Status CheckOutputPaths(const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs) {
  // To find the places of thousands of inputs takes longer than to read small ones.
  const auto is_empty = [](const std::string& output) { return output.empty(); };
  if (std::all_of(outputs.begin(), outputs.end(), is_empty)) return absl::OkStatus();
  std::set<std::filesystem::path> taken;
  for (const std::string& input : inputs) {
    if (!input.empty()) taken.insert(PlaceOf(input));
  }
  std::set<std::filesystem::path> named;
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    const std::filesystem::path place = PlaceOf(output);
    if (taken.count(place) > 0) {
      return InvalidArgument(output,
                             " is an input and would be overwritten; choose another output");
    }
    if (!named.insert(place).second) {
      return InvalidArgument(output, " is named for two outputs; choose another for one");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOutputPrefix(absl::string_view flag, const std::string& prefix,
                               const std::vector<std::string>& suffixes,
                               const std::vector<std::string>& inputs) {
  const std::string name = std::filesystem::path(prefix).filename().string();
  if (name.empty() || name == "." || name == "..") {
    return InvalidArgument(flag, "=", prefix, " names a folder; expected a prefix in it, e.g. ",
                           prefix, absl::EndsWith(prefix, "/") ? "" : "/", "run");
  }
  for (const std::string& input : inputs) {
    const std::string input_name = std::filesystem::path(input).filename().string();
    if (!absl::StartsWith(input_name, absl::StrCat(name, "."))) continue;
    for (const std::string& suffix : suffixes) {
      if (!absl::EndsWith(input_name, suffix)) continue;
      RETURN_IF_ERROR(
          CheckOutputPaths({input}, {absl::StrCat(prefix, input_name.substr(name.size()))}));
    }
  }
  return absl::OkStatus();
}

absl::Status OutputFiles::Write(const std::string& kind, const std::string& path,
                                absl::FunctionRef<absl::Status(ByteSink&)> write) {
  ASSIGN_OR_RETURN(std::unique_ptr<AtomicFileWriter> writer,
                   AtomicFileWriter::CreateWithFolder(file_system_, path));
  if (absl::EndsWith(path, ".gz")) {
    GzipSink gzip(writer.get());
    RETURN_IF_ERROR(write(gzip));
    RETURN_IF_ERROR(gzip.Finish());
  } else {
    RETURN_IF_ERROR(write(*writer));
  }
  const uint64_t bytes = writer->bytes_appended();
  RETURN_IF_ERROR(pending_.Add(std::move(writer)));
  files_.push_back({kind, path, bytes});
  return absl::OkStatus();
}

absl::Status OutputFiles::WriteText(const std::string& kind, const std::string& path,
                                    absl::string_view text) {
  if (path.empty()) return absl::OkStatus();
  return Write(kind, path, [&](ByteSink& sink) { return sink.Append(text); });
}

std::string OutputFiles::ReadablePath(size_t index) const {
  return index < committed_ ? files_[index].path : pending_.temporary_path(index - committed_);
}

absl::Status OutputFiles::Commit() {
  committed_ = files_.size();
  return pending_.Commit();
}

absl::Status WriteOutput(FileSystem& file_system, const std::string& path, absl::string_view text) {
  OutputFiles outputs(file_system);
  RETURN_IF_ERROR(outputs.WriteText("output", path, text));
  return outputs.Commit();
}

}  // namespace meridian
