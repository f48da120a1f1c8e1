#include "critical_path/trace/trace_window.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/device_dependencies_json.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

struct Micros {
  int64_t start = 0;
  int64_t end = 0;
  // The tid of the window's thread.
  std::string thread;
};

// Times count from the first event.
absl::StatusOr<Micros> Choose(const KinetoTrace& trace, const WindowChoice& choice) {
  const std::string text = trace.Text();
  ASSIGN_OR_RETURN(const TraceJsonTable loaded, LoadTraceJson(text, "test"));
  ASSIGN_OR_RETURN(
      const TraceWindow window,
      ChooseTraceWindow(loaded.table, FindTraceJsonDependencies(text, loaded.table), choice));
  Micros micros = {window.start_ps / kPsPerUs, window.end_ps / kPsPerUs, ""};
  if (window.thread.has_value()) micros.thread = loaded.table.track(*window.thread).thread;
  return micros;
}

void ExpectWindow(const KinetoTrace& trace, const WindowChoice& choice, int64_t start, int64_t end,
                  const std::string& thread) {
  const absl::StatusOr<Micros> window = Choose(trace, choice);
  ASSERT_OK(window);
  EXPECT_EQ(window->start, start);
  EXPECT_EQ(window->end, end);
  EXPECT_EQ(window->thread, thread);
}

// Three steps out of order, which their device has later.
KinetoTrace Steps() {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 5, 1);
  trace.Annotation("step#3", 300, 50);
  trace.Annotation("step#1", 100, 50);
  trace.Annotation("step#2", 200, 50);
  trace.Work("gpu_user_annotation", "step#1", 130, 50, 7, 0);
  trace.Op("step#4 is an operator", 10, 10);
  trace.Kernel("kernel of a step", 900, 10, 7, 1);
  trace.Call("cudaEventQuery", 1000, 5, 2, /*thread=*/55);
  return trace;
}

TEST(TraceWindowTest, TheWholeTraceIsWhatWorkersAndDevicesDo) {
  ExpectWindow(Steps(), {}, 0, 910, "");
}

TEST(TraceWindowTest, RangesOfTheHostCountInOrderOfTime) {
  ExpectWindow(Steps(), {"step#", {0, 0}}, 100, 150, "100");
  ExpectWindow(Steps(), {"step#", {2, 2}}, 300, 350, "100");
  ExpectWindow(Steps(), {"step#", {0, 1}}, 100, 250, "100");
  // As much of the range as there is.
  ExpectWindow(Steps(), {"step#", {1, 99}}, 200, 350, "100");
}

TEST(TraceWindowTest, OperatorsAndDeviceEventsWillDoWhenThereIsNoRange) {
  ExpectWindow(Steps(), {"operator", {0, 0}}, 10, 20, "100");
  ExpectWindow(Steps(), {"kernel of", {0, 0}}, 900, 910, "");
}

TEST(TraceWindowTest, SaysWhatThereIs) {
  EXPECT_THAT(Choose(Steps(), {"epoch", {0, 0}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("step#1, step#2, step#3")));
  EXPECT_THAT(Choose(Steps(), {"step#", {3, 3}}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("occurs 3 time(s)")));
}

TEST(TraceWindowTest, AnEmptyWindowIsAnError) {
  KinetoTrace trace = Steps();
  trace.Annotation("moment", 50, 0);
  EXPECT_THAT(Choose(trace, {"moment", {0, 0}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("takes no time")));
}

TEST(TraceWindowTest, ATraceThatTakesNoTimeIsAnError) {
  KinetoTrace trace;
  trace.Call("cudaLaunchKernel", 0, 0, 1);
  trace.Kernel("kernel", 0, 0, 7, 1);
  EXPECT_THAT(Choose(trace, {}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("nothing in the trace takes time")));
}

TEST(TraceWindowTest, ATraceWithoutTheDeviceIsAnError) {
  KinetoTrace trace;
  trace.Op("op", 0, 10);
  EXPECT_THAT(Choose(trace, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no kernel, copy or set")));
}

}  // namespace
}  // namespace meridian
