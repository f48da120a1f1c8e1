#include "xla_profiler/hlo/replica_groups.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

// The groups, or why there are none.
std::string Groups(const xla::HloInstructionProto& instruction) {
  const absl::StatusOr<IdGroups> groups = ReplicaGroupsOf(instruction);
  return groups.ok() ? ToString(*groups) : std::string(groups.status().message());
}

template <typename List>
void AddGroup(const std::vector<int64_t>& ids, List* list) {
  auto* group = list->Add();
  for (int64_t id : ids) group->add_replica_ids(id);
}

xla::IotaReplicaGroupListProto Iota(int64_t num_groups, int64_t group_size,
                                    const std::vector<int64_t>& dims,
                                    const std::vector<int32_t>& perm) {
  xla::IotaReplicaGroupListProto iota;
  iota.set_num_replica_groups(num_groups);
  iota.set_num_devices_per_group(group_size);
  for (int64_t dim : dims) iota.add_iota_reshape_dims(dim);
  for (int32_t axis : perm) iota.add_iota_transpose_perm(axis);
  return iota;
}

std::string IotaGroups(const xla::IotaReplicaGroupListProto& iota) {
  xla::HloInstructionProto instruction;
  *instruction.mutable_iota_collective_device_list() = iota;
  return Groups(instruction);
}

// An axis of the mesh, whole or in part.
struct Ref {
  int64_t axis;
  int64_t pre_size = 0;
  int64_t size = 0;
};

xla::HloInstructionProto MeshInstruction(const std::vector<int64_t>& sizes,
                                         const std::vector<Ref>& refs) {
  xla::HloInstructionProto instruction;
  auto* list = instruction.mutable_mesh_axes_replica_group_list();
  for (int64_t size : sizes) list->mutable_mesh()->add_axes()->set_size(size);
  for (const Ref& ref : refs) {
    auto* axis = list->add_axes();
    axis->set_mesh_axis_index(ref.axis);
    if (ref.size == 0) continue;
    axis->mutable_sub_axis_info()->set_pre_size(ref.pre_size);
    axis->mutable_sub_axis_info()->set_size(ref.size);
  }
  return instruction;
}

std::string MeshGroups(const std::vector<int64_t>& sizes, const std::vector<Ref>& refs) {
  return Groups(MeshInstruction(sizes, refs));
}

TEST(ReplicaGroupsTest, NoFieldMeansNoGroups) { EXPECT_EQ(Groups({}), ""); }

TEST(ReplicaGroupsTest, ListsKeepTheirOrder) {
  xla::HloInstructionProto old_style, new_style;
  for (const std::vector<int64_t>& ids : {std::vector<int64_t>{5, 1}, {0, 4}}) {
    AddGroup(ids, old_style.mutable_replica_groups());
    AddGroup(ids, new_style.mutable_collective_device_list()->mutable_replica_groups());
  }
  EXPECT_EQ(Groups(old_style), "{5,1},{0,4}");
  EXPECT_EQ(Groups(new_style), "{5,1},{0,4}");
}

TEST(ReplicaGroupsTest, ListsMayBeUneven) {
  xla::HloInstructionProto instruction;
  AddGroup({0, 1, 2}, instruction.mutable_replica_groups());
  AddGroup({3}, instruction.mutable_replica_groups());
  EXPECT_EQ(Groups(instruction), "{0,1,2},{3}");
}

TEST(ReplicaGroupsTest, ListsMustMakeSense) {
  xla::HloInstructionProto twice, negative, empty;
  AddGroup({0, 1}, twice.mutable_replica_groups());
  AddGroup({2, 1}, twice.mutable_replica_groups());
  EXPECT_EQ(Groups(twice), "replica groups name the id 1 twice");
  AddGroup({0, -1}, negative.mutable_replica_groups());
  EXPECT_EQ(Groups(negative), "replica groups name the negative id -1");
  AddGroup({0}, empty.mutable_replica_groups());
  AddGroup({}, empty.mutable_replica_groups());
  EXPECT_EQ(Groups(empty), "replica group 1 has no members");
}

TEST(ReplicaGroupsTest, IotaIsReshapedTransposedAndCut) {
  EXPECT_EQ(IotaGroups(Iota(4, 2, {2, 4}, {1, 0})), "{0,4},{1,5},{2,6},{3,7}");
  EXPECT_EQ(IotaGroups(Iota(2, 2, {4}, {0})), "{0,1},{2,3}");
  EXPECT_EQ(IotaGroups(Iota(2, 2, {4}, {})), "{0,1},{2,3}");
  EXPECT_EQ(IotaGroups(Iota(2, 2, {}, {})), "{0,1},{2,3}");
  // XLA's own example: [2,10]<=[4,5]T(1,0).
  EXPECT_EQ(IotaGroups(Iota(2, 10, {4, 5}, {1, 0})),
            "{0,5,10,15,1,6,11,16,2,7},{12,17,3,8,13,18,4,9,14,19}");
  // [a,b,c] with strides 6, 3, 1 read as [c,a,b].
  EXPECT_EQ(IotaGroups(Iota(3, 4, {2, 2, 3}, {2, 0, 1})), "{0,3,6,9},{1,4,7,10},{2,5,8,11}");
  EXPECT_EQ(IotaGroups(Iota(0, 0, {0}, {0})), "");
}

TEST(ReplicaGroupsTest, IotaMayLieInTheDeviceList) {
  xla::HloInstructionProto instruction;
  *instruction.mutable_collective_device_list()->mutable_iota_replica_group_list() =
      Iota(4, 2, {2, 4}, {1, 0});
  EXPECT_EQ(Groups(instruction), "{0,4},{1,5},{2,6},{3,7}");
}

TEST(ReplicaGroupsTest, IotaMustMultiplyUp) {
  EXPECT_EQ(IotaGroups(Iota(4, 2, {2, 3}, {1, 0})), "4 groups of 2 cannot be cut from 6 ids");
  EXPECT_EQ(IotaGroups(Iota(4, 2, {2, 4}, {1, 1})), "(1,1) is no permutation of 2 dimensions");
  EXPECT_EQ(IotaGroups(Iota(4, 2, {2, 4}, {2, 0})), "(2,0) is no permutation of 2 dimensions");
  EXPECT_EQ(IotaGroups(Iota(4, 2, {2, 4}, {0})), "(0) is no permutation of 2 dimensions");
  EXPECT_EQ(IotaGroups(Iota(-4, -2, {8}, {0})), "iota group list has a dimension of -4");
  EXPECT_EQ(IotaGroups(Iota(4, 2, {8, 0}, {0, 1})), "iota reshape has a dimension of 0");
  EXPECT_EQ(IotaGroups(Iota(1, kMaxGroupIds + 1, {}, {})),
            "iota group list has more than 4194304 ids");
  EXPECT_EQ(IotaGroups(Iota(int64_t{1} << 40, int64_t{1} << 40, {}, {})),
            "iota group list has more than 4194304 ids");
  EXPECT_EQ(IotaGroups(Iota(1, 1, std::vector<int64_t>(65, 1), {})),
            "iota reshape has 65 dimensions; at most 64");
}

TEST(ReplicaGroupsTest, MeshAxesGroupWhatDiffersAlongThem) {
  // 0 1
  // 2 3
  EXPECT_EQ(MeshGroups({2, 2}, {{1}}), "{0,1},{2,3}");
  EXPECT_EQ(MeshGroups({2, 2}, {{0}}), "{0,2},{1,3}");
  EXPECT_EQ(MeshGroups({2, 2}, {{0}, {1}}), "{0,1,2,3}");
  // The order of the axes is the order within a group.
  EXPECT_EQ(MeshGroups({2, 2}, {{1}, {0}}), "{0,2,1,3}");
  EXPECT_EQ(MeshGroups({2, 2}, {}), "{0},{1},{2},{3}");
  // 6a + 2b + c, grouped along a.
  EXPECT_EQ(MeshGroups({2, 3, 2}, {{0}}), "{0,6},{1,7},{2,8},{3,9},{4,10},{5,11}");
}

TEST(ReplicaGroupsTest, SubAxesSelectTheMiddlePart) {
  // 8 = (1) 2 x 4, (2) 2 x 2, (4) 2.
  EXPECT_EQ(MeshGroups({8}, {{0, 1, 2}}), "{0,4},{1,5},{2,6},{3,7}");
  EXPECT_EQ(MeshGroups({8}, {{0, 2, 2}}), "{0,2},{1,3},{4,6},{5,7}");
  EXPECT_EQ(MeshGroups({8}, {{0, 4, 2}}), "{0,1},{2,3},{4,5},{6,7}");
  EXPECT_EQ(MeshGroups({8}, {{0, 2, 4}}), "{0,1,2,3},{4,5,6,7}");
  EXPECT_EQ(MeshGroups({2, 4}, {{0}, {1, 2, 2}}), "{0,1,4,5},{2,3,6,7}");
}

TEST(ReplicaGroupsTest, SeveralSubAxesOfOneAxis) {
  // 4a + 2b + c, grouped along a and c.
  EXPECT_EQ(MeshGroups({8}, {{0, 1, 2}, {0, 4, 2}}), "{0,1,4,5},{2,3,6,7}");
  EXPECT_EQ(MeshGroups({8}, {{0, 4, 2}, {0, 1, 2}}), "{0,4,1,5},{2,6,3,7}");
}

TEST(ReplicaGroupsTest, MeshesMayReorderTheirIds) {
  xla::HloInstructionProto listed = MeshInstruction({2, 2}, {{1}});
  for (int64_t id : {3, 1, 0, 2}) {
    listed.mutable_mesh_axes_replica_group_list()->mutable_mesh()->add_device_ids(id);
  }
  EXPECT_EQ(Groups(listed), "{3,1},{0,2}");
  // 0..3 as [2,2], transposed: 0 2 1 3.
  xla::HloInstructionProto transformed = MeshInstruction({4}, {{0, 2, 2}});
  auto* transform =
      transformed.mutable_mesh_axes_replica_group_list()->mutable_mesh()->mutable_iota_transform();
  for (int i : {2, 2}) transform->add_reshape_dims(i);
  for (int i : {1, 0}) transform->add_transpose_perm(i);
  EXPECT_EQ(Groups(transformed), "{0,2},{1,3}");
}

TEST(ReplicaGroupsTest, MeshesWithoutAxes) {
  xla::HloInstructionProto everybody;
  everybody.mutable_mesh_axes_replica_group_list();
  EXPECT_EQ(Groups(everybody), "");
  xla::HloInstructionProto one;
  one.mutable_mesh_axes_replica_group_list()->mutable_mesh()->add_device_ids(5);
  EXPECT_EQ(Groups(one), "{5}");
}

TEST(ReplicaGroupsTest, MeshesMustMakeSense) {
  EXPECT_EQ(MeshGroups({2, 2}, {{2}}), "axis 2 is none of the mesh's 2");
  EXPECT_EQ(MeshGroups({2, 2}, {{-1}}), "axis -1 is none of the mesh's 2");
  EXPECT_EQ(MeshGroups({2, 0}, {{0}}), "mesh has a dimension of 0");
  EXPECT_EQ(MeshGroups({1 << 12, 1 << 12}, {{0}}), "mesh has more than 4194304 ids");
  EXPECT_EQ(MeshGroups({8}, {{0, 3, 2}}), "sub-axis (3)2 does not fit axis 0 of size 8");
  EXPECT_EQ(MeshGroups({8}, {{0, 0, 2}}), "sub-axis (0)2 does not fit axis 0 of size 8");
  EXPECT_EQ(MeshGroups({8}, {{0, 4, 4}}), "sub-axis (4)4 does not fit axis 0 of size 8");
  EXPECT_EQ(MeshGroups({8}, {{0, int64_t{1} << 62, int64_t{1} << 62}}),
            "sub-axis (4611686018427387904)4611686018427387904 does not fit axis 0 of size 8");
  // Overlapping, and the whole axis twice.
  EXPECT_EQ(MeshGroups({8}, {{0, 1, 4}, {0, 2, 2}}), "sub-axis (2)2 does not fit axis 0 of size 8");
  EXPECT_EQ(MeshGroups({2}, {{0}, {0}}), "sub-axis (1)2 does not fit axis 0 of size 2");
  xla::HloInstructionProto few = MeshInstruction({2, 2}, {{1}});
  few.mutable_mesh_axes_replica_group_list()->mutable_mesh()->add_device_ids(1);
  EXPECT_EQ(Groups(few), "a mesh of 4 positions has 1 ids");
  xla::HloInstructionProto twice = MeshInstruction({2}, {{0}});
  for (int i = 0; i < 2; ++i) {
    twice.mutable_mesh_axes_replica_group_list()->mutable_mesh()->add_device_ids(1);
  }
  EXPECT_EQ(Groups(twice), "mesh devices name the id 1 twice");
  EXPECT_EQ(MeshGroups({1}, std::vector<Ref>(100, Ref{0, 1, 1})),
            "split mesh has 100 dimensions; at most 64");
}

TEST(ReplicaGroupsTest, NewerEncodingsCountBeforeTheOldList) {
  xla::HloInstructionProto instruction;
  AddGroup({0, 1}, instruction.mutable_replica_groups());
  AddGroup({2, 3}, instruction.mutable_collective_device_list()->mutable_replica_groups());
  EXPECT_EQ(Groups(instruction), "{0,1}");
  *instruction.mutable_iota_collective_device_list() = Iota(1, 3, {3}, {0});
  EXPECT_EQ(Groups(instruction), "{0,1,2}");
}

}  // namespace
}  // namespace meridian
