// SPDX-License-Identifier: Apache-2.0
// The steps of an XSpace profile: what the program called a step or, failing that, the executions
// of its modules. Taken from the first of these sources that has any, since a program that marks
// its steps knows best, and devices know better than the host when a module ran:
//
//   source         where from                                   number    name
//   annotation     host events with the stat step_num           step_num  "train"
//   steps line     `Steps` lines of device planes               the name  "12"
//   device module  the first device's `XLA Modules` line        run_id    "jit_step"
//   host module    host events of one run_id                    run_id    "jit_step"
//
// Spans of one name and number that overlap, as when several threads or devices work on one step,
// are one step from the first start to the last end. Those that do not overlap stay apart: a loop
// that began again. Steps of different numbers may overlap.
#ifndef XLA_PROFILER_STEPS_STEP_EVENTS_H_
#define XLA_PROFILER_STEPS_STEP_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

enum class StepSource : uint8_t {
  // What JAX's StepTraceAnnotation and TensorFlow's Trace leave on the host.
  kAnnotation,
  // An event whose name is not a number is no step.
  kStepsLine,
  // Devices count their runs on their own, so one stands for all: the first to have such a line
  // with run ids.
  kDeviceModule,
  // A run spans the host's events of one run_id that tell their module, whether they overlap or
  // not: an executable's Execute call, which on GPUs returns before the device is done, or
  // (XLA:CPU) the instructions themselves.
  kHostModule,
};

struct StepEvent {
  int64_t number = 0;
  std::string name;
  // Picoseconds from the session's start.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  StepSource source = StepSource::kAnnotation;
};

// Returns the steps in order of their starts, all of one source; none when no source has any.
absl::StatusOr<std::vector<StepEvent>> FindXSpaceSteps(const XSpaceReader& reader);

// Returns which of these steps, in order of their starts, is under way at the time; null for none.
const StepEvent* StepAt(absl::Span<const StepEvent> steps, int64_t time_ps);

}  // namespace meridian

#endif  // XLA_PROFILER_STEPS_STEP_EVENTS_H_
