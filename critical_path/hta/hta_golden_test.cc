// Our graphs of HTA's own test traces, against those that HTA 0.6.1 built (../shared/golden): every
// node, edge, weight and attribution, the path and its breakdown.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "critical_path/graph/critical_path.h"
#include "critical_path/graph/path_graph.h"
#include "critical_path/hta/hta_frame.h"
#include "critical_path/hta/hta_launches.h"
#include "critical_path/job/trace_analysis.h"
#include "critical_path/testing/hta_case.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

namespace fs = std::filesystem;
using ::simdjson::dom::element;

double Micros(int64_t ps) { return static_cast<double>(ps) / kPsPerUs; }

InputFile Open(const std::string& path) {
  absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
  EXPECT_OK(file);
  return *std::move(file);
}

// A JSON file, whole.
class Document {
 public:
  explicit Document(const std::string& path) {
    const InputFile file = Open(path);
    EXPECT_FALSE(parser_.parse(file.bytes().data(), file.bytes().size()).get(root_)) << path;
  }
  element root() const { return root_; }

 private:
  simdjson::dom::parser parser_;
  element root_;
};

struct Analysis {
  PathGraph graph;
  CriticalPath path;
};

absl::StatusOr<Analysis> Analyze(const HtaCase& input) {
  const InputFile file = Open(input.trace);
  ASSIGN_OR_RETURN(TraceAnalysis trace, AnalyzeTraceJson(file.bytes(), input.trace, input.options));
  Analysis analysis;
  analysis.graph = std::move(trace.graph);
  ASSIGN_OR_RETURN(analysis.path, FindLongestPath(analysis.graph));
  return analysis;
}

// An edge as HTA's dump has it: from, to, type, weight, event (-1 for none).
using EdgeText = std::tuple<int64_t, int64_t, std::string, double, int64_t>;

std::vector<EdgeText> Edges(const PathGraph& graph) {
  std::vector<EdgeText> edges;
  for (const GraphEdge& edge : graph.edges) {
    edges.emplace_back(
        edge.from, edge.to, absl::StrCat("critical_path_", EdgeTypeName(edge.type)),
        Micros(edge.weight_ps),
        edge.event == kNoEvent ? -1 : static_cast<int64_t>(graph.events[edge.event].position));
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

std::vector<EdgeText> Edges(element json) {
  std::vector<EdgeText> edges;
  for (element edge : json) {
    const element event = edge.at(5);
    edges.emplace_back(int64_t(edge.at(0)), int64_t(edge.at(1)), JsonText(edge.at(2)),
                       double(edge.at(3)), event.is_null() ? -1 : int64_t(event));
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

// A node as HTA's dump has it: number, event, time, is_start.
using NodeText = std::tuple<int64_t, int64_t, double, bool>;

std::vector<NodeText> Nodes(const PathGraph& graph) {
  std::vector<NodeText> nodes;
  for (const Instant& node : graph.instants) {
    nodes.emplace_back(nodes.size(), graph.events[node.event].position, Micros(node.time_ps),
                       node.is_start);
  }
  return nodes;
}

std::vector<NodeText> Nodes(element json) {
  std::vector<NodeText> nodes;
  for (element node : json) {
    nodes.emplace_back(int64_t(node.at(0)), int64_t(node.at(1)), double(node.at(2)),
                       int64_t(node.at(3)) != 0);
  }
  return nodes;
}

// Large vectors make useless messages: the first difference is enough.
template <typename T>
void ExpectSame(const std::vector<T>& ours, const std::vector<T>& theirs, const char* what) {
  EXPECT_EQ(ours.size(), theirs.size()) << what;
  const size_t size = std::min(ours.size(), theirs.size());
  const size_t at =
      std::mismatch(ours.begin(), ours.begin() + size, theirs.begin()).first - ours.begin();
  if (at == size) return;
  ADD_FAILURE() << what << " " << at << ": ours " << ::testing::PrintToString(ours[at])
                << ", HTA's " << ::testing::PrintToString(theirs[at]);
}

TEST(HtaGoldenTest, GraphsAndPathsAreEqual) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  int compared = 0;
  for (const auto& entry : fs::directory_iterator(*shared + "/golden/hta_golden_full")) {
    SCOPED_TRACE(entry.path().filename().string());
    const Document document(entry.path().string());
    const std::optional<HtaCase> input = ReadHtaCase(document.root()["case"], *shared);
    if (!input.has_value()) continue;
    ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(*input));
    ExpectSame(Nodes(analysis.graph), Nodes(document.root()["nodes"]), "node");
    ExpectSame(Edges(analysis.graph), Edges(document.root()["edges"]), "edge");
    std::vector<InstantId> path;
    for (element node : document.root()["critical_path_nodes"]) path.push_back(int64_t(node));
    ExpectSame(PathInstants(analysis.graph, analysis.path), path, "node of the path");
    ++compared;
  }
  EXPECT_GE(compared, 27);
}

std::map<std::string, double> Breakdown(const Analysis& analysis) {
  const PathBreakdown breakdown = BreakDown(analysis.graph, analysis.path);
  std::map<std::string, double> us;
  for (int i = 0; i < kNumBoundBy; ++i) {
    const std::string name(BoundByName(static_cast<BoundBy>(i)));
    if (breakdown.time_ps[i] != 0) us[name] = Micros(breakdown.time_ps[i]);
  }
  return us;
}

std::map<std::string, double> Breakdown(element json) {
  std::map<std::string, double> us;
  for (const auto& member : simdjson::dom::object(json)) {
    if (double(member.value) != 0) us[std::string(member.key)] = double(member.value);
  }
  return us;
}

TEST(HtaGoldenTest, BreakdownsAndCountsAreEqual) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const Document document(*shared + "/golden/hta_golden.json");
  int compared = 0;
  for (const auto& member : simdjson::dom::object(document.root()["cases"])) {
    SCOPED_TRACE(std::string(member.key));
    const element golden = member.value;
    const std::optional<HtaCase> input = ReadHtaCase(golden["case"], *shared);
    if (!input.has_value()) continue;
    ASSERT_OK_AND_ASSIGN(const Analysis analysis, Analyze(*input));
    EXPECT_EQ(CountJoinedInstants(analysis.graph), int64_t(golden["graph_nodes"]));
    EXPECT_EQ(analysis.graph.edges.size(), uint64_t(golden["graph_edges"]));
    EXPECT_EQ(Micros(analysis.path.length_ps), double(golden["critical_path_length_us"]));
    EXPECT_EQ(PathInstants(analysis.graph, analysis.path).size(),
              uint64_t(golden["critical_path_nodes"]));
    EXPECT_EQ(Breakdown(analysis), Breakdown(golden["summary_us"]));
    ++compared;
  }
  EXPECT_GE(compared, 28);
}

// Returns "stream: points least most sum" of the queue of each stream, over the whole trace.
std::vector<std::string> DescribeQueues(const std::string& trace) {
  const InputFile file = Open(trace);
  const absl::StatusOr<HtaFrame> frame = LoadHtaFrame(file.bytes(), trace);
  EXPECT_OK(frame);
  const HtaLaunches launches(*frame);
  std::map<int64_t, std::vector<int64_t>> lengths;
  for (uint32_t i = 0; i < frame->rows.size(); ++i) {
    const HtaRow& row = frame->rows[i];
    if (launches.QueueLength(i) == HtaLaunches::kUnknown) continue;
    const int64_t stream = row.stream != -1 ? row.stream : frame->Find(row.partner)->stream;
    lengths[stream].push_back(launches.QueueLength(i));
  }
  std::vector<std::string> queues;
  for (const auto& [stream, points] : lengths) {
    queues.push_back(absl::StrCat(stream, ": ", points.size(), " ",
                                  *std::min_element(points.begin(), points.end()), " ",
                                  *std::max_element(points.begin(), points.end()), " ",
                                  std::accumulate(points.begin(), points.end(), int64_t{0})));
  }
  return queues;
}

// The whole traces' queues, as HTA describes them.
TEST(HtaGoldenTest, QueueLengthsAreEqual) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const Document document(*shared + "/golden/hta_golden.json");
  int compared = 0;
  for (const auto& member : simdjson::dom::object(document.root()["features"])) {
    SCOPED_TRACE(std::string(member.key));
    const fs::path folder = fs::path(*shared) / "samples/kineto" / std::string(member.key);
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      std::vector<std::string> theirs;
      for (element queue : member.value["queue_length"]) {
        theirs.push_back(
            absl::StrCat(int64_t(queue["stream"]), ": ", int64_t(queue["points"]), " ",
                         int64_t(queue["min"]), " ", int64_t(queue["max"]), " ",
                         std::llround(double(queue["mean"]) * int64_t(queue["points"]))));
      }
      EXPECT_EQ(DescribeQueues(entry.path().string()), theirs);
      ++compared;
    }
  }
  EXPECT_GE(compared, 6);
}

}  // namespace
}  // namespace meridian
