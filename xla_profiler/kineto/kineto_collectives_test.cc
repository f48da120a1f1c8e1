#include "xla_profiler/kineto/kineto_collectives.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/collectives/rank_resolution.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/kineto/event_table_json.h"
#include "xla_profiler/testing/shared_data.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

using Kind = CollectiveKind;

constexpr char kAllReduceKernel[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(Args)";

// The args of an all-reduce of 1024 floats by ranks 0 and 1.
constexpr char kAllReduceArgs[] =
    R"("Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024,
       "Group size": 2, "dtype": "Float", "Process Group Name": "0",
       "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]")";

std::string Event(absl::string_view category, absl::string_view name, absl::string_view where,
                  absl::string_view times, absl::string_view args) {
  return absl::StrCat(R"({"ph": "X", "cat": ")", category, R"(", "name": ")", name, R"(", )", where,
                      ", ", times, R"(, "args": {)", args, "}}");
}

// A kernel on stream 16 of device 0.
std::string Kernel(absl::string_view name, absl::string_view times, absl::string_view args) {
  return Event("kernel", name, R"("pid": 0, "tid": 16)", times, args);
}

// An all-reduce's kernel with other args behind its own: of repeated members the last counts.
std::string KernelWith(absl::string_view args) {
  return Kernel(kAllReduceKernel, R"("ts": 10, "dur": 1)",
                absl::StrCat(kAllReduceArgs, args.empty() ? "" : ", ", args));
}

ProfileCollectives ReadTrace(absl::string_view header, const std::vector<std::string>& events) {
  const std::string text =
      absl::StrCat("{", header, R"("traceEvents": [)", absl::StrJoin(events, ","), "]}");
  const absl::StatusOr<TraceJsonTable> trace = LoadTraceJson(text, "trace.json");
  EXPECT_THAT(trace, IsOk());
  return trace.ok() ? ReadKinetoCollectives(*trace, text, "trace.json") : ProfileCollectives();
}

// The trace of a rank among two.
ProfileCollectives ReadRank(int64_t rank, const std::vector<std::string>& events) {
  const std::string info = absl::StrCat(R"({"rank": )", rank, R"(, "world_size": 2})");
  return ReadTrace(absl::StrCat(R"("distributedInfo": )", info, ", "), events);
}

// The op of a trace that holds one kernel.
CollectiveOp OpOf(absl::string_view header, const std::string& kernel) {
  const ProfileCollectives profile = ReadTrace(header, {kernel});
  EXPECT_THAT(profile.ops, SizeIs(1));
  return profile.ops.empty() ? CollectiveOp() : profile.ops[0];
}

std::map<std::string, int64_t> Unresolved(const ProfileCollectives& profile) {
  std::map<std::string, int64_t> counts;
  for (const auto& [reason, entry] : profile.unresolved.entries()) counts[reason] = entry.count;
  return counts;
}

TEST(KinetoCollectivesTest, ReadsWhatKernelLaunchAndHeaderSay) {
  const ProfileCollectives profile = ReadTrace(
      R"("baseTimeNanoseconds": 1000000, "distributedInfo": {"rank": 1, "world_size": 4}, )",
      {Event("user_annotation", "ProfilerStep#7", R"("pid": 99, "tid": 99)",
             R"("ts": 5.5, "dur": 100)", ""),
       Event("cuda_runtime", "cudaLaunchKernelExC", R"("pid": 99, "tid": 100)",
             R"("ts": 20, "dur": 3)", R"("correlation": 42)"),
       Kernel(kAllReduceKernel, R"("ts": 123.456789, "dur": 10.000001)",
              absl::StrCat(kAllReduceArgs, R"(, "correlation": 42, "External id": 3)"))});
  EXPECT_EQ(profile.trace, "trace.json");
  // The base is the file's and the first event's ts in whole nanoseconds.
  EXPECT_EQ(profile.base_ns, 1005500);
  ASSERT_THAT(profile.ops, SizeIs(1));
  const CollectiveOp& op = profile.ops[0];
  EXPECT_EQ(op.kind, Kind::kAllReduce);
  EXPECT_EQ(op.module, "0 (default_pg)");
  EXPECT_EQ(op.instruction, "allreduce Float 1024->1024");
  EXPECT_EQ(op.operand_bytes, 4096);
  EXPECT_EQ(op.output_bytes, 4096);
  EXPECT_EQ(op.groups, IdGroups({{0, 1}}));
  ASSERT_THAT(profile.events, SizeIs(1));
  const CollectiveEvent& event = profile.events[0];
  EXPECT_EQ(event.device, 1);
  EXPECT_EQ(event.group, 0);
  EXPECT_EQ(event.run_id, std::nullopt);
  EXPECT_EQ(event.step, 7);
  EXPECT_EQ(event.start_ps, 117956789);
  EXPECT_EQ(event.end_ps, 127956790);
  EXPECT_EQ(event.line_id, 16);
  EXPECT_EQ(event.correlation_id, 42u);
  EXPECT_EQ(event.kernels, 1u);
  ASSERT_THAT(profile.devices, SizeIs(1));
  EXPECT_EQ(profile.devices[0].name, "GPU 0");
  EXPECT_EQ(profile.devices[0].global_id, 1);
  EXPECT_THAT(profile.assigned_devices, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Unresolved(profile), IsEmpty());
}

TEST(KinetoCollectivesTest, TheCollectiveNameDecidesTheKind) {
  const std::vector<std::pair<std::string, Kind>> kinds = {
      {"allreduce", Kind::kAllReduce},
      {"allreduce_coalesced", Kind::kAllReduce},
      {"all_gather", Kind::kAllGather},
      {"_allgather_base", Kind::kAllGather},
      {"allgather_into_tensor_coalesced", Kind::kAllGather},
      {"reduce_scatter", Kind::kReduceScatter},
      {"_reduce_scatter_base", Kind::kReduceScatter},
      {"reduce_scatter_tensor_coalesced", Kind::kReduceScatter},
      {"all_to_all", Kind::kAllToAll},
      {"all_to_allv", Kind::kRaggedAllToAll},
      {"broadcast", Kind::kCollectiveBroadcast},
      {"_broadcast_oop", Kind::kCollectiveBroadcast},
      {"reduce", Kind::kCollectiveReduce},
      {"_reduce_oop", Kind::kCollectiveReduce},
      {"gather", Kind::kCollectiveGather},
      {"scatter", Kind::kCollectiveScatter},
      {"barrier", Kind::kBarrier},
      {"send", Kind::kSend},
      {"recv", Kind::kRecv},
  };
  for (const auto& [name, kind] : kinds) {
    SCOPED_TRACE(name);
    const std::string args = absl::StrCat(R"("Collective name": ")", name, R"(")");
    EXPECT_EQ(OpOf("", KernelWith(args)).kind, kind);
  }
}

TEST(KinetoCollectivesTest, TheKernelsSymbolDecidesForUnknownNames) {
  const std::string args = absl::StrCat(kAllReduceArgs, R"(, "Collective name": "novel")");
  const std::string times = R"("ts": 1, "dur": 1)";
  EXPECT_EQ(OpOf("", Kernel("ncclDevKernel_AllGather_RING_LL(A)", times, args)).kind,
            Kind::kAllGather);
  // Who sends to whom is not known.
  const CollectiveOp permute = OpOf("", Kernel("ncclDevKernel_SendRecv(A)", times, args));
  EXPECT_EQ(permute.kind, Kind::kCollectivePermute);
  EXPECT_THAT(permute.pairs, IsEmpty());

  const ProfileCollectives profile = ReadRank(0, {Kernel("rcclGenericKernel<1>", times, args)});
  EXPECT_THAT(profile.events, IsEmpty());
  EXPECT_THAT(Unresolved(profile), ElementsAre(Pair("collective of unknown kind", 1)));
}

// A call on the host that records what a batch is to do.
std::string Recorded(absl::string_view times, absl::string_view args) {
  return Event("cpu_op", "record_param_comms", R"("pid": 1, "tid": 1)", times,
               absl::StrCat(R"("Process Group Name": "0", "dtype": "Float", )", args));
}

// A call of the runtime on thread 1.
std::string Launch(absl::string_view name, int64_t at, int64_t correlation) {
  return Event("cuda_runtime", name, R"("pid": 1, "tid": 1)",
               absl::StrCat(R"("ts": )", at, R"(, "dur": 1)"),
               absl::StrCat(R"("correlation": )", correlation));
}

std::string KernelOf(absl::string_view name, int64_t at, int64_t correlation,
                     absl::string_view args = "") {
  return Kernel(name, absl::StrCat(R"("ts": )", at, R"(, "dur": 1)"),
                absl::StrCat(R"("correlation": )", correlation, args.empty() ? "" : ", ", args));
}

// Kind, instruction, bytes in and out, and ranks of each event; "by order" where that is all.
std::vector<std::string> Described(const ProfileCollectives& profile) {
  std::vector<std::string> texts;
  for (const CollectiveEvent& event : profile.events) {
    const CollectiveOp& op = profile.ops[event.op];
    texts.push_back(absl::StrCat(CollectiveKindName(op.kind), " ", op.instruction, " ",
                                 op.operand_bytes, ">", op.output_bytes, " of ", op.module, " {",
                                 absl::StrJoin(op.groups.ids(), ","), "}",
                                 op.by_order ? " by order" : ""));
  }
  return texts;
}

// Traces of 2023: the kernels have no arguments, but the host's operators have shapes.
TEST(KinetoCollectivesTest, KernelsWithoutArgumentsAreWhatTheHostCallsAroundTheirLaunchesSay) {
  const auto host = [](absl::string_view category, absl::string_view name, int64_t at, int64_t dur,
                       absl::string_view dims) {
    return Event(category, name, R"("pid": 1, "tid": 1)",
                 absl::StrCat(R"("ts": )", at, R"(, "dur": )", dur),
                 absl::StrCat(R"("Input type": ["float", ""], "Input Dims": )", dims));
  };
  const ProfileCollectives profile = ReadRank(
      1,
      {host("cpu_op", "c10d::alltoall_base_", 0, 9, "[[8], [32], []]"),
       host("cpu_op", "record_param_comms", 1, 7, "[[], []]"),
       host("user_annotation", "nccl:all_to_all", 2, 5, "[[4, 8]]"), Launch("cudaLaunch", 3, 1),
       KernelOf("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(A)", 20, 1),
       host("user_annotation", "nccl:all_reduce", 30, 5, "[[2, 8], [4]]"),
       Launch("cudaLaunch", 31, 2), Launch("cudaLaunch", 32, 3),
       KernelOf("ncclKernel_AllReduce_RING_LL_Sum_float(A)", 40, 2),
       KernelOf("ncclKernel_AllReduce_RING_LL_Sum_float(A)", 42, 3),
       host("user_annotation", "nccl:_all_gather_base", 50, 5, "[[8]]"),
       Launch("cudaLaunch", 51, 4), KernelOf("ncclKernel_AllGather_RING_LL_Sum_int8_t(A)", 60, 4),
       // No call is around it, and an annotation of another kind is not believed.
       Launch("cudaLaunch", 70, 5), KernelOf("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", 71, 5),
       host("user_annotation", "nccl:all_gather", 80, 5, "[[8]]"), Launch("cudaLaunch", 81, 6),
       KernelOf("ncclKernel_AllReduce_RING_LL_Sum_float(A)", 90, 6)});
  EXPECT_THAT(
      Described(profile),
      ElementsAre(
          "ragged-all-to-all nccl:all_to_all float 128>32 of all ranks {} by order",
          "all-reduce nccl:all_reduce float 20->20 80>80 of all ranks {} by order",
          "all-gather nccl:_all_gather_base float 8->16 32>64 of all ranks {} by order",
          "unknown ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t 0>0 of all ranks {} by order",
          "all-reduce ncclKernel_AllReduce_RING_LL_Sum_float 0>0 of all ranks {} by order"));
  // Two kernels of one call are one event.
  EXPECT_EQ(profile.events[1].kernels, 2u);
}

// The call around a launch describes the kernel, where that has no arguments itself.
TEST(KinetoCollectivesTest, TheArgumentsOfTheCallAroundALaunchAreTheKernels) {
  const ProfileCollectives profile =
      ReadRank(1, {Recorded(R"("ts": 1, "dur": 5)", kAllReduceArgs), Launch("cudaLaunch", 2, 1),
                   KernelOf(kAllReduceKernel, 10, 1)});
  EXPECT_THAT(
      Described(profile),
      ElementsAre("all-reduce allreduce Float 1024->1024 4096>4096 of 0 (default_pg) {0,1}"));
}

TEST(KinetoCollectivesTest, KernelsOfAReplayedGraphAreKnownByTheirPlace) {
  constexpr char kGather[] = "ncclDevKernel_AllGather_RING_LL(A)";
  const ProfileCollectives profile = ReadRank(
      0, {Launch("cudaGraphLaunch", 1, 1), KernelOf(kAllReduceKernel, 10, 1),
          KernelOf("gemm", 11, 1), KernelOf(kGather, 12, 1), Launch("hipGraphLaunch", 2, 2),
          // Started the other way round, as kernels of several streams may.
          KernelOf(kGather, 20, 2, R"("graph node id": 9)"),
          KernelOf(kAllReduceKernel, 21, 2, R"("graph node id": 4)")});
  const std::string reduce =
      "all-reduce ncclDevKernel_AllReduce_Sum_f32_RING_LL, 1 of 2 in a graph 0>0 of all ranks {} "
      "by "
      "order";
  const std::string gather =
      "all-gather ncclDevKernel_AllGather_RING_LL, 2 of 2 in a graph 0>0 of all ranks {} by order";
  EXPECT_THAT(Described(profile), ElementsAre(reduce, gather, gather, reduce));
}

// A trace of rank 1 whose header has the world, a pair and a group that it is not in.
ProfileCollectives ReadWithGroups(const std::vector<std::string>& events) {
  return ReadTrace(R"("distributedInfo": {"rank": 1, "world_size": 4, "pg_config": [
                      {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2, 3]},
                      {"pg_name": "3", "pg_desc": "one", "ranks": [1]},
                      {"pg_name": "2", "pg_desc": "tp", "ranks": [2, 3]},
                      {"pg_name": "1", "pg_desc": "tp", "ranks": [0, 1]}]}, )",
                   events);
}

TEST(KinetoCollectivesTest, AmongSeveralGroupsTheOneOfDescribedCollectivesOfTheKindIsTaken) {
  const std::vector<std::string> replay = {Launch("cudaGraphLaunch", 1, 1),
                                           KernelOf(kAllReduceKernel, 10, 1)};
  EXPECT_THAT(ReadWithGroups(replay).events, IsEmpty());
  EXPECT_THAT(
      Unresolved(ReadWithGroups(replay)),
      ElementsAre(
          Pair("communication kernel without arguments that may be of several process groups", 1)));

  std::vector<std::string> events = replay;
  events.push_back(Kernel(kAllReduceKernel, R"("ts": 0, "dur": 1)",
                          R"("Collective name": "allreduce", "In msg nelems": 1, "dtype": "Int",
                             "Out msg nelems": 1, "Process Group Name": "1",
                             "Process Group Description": "tp", "Process Group Ranks": "[0, 1]")"));
  EXPECT_THAT(
      Described(ReadWithGroups(events)),
      ElementsAre("all-reduce allreduce Int 1->1 4>4 of 1 (tp) {0,1}",
                  "all-reduce ncclDevKernel_AllReduce_Sum_f32_RING_LL, 1 of 1 in a graph 0>0 of 1 "
                  "(tp) {0,1} by order"));
}

TEST(KinetoCollectivesTest, KernelsOfOtherLibrariesAreCollectives) {
  const ProfileCollectives profile =
      ReadRank(0, {Launch("cudaLaunch", 1, 1),
                   KernelOf("void vllm::cross_device_reduce_1stage<float, 2>(A)", 10, 1)});
  EXPECT_THAT(Described(profile),
              ElementsAre("all-reduce void vllm::cross_device_reduce_1stage<float, 2> 0>0 of all "
                          "ranks {} by order"));
}

// Launched before the profiler was active, while others were launched later.
TEST(KinetoCollectivesTest, KernelsThatNoCallDescribesAreCounted) {
  const std::string times = R"("ts": 1, "dur": 1)";
  const ProfileCollectives profile =
      ReadRank(0, {Kernel(kAllReduceKernel, times, ""), Kernel(kAllReduceKernel, times, ""),
                   Kernel("gemm", times, ""), Launch("cudaLaunch", 2, 7),
                   KernelOf(kAllReduceKernel, 3, 7, kAllReduceArgs)});
  EXPECT_THAT(profile.events, SizeIs(1));
  EXPECT_THAT(Unresolved(profile),
              ElementsAre(Pair("communication kernel that no collective call describes", 2)));
  EXPECT_THAT(profile.devices, SizeIs(1));
  EXPECT_THAT(profile.assigned_devices, ElementsAre(0, 1));
}

// The end of a batch at a time, which launches a kernel.
std::vector<std::string> BatchEnd(int64_t at, int64_t correlation) {
  const std::string kernel = absl::StrCat(R"("correlation": )", correlation);
  return {Event("user_annotation", "nccl:coalesced", R"("pid": 1, "tid": 1)",
                absl::StrCat(R"("ts": )", at, R"(, "dur": 5)"), ""),
          Event("cuda_driver", "cuLaunchKernelEx", R"("pid": 1, "tid": 1)",
                absl::StrCat(R"("ts": )", at + 1, R"(, "dur": 1)"), kernel),
          Kernel("ncclDevKernel_SendRecv(Args)",
                 absl::StrCat(R"("ts": )", at + 10, R"(, "dur": 4)"), kernel)};
}

TEST(KinetoCollectivesTest, AKernelOfABatchDoesWhatTheCallsBeforeItRecorded) {
  std::vector<std::string> events = {
      // Has a kernel of its own.
      Recorded(R"("ts": 1, "dur": 2)", absl::StrCat(R"("External id": 5, )", kAllReduceArgs)),
      Kernel(kAllReduceKernel, R"("ts": 3, "dur": 1)",
             absl::StrCat(R"("External id": 5, )", kAllReduceArgs)),
      Recorded(R"("ts": 4, "dur": 2)",
               R"("External id": 6, "Collective name": "send", "Dst Rank": 0,
                  "In msg nelems": 16, "Out msg nelems": 16)"),
      Recorded(R"("ts": 7, "dur": 2)",
               R"("External id": 7, "Collective name": "recv", "Src Rank": 0,
                  "In msg nelems": 8, "Out msg nelems": 8)"),
      Recorded(R"("ts": 9, "dur": 1)",
               R"("External id": 8, "Collective name": "send", "Dst Rank": 0,
                  "In msg nelems": 4, "Out msg nelems": 4)"),
      Recorded(R"("ts": 10, "dur": 1)", R"("External id": 9, "Collective name": "wait")"),
      // Of the next batch.
      Recorded(R"("ts": 50, "dur": 2)",
               R"("External id": 10, "Collective name": "recv", "Src Rank": 0,
                  "In msg nelems": 32, "Out msg nelems": 32)")};
  for (const auto& [at, correlation] : {std::make_pair(20, 1), std::make_pair(60, 2)}) {
    for (std::string& event : BatchEnd(at, correlation)) events.push_back(std::move(event));
  }
  const ProfileCollectives profile = ReadRank(1, events);
  std::vector<std::string> read;
  for (const CollectiveEvent& event : profile.events) {
    const CollectiveOp& op = profile.ops[event.op];
    read.push_back(absl::StrCat(op.instruction, ", ", op.operand_bytes, " bytes at ",
                                event.start_ps / 1000000 + 1));
  }
  EXPECT_THAT(read, ::testing::UnorderedElementsAre("allreduce Float 1024->1024, 4096 bytes at 3",
                                                    "transfer 1->0 Float 20, 80 bytes at 30",
                                                    "transfer 0->1 Float 8, 32 bytes at 30",
                                                    "transfer 0->1 Float 32, 128 bytes at 70"));
}

// The record of the all-reduce's own kernel is lost: the sends' kernel does not do it.
TEST(KinetoCollectivesTest, AKernelDoesNothingOfAnotherKind) {
  std::vector<std::string> events = {
      Recorded(R"("ts": 1, "dur": 2)", absl::StrCat(R"("External id": 5, )", kAllReduceArgs)),
      Recorded(R"("ts": 4, "dur": 2)",
               R"("External id": 6, "Collective name": "send", "Dst Rank": 0,
                  "In msg nelems": 16, "Out msg nelems": 16)")};
  for (std::string& event : BatchEnd(20, 1)) events.push_back(std::move(event));
  const ProfileCollectives profile = ReadRank(1, events);
  ASSERT_THAT(profile.events, SizeIs(1));
  EXPECT_EQ(profile.ops[profile.events[0].op].instruction, "transfer 1->0 Float 16");
}

// As no profiler writes them.
TEST(KinetoCollectivesTest, BatchesWithinBatchesDoNoHarm) {
  std::vector<std::string> events = {Event("user_annotation", "nccl:coalesced",
                                           R"("pid": 1, "tid": 1)", R"("ts": 0, "dur": 100)", "")};
  for (std::string& event : BatchEnd(20, 1)) events.push_back(std::move(event));
  for (const int at : {5, 22, 50}) {
    events.push_back(Recorded(absl::StrCat(R"("ts": )", at, R"(, "dur": 1)"),
                              R"("Collective name": "send", "Dst Rank": 0, "In msg nelems": 4,
                                 "Out msg nelems": 4)"));
  }
  EXPECT_THAT(ReadRank(1, events).events, SizeIs(1));
}

TEST(KinetoCollectivesTest, CopiesThatACallMadeAreNoCollectives) {
  const ProfileCollectives profile =
      ReadRank(0, {Kernel("elementwise_kernel", R"("ts": 1, "dur": 1)", kAllReduceArgs),
                   Event("gpu_memcpy", "ncclCopy", R"("pid": 0, "tid": 16)", R"("ts": 1, "dur": 1)",
                         kAllReduceArgs)});
  EXPECT_THAT(profile.events, IsEmpty());
  EXPECT_THAT(Unresolved(profile), IsEmpty());
}

TEST(KinetoCollectivesTest, BytesAreElementsOfTheirType) {
  const CollectiveOp gather =
      OpOf("", KernelWith(R"("Collective name": "all_gather", "In msg nelems": 3,
                             "Out msg nelems": 6, "dtype": "BFloat16")"));
  EXPECT_EQ(gather.operand_bytes, 6);
  EXPECT_EQ(gather.output_bytes, 12);
  EXPECT_EQ(gather.instruction, "all_gather BFloat16 3->6");
  EXPECT_EQ(OpOf("", KernelWith(R"("dtype": "ComplexDouble")")).operand_bytes, 16384);
  EXPECT_EQ(OpOf("", KernelWith(R"("dtype": "Float8_e4m3fn")")).operand_bytes, 1024);
}

TEST(KinetoCollectivesTest, BytesThatCannotBeToldAreCountedOnce) {
  for (const char* args : {R"("dtype": "Novel")", R"("In msg nelems": -1)",
                           R"("In msg nelems": 2305843009213693952)", R"("In msg nelems": null)"}) {
    SCOPED_TRACE(args);
    const std::string kernel = KernelWith(absl::StrCat(args, R"(, "correlation": 1)"));
    const std::string launch =
        Event("cuda_runtime", "cudaLaunchKernelExC", R"("pid": 99, "tid": 100)",
              R"("ts": 9, "dur": 3)", R"("correlation": 1)");
    const ProfileCollectives profile = ReadRank(0, {kernel, kernel, launch});
    ASSERT_THAT(profile.events, SizeIs(2));
    EXPECT_EQ(profile.ops[0].operand_bytes, 0);
    EXPECT_THAT(Unresolved(profile), ElementsAre(Pair("bytes of a collective cannot be told", 1)));
  }
}

// The group of a kernel whose rank list and group size are these.
IdGroups GroupOf(absl::string_view header, absl::string_view ranks, int64_t size) {
  return OpOf(header, KernelWith(absl::StrCat(R"("Process Group Ranks": ")", ranks,
                                              R"(", "Group size": )", size)))
      .groups;
}

TEST(KinetoCollectivesTest, GroupsAreTheListedRanks) {
  EXPECT_EQ(GroupOf("", "[4, 0, 6]", 3), IdGroups({{4, 0, 6}}));
  EXPECT_EQ(GroupOf("", "[5]", 1), IdGroups({{5}}));
}

TEST(KinetoCollectivesTest, ListsThatAreCutShortAreContinued) {
  EXPECT_EQ(GroupOf("", "[0, 1, ..., 7]", 8), IdGroups({{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(GroupOf("", "[1, 3, 5, ...]", 5), IdGroups({{1, 3, 5, 7, 9}}));
}

TEST(KinetoCollectivesTest, TheHeaderCompletesListsThatAreCutShort) {
  const std::string header =
      R"("distributedInfo": {"pg_config": [{"pg_name": "1", "ranks": [8, 9]},
                                           {"pg_name": "0", "ranks": [0, 1, 5]}]}, )";
  EXPECT_EQ(GroupOf(header, "[0, 1, ...]", 3), IdGroups({{0, 1, 5}}));
  EXPECT_EQ(GroupOf(header, "[]", 3), IdGroups({{0, 1, 5}}));
}

TEST(KinetoCollectivesTest, GroupsThatCannotBeToldAreCounted) {
  const std::vector<std::pair<std::string, int64_t>> lists = {
      {"[0, 1, 3, ...]", 5},  // no sequence
      {"[0, 1, ..., 9]", 8},  // does not end there
      {"[3, 2, ...]", 5},     // runs below zero
      {"[0, ...]", 4},        // no stride
      {"[0, 1, 2, ...]", 2},  // more listed than there are
      {"[0, 1, 2]", 4},       // not all of them
      {"[0, x]", 2},         {"0, 1", 2}, {"[]", 2}, {"[0, ..., 4, ..., 6]", 7},
  };
  for (const auto& [list, size] : lists) {
    SCOPED_TRACE(list);
    const ProfileCollectives profile =
        ReadRank(0, {KernelWith(absl::StrCat(R"("Process Group Ranks": ")", list,
                                             R"(", "Group size": )", size))});
    ASSERT_THAT(profile.events, SizeIs(1));
    EXPECT_EQ(profile.events[0].group, kUnknownId);
    EXPECT_EQ(Unresolved(profile).count("ranks of a process group cannot be told"), 1u);
  }
}

TEST(KinetoCollectivesTest, WithoutAHeaderTheRankIsOpen) {
  const ProfileCollectives profile = ReadTrace("", {KernelWith("")});
  ASSERT_THAT(profile.events, SizeIs(1));
  EXPECT_EQ(profile.events[0].device, kUnknownId);
  EXPECT_THAT(profile.assigned_devices, ElementsAre(0, 1));
}

// The number of a collective itself wins over its place in the group.
TEST(KinetoCollectivesTest, CommsIdsMatchExecutions) {
  const ProfileCollectives first =
      ReadRank(0, {KernelWith(R"("Comms Id": "77", "Seq": 5)"), KernelWith(R"("Seq": 6)")});
  const ProfileCollectives second =
      ReadRank(1, {KernelWith(R"("Comms Id": "77", "Seq": 9)"), KernelWith(R"("Seq": 6)")});
  ASSERT_THAT(first.events, SizeIs(2));
  ASSERT_THAT(second.events, SizeIs(2));
  EXPECT_EQ(first.events[0].run_id, second.events[0].run_id);
  EXPECT_EQ(first.events[1].run_id, second.events[1].run_id);
  EXPECT_NE(first.events[0].run_id, first.events[1].run_id);
}

TEST(KinetoCollectivesTest, SequenceNumbersMatchExecutions) {
  // Rank 1 began to profile one collective later; group 1 counts for itself.
  const std::vector<ProfileCollectives> profiles = {
      ReadRank(0, {KernelWith(R"("Seq": 5)"), KernelWith(R"("Seq": 6)")}),
      ReadRank(1, {KernelWith(R"("Seq": 6)"), KernelWith(R"("Seq": 7)"),
                   KernelWith(R"("Seq": 5, "Process Group Name": "1")")})};
  EXPECT_EQ(profiles[0].events[1].run_id, profiles[1].events[0].run_id);
  EXPECT_NE(profiles[0].events[0].run_id, profiles[0].events[1].run_id);
  EXPECT_NE(profiles[0].events[0].run_id, profiles[1].events[2].run_id);
}

TEST(KinetoCollectivesTest, TheStepIsThatOfTheLaunch) {
  const std::string host = R"("pid": 99, "tid": 99)";
  const std::string other_thread = R"("pid": 99, "tid": 100)";
  const auto launch = [&](absl::string_view ts, int correlation) {
    return Event("cuda_runtime", "cudaLaunchKernelExC", other_thread,
                 absl::StrCat(R"("ts": )", ts, R"(, "dur": 1)"),
                 absl::StrCat(R"("correlation": )", correlation));
  };
  const auto kernel = [&](int correlation) {
    return KernelWith(absl::StrCat(R"("correlation": )", correlation));
  };
  const ProfileCollectives profile = ReadRank(
      0, {Event("user_annotation", "ProfilerStep#4", host, R"("ts": 200, "dur": 100)", ""),
          Event("user_annotation", "ProfilerStep#3", host, R"("ts": 100, "dur": 50)", ""),
          launch("99.999999", 1), launch("100", 2), launch("149.999999", 3), launch("150", 4),
          launch("299", 5), kernel(1), kernel(2), kernel(3), kernel(4), kernel(5), kernel(6)});
  std::vector<std::optional<int64_t>> steps;
  for (const CollectiveEvent& event : profile.events) steps.push_back(event.step);
  EXPECT_THAT(steps, ElementsAre(std::nullopt, 3, 3, std::nullopt, 4, std::nullopt));
  EXPECT_THAT(Unresolved(profile),
              ElementsAre(Pair("launch of a collective is not in the profile", 1)));
}

TEST(KinetoCollectivesTest, KernelsOfOneCallAreOneEvent) {
  const auto kernel = [](absl::string_view times, absl::string_view id) {
    return Kernel(kAllReduceKernel, times,
                  absl::StrCat(kAllReduceArgs, R"(, "External id": )", id));
  };
  const ProfileCollectives profile =
      ReadRank(0, {kernel(R"("ts": 30, "dur": 5)", "8"), kernel(R"("ts": 10, "dur": 5)", "7"),
                   kernel(R"("ts": 14, "dur": 6)", "7")});
  EXPECT_THAT(profile.ops, SizeIs(1));
  ASSERT_THAT(profile.events, SizeIs(2));
  // Times count from the first row's.
  EXPECT_EQ(profile.events[0].start_ps, -20000000);
  EXPECT_EQ(profile.events[0].end_ps, -10000000);
  EXPECT_EQ(profile.events[0].kernels, 2u);
  EXPECT_EQ(profile.events[1].kernels, 1u);
  EXPECT_EQ(profile.events[1].occurrence, 1u);
}

TEST(KinetoCollectivesTest, BothEndsOfATransferAreOneOp) {
  const ProfileCollectives sender =
      ReadRank(0, {KernelWith(R"("Collective name": "send", "Dst Rank": 1)")});
  const ProfileCollectives receiver =
      ReadRank(1, {KernelWith(R"("Collective name": "recv", "Src Rank": 0)")});
  EXPECT_EQ(sender.ops[0].kind, Kind::kSend);
  EXPECT_EQ(receiver.ops[0].kind, Kind::kRecv);
  EXPECT_EQ(sender.ops[0].instruction, "transfer 0->1 Float 1024");
  EXPECT_EQ(OpIdentity(sender.ops[0]), OpIdentity(receiver.ops[0]));
  EXPECT_THAT(sender.ops[0].pairs, ElementsAre(SourceTargetPair{0, 1}));
  EXPECT_THAT(receiver.ops[0].pairs, ElementsAre(SourceTargetPair{0, 1}));
  EXPECT_TRUE(sender.ops[0].groups.empty());
}

TEST(KinetoCollectivesTest, APeerThatIsNotToldIsCounted) {
  const std::string reason = "peer of a transfer cannot be told";
  EXPECT_EQ(Unresolved(ReadRank(0, {KernelWith(R"("Collective name": "send")")})).count(reason),
            1u);
  const ProfileCollectives no_rank =
      ReadTrace("", {KernelWith(R"("Collective name": "send", "Dst Rank": 1)")});
  EXPECT_EQ(Unresolved(no_rank).count(reason), 1u);
  EXPECT_THAT(no_rank.ops[0].pairs, IsEmpty());
}

TEST(KinetoCollectivesTest, TransfersAreMatchedByStepSinceEachRankCountsItsOwn) {
  const auto read = [](int64_t rank, absl::string_view args) {
    return ReadRank(rank, {Event("user_annotation", "ProfilerStep#3", R"("pid": 99, "tid": 99)",
                                 R"("ts": 1, "dur": 50)", ""),
                           Event("cuda_runtime", "cudaLaunchKernelExC", R"("pid": 99, "tid": 99)",
                                 R"("ts": 9, "dur": 3)", R"("correlation": 1)"),
                           KernelWith(absl::StrCat(R"("correlation": 1, )", args))});
  };
  const ProfileCollectives sender =
      read(0, R"("Collective name": "send", "Dst Rank": 1, "Seq": 12)");
  const ProfileCollectives receiver =
      read(1, R"("Collective name": "recv", "Src Rank": 0, "Seq": 4)");
  ASSERT_TRUE(sender.events[0].run_id.has_value());
  EXPECT_EQ(sender.events[0].run_id, receiver.events[0].run_id);
  // The group's third collective is something else.
  EXPECT_NE(sender.events[0].run_id, read(0, R"("Seq": 3)").events[0].run_id);
}

TEST(KinetoCollectivesTest, RaggedExchangesAgreeWhateverEachRankSends) {
  const auto kernel = [](int64_t in, int64_t out) {
    return KernelWith(absl::StrCat(R"("Collective name": "all_to_allv", "In msg nelems": )", in,
                                   R"(, "Out msg nelems": )", out));
  };
  const ProfileCollectives profile = ReadRank(0, {kernel(10, 20), kernel(30, 5)});
  ASSERT_THAT(profile.ops, SizeIs(2));
  EXPECT_EQ(OpIdentity(profile.ops[0]), OpIdentity(profile.ops[1]));
  EXPECT_EQ(profile.ops[0].output_bytes, 80);
  EXPECT_EQ(profile.ops[1].output_bytes, 20);
}

absl::StatusOr<ProfileCollectives> ReadFile(const std::string& path) {
  const absl::StatusOr<InputFile> file = InputFile::Open(FileSystem::Posix(), path);
  if (!file.ok()) return file.status();
  return ReadKinetoCollectives(*file);
}

// One rank's part in an execution, in Unix time.
struct Member {
  const CollectiveOp* op;
  std::vector<int64_t> group;
  absl::int128 start_ps;
  absl::int128 end_ps;
};

TEST(KinetoCollectivesTest, RealRanksAgreeOnEveryExecution) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  std::vector<ProfileCollectives> profiles;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string path = absl::StrCat(*shared, "/traces/torch_nccl4/kineto_", rank, ".json.gz");
    ASSERT_OK_AND_ASSIGN(ProfileCollectives profile, ReadFile(path));
    // 12, 11, 12 and 11 kernels of NCCL, of which the call was recorded for 8.
    EXPECT_THAT(profile.events, SizeIs(8));
    EXPECT_THAT(Unresolved(profile),
                ElementsAre(Pair("communication kernel that no collective call describes",
                                 rank % 2 == 0 ? 4 : 3)));
    EXPECT_THAT(profile.assigned_devices, ElementsAre(0, 1, 2, 3));
    profiles.push_back(std::move(profile));
  }
  ASSERT_OK_AND_ASSIGN(const RankResolution ranks, ResolveRanks(absl::MakeSpan(profiles)));
  EXPECT_THAT(ranks.ranks,
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(ranks.notes, IsEmpty());
  const RunResolution runs = ResolveRuns(profiles);
  EXPECT_EQ(runs.method, RunMethod::kStep);

  std::map<std::tuple<int64_t, absl::uint128, uint32_t>, std::vector<Member>> executions;
  for (size_t p = 0; p < profiles.size(); ++p) {
    const absl::int128 base_ps = absl::int128(profiles[p].base_ns) * 1000;
    for (size_t i = 0; i < profiles[p].events.size(); ++i) {
      const CollectiveEvent& event = profiles[p].events[i];
      const CollectiveOp& op = profiles[p].ops[event.op];
      ASSERT_EQ(event.group, 0);
      const EventRun& run = runs.runs[p][i];
      executions[{run.run, OpIdentity(op), run.occurrence}].push_back(
          {&op,
           {op.groups[0].begin(), op.groups[0].end()},
           base_ps + event.start_ps,
           base_ps + event.end_ps});
    }
  }
  // Two steps of three all-reduces and an all-gather; nothing is left over.
  EXPECT_THAT(executions, SizeIs(8));
  std::map<std::string, int> instructions;
  for (const auto& [key, members] : executions) {
    ASSERT_THAT(members, SizeIs(4));
    const Member& first = members[0];
    ++instructions[first.op->instruction];
    EXPECT_THAT(first.group, ElementsAre(0, 1, 2, 3));
    absl::int128 last_start_ps = first.start_ps;
    absl::int128 first_end_ps = first.end_ps;
    for (const Member& member : members) {
      EXPECT_EQ(member.op->kind, first.op->kind);
      EXPECT_EQ(member.op->operand_bytes, first.op->operand_bytes);
      EXPECT_EQ(member.op->output_bytes, first.op->output_bytes);
      EXPECT_EQ(member.group, first.group);
      last_start_ps = std::max(last_start_ps, member.start_ps);
      first_end_ps = std::min(first_end_ps, member.end_ps);
    }
    // The ranks shared one clock, and none can end before all have begun.
    EXPECT_LT(last_start_ps, first_end_ps);
  }
  EXPECT_THAT(instructions, ElementsAre(Pair("all_gather Float 1048576->4194304", 2),
                                        Pair("allreduce Float 1050624->1050624", 2),
                                        Pair("allreduce Float 1051648->1051648", 2),
                                        Pair("allreduce Float 1312768->1312768", 2)));
}

// Returns how many members each execution of the ranks' traces has, by kind.
std::map<std::pair<Kind, size_t>, int> MatchedMembers(std::vector<ProfileCollectives> profiles) {
  EXPECT_THAT(ResolveRanks(absl::MakeSpan(profiles)), IsOk());
  const RunResolution runs = ResolveRuns(profiles);
  std::map<std::tuple<int64_t, absl::uint128, uint32_t>, std::pair<Kind, size_t>> executions;
  for (size_t p = 0; p < profiles.size(); ++p) {
    for (size_t i = 0; i < profiles[p].events.size(); ++i) {
      const CollectiveOp& op = profiles[p].ops[profiles[p].events[i].op];
      const EventRun& run = runs.runs[p][i];
      EXPECT_NE(run.run, kUnknownId);
      EXPECT_EQ(profiles[p].events[i].group, 0);
      auto& execution = executions[{run.run, OpIdentity(op), run.occurrence}];
      execution.first = op.kind;
      ++execution.second;
    }
  }
  std::map<std::pair<Kind, size_t>, int> counts;
  for (const auto& [key, execution] : executions) ++counts[execution];
  return counts;
}

TEST(KinetoCollectivesTest, RealTracesOf2023AreMatchedByOrder) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  constexpr int64_t kMadeAt[] = {1694128201545, 1694128201556, 1694128201554, 1694128201557,
                                 1694128201547, 1694128201549, 1694128201553, 1694128201553};
  std::vector<ProfileCollectives> profiles;
  for (int rank = 0; rank < 8; ++rank) {
    ASSERT_OK_AND_ASSIGN(ProfileCollectives profile,
                         ReadFile(absl::StrCat(*shared, "/traces/public/dlrm8/worker", rank,
                                               "_step_12.", kMadeAt[rank], ".pt.trace.json.gz")));
    EXPECT_THAT(Unresolved(profile), IsEmpty());
    profiles.push_back(std::move(profile));
  }
  EXPECT_EQ(Described(profiles[3])[4],
            "all-reduce nccl:all_reduce float 394241->394241 1576964>1576964 of all ranks {} by "
            "order");
  EXPECT_THAT(MatchedMembers(std::move(profiles)),
              ElementsAre(Pair(Pair(Kind::kAllReduce, 8), 3), Pair(Pair(Kind::kAllToAll, 8), 4),
                          Pair(Pair(Kind::kRaggedAllToAll, 8), 1)));
}

// 18 replays of three all-reduces, and nine with arguments outside of them.
TEST(KinetoCollectivesTest, EveryReplayOfARealGraphIsMatched) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  std::vector<ProfileCollectives> profiles;
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_OK_AND_ASSIGN(
        ProfileCollectives profile,
        ReadFile(absl::StrCat(*shared, "/traces/graph_nccl4/kineto_", rank, ".json.gz")));
    profiles.push_back(std::move(profile));
  }
  EXPECT_THAT(MatchedMembers(std::move(profiles)),
              ElementsAre(Pair(Pair(Kind::kAllReduce, 4), 63)));
}

TEST(KinetoCollectivesTest, CountsOfARealSample) {
  const std::optional<std::string> shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  ASSERT_OK_AND_ASSIGN(const ProfileCollectives profile,
                       ReadFile(*shared + "/samples/kineto/nccl_parser_config/nccl_data.json.gz"));
  EXPECT_THAT(Unresolved(profile), IsEmpty());
  std::map<std::pair<Kind, std::optional<int64_t>>, int> counts;
  for (const CollectiveEvent& event : profile.events) {
    ++counts[{profile.ops[event.op].kind, event.step}];
    EXPECT_EQ(event.group, 0);
  }
  // Counted with Python's json module.
  EXPECT_THAT(
      counts,
      ElementsAre(Pair(Pair(Kind::kAllReduce, 4), 5), Pair(Pair(Kind::kAllReduce, 5), 5),
                  Pair(Pair(Kind::kAllReduce, 6), 5), Pair(Pair(Kind::kCollectiveBroadcast, 4), 2),
                  Pair(Pair(Kind::kCollectiveBroadcast, 5), 2),
                  Pair(Pair(Kind::kCollectiveBroadcast, 6), 2)));
}

}  // namespace
}  // namespace meridian
