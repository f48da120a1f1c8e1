#include "critical_path/report/path_overlay.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/job/trace_analysis.h"
#include "critical_path/testing/hta_case.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/kineto/testing/kineto_trace.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::simdjson::dom::element;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<std::string> Draw(absl::string_view text, const OverlayOptions& options,
                                 const TraceAnalysisOptions& analysis_options = {}) {
  ASSIGN_OR_RETURN(const TraceAnalysis analysis, AnalyzeTraceJson(text, "test", analysis_options));
  ASSIGN_OR_RETURN(const CriticalPath path, FindLongestPath(analysis.graph));
  std::string overlay;
  StringSink sink(&overlay);
  RETURN_IF_ERROR(WriteOverlay(text, analysis.graph, path, options, &sink));
  return overlay;
}

// The operator waits for its kernel; another kernel runs beside.
KinetoTrace Trace() {
  KinetoTrace trace;
  trace.Annotation("step", 0, 100);
  trace.Op("op", 0, 100);
  trace.Call("cudaLaunchKernel", 10, 5, 1);
  trace.Call("cudaLaunchKernel", 16, 2, 2);
  trace.Call("cudaStreamSynchronize", 20, 55, 3);
  trace.Kernel("kernel", 30, 40, 7, 1);
  trace.Kernel("beside", 31, 1, 20, 2);
  trace.Sync("Stream Sync", 20, 55, 7, 3);
  trace.Raw(R"({"ph": "s", "id": 41, "pid": 4242, "tid": 100, "ts": 10, "cat": "ac2g"})");
  trace.Raw(R"({"ph": "f", "id": 41, "pid": 0, "tid": 7, "ts": 30, "cat": "ac2g", "bp": "e"})");
  trace.Raw(R"({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x\"]"}})");
  return trace;
}

// "name" of complete events, with a star when they are marked; "phase id process/thread time type"
// of arrows.
struct Parsed {
  std::vector<std::string> events, arrows;
  int marked = 0;
  int others = 0;
};

Parsed Parse(const std::string& text) {
  Parsed parsed;
  simdjson::dom::parser parser;
  element document;
  EXPECT_FALSE(parser.parse(text).get(document)) << text;
  element events = document;
  if (document.is_object()) events = document["traceEvents"];
  for (element event : events) {
    const std::string ph = JsonText(event["ph"]);
    element category;
    const bool is_arrow = !event["cat"].get(category) && category.is_string() &&
                          std::string_view(category) == "critical_path";
    if (is_arrow) {
      parsed.arrows.push_back(absl::StrCat(
          ph, " ", uint64_t(event["id"]), " ", simdjson::minify(event["pid"]), "/",
          simdjson::minify(event["tid"]), " ", simdjson::minify(event["ts"]), " ",
          JsonText(event["args"]["type"]), " ", simdjson::minify(event["args"]["weight"])));
    } else if (ph == "X") {
      int64_t critical = 0;
      const bool is_marked = !event["args"]["critical"].get(critical) && critical == 1;
      if (is_marked) ++parsed.marked;
      parsed.events.push_back(absl::StrCat(JsonText(event["name"]), is_marked ? "*" : ""));
    } else {
      ++parsed.others;
    }
  }
  return parsed;
}

TEST(PathOverlayTest, MarksThePathAndDrawsArrows) {
  ASSERT_OK_AND_ASSIGN(const std::string overlay, Draw(Trace().Text(), {}));
  const Parsed parsed = Parse(overlay);
  EXPECT_THAT(parsed.events,
              ElementsAre("step", "op*", "cudaLaunchKernel*", "cudaStreamSynchronize*", "kernel*"));
  EXPECT_EQ(parsed.others, 3);
  // Ids follow the trace's; an event's end is drawn 1 ns inside of it.
  EXPECT_THAT(parsed.arrows, ElementsAre("s 42 4242/100 10 critical_path_kernel_launch_delay 20",
                                         "f 42 0/7 30 critical_path_kernel_launch_delay 20",
                                         "s 43 0/7 69.999 critical_path_sync_dependency 5",
                                         "f 43 4242/100 74.999 critical_path_sync_dependency 5"));
  EXPECT_THAT(overlay, AllOf(HasSubstr("\"schemaVersion\": 1"),
                             HasSubstr("\"distributedInfo\": {\"rank\": 3}"),
                             HasSubstr("\"traceName\": \"test\""), HasSubstr("x\\\"]")));
}

TEST(PathOverlayTest, KeepsAllEventsAndDrawsAllEdgesWhenAsked) {
  OverlayOptions options;
  options.only_critical = false;
  ASSERT_OK_AND_ASSIGN(const std::string all_events, Draw(Trace().Text(), options));
  EXPECT_EQ(Parse(all_events).events.size(), 8u);
  EXPECT_EQ(Parse(all_events).arrows.size(), 4u);
  options.all_edges = true;
  ASSERT_OK_AND_ASSIGN(const std::string all_edges, Draw(Trace().Text(), options));
  EXPECT_GT(Parse(all_edges).arrows.size(), 20u);
  options.only_critical = true;
  ASSERT_OK_AND_ASSIGN(const std::string same, Draw(Trace().Text(), options));
  EXPECT_EQ(same, all_edges);
}

// The launch of "beside" and that kernel are left out, and the annotation around the launch stays; an
// arrow needs both ends.
TEST(PathOverlayTest, ArrowsGoWithTheirSlices) {
  KinetoTrace trace = Trace();
  trace.Raw(R"({"ph": "s", "id": 5, "pid": 4242, "tid": 100, "ts": 16, "cat": "ac2g"})");
  trace.Raw(R"({"ph": "f", "id": 5, "pid": 0, "tid": 20, "ts": 31, "cat": "ac2g", "bp": "e"})");
  trace.Raw(R"({"ph": "f", "id": 6, "pid": 0, "tid": 7, "ts": 30, "cat": "ac2g", "bp": "e"})");
  // From the launch that is kept to both kernels.
  trace.Raw(R"({"ph": "f", "id": 41, "pid": 0, "tid": 20, "ts": 31, "cat": "ac2g", "bp": "e"})");
  ASSERT_OK_AND_ASSIGN(const std::string overlay, Draw(trace.Text(), {}));
  EXPECT_EQ(Parse(overlay).others, 3);
  EXPECT_THAT(overlay, AllOf(Not(HasSubstr("\"id\": 5")), Not(HasSubstr("\"id\": 6")),
                             HasSubstr("\"id\": 41"), Not(HasSubstr("\"tid\": 20"))));
  OverlayOptions options;
  options.only_critical = false;
  ASSERT_OK_AND_ASSIGN(const std::string whole, Draw(trace.Text(), options));
  EXPECT_EQ(Parse(whole).others, 7);
}

TEST(PathOverlayTest, IsTheSameEachTime) {
  EXPECT_EQ(*Draw(Trace().Text(), {}), *Draw(Trace().Text(), {}));
}

TEST(PathOverlayTest, AddsArgumentsToEventsThatHaveNone) {
  KinetoTrace trace;
  trace.Raw(
      R"({"ph": "X", "cat": "cpu_op", "name": "bare", "pid": 1, "tid": 2, "ts": 0, "dur": 9})");
  trace.Raw(R"({"ph": "X", "cat": "cpu_op", "name": "spaced", "pid": 1, "tid": 2, "ts": 10,
                "dur": 9, "args": {  } })");
  trace.Kernel("kernel", 2, 1, 7, 99);
  ASSERT_OK_AND_ASSIGN(const std::string overlay, Draw(trace.Text(), {}));
  EXPECT_THAT(Parse(overlay).events, ElementsAre("bare*", "spaced*"));
}

TEST(PathOverlayTest, EpochTimesStayExact) {
  KinetoTrace trace;
  trace.Raw(R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": "p", "tid": "t",
                "ts": "1694039968933321.125", "dur": 9})");
  trace.Raw(R"({"ph": "X", "cat": "cpu_op", "name": "b", "pid": "p", "tid": "t",
                "ts": 1694039968933421.125, "dur": 9})");
  trace.Raw(R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
                "ts": 1694039968933322, "dur": 1, "args": {}})");
  ASSERT_OK_AND_ASSIGN(const std::string overlay, Draw(trace.Text(), {}));
  EXPECT_THAT(overlay,
              AllOf(HasSubstr("\"pid\": \"p\", \"tid\": \"t\", \"ts\": 1694039968933330.124, "),
                    HasSubstr("\"ts\": 1694039968933421.125, ")));
}

TEST(PathOverlayTest, ABareArrayStaysOne) {
  const std::string text = Trace().Text();
  const size_t begin = text.find('['), end = text.rfind(']');
  ASSERT_OK_AND_ASSIGN(const std::string overlay, Draw(text.substr(begin, end - begin + 1), {}));
  EXPECT_EQ(overlay.front(), '[');
  EXPECT_EQ(Parse(overlay).arrows.size(), 4u);
}

TEST(PathOverlayTest, RefusesAnotherTrace) {
  const std::string text = Trace().Text();
  ASSERT_OK_AND_ASSIGN(const TraceAnalysis analysis, AnalyzeTraceJson(text, "test", {}));
  ASSERT_OK_AND_ASSIGN(const CriticalPath path, FindLongestPath(analysis.graph));
  KinetoTrace shorter, renamed;
  shorter.Op("op", 0, 100);
  for (int i = 0; i < 8; ++i) renamed.Op("other", 0, 100);
  for (const KinetoTrace& other : {shorter, renamed}) {
    std::string out;
    StringSink sink(&out);
    EXPECT_THAT(WriteOverlay(other.Text(), analysis.graph, path, {}, &sink),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is this the trace that the graph is of?")));
  }
}

TEST(PathOverlayTest, NamesTheFileAfterTheTrace) {
  EXPECT_EQ(OverlayFileName("a/b/rank0.json.gz"), "overlaid_critical_path_rank0.json.gz");
  EXPECT_EQ(OverlayFileName("rank0.json"), "overlaid_critical_path_rank0.json");
}

// Counts arrows by their type.
std::map<std::string, int64_t> ArrowsByType(const Parsed& parsed) {
  std::map<std::string, int64_t> types;
  for (const std::string& arrow : parsed.arrows) {
    if (arrow[0] == 's') ++types[std::vector<std::string>(absl::StrSplit(arrow, ' '))[4]];
  }
  return types;
}

void ExpectAsMuch(element golden, const std::string& overlay, bool is_whole) {
  const Parsed parsed = Parse(overlay);
  const auto arrow_ends = static_cast<int64_t>(parsed.arrows.size());
  const auto events = static_cast<int64_t>(parsed.events.size());
  EXPECT_EQ(events, int64_t(golden["X_events"]));
  // HTA keeps the arrows of slices that it leaves out.
  if (is_whole) {
    EXPECT_EQ(events + parsed.others + arrow_ends, int64_t(golden["total_events"]));
  }
  EXPECT_EQ(parsed.marked, int64_t(golden["X_marked_critical"]));
  EXPECT_EQ(arrow_ends, 2 * int64_t(golden["flow_pairs"]));
  std::map<std::string, int64_t> arrows;
  for (const auto& member : simdjson::dom::object(golden["flow_s_by_type"])) {
    arrows[std::string(member.key)] = int64_t(member.value);
  }
  EXPECT_EQ(ArrowsByType(parsed), arrows);
}

TEST(PathOverlayTest, HasAsMuchAsThoseOfHta) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(const InputFile golden_file,
                       InputFile::Open(FileSystem::Posix(), *shared + "/golden/hta_golden.json"));
  simdjson::dom::parser parser;
  element golden;
  ASSERT_FALSE(parser.parse(golden_file.bytes().data(), golden_file.bytes().size()).get(golden));
  int compared = 0;
  for (const auto& member : simdjson::dom::object(golden["cases"])) {
    SCOPED_TRACE(std::string(member.key));
    const std::optional<HtaCase> input = ReadHtaCase(member.value["case"], *shared);
    if (!input.has_value()) continue;
    ASSERT_OK_AND_ASSIGN(const InputFile file, InputFile::Open(FileSystem::Posix(), input->trace));
    for (const auto& mode : simdjson::dom::object(member.value["overlay"])) {
      SCOPED_TRACE(std::string(mode.key));
      OverlayOptions options;
      options.only_critical = mode.key == "default";
      options.all_edges = mode.key == "all_events_all_edges";
      ASSERT_OK_AND_ASSIGN(const std::string overlay, Draw(file.bytes(), options, input->options));
      ExpectAsMuch(mode.value, overlay, /*is_whole=*/!options.only_critical);
      ++compared;
    }
  }
  EXPECT_GE(compared, 50);
}

}  // namespace
}  // namespace meridian
