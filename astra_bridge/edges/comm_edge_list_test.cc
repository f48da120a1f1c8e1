#include "astra_bridge/edges/comm_edge_list.h"

#include <cstdint>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(CommEdgeListTest, ReadsEveryMember) {
  ASSERT_OK_AND_ASSIGN(
      const CommEdgeList list,
      ParseCommEdges(
          R"({"edge_id":"a","op_kind":"RS","size_bytes":4096,"participants":[3,1],"group_id":"tp",)"
          R"("collective_algo":"direct","topology_key":"nvlink"})",
          "e.jsonl"));
  ASSERT_THAT(list.edges, SizeIs(1));
  const CommEdge& edge = list.edges[0];
  EXPECT_EQ(edge.id, "a");
  EXPECT_EQ(edge.kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(edge.bytes, 4096);
  EXPECT_THAT(edge.participants, ElementsAre(3, 1));
  EXPECT_EQ(edge.hint, AlgorithmHint::kDirect);
  EXPECT_EQ(edge.topology_key, "nvlink");
}

TEST(CommEdgeListTest, APointToPointEdgeGoesFromSourceToDestination) {
  ASSERT_OK_AND_ASSIGN(const CommEdgeList list,
                       ParseCommEdges(
                           R"({"edge_id":1,"op_kind":"P2P","size_bytes":1,"src_rank":5,"dst_rank":2}
             {"edge_id":2,"op_kind":"P2P","size_bytes":1,"src_rank":5,"dst_rank":2,"participants":[2,5]})",
                           "e.jsonl"));
  EXPECT_THAT(list.edges[0].participants, ElementsAre(5, 2));
  EXPECT_THAT(list.edges[1].participants, ElementsAre(5, 2));
  EXPECT_EQ(list.edges[1].id, "2");
}

TEST(CommEdgeListTest, NullIsAbsent) {
  ASSERT_OK_AND_ASSIGN(
      const CommEdgeList list,
      ParseCommEdges(
          R"({"edge_id":"a","op_kind":"AR","size_bytes":0,"participants":[0],"src_rank":null,)"
          R"("dst_rank":null,"group_id":7,"collective_algo":null,"topology_key":null})",
          "e.jsonl"));
  EXPECT_THAT(list.edges[0].participants, ElementsAre(0));
  EXPECT_EQ(list.edges[0].hint, AlgorithmHint::kNone);
  EXPECT_EQ(list.edges[0].topology_key, "");
}

TEST(CommEdgeListTest, TheSameLineTwiceIsCountedOnce) {
  const std::string line = R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":[0,1]})"
                           "\n";
  ASSERT_OK_AND_ASSIGN(const CommEdgeList list, ParseCommEdges(line + line + line, "e.jsonl"));
  EXPECT_THAT(list.edges, SizeIs(1));
  EXPECT_EQ(list.duplicates_dropped, 2);
}

TEST(CommEdgeListTest, TwoEdgesOfOneIdAreRefusedWithBothLines) {
  EXPECT_THAT(ParseCommEdges(R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":[0,1]}

                                {"edge_id":"a","op_kind":"AR","size_bytes":9,"participants":[0,1]})",
                             "e.jsonl"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("e.jsonl:3: edge_id a is another edge in line 1;")));
}

TEST(CommEdgeListTest, WhatIsWrongIsNamedWithItsLine) {
  const struct {
    const char* line;
    const char* reason;
  } kCases[] = {
      {"", "the file is empty"},
      {"[]", "e.jsonl:1: the line is no JSON object"},
      {R"({"op_kind":"AR","size_bytes":8,"participants":[0,1]})", "edge_id is missing"},
      {R"({"edge_id":[],"op_kind":"AR","size_bytes":8,"participants":[0,1]})",
       "edge_id is neither text nor a whole number"},
      {R"({"edge_id":"a","size_bytes":8,"participants":[0,1]})", "op_kind is missing"},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":[0,1],"colective_algo":"ring"})",
       "there is no member 'colective_algo'; known are edge_id, op_kind, size_bytes, participants, "
       "src_rank, dst_rank, group_id, collective_algo, topology_key; expected e.g. "},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":[0,1],"size_bytes":9})",
       "size_bytes occurs twice"},
      {R"({"edge_id":"a","op_kind":"BC","size_bytes":8,"participants":[0,1]})",
       "op_kind is BC, not one of AR, AG, RS, A2A, P2P"},
      {R"({"edge_id":"a","op_kind":"AR","participants":[0,1]})", "size_bytes is missing"},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":-1,"participants":[0,1]})",
       "size_bytes is -1, not from 0 to 2^50"},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":9e9,"participants":[0,1]})",
       "size_bytes is 9e9, not an integer"},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":8})", "there are no participants"},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":3})",
       "participants is no array of ranks"},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":[0,-1]})",
       "the participant -1 is no rank"},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":[0,4294967296]})",
       "the participant 4294967296 is no rank"},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":[1,0,1]})",
       "rank 1 takes part twice"},
      {R"({"edge_id":"a","op_kind":"P2P","size_bytes":8,"src_rank":1})",
       R"(dst_rank is missing; expected e.g. {"edge_id":"e1","op_kind":"P2P","size_bytes":1048576,)"
       R"("src_rank":0,"dst_rank":1})"},
      {R"({"edge_id":"a","op_kind":"P2P","size_bytes":8,"src_rank":1,"dst_rank":1})",
       "src_rank and dst_rank are both 1"},
      {R"({"edge_id":"a","op_kind":"P2P","size_bytes":8,"src_rank":1,"dst_rank":-2})",
       "dst_rank is -2, which is no rank"},
      {R"({"edge_id":"a","op_kind":"P2P","size_bytes":8,"src_rank":1,"dst_rank":2,"participants":[1,3]})",
       "rank 3 takes part but neither sends nor receives"},
      {R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":[0,1],"collective_algo":"rong"})",
       "collective_algo is rong, not one of ring"},
      {R"({"edge_id":"a","op_kind":"AG","size_bytes":8,"participants":[0,1],"collective_algo":"tree"})",
       "collective_algo is tree, which is for AR only"},
  };
  for (const auto& wrong : kCases) {
    EXPECT_THAT(ParseCommEdges(wrong.line, "e.jsonl"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(StartsWith("e.jsonl:"), HasSubstr(wrong.reason))))
        << wrong.line;
  }
}

TEST(CommEdgeListTest, ParticipantsAndBytesAreLimited) {
  const auto parse = [](int64_t participants, int64_t bytes) {
    std::string line = absl::StrCat(R"({"edge_id":"a","op_kind":"AR","size_bytes":)", bytes,
                                    R"(,"participants":[0)");
    for (int64_t rank = 1; rank < participants; ++rank) absl::StrAppend(&line, ",", rank);
    return ParseCommEdges(line + "]}", "e.jsonl").status();
  };
  constexpr int64_t kMostParticipants = int64_t{1} << 20, kMostBytes = int64_t{1} << 50;
  EXPECT_OK(parse(kMostParticipants, kMostBytes));
  EXPECT_THAT(parse(kMostParticipants + 1, 8),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("e.jsonl:1: 1048577 participants are too many")));
  EXPECT_THAT(
      parse(2, kMostBytes + 1),
      StatusIs(absl::StatusCode::kInvalidArgument,
               StartsWith("e.jsonl:1: size_bytes is 1125899906842625, not from 0 to 2^50")));
}

TEST(CommEdgeListTest, AFileMayBeCompressed) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write(
      "e.jsonl.gz",
      GzipText(R"({"edge_id":"a","op_kind":"AR","size_bytes":8,"participants":[0,1]})"));
  ASSERT_OK_AND_ASSIGN(const CommEdgeList list, ReadCommEdges(FileSystem::Posix(), path));
  EXPECT_THAT(list.edges, SizeIs(1));
}

TEST(CommEdgeListTest, DamagedLinesAreReadOrRefused) {
  const std::string lines =
      R"({"edge_id":"a","op_kind":"RS","size_bytes":4096,"participants":[3,1],"group_id":"tp"})"
      "\n"
      R"({"edge_id":"b","op_kind":"P2P","size_bytes":1,"src_rank":5,"dst_rank":2})"
      "\n";
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string damaged = Damage(lines, random);
    const absl::Status status = ParseCommEdges(damaged, "e.jsonl").status();
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << damaged;
  }
}

}  // namespace
}  // namespace meridian
