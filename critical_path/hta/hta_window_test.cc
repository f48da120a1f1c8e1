#include "critical_path/hta/hta_frame.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The ids of the events in the window.
absl::StatusOr<std::vector<uint32_t>> Choose(const KinetoTrace& trace, const WindowChoice& choice) {
  ASSIGN_OR_RETURN(const HtaFrame frame, LoadHtaFrame(trace.Text(), "test"));
  ASSIGN_OR_RETURN(const HtaWindow window, ChooseHtaWindow(frame, choice));
  std::vector<uint32_t> indices;
  for (uint32_t row : window.rows) indices.push_back(frame.rows[row].index);
  return indices;
}

KinetoTrace Trace() {
  KinetoTrace trace;
  trace.Annotation("range", 100, 50);                           // 0
  trace.Op("inside", 110, 10);                                  // 1
  trace.Op("moment", 120, 0);                                   // 2
  trace.Call("cudaLaunchKernel", 125, 5, 1);                    // 3
  trace.Op("before", 0, 200);                                   // 4
  trace.Kernel("launched inside", 500, 5, 7, 1);                // 5
  trace.Call("cudaLaunchKernel", 300, 5, 2);                    // 6
  trace.Kernel("launched after", 600, 5, 7, 2);                 // 7
  trace.EventSync("Stream Wait Event", 900, 5, 20, 99, 7, 98);  // 8
  trace.Annotation("another range", 400, 50);                   // 9
  trace.Op("in the other", 410, 10);                            // 10
  return trace;
}

TEST(HtaWindowTest, TakesWhatStartsAndWhatIsLaunchedInIt) {
  EXPECT_THAT(*Choose(Trace(), {"range", {0, 0}}), ElementsAre(0, 1, 3, 5, 8));
  EXPECT_THAT(*Choose(Trace(), {"range", {1, 1}}), ElementsAre(8, 9, 10));
}

TEST(HtaWindowTest, ARangeSpansAllOfItsInstances) {
  EXPECT_THAT(*Choose(Trace(), {"range", {0, 1}}), ElementsAre(0, 1, 3, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(*Choose(Trace(), {"range", {1, 7}}), ElementsAre(8, 9, 10));
}

TEST(HtaWindowTest, WithoutAnAnnotationItIsTheWholeTrace) {
  EXPECT_THAT(*Choose(Trace(), {}), ElementsAre(0, 1, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST(HtaWindowTest, SaysWhatThereIs) {
  EXPECT_THAT(Choose(Trace(), {"step", {0, 0}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("another range, range")));
  EXPECT_THAT(Choose(Trace(), {"range", {2, 2}}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("2 time(s)")));
}

}  // namespace
}  // namespace meridian
