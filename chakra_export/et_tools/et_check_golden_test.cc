// The rules against the real simulator: workloads that AstraSim ran to the end break none of them.
// The workloads are those of ../shared/golden/astra_snapshots.json.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/et_tools/et_check.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

void ForEachElement(absl::string_view array, absl::FunctionRef<void(JsonValue)> fn) {
  JsonCutter cutter(array);
  cutter.Enter('[');
  while (cutter.NextElement()) fn(JsonValue(cutter.CutValue()));
  EXPECT_OK(cutter.status());
}

ChakraProtoMsg::CollectiveCommType CollectiveType(const std::string& name) {
  const std::map<std::string, ChakraProtoMsg::CollectiveCommType> types = {
      {"AR", ChakraProtoMsg::ALL_REDUCE},
      {"AG", ChakraProtoMsg::ALL_GATHER},
      {"RS", ChakraProtoMsg::REDUCE_SCATTER},
      {"A2A", ChakraProtoMsg::ALL_TO_ALL}};
  ChakraProtoMsg::CollectiveCommType type = ChakraProtoMsg::BARRIER;
  if (!ChakraProtoMsg::CollectiveCommType_Parse(name, &type)) type = types.at(name);
  return type;
}

Node ParseNode(const JsonValue& json, int64_t rank) {
  const auto number = [&](absl::string_view key) { return json.Find(key).AsInt64(); };
  const std::vector<int64_t> waits_for =
      json.Find("deps").AsInt64Array().value_or(std::vector<int64_t>());
  const EtIds deps(waits_for.begin(), waits_for.end());
  const uint64_t id = *json.Find("id").AsUint64();
  const std::string type = *json.Find("type").AsString();
  const int64_t bytes = number("size").value_or(0);
  const int64_t tag = number("tag").value_or(0);
  if (type == "SEND") return SendNode(id, rank, *number("dst"), bytes, tag, deps);
  if (type == "RECV") return RecvNode(id, *number("src"), rank, bytes, tag, deps);
  if (type != "COLL") return CompNode(id, number("micros").value_or(0), deps);
  const std::optional<int64_t> group = number("pg");
  return CollectiveNode(id, CollectiveType(*json.Find("coll").AsString()), bytes, deps,
                        group.has_value() ? std::to_string(*group) : "");
}

void ExpectNoErrors(const JsonValue& snapshot) {
  std::vector<std::vector<Node>> ranks;
  ForEachElement(snapshot.Find("ets").text(), [&](JsonValue nodes) {
    const auto rank = static_cast<int64_t>(ranks.size());
    ranks.emplace_back();
    ForEachElement(nodes.text(),
                   [&](JsonValue node) { ranks.back().push_back(ParseNode(node, rank)); });
  });
  CommGroups groups;
  if (snapshot.Find("comm_groups").text() != "null") {
    ASSERT_OK_AND_ASSIGN(groups, ParseCommGroups(snapshot.Find("comm_groups").text(), "groups"));
  }
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(directory, "w", ranks);
  EtProblems problems;
  EtGraphReaderOptions options;
  options.groups = groups;
  ASSERT_OK(CheckEtFiles(FileSystem::Posix(), files, options, &problems));
  EtGraphReaderOptions graph_options;
  graph_options.groups = groups;
  ASSERT_OK_AND_ASSIGN(const ExecutionGraph graph,
                       ReadEtGraph(FileSystem::Posix(), files, graph_options));
  CheckEtGraph(graph, &problems);
  for (const ChakraProblemReport& problem : problems.report().problems()) {
    EXPECT_EQ(problem.severity(), "warning") << problem.message();
  }
}

TEST(EtCheckGoldenTest, WhatAstraSimRanToTheEndHasNoErrors) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(
      const InputFile file,
      InputFile::Open(FileSystem::Posix(), *shared + "/golden/astra_snapshots.json"));
  int snapshots = 0;
  ForEachElement(file.bytes(), [&](JsonValue snapshot) {
    SCOPED_TRACE(*snapshot.Find("id").AsString());
    ExpectNoErrors(snapshot);
    ++snapshots;
  });
  EXPECT_GE(snapshots, 70);
}

}  // namespace
}  // namespace meridian
