#include "chakra_export/inspect/et_check.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/testing/et_nodes.h"
#include "chakra_export/testing/et_workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ChakraProtoMsg::CollectiveCommType kAllReduce = ChakraProtoMsg::ALL_REDUCE;

std::vector<EtProblem> CheckFiles(const EtFiles& files, const CommGroups& groups = {}) {
  EtProblems problems;
  EtCheckOptions options;
  options.groups = groups;
  EXPECT_OK(CheckEtFiles(FileSystem::Posix(), files, options, &problems));
  return problems.kept();
}

std::vector<EtProblem> CheckFilesOf(const std::vector<std::vector<Node>>& ranks) {
  const TemporaryDirectory directory;
  return CheckFiles(WriteWorkload(directory, "w", ranks));
}

std::vector<EtProblem> CheckGraphOf(const std::vector<std::vector<Node>>& ranks) {
  const TemporaryDirectory directory;
  const absl::StatusOr<ExecutionGraph> graph =
      ReadEtGraph(FileSystem::Posix(), WriteWorkload(directory, "w", ranks));
  EXPECT_OK(graph);
  EtProblems problems;
  if (graph.ok()) CheckEtGraph(*graph, &problems);
  return problems.kept();
}

auto Breaks(EtRule rule, const std::string& text) {
  return AllOf(Field(&EtProblem::rule, rule), Field(&EtProblem::message, HasSubstr(text)));
}

TEST(EtCheckTest, ATrainingStepIsFine) {
  EXPECT_THAT(CheckFilesOf(TrainingStep()), IsEmpty());
  EXPECT_THAT(CheckGraphOf(TrainingStep()), IsEmpty());
}

TEST(EtCheckTest, IdsAndDependencies) {
  const std::vector<EtProblem> problems =
      CheckFilesOf({{CompNode(1, 1), CompNode(2, 1, {3, 1}), CompNode(1, 1)}});
  ASSERT_THAT(problems, ElementsAre(Breaks(EtRule::kDanglingDependency, "node 2 depends on 3"),
                                    Breaks(EtRule::kDuplicateId, "node id 1 occurs twice")));
  EXPECT_EQ(problems[0].node, 2);
  EXPECT_EQ(problems[0].offset, 35);  // metadata 8 bytes, node 27
  Node control = CompNode(5, 1);
  control.add_ctrl_deps(0);
  EXPECT_THAT(CheckFilesOf({{control}}),
              ElementsAre(Breaks(EtRule::kDanglingDependency, "node 5 depends on 0")));
}

TEST(EtCheckTest, FilesAndRanks) {
  const TemporaryDirectory directory;
  directory.Write("w.0.et", GzipText(EncodeEt({CompNode(1, 1)})));
  directory.Write("w.2.et", EncodeEt({}));
  // A record of length zero, with id 0.
  directory.Write("w.3.et", EncodeEt({}) + std::string(1, '\0'));
  ASSERT_OK_AND_ASSIGN(const EtFiles files,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("w")));
  EXPECT_THAT(CheckFiles(files), ElementsAre(Breaks(EtRule::kMissingRank, "ranks 1 to 1"),
                                             Breaks(EtRule::kGzip, "the file is gzip"),
                                             Breaks(EtRule::kNoNodes, "there is no node"),
                                             Breaks(EtRule::kEmptyRecord, "the record is empty"),
                                             Breaks(EtRule::kHostNode, "INVALID_NODE")));
}

TEST(EtCheckTest, RankCountsAreKnownOfPrefixesOnly) {
  const TemporaryDirectory directory;
  const EtFiles prefix = WriteWorkload(directory, "w", {{SendNode(1, 0, 5, 8)}, {CompNode(1, 1)}});
  EXPECT_THAT(CheckFiles(prefix), ElementsAre(Breaks(EtRule::kPeer, "peer is rank 5")));
  ASSERT_OK_AND_ASSIGN(const EtFiles file,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("w.0.et")));
  EXPECT_THAT(CheckFiles(file), IsEmpty());
}

TEST(EtCheckTest, GroupsAreKnownFromTheCallerAndFromMetadata) {
  Node table;
  table.set_id(9);
  table.set_name("groups");
  table.set_type(ChakraProtoMsg::METADATA_NODE);
  table.mutable_inputs()->set_values(ProcessGroupTable({{"2", {0, 1}}}));
  const TemporaryDirectory directory;
  const EtFiles files = WriteWorkload(
      directory, "w",
      {{CollectiveNode(1, kAllReduce, 64, {}, "1"), CollectiveNode(2, kAllReduce, 64, {}, "2"),
        CollectiveNode(3, kAllReduce, 64, {}, "3"), table},
       {CompNode(1, 1)}});
  EXPECT_THAT(CheckFiles(files, {{"1", {0, 1}}}),
              ElementsAre(Breaks(EtRule::kUnknownGroup, "there is no group 3"),
                          Breaks(EtRule::kNodeType, "METADATA_NODE")));
}

TEST(EtCheckTest, FilesThatCannotBeReadAreErrors) {
  const TemporaryDirectory directory;
  directory.Write("w.0.et", EncodeEt({CompNode(1, 1)}).substr(0, 20));
  ASSERT_OK_AND_ASSIGN(const EtFiles files,
                       FindEtFiles(FileSystem::Posix(), directory.PathOf("w")));
  EtProblems problems;
  EXPECT_THAT(CheckEtFiles(FileSystem::Posix(), files, {}, &problems),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("w.0.et: offset 8")));
}

TEST(EtCheckTest, Cycles) {
  EXPECT_THAT(
      CheckGraphOf({{CompNode(1, 1, {2}), CompNode(2, 1, {1})}}),
      ElementsAre(Breaks(EtRule::kCycle, "rank 0 node 1 (n1) waits for rank 0 node 2 (n2)")));
}

TEST(EtCheckTest, CommunicationThatDoesNotMatch) {
  EXPECT_THAT(CheckGraphOf({{SendNode(1, 0, 1, 4096)}, {RecvNode(2, 0, 1, 4096, 7)}}),
              ElementsAre(Breaks(EtRule::kUnmatched, "rank 0 node 1"),
                          Breaks(EtRule::kUnmatched, "rank 1 node 2")));
  EXPECT_THAT(
      CheckGraphOf({{CollectiveNode(1, kAllReduce, 8)}, {CollectiveNode(1, kAllReduce, 9)}}),
      ElementsAre(Breaks(EtRule::kDisagreement, "ALL_REDUCE of 9 bytes")));
}

TEST(EtCheckTest, DeadlocksOfOneCommunicationAtATime) {
  // Rank 0 runs group 1 first, rank 1 group 2.
  EXPECT_THAT(
      CheckGraphOf(
          {{CollectiveNode(1, kAllReduce, 8, {}, "1"), CollectiveNode(2, kAllReduce, 8, {}, "2")},
           {CollectiveNode(1, kAllReduce, 8, {}, "2"), CollectiveNode(2, kAllReduce, 8, {}, "1")}}),
      ElementsAre(Breaks(EtRule::kDeadlock, "deadlock at 0 ns: rank 0 node 1")));
}

TEST(EtCheckTest, CollectivesOfAGroupThatAreIssuedInAnotherOrder) {
  // Node 3 is ready before node 2 on both ranks.
  const std::vector<Node> rank = {CompNode(1, 10), CollectiveNode(2, kAllReduce, 8, {1}),
                                  CollectiveNode(3, kAllReduce, 8)};
  EXPECT_THAT(CheckGraphOf({rank, rank}),
              ElementsAre(Breaks(EtRule::kIssueOrder,
                                 "rank 0 node 3 (n3) is issued before rank 0 "
                                 "node 2 (n2)"),
                          Breaks(EtRule::kIssueOrder, "rank 1 node 3")));
}

TEST(EtCheckTest, MessagesAtBothEnds) {
  Node host = CompNode(1, 1);
  host.mutable_attr(0)->set_bool_val(true);
  EXPECT_THAT(CheckGraphOf({{host, SendNode(2, 0, 1, 4096, 0, {1})}, {RecvNode(1, 0, 1, 4096)}}),
              ElementsAre(Breaks(EtRule::kHostNodeWithMessages, "rank 0 node 2")));
  EXPECT_THAT(CheckGraphOf({{SendNode(2, 0, 1, 1023)}, {RecvNode(1, 0, 1, 1023)}}),
              ElementsAre(Breaks(EtRule::kEarlyMessage, "sends 1023 bytes at time 0")));
}

EtProblem Problem(EtRule rule) {
  EtProblem problem;
  problem.rule = rule;
  return problem;
}

TEST(EtRulesTest, NamesAreUniqueAndParse) {
  std::set<std::string> names;
  for (size_t i = 0; i < kEtRuleCount; ++i) {
    const EtRule rule = static_cast<EtRule>(i);
    const std::string name(RuleInfo(rule).name);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_THAT(ParseRules(name), IsOkAndHolds(ElementsAre(rule)));
  }
  EXPECT_THAT(ParseRules(""), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(ParseRules("cycle,tag"), IsOkAndHolds(ElementsAre(EtRule::kCycle, EtRule::kTag)));
  EXPECT_THAT(ParseRules("cycle,tagg"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'tagg' is no rule")));
  EXPECT_THAT(ParseRules("cycle,"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(EtProblemsTest, CountsAllAndKeepsSome) {
  EtProblems problems({EtRule::kHostNode});
  for (int i = 0; i < 50; ++i) problems.Add(Problem(EtRule::kCycle));
  problems.Add(Problem(EtRule::kEarlyMessage));
  problems.Add(Problem(EtRule::kHostNode));
  EXPECT_EQ(problems.count(EtRule::kCycle), 50);
  EXPECT_EQ(problems.count(EtRule::kHostNode), 0);
  EXPECT_EQ(problems.errors(), 50);
  EXPECT_EQ(problems.warnings(), 1);
  EXPECT_EQ(problems.kept().size(), EtProblems::kKeptPerRule + 1);
}

}  // namespace
}  // namespace meridian
