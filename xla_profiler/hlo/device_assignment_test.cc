#include "xla_profiler/hlo/device_assignment.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

absl::StatusOr<DeviceAssignment> Decode(const xla::DeviceAssignmentProto& proto) {
  const std::string bytes = proto.SerializeAsString();
  return DeviceAssignment::Decode(bytes, bytes.data());
}

TEST(DeviceAssignmentTest, RowsArePartitionsAndColumnsReplicas) {
  ASSERT_OK_AND_ASSIGN(const DeviceAssignment assignment, Decode(TwoByTwo()));
  EXPECT_EQ(assignment.replica_count(), 2);
  EXPECT_EQ(assignment.partition_count(), 2);
  EXPECT_EQ(assignment.Device(/*replica=*/1, /*partition=*/0), 2048);
  EXPECT_EQ(assignment.Device(/*replica=*/0, /*partition=*/1), 4096);
  EXPECT_THAT(assignment.device_ids(), ElementsAre(0, 2048, 4096, 6144));
}

TEST(DeviceAssignmentTest, CountsMustFitTheIds) {
  xla::DeviceAssignmentProto missing_row = TwoByTwo();
  missing_row.set_computation_count(3);
  EXPECT_THAT(Decode(missing_row),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "offset 0: the device assignment of 2 replicas and 3 partitions lists 4 "
                       "devices in 2 partitions"));
  // The total fits, the rows do not.
  xla::DeviceAssignmentProto ragged = TwoByTwo();
  ragged.mutable_computation_devices(0)->add_replica_device_ids(7);
  ragged.mutable_computation_devices(1)->mutable_replica_device_ids()->RemoveLast();
  EXPECT_THAT(Decode(ragged), StatusIs(absl::StatusCode::kInvalidArgument));
  xla::DeviceAssignmentProto negative = TwoByTwo();
  negative.set_replica_count(-2);
  EXPECT_THAT(Decode(negative), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Decode(xla::DeviceAssignmentProto()), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DeviceAssignmentTest, DamageNamesItsOffset) {
  const std::string file = "xxx\x1A\x7F";
  EXPECT_THAT(DeviceAssignment::Decode(absl::string_view(file).substr(3), file.data()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("offset 4: ")));
}

}  // namespace
}  // namespace meridian
