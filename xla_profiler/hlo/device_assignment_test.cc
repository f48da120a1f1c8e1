#include "xla_profiler/hlo/device_assignment.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;

xla::DeviceAssignmentProto TwoByTwo() {
  xla::DeviceAssignmentProto proto;
  proto.set_replica_count(2);
  proto.set_computation_count(2);
  for (int64_t first : {0, 4096}) {
    auto* partition = proto.add_computation_devices();
    partition->add_replica_device_ids(first);
    partition->add_replica_device_ids(first + 2048);
  }
  return proto;
}

TEST(DeviceAssignmentTest, RowsArePartitionsAndColumnsReplicas) {
  ASSERT_OK_AND_ASSIGN(const DeviceAssignment assignment, DeviceAssignment::FromProto(TwoByTwo()));
  EXPECT_EQ(assignment.replica_count(), 2);
  EXPECT_EQ(assignment.partition_count(), 2);
  EXPECT_EQ(assignment.Device(/*replica=*/1, /*partition=*/0), 2048);
  EXPECT_EQ(assignment.Device(/*replica=*/0, /*partition=*/1), 4096);
  EXPECT_THAT(assignment.device_ids(), ElementsAre(0, 2048, 4096, 6144));
}

TEST(DeviceAssignmentTest, CountsMustFitTheIds) {
  xla::DeviceAssignmentProto missing_row = TwoByTwo();
  missing_row.set_computation_count(3);
  EXPECT_THAT(DeviceAssignment::FromProto(missing_row),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the device assignment of 2 replicas and 3 partitions lists 4 devices in "
                       "2 partitions"));
  // The total fits, the rows do not.
  xla::DeviceAssignmentProto ragged = TwoByTwo();
  ragged.mutable_computation_devices(0)->add_replica_device_ids(7);
  ragged.mutable_computation_devices(1)->mutable_replica_device_ids()->RemoveLast();
  EXPECT_THAT(DeviceAssignment::FromProto(ragged), StatusIs(absl::StatusCode::kInvalidArgument));
  xla::DeviceAssignmentProto negative = TwoByTwo();
  negative.set_replica_count(-2);
  EXPECT_THAT(DeviceAssignment::FromProto(negative), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(DeviceAssignment::FromProto(xla::DeviceAssignmentProto()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

using Mode = CollectiveGroupMode;
using Pair = SourceTargetPair;

// Two replicas of three partitions: device = 10 * partition + replica + 1.
DeviceAssignment TwoReplicasOfThreePartitions() {
  return DeviceAssignment(2, {1, 2, 11, 12, 21, 22});
}

std::string Resolved(const IdGroups& groups, Mode mode) {
  const absl::StatusOr<IdGroups> resolved =
      ResolveGroups(groups, mode, TwoReplicasOfThreePartitions());
  return resolved.ok() ? ToString(*resolved) : std::string(resolved.status().message());
}

TEST(DeviceGroupsTest, TheModeFollowsChannelAndGlobalIds) {
  EXPECT_EQ(GroupMode(false, std::nullopt).value(), Mode::kCrossReplica);
  EXPECT_EQ(GroupMode(false, false).value(), Mode::kCrossReplica);
  EXPECT_EQ(GroupMode(true, std::nullopt).value(), Mode::kCrossPartition);
  EXPECT_EQ(GroupMode(true, false).value(), Mode::kCrossReplicaAndPartition);
  EXPECT_EQ(GroupMode(true, true).value(), Mode::kFlattenedId);
  EXPECT_THAT(GroupMode(false, true), StatusIs(absl::StatusCode::kInvalidArgument,
                                               "use_global_device_ids without channel_id"));
}

TEST(DeviceGroupsTest, CrossReplicaRepeatsForEachPartition) {
  EXPECT_EQ(Resolved({{1, 0}}, Mode::kCrossReplica), "{2,1},{12,11},{22,21}");
  EXPECT_EQ(Resolved({{0}, {1}}, Mode::kCrossReplica), "{1},{11},{21},{2},{12},{22}");
}

TEST(DeviceGroupsTest, CrossPartitionRepeatsForEachReplica) {
  EXPECT_EQ(Resolved({{0, 2}, {1}}, Mode::kCrossPartition), "{1,21},{2,22},{11},{12}");
}

TEST(DeviceGroupsTest, CrossReplicaAndPartitionTakesAllPartitionsOfTheReplicas) {
  EXPECT_EQ(Resolved({{0}, {1}}, Mode::kCrossReplicaAndPartition), "{1,11,21},{2,12,22}");
  EXPECT_EQ(Resolved({{1, 0}}, Mode::kCrossReplicaAndPartition), "{2,12,22,1,11,21}");
}

TEST(DeviceGroupsTest, FlattenedIdsCountPartitionsFirst) {
  // 4 = replica 1, partition 1.
  EXPECT_EQ(Resolved({{0, 4}, {5, 2}}, Mode::kFlattenedId), "{1,12},{22,21}");
}

TEST(DeviceGroupsTest, NoGroupsMeanEverybodyOfTheMode) {
  EXPECT_EQ(Resolved({}, Mode::kCrossReplica), "{1,2},{11,12},{21,22}");
  EXPECT_EQ(Resolved({}, Mode::kCrossPartition), "{1,11,21},{2,12,22}");
  EXPECT_EQ(Resolved({}, Mode::kCrossReplicaAndPartition), "{1,11,21,2,12,22}");
  EXPECT_EQ(Resolved({}, Mode::kFlattenedId), "{1,11,21,2,12,22}");
}

TEST(DeviceGroupsTest, UnknownIdsAreNamed) {
  EXPECT_EQ(Resolved({{0, 2}}, Mode::kCrossReplica),
            "id 2 is not among the 2 replicas of the device assignment");
  EXPECT_EQ(Resolved({{3}}, Mode::kCrossPartition),
            "id 3 is not among the 3 partitions of the device assignment");
  EXPECT_EQ(Resolved({{-1}}, Mode::kFlattenedId),
            "id -1 is not among the 6 flattened ids of the device assignment");
}

TEST(DeviceGroupsTest, PairsRepeatAsGroupsDo) {
  const DeviceAssignment assignment = TwoReplicasOfThreePartitions();
  ASSERT_OK_AND_ASSIGN(const std::vector<Pair> replicas,
                       ResolvePairs({{0, 1}}, Mode::kCrossReplica, assignment));
  EXPECT_THAT(replicas, ElementsAre(Pair{1, 2}, Pair{11, 12}, Pair{21, 22}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Pair> partitions,
                       ResolvePairs({{0, 1}, {2, 0}}, Mode::kCrossPartition, assignment));
  EXPECT_THAT(partitions, ElementsAre(Pair{1, 11}, Pair{21, 1}, Pair{2, 12}, Pair{22, 2}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Pair> flattened,
                       ResolvePairs({{0, 4}}, Mode::kFlattenedId, assignment));
  EXPECT_THAT(flattened, ElementsAre(Pair{1, 12}));
}

TEST(DeviceGroupsTest, ImpossiblePairsAreRefused) {
  const DeviceAssignment assignment = TwoReplicasOfThreePartitions();
  EXPECT_THAT(ResolvePairs({{0, 7}}, Mode::kCrossReplica, assignment),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "id 7 is not among the 2 replicas of the device assignment"));
  EXPECT_THAT(
      ResolvePairs({{0, 1}, {1, 0}, {0, 1}}, Mode::kCrossReplica, assignment),
      StatusIs(absl::StatusCode::kInvalidArgument, "3 source-target pairs among 2 replicas"));
  EXPECT_THAT(ResolvePairs({{0, 1}}, Mode::kCrossReplicaAndPartition, assignment),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace meridian
