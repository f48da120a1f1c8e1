// The steps of a profile: what the program called a step or, failing that, the executions of its
// modules.
//
//   source         where from                                          number    name
//   annotation     XSpace: host events with the stat step_num          step_num  "train"
//   steps line     XSpace: `Steps` lines of device planes              the name  "12"
//   device module  XSpace: the first device's `XLA Modules` line       run_id    "jit_step"
//   host module    XSpace: host events of one run_id                   run_id    "jit_step"
//   profiler step  Kineto: host annotations ProfilerStep#<n>           n         "ProfilerStep#3"
//
// All lists are in order of the starts. Spans of one name and number that overlap, as when several
// threads or devices work on one step, are one step from the first start to the last end. Those
// that do not overlap stay apart: a loop that began again. Steps of different numbers may overlap.
#ifndef XLA_PROFILER_STEPS_STEP_EVENTS_H_
#define XLA_PROFILER_STEPS_STEP_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/events/event_table.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

enum class StepSource : uint8_t {
  kAnnotation,
  kStepsLine,
  kDeviceModule,
  kHostModule,
  kProfilerStep,
};

// Returns a name such as "annotation", for people.
absl::string_view StepSourceName(StepSource source);

struct StepEvent {
  int64_t number = 0;
  std::string name;
  // From the base of the profile's event table: the session's start in XSpace.
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  StepSource source = StepSource::kAnnotation;
};

// What JAX's StepTraceAnnotation and TensorFlow's Trace leave on the host.
absl::StatusOr<std::vector<StepEvent>> FindAnnotatedSteps(const XSpaceReader& reader);

// An event whose name is not a number is no step.
absl::StatusOr<std::vector<StepEvent>> FindStepsLines(const XSpaceReader& reader);

// Devices count their runs on their own, so one stands for all: the first to have such a line with
// run ids.
absl::StatusOr<std::vector<StepEvent>> FindDeviceModuleRuns(const XSpaceReader& reader);

// A run spans the host's events of one run_id that tell their module: an executable's Execute call,
// which on GPUs returns before the device is done, or (XLA:CPU) the instructions themselves.
absl::StatusOr<std::vector<StepEvent>> FindHostModuleRuns(const XSpaceReader& reader);

// Kineto's device-side copies of the annotations are not steps.
std::vector<StepEvent> FindProfilerSteps(const EventTable& table);

struct StepEvents {
  // All of one source; empty when no source has any.
  std::vector<StepEvent> steps;
  // Why that source, for people, e.g. "no host event has step_num; the Steps lines of devices
  // were taken".
  std::string reason;
};

// Takes the first source, in the order drawn above, that has steps. A program that marks its steps
// knows best; devices know better than the host when a module ran.
absl::StatusOr<StepEvents> FindXSpaceSteps(const XSpaceReader& reader);
StepEvents FindTraceJsonSteps(const EventTable& table);

}  // namespace meridian

#endif  // XLA_PROFILER_STEPS_STEP_EVENTS_H_
