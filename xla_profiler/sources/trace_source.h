// SPDX-License-Identifier: Apache-2.0
// The one door for traces. A source is a kind of file that profiles come in. Everything behind the
// door reads one of two forms, which a source's files have or are converted to:
//
//   files --DetectFile--> TraceSource --TraceFiles--> XSpaces or Kineto traces
//
// A form says of itself when and on which host it was recorded, of which ranks, what its
// collectives and events are; clocks are moved, traces combined and graphs built from it. So a new
// source is one class that tells its files and converts them, and one line in trace_sources.cc.
#ifndef XLA_PROFILER_SOURCES_TRACE_SOURCE_H_
#define XLA_PROFILER_SOURCES_TRACE_SOURCE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/sources/file_head.h"

namespace meridian {

enum class TraceForm {
  // A serialized XSpace, as JAX and TensorFlow profile. It may hold any number of devices and be
  // stamped by a tracer's clock.
  kXSpace,
  // Chrome trace JSON of PyTorch's profiler: one rank, its host's clock.
  kKineto,
};

struct ConversionOptions {
  // How long collectives took is enough: a source that does not know when may make that up.
  bool durations_suffice = false;
};

class TraceSource {
 public:
  virtual ~TraceSource() = default;

  // What one of its files is, with an article: "a Kineto trace".
  virtual absl::string_view noun() const = 0;

  // How names of its files may end, without .gz. Files of other kinds may end so, too.
  virtual std::vector<absl::string_view> suffixes() const = 0;

  // True for what jobs leave when they hang (flight_recorder.h): validate_collectives says why they
  // do. Where profiles lie beside it, these count.
  virtual bool TellsWhyJobsHang() const { return false; }

  virtual bool Detect(const FileHead& head) const = 0;

  virtual TraceForm form() const { return TraceForm::kKineto; }

  // False for files that are in their form already.
  virtual bool NeedsConversion() const { return true; }

  using OpenFunction = absl::FunctionRef<absl::StatusOr<InputFile>(size_t file)>;
  // Takes over a trace of a file. One file at least has one; of a file that has none, a note says
  // why it was left out. A file that holds several hands each
  // over with what tells it from the others, for people: "rank 3", "process 4711"; they are then
  // "run.csv (rank 3)" to everything behind the door. Empty for the only one.
  using WriteFunction = absl::FunctionRef<absl::Status(size_t file, const std::string& trace,
                                                       absl::string_view part)>;

  // Converts the files of a run, all at once since one may tell what another means: opens each,
  // makes one trace of it or several (collective_log.h helps) and hands them over. Returns notes
  // for the user. Errors name the file. Only called where conversion is needed.
  virtual absl::StatusOr<std::vector<std::string>> Convert(size_t files, OpenFunction open,
                                                           const ConversionOptions& options,
                                                           WriteFunction write) const;
};

}  // namespace meridian

#endif  // XLA_PROFILER_SOURCES_TRACE_SOURCE_H_
