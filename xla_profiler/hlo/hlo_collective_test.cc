#include "xla_profiler/hlo/hlo_collective.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/hlo/hlo_module.h"
#include "xla_profiler/testing/hlo_module_builder.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Kind = CollectiveKind;
using Pair = SourceTargetPair;

// A module, the bytes it points into, and its collectives.
struct Decoded {
  explicit Decoded(const HloModuleBuilder& builder)
      : bytes(builder.Serialize()),
        module(HloModule::Decode(bytes, bytes.data()).value()),
        collectives(*module) {}

  const std::vector<HloCollective>& all() const { return collectives.all(); }
  const HloCollective* Find(absl::string_view name) const { return collectives.Find(name); }

  const std::string bytes;
  const std::unique_ptr<HloModule> module;
  const HloCollectives collectives;
};

xla::ShapeProto F32(int64_t size) { return ArrayShape(xla::F32, {size}); }
xla::ShapeProto U32() { return ArrayShape(xla::U32, {}); }
xla::ShapeProto Token() { return ArrayShape(xla::TOKEN, {}); }

// "main" with a parameter "x" of f32[100] to communicate.
struct Program {
  HloModuleBuilder builder = HloModuleBuilder("m");
  const xla::HloInstructionProto* x = builder.Add("x", "parameter", F32(100));
};

TEST(HloCollectiveTest, FindsSynchronousCollectivesByOpcode) {
  Program program;
  HloModuleBuilder& b = program.builder;
  b.Add("psum.7", "all-reduce", F32(100), {program.x});
  b.Add("g", "all-gather", F32(400), {program.x});
  b.Add("rs", "reduce-scatter", F32(25), {program.x});
  b.Add("a2a", "all-to-all", F32(100), {program.x});
  b.Add("ragged", "ragged-all-to-all", F32(100), {program.x});
  b.Add("bc", "collective-broadcast", F32(100), {program.x});
  b.Add("cr", "collective-reduce", F32(100), {program.x});
  b.Add("cp", "collective-permute", F32(100), {program.x});
  b.Add("all-reduce.fake", "add", F32(100), {program.x, program.x});
  b.Add("id", "partition-id", U32());
  const Decoded module(b);
  std::vector<std::string> found;
  for (const HloCollective& collective : module.all()) {
    EXPECT_OK(collective.status);
    EXPECT_EQ(collective.start, nullptr);
    EXPECT_EQ(collective.done, nullptr);
    EXPECT_EQ(collective.operand_bytes, 400);
    found.emplace_back(CollectiveKindName(collective.kind));
  }
  EXPECT_THAT(found, ElementsAre("all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                                 "ragged-all-to-all", "collective-broadcast", "collective-reduce",
                                 "collective-permute"));
  EXPECT_EQ(module.Find("g")->output_bytes, 1600);
  EXPECT_EQ(module.Find("rs")->output_bytes, 100);
  EXPECT_EQ(module.Find("psum.7"), &module.all()[0]);
  EXPECT_EQ(module.Find("all-reduce.fake"), nullptr);
  EXPECT_EQ(module.Find("nothing"), nullptr);
}

TEST(HloCollectiveTest, TupleOperandsAreSummed) {
  Program program;
  auto* tuple = program.builder.Add("t", "tuple", TupleShape({F32(1), TupleShape({F32(2)})}));
  program.builder.Add("ar", "all-reduce", TupleShape({F32(100), F32(3)}), {program.x, tuple});
  const Decoded module(program.builder);
  EXPECT_EQ(module.Find("ar")->operand_bytes, 400 + 4 + 8);
  EXPECT_EQ(module.Find("ar")->output_bytes, 400 + 12);
}

TEST(HloCollectiveTest, PairsAreOneCollective) {
  Program program;
  HloModuleBuilder& b = program.builder;
  auto* ar = b.Add("ar-start", "all-reduce-start", F32(100), {program.x});
  auto* ag = b.Add("ag-start", "all-gather-start", TupleShape({F32(100), F32(400)}), {program.x});
  auto* cp = b.Add("cp-start", "collective-permute-start",
                   TupleShape({F32(100), F32(100), U32(), U32()}), {program.x});
  b.Add("cp-done", "collective-permute-done", F32(100), {cp});
  b.Add("ag-done", "all-gather-done", F32(400), {ag});
  b.Add("ar-done", "all-reduce-done", F32(100), {ar});
  const Decoded module(b);
  ASSERT_THAT(module.all(), SizeIs(3));
  const HloCollective* gather = module.Find("ag-start");
  EXPECT_EQ(gather->kind, Kind::kAllGather);
  EXPECT_EQ(gather, module.Find("ag-done"));
  EXPECT_EQ(gather->start->name(), "ag-start");
  EXPECT_EQ(gather->instruction, gather->start);
  EXPECT_EQ(gather->done->name(), "ag-done");
  EXPECT_EQ(gather->operand_bytes, 400);
  EXPECT_EQ(gather->output_bytes, 1600);
  EXPECT_EQ(module.Find("ar-done")->output_bytes, 400);
  EXPECT_EQ(module.Find("cp-done")->output_bytes, 400);
}

TEST(HloCollectiveTest, AStartWithoutDoneKnowsItsOutput) {
  Program program;
  HloModuleBuilder& b = program.builder;
  b.Add("ar", "all-reduce-start", TupleShape({F32(100), F32(3)}), {program.x});
  b.Add("ag", "all-gather-start", TupleShape({F32(100), F32(400)}), {program.x});
  b.Add("cp", "collective-permute-start", TupleShape({F32(100), F32(100), U32(), U32()}),
        {program.x});
  b.Add("recv", "recv", TupleShape({F32(7), U32(), Token()}));
  const Decoded module(b);
  EXPECT_EQ(module.Find("ar")->output_bytes, 412);
  EXPECT_EQ(module.Find("ag")->output_bytes, 1600);
  EXPECT_EQ(module.Find("cp")->output_bytes, 400);
  EXPECT_EQ(module.Find("recv")->output_bytes, 28);
}

// async-start of a reduce-scatter with an update before its done, all in "main".
struct Wrapped : Program {
  Wrapped() {
    start =
        builder.Add("rs-start", "async-start", TupleShape({TupleShape({F32(100)}), F32(25)}), {x});
    start->add_called_computation_ids(2);
    auto* update = builder.Add("rs-update", "async-update",
                               TupleShape({TupleShape({F32(100)}), F32(25)}), {start});
    builder.Add("rs-done", "async-done", F32(25), {update});
    builder.AddComputation("wrapped");
    parameter = builder.Add("p", "parameter", F32(100));
    inner = builder.Add("reduce-scatter.1", "reduce-scatter", F32(25), {parameter});
  }
  xla::HloInstructionProto* start;
  const xla::HloInstructionProto* parameter;
  xla::HloInstructionProto* inner;
};

TEST(HloCollectiveTest, WrappedCollectivesAreFoundByAnyName) {
  const Decoded module(Wrapped().builder);
  ASSERT_THAT(module.all(), SizeIs(1));
  const HloCollective& collective = module.all()[0];
  EXPECT_OK(collective.status);
  EXPECT_EQ(collective.kind, Kind::kReduceScatter);
  EXPECT_EQ(collective.instruction->name(), "reduce-scatter.1");
  EXPECT_EQ(collective.start->name(), "rs-start");
  EXPECT_EQ(collective.done->name(), "rs-done");
  EXPECT_EQ(collective.operand_bytes, 400);
  EXPECT_EQ(collective.output_bytes, 100);
  for (const char* name : {"reduce-scatter.1", "rs-start", "rs-update", "rs-done"}) {
    EXPECT_EQ(module.Find(name), &collective) << name;
  }
}

TEST(HloCollectiveTest, AWrapperOfSeveralLeadsToItsRootOrTheFirst) {
  Wrapped wrapped;
  wrapped.builder.Add("all-to-all.1", "all-to-all", F32(100), {wrapped.parameter});
  const Decoded by_root(wrapped.builder);
  EXPECT_EQ(by_root.Find("rs-done")->instruction->name(), "all-to-all.1");
  wrapped.builder.Add("t", "tuple", TupleShape({}));
  const Decoded first(wrapped.builder);
  EXPECT_EQ(first.Find("rs-done")->instruction->name(), "reduce-scatter.1");
  // Both belong to the wrapper.
  for (const HloCollective& collective : first.all()) {
    EXPECT_EQ(collective.start->name(), "rs-start");
    EXPECT_EQ(collective.done->name(), "rs-done");
  }
}

TEST(HloCollectiveTest, AWrapperOfSomethingElseIsNoCollective) {
  Program program;
  auto* start = program.builder.Add("start", "async-start", F32(1), {program.x});
  start->add_called_computation_ids(2);
  program.builder.Add("done", "async-done", F32(1), {start});
  program.builder.AddComputation("wrapped");
  program.builder.Add("custom", "custom-call", F32(1));
  const Decoded module(program.builder);
  EXPECT_THAT(module.all(), IsEmpty());
  EXPECT_EQ(module.Find("start"), nullptr);
  EXPECT_EQ(module.Find("done"), nullptr);
}

TEST(HloCollectiveTest, LinksInACircleLeadNowhere) {
  HloModuleBuilder b("m");
  b.Add("u1", "async-update", F32(1))->add_operand_ids(102);
  auto* u2 = b.Add("u2", "async-update", F32(1));
  u2->add_operand_ids(101);
  b.Add("d", "async-done", F32(1), {u2});
  b.Add("self", "all-reduce-done", F32(1))->add_operand_ids(104);
  b.Add("orphan", "all-gather-done", F32(1));
  // Calls the computation it is in.
  b.Add("loop", "async-start", F32(1))->add_called_computation_ids(1);
  const Decoded module(b);
  EXPECT_THAT(module.all(), IsEmpty());
  for (const char* name : {"u1", "u2", "d", "self", "orphan", "loop"}) {
    EXPECT_EQ(module.Find(name), nullptr) << name;
  }
}

TEST(HloCollectiveTest, LongChainsAreWalkedOnce) {
  Wrapped wrapped;
  HloModuleBuilder& b = wrapped.builder;
  const xla::HloInstructionProto* last = wrapped.start;
  for (int i = 0; i < 100000; ++i) {
    last = b.Add("u" + std::to_string(i), "async-update", F32(1), {last});
    b.Add("d" + std::to_string(i), "async-done", F32(1), {last});
  }
  const Decoded module(b);
  EXPECT_EQ(module.Find("d99999"), &module.all()[0]);
}

TEST(HloCollectiveTest, GroupsAreDevices) {
  const Decoded module(RichModule());
  ASSERT_THAT(module.all(), SizeIs(3));
  const CollectiveParticipants& sum = *module.Find("psum.7")->participants;
  EXPECT_EQ(sum.mode, CollectiveGroupMode::kFlattenedId);
  EXPECT_EQ(ToString(sum.logical_groups), "{0,2},{1,3}");
  EXPECT_EQ(ToString(sum.device_groups), "{0,4096},{2048,6144}");
  EXPECT_FALSE(sum.devices_are_logical_ids);
  const CollectiveParticipants& all_to_all = *module.Find("a2a-done")->participants;
  EXPECT_EQ(all_to_all.mode, CollectiveGroupMode::kCrossPartition);
  EXPECT_EQ(ToString(all_to_all.device_groups), "{0,2048},{4096,6144}");
  const CollectiveParticipants& permute = *module.Find("ppermute.3")->participants;
  EXPECT_EQ(permute.mode, CollectiveGroupMode::kCrossPartition);
  EXPECT_THAT(permute.device_pairs,
              ElementsAre(Pair{0, 2048}, Pair{2048, 4096}, Pair{4096, 6144}, Pair{6144, 0}));
  EXPECT_THAT(permute.logical_pairs, SizeIs(4));
  EXPECT_TRUE(permute.device_groups.empty());
}

// The attribute counts only for opcodes that have it: proto3 cannot tell false from absent.
TEST(HloCollectiveTest, TheModeDependsOnTheOpcode) {
  Program program;
  HloModuleBuilder& b = program.builder;
  for (const char* opcode : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                             "collective-permute", "collective-broadcast"}) {
    b.Add(opcode, opcode, F32(100), {program.x})->set_channel_id(1);
  }
  b.Add("no-channel", "all-reduce", F32(100), {program.x});
  const Decoded module(b);
  const auto mode = [&](absl::string_view name) { return module.Find(name)->participants->mode; };
  for (const char* name : {"all-reduce", "all-gather", "reduce-scatter"}) {
    EXPECT_EQ(mode(name), CollectiveGroupMode::kCrossReplicaAndPartition) << name;
  }
  for (const char* name : {"all-to-all", "collective-permute", "collective-broadcast"}) {
    EXPECT_EQ(mode(name), CollectiveGroupMode::kCrossPartition) << name;
  }
  EXPECT_EQ(mode("no-channel"), CollectiveGroupMode::kCrossReplica);
}

TEST(HloCollectiveTest, EqualParticipantsAreShared) {
  Program program;
  HloModuleBuilder& b = program.builder;
  b.SetDeviceAssignment({{0, 1, 2, 3}});
  for (const char* name : {"a", "b", "c"}) {
    auto* group = b.Add(name, "all-reduce", F32(100), {program.x})->add_replica_groups();
    for (int64_t id : {0, 1}) group->add_replica_ids(id + (name[0] == 'c' ? 2 : 0));
  }
  const Decoded module(b);
  EXPECT_EQ(module.Find("a")->participants, module.Find("b")->participants);
  EXPECT_EQ(ToString(module.Find("a")->participants->device_groups), "{0,1}");
  EXPECT_EQ(ToString(module.Find("c")->participants->device_groups), "{2,3}");
}

// Each of the twenty says its 2^21 groups of 2 in other bytes.
TEST(HloCollectiveTest, GroupsOfAModuleAreBoundedTogether) {
  Program program;
  for (int i = 0; i < 20; ++i) {
    auto* iota =
        program.builder.Add("ar." + std::to_string(i), "all-reduce", F32(100), {program.x})
            ->mutable_iota_collective_device_list();
    iota->set_num_replica_groups(int64_t{1} << 21);
    iota->set_num_devices_per_group(2);
    for (int ones = 0; ones < i; ++ones) iota->add_iota_reshape_dims(1);
    iota->add_iota_reshape_dims(int64_t{1} << 22);
  }
  const Decoded module(program.builder);
  EXPECT_OK(module.Find("ar.0")->status);
  EXPECT_EQ(module.Find("ar.0")->participants->device_groups.size(), size_t{1} << 21);
  EXPECT_EQ(module.Find("ar.19")->status.message(), "ar.19: too many group ids in one module");
}

TEST(HloCollectiveTest, WithoutDeviceAssignmentIdsStandForDevices) {
  HloModuleBuilder builder = RichModule();
  builder.module().clear_device_assignment();
  const Decoded module(builder);
  const CollectiveParticipants& sum = *module.Find("psum.7")->participants;
  EXPECT_TRUE(sum.devices_are_logical_ids);
  EXPECT_EQ(ToString(sum.device_groups), "{0,2},{1,3}");
  EXPECT_THAT(module.Find("ppermute.3")->participants->device_pairs,
              ElementsAre(Pair{0, 1}, Pair{1, 2}, Pair{2, 3}, Pair{3, 0}));
}

TEST(HloCollectiveTest, SendAndRecvNameTheirPairsInAnAttribute) {
  Program program;
  HloModuleBuilder& b = program.builder;
  b.SetDeviceAssignment({{10}, {11}});
  auto* token = b.Add("token", "after-all", Token());
  auto* send = b.Add("send.1", "send", TupleShape({F32(100), U32(), Token()}), {program.x, token});
  auto* recv = b.Add("recv.1", "recv", TupleShape({F32(100), U32(), Token()}), {token});
  for (auto* instruction : {send, recv}) {
    instruction->set_channel_id(1);
    (*instruction->mutable_frontend_attributes()
          ->mutable_map())["_xla_send_recv_source_target_pairs"] = "{{0,1}}";
  }
  b.Add("send-done.1", "send-done", Token(), {send});
  b.Add("recv-done.1", "recv-done", TupleShape({F32(100), Token()}), {recv});
  auto* host = b.Add("to-host", "send", TupleShape({F32(100), U32(), Token()}), {program.x});
  host->set_is_host_transfer(true);
  const Decoded module(b);
  ASSERT_THAT(module.all(), SizeIs(2));
  EXPECT_EQ(module.Find("to-host"), nullptr);
  const HloCollective* sent = module.Find("send-done.1");
  EXPECT_EQ(sent->kind, Kind::kSend);
  EXPECT_EQ(sent->operand_bytes, 400);
  EXPECT_EQ(sent->output_bytes, 0);
  EXPECT_THAT(sent->participants->device_pairs, ElementsAre(Pair{10, 11}));
  const HloCollective* received = module.Find("recv-done.1");
  EXPECT_EQ(received->kind, Kind::kRecv);
  EXPECT_EQ(received->operand_bytes, 0);
  EXPECT_EQ(received->output_bytes, 400);
  EXPECT_THAT(received->participants->device_pairs, ElementsAre(Pair{10, 11}));
}

TEST(HloCollectiveTest, WhatCannotBeToldIsAStatusThatNamesTheInstruction) {
  Program program;
  HloModuleBuilder& b = program.builder;
  b.SetDeviceAssignment({{0}, {1}});
  auto* unknown_id = b.Add("unknown_id", "all-reduce", F32(100), {program.x});
  unknown_id->add_replica_groups()->add_replica_ids(9);
  b.Add("no_operand", "all-reduce", F32(100))->add_operand_ids(12345);
  b.Add("no_size", "all-reduce", ArrayShape(xla::F32, {-1}), {program.x});
  b.Add("no_channel", "all-reduce", F32(100), {program.x})->set_use_global_device_ids(true);
  b.Add("good", "all-reduce", F32(100), {program.x});
  const Decoded module(b);
  const auto problem = [&](absl::string_view name) {
    return std::string(module.Find(name)->status.message());
  };
  EXPECT_EQ(problem("unknown_id"),
            "unknown_id: id 9 is not among the 1 replicas of the device assignment");
  // The bytes are known nevertheless.
  EXPECT_EQ(module.Find("unknown_id")->operand_bytes, 400);
  EXPECT_TRUE(module.Find("unknown_id")->participants->device_groups.empty());
  EXPECT_EQ(problem("no_operand"), "no_operand: an operand is missing from the module");
  EXPECT_EQ(problem("no_size"), "no_size: the size of f32[?] is not bounded");
  EXPECT_EQ(problem("no_channel"), "no_channel: use_global_device_ids without channel_id");
  EXPECT_OK(module.Find("good")->status);
  EXPECT_EQ(ToString(module.Find("good")->participants->device_groups), "{0},{1}");
}

}  // namespace
}  // namespace meridian
