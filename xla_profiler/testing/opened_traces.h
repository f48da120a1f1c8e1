// SPDX-License-Identifier: Apache-2.0
// Files of a source, opened as every command opens them.
#ifndef XLA_PROFILER_TESTING_OPENED_TRACES_H_
#define XLA_PROFILER_TESTING_OPENED_TRACES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "xla_profiler/collectives/collective_event.h"

namespace meridian {

struct OpenedTraces {
  absl::Status status;
  // What the files are: "a Kineto trace".
  std::string noun;
  std::vector<std::string> notes;
  // By trace: what it is called, its text and its collectives.
  std::vector<std::string> paths;
  std::vector<std::string> traces;
  std::vector<ProfileCollectives> collectives;
};

// Opens files of these names and bytes, of a form that is Kineto's.
OpenedTraces OpenTraces(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_OPENED_TRACES_H_
