#include "chakra_export/graph/communication_match.h"

#include <string>
#include <utility>
#include <vector>

#include "chakra_export/graph/execution_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Builds graphs of nothing but communication, whose nodes are named after their types.
class Builder {
 public:
  NodeIndex Collective(int64_t rank, uint64_t id, const ProcessGroup& group, int64_t bytes = 8,
                       ChakraProtoMsg::CollectiveCommType type = ChakraProtoMsg::ALL_REDUCE) {
    Communication communication;
    communication.bytes = bytes;
    communication.type = type;
    communication.group = builder_.AddGroup(group);
    return Add(rank, id, ChakraProtoMsg::COMM_COLL_NODE, "collective", communication);
  }
  NodeIndex Send(int64_t rank, uint64_t id, int64_t target, int32_t tag, int64_t bytes = 8) {
    Communication communication;
    communication.bytes = bytes;
    communication.source = rank;
    communication.target = target;
    communication.tag = tag;
    return Add(rank, id, ChakraProtoMsg::COMM_SEND_NODE, "send", communication);
  }
  NodeIndex Receive(int64_t rank, uint64_t id, int64_t source, int32_t tag, int64_t bytes = 8) {
    Communication communication;
    communication.bytes = bytes;
    communication.source = source;
    communication.target = rank;
    communication.tag = tag;
    return Add(rank, id, ChakraProtoMsg::COMM_RECV_NODE, "receive", communication);
  }

  ExecutionGraph Build() { return std::move(builder_).Build(); }

 private:
  NodeIndex Add(int64_t rank, uint64_t id, ChakraProtoMsg::NodeType type, const char* name,
                const Communication& communication) {
    ExecutionNode node;
    node.id = id;
    node.name = name;
    node.type = type;
    node.resource = builder_.AddResource({rank, ResourceKind::kCommunication, 0});
    node.communication = communication;
    return builder_.AddNode(node);
  }

  ExecutionGraphBuilder builder_;
};

std::vector<std::string> Texts(const CommunicationMatch& match) {
  std::vector<std::string> texts;
  for (const MatchProblem& problem : match.problems()) texts.push_back(problem.text);
  return texts;
}

const ProcessGroup kWorld = {"", {0, 1}};

TEST(CommunicationMatchTest, JoinsCollectivesInTheOrderOfIds) {
  Builder builder;
  const NodeIndex b0 = builder.Collective(0, 20, kWorld, 16);
  const NodeIndex a0 = builder.Collective(0, 10, kWorld, 8);
  const NodeIndex a1 = builder.Collective(1, 7, kWorld, 8);
  const NodeIndex b1 = builder.Collective(1, 9, kWorld, 16);
  const ExecutionGraph graph = builder.Build();
  const CommunicationMatch match(graph);
  EXPECT_THAT(match.problems(), IsEmpty());
  ASSERT_EQ(match.instance_count(), 2);
  EXPECT_THAT(match.members(match.instance_of(a0)), ElementsAre(a0, a1));
  EXPECT_THAT(match.members(match.instance_of(b1)), ElementsAre(b0, b1));
}

TEST(CommunicationMatchTest, MembersAreInTheOrderOfTheGroup) {
  Builder builder;
  const ProcessGroup group = {"5", {2, 0}};
  const NodeIndex on0 = builder.Collective(0, 1, group);
  const NodeIndex on2 = builder.Collective(2, 1, group);
  const ExecutionGraph graph = builder.Build();
  const CommunicationMatch match(graph);
  EXPECT_THAT(match.members(0), ElementsAre(on2, on0));
}

TEST(CommunicationMatchTest, JoinsMessagesOfOneSourceTargetAndTag) {
  Builder builder;
  const NodeIndex send_a = builder.Send(0, 1, 1, 5);
  const NodeIndex send_b = builder.Send(0, 2, 1, 6);
  const NodeIndex send_c = builder.Send(0, 3, 1, 5);
  const NodeIndex receive_b = builder.Receive(1, 1, 0, 6);
  const NodeIndex receive_a = builder.Receive(1, 2, 0, 5);
  const NodeIndex receive_c = builder.Receive(1, 3, 0, 5);
  const ExecutionGraph graph = builder.Build();
  const CommunicationMatch match(graph);
  EXPECT_THAT(match.problems(), IsEmpty());
  EXPECT_THAT(match.members(match.instance_of(send_a)), ElementsAre(send_a, receive_a));
  EXPECT_THAT(match.members(match.instance_of(send_b)), ElementsAre(send_b, receive_b));
  EXPECT_THAT(match.members(match.instance_of(send_c)), ElementsAre(send_c, receive_c));
}

TEST(CommunicationMatchTest, RanksThatAreNotAtHandAreTakenToBeThere) {
  Builder builder;
  const NodeIndex collective = builder.Collective(0, 1, {"1", {0, 1, 2}});
  builder.Send(0, 2, 3, 0);
  const ExecutionGraph graph = builder.Build();
  const CommunicationMatch match(graph);
  EXPECT_THAT(match.problems(), IsEmpty());
  EXPECT_THAT(match.members(match.instance_of(collective)), ElementsAre(collective));
}

TEST(CommunicationMatchTest, ReportsMissingPeers) {
  Builder builder;
  builder.Collective(0, 1, kWorld);
  builder.Collective(1, 1, kWorld);
  builder.Collective(0, 2, kWorld);
  builder.Collective(0, 3, kWorld);
  builder.Send(0, 4, 1, 9);
  builder.Receive(1, 5, 0, 8);
  builder.Receive(1, 6, kNoRank, 8);
  const ExecutionGraph graph = builder.Build();
  const CommunicationMatch match(graph);
  EXPECT_THAT(
      Texts(match),
      ElementsAre("rank 0 node 2 (collective) is collective 2 of group \"\", but rank 1 has only 1",
                  "rank 0 node 4 (send) sends to rank 1 with tag 9, which has no receive for it",
                  "rank 1 node 5 (receive) receives from rank 0 with tag 8, which has no send for "
                  "it",
                  "rank 1 node 6 (receive) receives from a rank it does not name"));
  for (const MatchProblem& problem : match.problems()) {
    EXPECT_EQ(problem.kind, MatchProblem::Kind::kMissingPeer);
  }
}

TEST(CommunicationMatchTest, AMemberWithoutAnyCollectiveIsMissing) {
  Builder builder;
  builder.Collective(0, 1, {"1", {0, 1}});
  builder.Send(1, 1, 7, 0);
  const ExecutionGraph graph = builder.Build();
  EXPECT_THAT(Texts(CommunicationMatch(graph)),
              ElementsAre("rank 0 node 1 (collective) is collective 1 of group \"1\", but rank 1 "
                          "has only 0"));
}

TEST(CommunicationMatchTest, ReportsDisagreement) {
  Builder builder;
  builder.Collective(0, 1, kWorld, 8, ChakraProtoMsg::ALL_REDUCE);
  builder.Collective(1, 2, kWorld, 8, ChakraProtoMsg::ALL_GATHER);
  builder.Send(0, 3, 1, 0, 100);
  builder.Receive(1, 4, 0, 0, 99);
  const ExecutionGraph graph = builder.Build();
  const CommunicationMatch match(graph);
  EXPECT_THAT(Texts(match),
              ElementsAre("rank 0 node 1 (collective) is ALL_REDUCE of 8 bytes, but its peer rank "
                          "1 node 2 (collective) is ALL_GATHER of 8 bytes",
                          "rank 0 node 3 (send) is a message of 100 bytes, but its peer rank 1 "
                          "node 4 (receive) is a message of 99 bytes"));
  EXPECT_EQ(match.problems()[0].kind, MatchProblem::Kind::kDisagreement);
  EXPECT_EQ(match.problems()[0].node, 1);
}

TEST(CommunicationMatchTest, ReportsRanksThatAreNoMembers) {
  Builder builder;
  const ProcessGroup group = {"1", {0}};
  builder.Collective(0, 1, group);
  const NodeIndex stranger = builder.Collective(1, 2, group);
  const ExecutionGraph graph = builder.Build();
  const CommunicationMatch match(graph);
  EXPECT_THAT(Texts(match), ElementsAre("rank 1 node 2 (collective) runs a collective of group "
                                        "\"1\", which rank 1 is no member of"));
  EXPECT_EQ(match.problems()[0].kind, MatchProblem::Kind::kNotAMember);
  EXPECT_EQ(match.instance_of(stranger), CommunicationMatch::kNoInstance);
}

}  // namespace
}  // namespace meridian
