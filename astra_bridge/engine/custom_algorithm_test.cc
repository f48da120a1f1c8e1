#include "astra_bridge/engine/custom_algorithm.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "astra_bridge/engine/collective_plan.h"
#include "astra_bridge/engine/et_workload.h"
#include "astra_bridge/engine/simulation.h"
#include "astra_bridge/engine/testing/builders.h"
#include "astra_bridge/engine/topology.h"
#include "chakra_export/generate/msccl.h"
#include "chakra_export/testing/et_nodes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kAllReduce = static_cast<size_t>(CollectiveKind::kAllReduce);
constexpr int64_t kMiB = 1 << 20;

// A ring all-reduce as AstraSim ships one: send, receive and reduce, n - 1 times, and the same without
// reductions.
std::vector<RankWorkload> RingAllReduce(int32_t n, int64_t bytes, int64_t reduction_ns) {
  std::vector<RankWorkload> members(n);
  for (int32_t i = 0; i < n; ++i) {
    uint64_t id = 0;
    const auto add = [&](const WorkloadNode& node) {
      if (id == 0) {
        members[i].Add(node);
      } else {
        members[i].Add(node, {id - 1});
      }
      ++id;
    };
    for (int32_t step = 0; step < 2 * (n - 1); ++step) {
      add(SendNode(id, (i + 1) % n, bytes / n));
      add(ReceiveNode(id, (i + n - 1) % n, bytes / n));
      if (step < n - 1) add(ComputeNode(id, reduction_ns));
    }
  }
  return members;
}

struct CustomRun {
  Workload workload;
  NetworkConfig network;
  SystemConfig system = SystemWith({"ring"});

  absl::StatusOr<SimulationResult> Run(Congestion congestion = Congestion::kAware) const {
    SimulationOptions options;
    options.congestion = congestion;
    return Simulate(workload, network, system, options);
  }
};

CustomRun OnRing(int32_t npus, std::vector<RankWorkload> algorithm) {
  CustomRun run;
  run.workload = EveryRank(npus, CollectiveNode(1, CollectiveKind::kAllReduce, kMiB));
  run.workload.custom[kAllReduce] = std::move(algorithm);
  run.network = Network({Dimension(BlockShape::kRing, npus)});
  run.system.source = "s.json";
  return run;
}

// AstraSim's example: 14 messages of trunc(500 + 131072 / 53.6870912) = 2941 ns, 7 reductions of 7 us.
TEST(CustomAlgorithmTest, RunsTheExampleThatAstraSimShips) {
  ASSERT_OK_AND_ASSIGN(const SimulationResult result,
                       OnRing(8, RingAllReduce(8, kMiB, 7000)).Run());
  EXPECT_THAT(result.finish_ns, Each(14 * 2941 + 7 * 7000));
}

// What allreduce_ring.py of MSCCL's tools writes: each rank sends its chunk on, adds to what it receives
// and sends that, until all chunks have gone round twice.
std::string RingXml(int32_t n) {
  std::string xml =
      absl::StrCat("<algo coll=\"allreduce\" ngpus=\"", n, "\" nchunksperloop=\"", n, "\">\n");
  for (int32_t gpu = 0; gpu < n; ++gpu) {
    absl::StrAppend(&xml, "<gpu id=\"", gpu, "\"><tb id=\"0\" send=\"", (gpu + 1) % n, "\" recv=\"",
                    (gpu + n - 1) % n, "\" chan=\"0\">\n");
    const int32_t last = 4 * (n - 1) - 1;
    for (int32_t s = 0; s <= last; ++s) {
      const char* const type = s % 2 == 0 ? "s" : s < last / 2 + 1 ? "rrc" : "r";
      absl::StrAppend(&xml, "<step s=\"", s, "\" type=\"", type,
                      "\" cnt=\"1\" depid=\"-1\" deps=\"-1\"/>\n");
    }
    absl::StrAppend(&xml, "</tb></gpu>\n");
  }
  return absl::StrCat(xml, "</algo>\n");
}

TEST(CustomAlgorithmTest, ARingOfMscclIsTheBuiltInRing) {
  const TemporaryDirectory directory;
  directory.Write("ring.xml", RingXml(4));
  ASSERT_OK(WriteMscclTraces(FileSystem::Posix(), directory.PathOf("ring.xml"), {}, kMiB,
                             directory.PathOf("ring")));
  CustomRun run = OnRing(4, {});
  run.system.custom[kAllReduce] = directory.PathOf("ring");
  for (int32_t rank = 0; rank < 4; ++rank) {
    directory.Write(absl::StrCat("w.", rank, ".et"),
                    EncodeEt({CollectiveNode(1, ChakraProtoMsg::ALL_REDUCE, kMiB)}));
  }
  ASSERT_OK_AND_ASSIGN(run.workload, ReadEtWorkload(FileSystem::Posix(), directory.PathOf("w"),
                                                    run.network, run.system, EtWorkloadOptions()));
  EXPECT_THAT(DescribeCustomSizes(run.workload, run.system), IsEmpty());
  const Topology topology(run.network);
  CollectiveRequest request;
  request.bytes = kMiB;
  request.algorithms = run.system.algorithms_of(CollectiveKind::kAllReduce);
  ASSERT_OK_AND_ASSIGN(const CollectivePlan plan, PlanCollective(request, topology, run.system));
  for (const RankWorkload& member : run.workload.custom[kAllReduce]) {
    int32_t sends = 0;
    for (const WorkloadNode& node : member.nodes()) {
      if (node.type != WorkloadNodeType::kSend) continue;
      ++sends;
      EXPECT_EQ(node.bytes, plan.phases[0].message_bytes);
    }
    EXPECT_EQ(sends, plan.phases[0].messages);
  }
  ASSERT_OK_AND_ASSIGN(const SimulationResult custom, run.Run());
  run.workload.custom[kAllReduce].clear();
  run.system.custom[kAllReduce].clear();
  run.system.endpoint_delay_ns = 0;
  ASSERT_OK_AND_ASSIGN(const SimulationResult built_in, run.Run());
  // A reduction lasts 1 ns at least.
  EXPECT_EQ(custom.makespan_ns(), built_in.makespan_ns() + 3);
}

TEST(CustomAlgorithmTest, NotesCollectivesOfOtherSizes) {
  CustomRun run = OnRing(2, RingAllReduce(2, kMiB, 0));
  run.system.custom[kAllReduce] = "et/ring";
  EXPECT_THAT(DescribeCustomSizes(run.workload, run.system),
              ElementsAre("et/ring moves the bytes of its traces whatever the size of the "
                          "all-reduce: written for a size that they do not say, used for "
                          "1,048,576 bytes"));
  run.workload.custom_bytes[kAllReduce] = kMiB;
  EXPECT_THAT(DescribeCustomSizes(run.workload, run.system), IsEmpty());
  run.workload.ranks[1].Add(CollectiveNode(2, CollectiveKind::kAllReduce, 4096));
  run.workload.ranks[1].Add(CollectiveNode(3, CollectiveKind::kAllGather, 1));
  EXPECT_THAT(
      DescribeCustomSizes(run.workload, run.system),
      ElementsAre(HasSubstr(": written for 1,048,576 bytes, used for 4,096 to 1,048,576 bytes")));
}

// The bytes of the collective do not matter, and members of a group are known by their positions.
TEST(CustomAlgorithmTest, RunsInGroups) {
  CustomRun run = OnRing(4, RingAllReduce(2, kMiB, 0));
  run.workload = Workload();
  run.workload.ranks.resize(4);
  run.workload.groups = {{1, {0, 3}}, {2, {1, 2}}};
  run.workload.custom[kAllReduce] = RingAllReduce(2, kMiB, 0);
  for (int32_t rank = 0; rank < 4; ++rank) {
    run.workload.ranks[rank].Add(
        CollectiveNode(1, CollectiveKind::kAllReduce, 5, rank % 3 == 0 ? 1 : 2));
  }
  ASSERT_OK_AND_ASSIGN(const SimulationResult result, run.Run());
  // 512 KiB: trunc(500 + 9765.625).
  EXPECT_THAT(result.finish_ns, Each(2 * 10265 + 1));
  run.workload.groups[2] = {2, 1};
  EXPECT_THAT(run.Run().status().message(),
              HasSubstr("s.json: all-reduce-implementation-custom: the ranks of group 2"));
}

// Every rank sends to every other at once, so that messages meet on the links of the ring in the order
// in which AstraSim issues them.
std::vector<RankWorkload> AllToAll(int32_t n) {
  std::vector<RankWorkload> members(n);
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t peer = 0; peer < n; ++peer) {
      if (peer == i) continue;
      const uint64_t id = 100 * ((peer * 3 + i) % n) + peer;
      members[i].Add(SendNode(id, peer, 4096 * (1 + peer)));
      members[i].Add(ReceiveNode(id + 50, peer, 4096 * (1 + i)), {id});
    }
  }
  return members;
}

TEST(CustomAlgorithmTest, IssuesOperationsInTheOrderOfAstraSim) {
  const CustomRun run = OnRing(6, AllToAll(6));
  ASSERT_OK_AND_ASSIGN(const SimulationResult aware, run.Run());
  EXPECT_THAT(aware.finish_ns, ElementsAre(2795, 3210, 3557, 2795, 3210, 3557));
  ASSERT_OK_AND_ASSIGN(const SimulationResult unaware, run.Run(Congestion::kUnaware));
  EXPECT_THAT(unaware.finish_ns, ElementsAre(1805, 1881, 1957, 1805, 1881, 1957));
}

std::string ErrorOf(const CustomRun& run) { return std::string(run.Run().status().message()); }

std::string ErrorOf(const RankWorkload& first, const RankWorkload& second) {
  return ErrorOf(OnRing(2, {first, second}));
}

RankWorkload Member(const std::vector<WorkloadNode>& nodes) {
  RankWorkload member;
  for (const WorkloadNode& node : nodes) member.Add(node);
  return member;
}

TEST(CustomAlgorithmTest, RefusesWhatNeverEnds) {
  const RankWorkload idle = Member({ComputeNode(1, 0)});
  const RankWorkload receives = Member({ReceiveNode(7, 0, 64, 3)});
  EXPECT_THAT(
      ErrorOf(idle, receives),
      HasSubstr("rank 0: node 1: s.json: all-reduce-implementation-custom: member 0: rank 0 "
                "sends less often to rank 1 with tag 3 and 64 bytes than that receives it"));
  EXPECT_THAT(ErrorOf(Member({SendNode(1, 1, 64, 3)}), idle),
              HasSubstr("member 0: rank 0 sends more often to rank 1 with tag 3 and 64 bytes"));
  RankWorkload circle;
  circle.Add(ComputeNode(1, 0));
  circle.Add(ComputeNode(2, 0), {3});
  circle.Add(ComputeNode(3, 0), {2});
  EXPECT_THAT(ErrorOf(idle, circle), HasSubstr("member 1: nodes depend on each other in a circle"));
  // Each waits for the other before it sends.
  RankWorkload first, second;
  first.Add(ReceiveNode(1, 1, 8));
  first.Add(SendNode(2, 1, 8), {1});
  second.Add(ReceiveNode(1, 0, 8));
  second.Add(SendNode(2, 0, 8), {1});
  EXPECT_THAT(ErrorOf(first, second),
              AllOf(HasSubstr("deadlock at 0 ns: "),
                    HasSubstr("rank 0 waits in node 1 (all-reduce of all ranks) for rank 1: its "
                              "algorithm receives 8 bytes with tag 0")));
}

TEST(CustomAlgorithmTest, RefusesWhatHasNoMeaning) {
  const RankWorkload idle = Member({ComputeNode(1, 0)});
  EXPECT_THAT(ErrorOf(OnRing(4, {idle, idle})),
              HasSubstr("the algorithm is of 2 ranks, but the collective of 4"));
  EXPECT_THAT(ErrorOf(idle, Member({CollectiveNode(2, CollectiveKind::kAllReduce, 8)})),
              HasSubstr("member 1: node 2: is a collective"));
  WorkloadNode memory;
  memory.id = 2;
  memory.type = WorkloadNodeType::kMemory;
  EXPECT_THAT(ErrorOf(idle, Member({memory})), HasSubstr("member 1: node 2: is a memory node; an"));
  EXPECT_THAT(ErrorOf(idle, Member({SendNode(2, 2, 8)})), HasSubstr("comm_dst 2 is no rank"));
  EXPECT_THAT(ErrorOf(idle, Member({SendNode(2, 1, 8)})), HasSubstr("is the rank itself"));
  RankWorkload dangling;
  dangling.Add(ComputeNode(1, 0), {9});
  EXPECT_THAT(ErrorOf(idle, dangling), HasSubstr("member 1: node 1 depends on node 9"));
  CustomRun run = OnRing(2, {idle, idle});
  run.system.preferred_dataset_splits = 4;
  EXPECT_THAT(ErrorOf(run), HasSubstr("set preferred-dataset-splits to 1"));
  run.system.preferred_dataset_splits = 1;
  run.system.custom[kAllReduce] = "et/ring";
  EXPECT_OK(run.Run());
  run.workload.custom[kAllReduce].clear();
  EXPECT_THAT(ErrorOf(run), HasSubstr("the traces of the algorithm were not read"));
}

TEST(CustomAlgorithmTest, SaysWhoHasNotJoined) {
  CustomRun run = OnRing(4, RingAllReduce(4, kMiB, 0));
  run.workload.ranks[2] = Member({ComputeNode(1, 1000)});
  EXPECT_THAT(ErrorOf(run), HasSubstr("waits in node 1 (all-reduce of all ranks) for rank 2"));
}

// A receive of the traces that is issued before takes what the algorithm sends with the same tag.
TEST(CustomAlgorithmTest, SharesTagsWithTheSendsOfTheWorkload) {
  CustomRun run = OnRing(4, RingAllReduce(4, kMiB, 0));
  run.workload.ranks[1].Add(ReceiveNode(0, 0, kMiB / 4));
  EXPECT_THAT(ErrorOf(run), HasSubstr("its algorithm receives 262144 bytes with tag 0"));
  run.workload.ranks[0].Add(SendNode(2, 1, kMiB / 4));
  EXPECT_OK(run.Run());
}

}  // namespace
}  // namespace meridian
