#include "tools/pipeline/output_files.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/byte_sink.h"

namespace meridian {
namespace {

// True for two names of one file, also of one that does not exist yet. A link that would be
// replaced is not what it leads to.
bool IsSamePlace(const std::string& a, const std::string& b) {
  std::error_code error;
  const auto place = [&](const std::string& path) {
    const std::filesystem::path name(path);
    return std::filesystem::weakly_canonical(name.parent_path().empty() ? "." : name.parent_path(),
                                             error) /
           name.filename();
  };
  return place(a) == place(b);
}

}  // namespace

absl::Status CheckOutputPaths(const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].empty()) continue;
    for (const std::string& input : inputs) {
      if (input.empty() || !IsSamePlace(outputs[i], input)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(outputs[i], " is an input and would be overwritten; choose another output"));
    }
    for (size_t j = 0; j < i; ++j) {
      if (outputs[j].empty() || !IsSamePlace(outputs[i], outputs[j])) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(outputs[i], " is named for two outputs; choose another for one"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOutputPrefix(absl::string_view flag, const std::string& prefix,
                               const std::vector<std::string>& suffixes,
                               const std::vector<std::string>& inputs) {
  const std::string name = std::filesystem::path(prefix).filename().string();
  if (name.empty() || name == "." || name == "..") {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", prefix, " names a folder; expected a prefix in it, e.g. ", prefix,
                     absl::EndsWith(prefix, "/") ? "" : "/", "run"));
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
  files_.push_back({kind, path, writer->bytes_appended()});
  pending_.push_back(std::move(writer));
  return absl::OkStatus();
}

absl::Status OutputFiles::WriteText(const std::string& kind, const std::string& path,
                                    absl::string_view text) {
  if (path.empty()) return absl::OkStatus();
  return Write(kind, path, [&](ByteSink& sink) { return sink.Append(text); });
}

absl::Status OutputFiles::Commit() {
  for (const std::unique_ptr<AtomicFileWriter>& writer : pending_) {
    RETURN_IF_ERROR(writer->Commit());
  }
  pending_.clear();
  return absl::OkStatus();
}

absl::Status WriteOutput(FileSystem& file_system, const std::string& path, absl::string_view text) {
  OutputFiles outputs(file_system);
  RETURN_IF_ERROR(outputs.WriteText("output", path, text));
  return outputs.Commit();
}

}  // namespace meridian
