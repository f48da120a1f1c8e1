#include "critical_path/trace/trace_window.h"

#include <cstdint>
#include <string>
#include <vector>

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

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Chosen {
  std::vector<std::string> names;
  int64_t end_us = 0;
};

// The window is from 100 to 200; times count from 0, where the trace must begin.
absl::StatusOr<Chosen> Choose(const KinetoTrace& trace, const std::string& data_loader = "none") {
  const std::string text = trace.Text();
  ASSIGN_OR_RETURN(const TraceJsonTable loaded, LoadTraceJson(text, "test"));
  const EventTable& table = loaded.table;
  std::vector<bool> loads_data;
  for (NameId name = 0; name < table.names().size(); ++name) {
    loads_data.push_back(table.names().Get(name) == data_loader);
  }
  TraceWindow window;
  window.start_ps = 100 * kPsPerUs;
  window.end_ps = 200 * kPsPerUs;
  ASSIGN_OR_RETURN(
      const WindowRows rows,
      ChooseWindowRows(table, FindTraceJsonDependencies(text, table), window, loads_data));
  Chosen chosen;
  chosen.end_us = rows.end_ps / kPsPerUs;
  for (EventRow row : rows.rows) chosen.names.emplace_back(table.name(row));
  return chosen;
}

TEST(WindowRowsTest, HostEventsAreThoseThatHaveTimeInIt) {
  KinetoTrace trace;
  trace.Op("first", 0, 10);
  trace.Op("ends with the start", 50, 50);
  trace.Op("crosses the start", 50, 51);
  trace.Op("moment at the start", 100, 0);
  trace.Op("inside", 120, 10);
  trace.Op("crosses the end", 190, 500);
  trace.Op("begins with the end", 200, 10);
  trace.Annotation("annotation", 100, 100);
  trace.Host("python_function", "function", 100, 100);
  ASSERT_OK_AND_ASSIGN(const Chosen chosen, Choose(trace));
  EXPECT_THAT(chosen.names,
              ElementsAre("crosses the start", "moment at the start", "inside", "crosses the end"));
  EXPECT_EQ(chosen.end_us, 200);
}

TEST(WindowRowsTest, DataLoadersAndUnknownCallsAreHostEventsToo) {
  KinetoTrace trace;
  trace.Op("first", 0, 10);
  trace.Annotation("loader", 100, 50);
  trace.Host("other_runtime", "launch of another kind", 160, 5, kMainThread, R"("correlation": 1)");
  trace.Kernel("kernel", 170, 5, 7, 1);
  EXPECT_THAT(Choose(trace)->names, ElementsAre("launch of another kind", "kernel"));
  EXPECT_THAT(Choose(trace, "loader")->names,
              ElementsAre("loader", "launch of another kind", "kernel"));
}

TEST(WindowRowsTest, WorkBelongsToTheWindowOfItsLaunch) {
  KinetoTrace trace;
  trace.Call("before", 0, 5, 1);
  trace.Call("inside", 150, 5, 2);
  trace.Call("after", 210, 5, 3);
  trace.Kernel("over", 50, 50, 7, 1);
  trace.Kernel("still runs", 90, 20, 20, 1);
  trace.Kernel("comes late", 260, 10, 20, 1);
  trace.Kernel("launched inside", 250, 50, 7, 2);
  trace.Kernel("launched after", 220, 5, 24, 3);
  ASSERT_OK_AND_ASSIGN(const Chosen chosen, Choose(trace));
  // The window lasts until 300, and what was launched before runs until then.
  EXPECT_EQ(chosen.end_us, 300);
  EXPECT_THAT(chosen.names, ElementsAre("inside", "still runs", "comes late", "launched inside"));
}

TEST(WindowRowsTest, WorkWithoutALaunchCountsByItsStart) {
  KinetoTrace trace;
  trace.Op("first", 0, 10);
  trace.Kernel("inside", 190, 50, 7, 1);
  trace.Kernel("after", 250, 50, 7, 2);
  ASSERT_OK_AND_ASSIGN(const Chosen chosen, Choose(trace));
  EXPECT_THAT(chosen.names, ElementsAre("inside"));
  EXPECT_EQ(chosen.end_us, 240);
}

TEST(WindowRowsTest, NothingIsAnError) {
  KinetoTrace trace;
  trace.Op("first", 0, 10);
  EXPECT_THAT(Choose(trace),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("the window is empty")));
}

}  // namespace
}  // namespace meridian
