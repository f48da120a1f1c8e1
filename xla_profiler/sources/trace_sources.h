// SPDX-License-Identifier: Apache-2.0
// The registry of sources (trace_source.h), and how files are told by their beginnings.
#ifndef XLA_PROFILER_SOURCES_TRACE_SOURCES_H_
#define XLA_PROFILER_SOURCES_TRACE_SOURCES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/sources/file_head.h"
#include "xla_profiler/sources/trace_source.h"

namespace meridian {

// All sources, in the order in which they are asked whether a file is theirs.
const std::vector<const TraceSource*>& TraceSources();

// Returns how names of profiles may end: those of all sources, plain and with .gz.
std::vector<std::string> ProfileSuffixes();

// Files that are told apart, but hold no profile of one process.
enum class OtherFile {
  kNone,
  // Several ranks' Kineto traces in one, as combine writes them.
  kCombinedKineto,
  // Chrome trace JSON of others, e.g. of JAX.
  kTraceJson,
  // What ASTRA-sim runs: length-delimited messages.
  kChakraEt,
  // JSON of PyTorch's ExecutionTraceObserver.
  kPytorchEt,
  // JSON of rocprofv3, which writes rocpd as well.
  kRocprofJson,
  // Perfetto's format, e.g. as combine or rocprofv3 write it.
  kPerfetto,
};

struct DetectedFile {
  // Null when it is no profile, or not known.
  const TraceSource* source = nullptr;
  OtherFile other = OtherFile::kNone;
  // What one that is not known looks like.
  absl::string_view looks_like = "no trace that is known";

  bool is_known() const { return source != nullptr || other != OtherFile::kNone; }
  bool is_empty() const { return looks_like == "empty"; }
  // What it is, with an article: "a PyTorch execution trace", "no trace that is known".
  absl::string_view noun() const;
  // What would help where no profile can be made of it, to follow a sentence; may be empty.
  absl::string_view remedy() const;
};

DetectedFile DetectFile(const FileHead& head);

// Reads no more than the file's beginning. Errors name the path.
absl::StatusOr<DetectedFile> DetectFile(FileSystem& file_system, const std::string& path);

// False for names that files of many kinds have, such as logs, tables and databases.
bool IsNamedLikeProfiles(absl::string_view path);

// Returns the files without what is known to be no profile, what only lies beside profiles
// (TraceSource::TellsWhyJobsHang), and such files that are not known at all, if some of them are
// profiles; else all, for their readers to say what is wrong.
std::vector<std::string> KeepProfiles(FileSystem& file_system, std::vector<std::string> paths);

}  // namespace meridian

#endif  // XLA_PROFILER_SOURCES_TRACE_SOURCES_H_
