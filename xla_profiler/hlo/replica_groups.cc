#include "xla_profiler/hlo/replica_groups.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using Integers = std::vector<int64_t>;

// Real arrays have a handful; more would make the odometer of Transpose slow.
constexpr size_t kMaxRank = 64;

// Returns the number of elements of an array of these dimensions, each at least 1.
absl::StatusOr<int64_t> ElementCount(const Integers& dims, absl::string_view what) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument(what, " has ", dims.size(), " dimensions; at most ", kMaxRank);
  }
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim <= 0) return InvalidArgument(what, " has a dimension of ", dim);
    if (dim > kMaxGroupIds / count) {
      return InvalidArgument(what, " has more than ", kMaxGroupIds, " ids");
    }
    count *= dim;
  }
  return count;
}

absl::Status CheckPermutation(const Integers& perm, size_t rank) {
  std::vector<bool> seen(rank, false);
  bool valid = perm.size() == rank;
  for (int64_t axis : perm) {
    valid = valid && axis >= 0 && axis < static_cast<int64_t>(rank) && !seen[axis];
    if (valid) seen[axis] = true;
  }
  if (valid) return absl::OkStatus();
  return InvalidArgument("(", absl::StrJoin(perm, ","), ") is no permutation of ", rank,
                         " dimensions");
}

// Returns the elements of an array of these dimensions in row-major order after transposition:
// dimension i of the result is dimension perm[i] of the array.
Integers Transpose(const Integers& array, const Integers& dims, const Integers& perm) {
  const size_t rank = dims.size();
  Integers stride_of(rank, 1);
  for (size_t i = rank; i-- > 1;) stride_of[i - 1] = stride_of[i] * dims[i];
  Integers result;
  result.reserve(array.size());
  Integers position(rank, 0);
  int64_t offset = 0;
  while (true) {
    result.push_back(array[offset]);
    size_t i = rank;
    for (; i > 0; --i) {
      const int64_t axis = perm[i - 1];
      offset += stride_of[axis];
      if (++position[i - 1] < dims[axis]) break;
      offset -= stride_of[axis] * dims[axis];
      position[i - 1] = 0;
    }
    if (i == 0) return result;
  }
}

Integers Iota(int64_t count) {
  Integers iota(count);
  absl::c_iota(iota, 0);
  return iota;
}

// Returns 0, 1, 2, ... in `dims`, transposed. No permutation means the identity.
absl::StatusOr<Integers> TransposedIota(const Integers& dims, const Integers& perm,
                                        absl::string_view what) {
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(dims, what));
  if (perm.empty()) return Iota(count);
  RETURN_IF_ERROR(CheckPermutation(perm, dims.size()));
  return Transpose(Iota(count), dims, perm);
}

IdGroups Cut(const Integers& ids, int64_t group_size) {
  IdGroups groups;
  for (size_t i = 0; i < ids.size(); i += group_size) {
    groups.Add(absl::MakeConstSpan(ids).subspan(i, group_size));
  }
  return groups;
}

absl::Status CheckDistinct(absl::Span<const int64_t> ids, absl::string_view what) {
  Integers sorted(ids.begin(), ids.end());
  absl::c_sort(sorted);
  if (!sorted.empty() && sorted.front() < 0) {
    return InvalidArgument(what, " name the negative id ", sorted.front());
  }
  const auto twice = absl::c_adjacent_find(sorted);
  if (twice != sorted.end()) return InvalidArgument(what, " name the id ", *twice, " twice");
  return absl::OkStatus();
}

template <typename Repeated>
Integers IntegersOf(const Repeated& repeated) {
  return Integers(repeated.begin(), repeated.end());
}

absl::StatusOr<IdGroups> ReadList(
    const google::protobuf::RepeatedPtrField<xla::ReplicaGroup>& list) {
  IdGroups groups;
  for (const xla::ReplicaGroup& group : list) {
    if (group.replica_ids().empty()) {
      return InvalidArgument("replica group ", groups.size(), " has no members");
    }
    if (groups.ids().size() + group.replica_ids_size() > static_cast<size_t>(kMaxGroupIds)) {
      return InvalidArgument("replica groups have more than ", kMaxGroupIds, " ids");
    }
    groups.Add(IntegersOf(group.replica_ids()));
  }
  RETURN_IF_ERROR(CheckGroupIds(groups));
  return groups;
}

absl::StatusOr<IdGroups> ReadIota(const xla::IotaReplicaGroupListProto& iota) {
  const int64_t num_groups = iota.num_replica_groups(), group_size = iota.num_devices_per_group();
  // How XLA writes "everybody".
  if (num_groups == 0 && group_size == 0) return IdGroups();
  ASSIGN_OR_RETURN(const int64_t count, ElementCount({num_groups, group_size}, "iota group list"));
  Integers dims = IntegersOf(iota.iota_reshape_dims());
  if (dims.empty()) dims = {count};
  return IotaGroups(num_groups, group_size, dims, IntegersOf(iota.iota_transpose_perm()));
}

struct Mesh {
  Integers axis_sizes;
  // Row-major over the axes.
  Integers ids;
};

absl::StatusOr<Mesh> ReadMesh(const xla::MeshProto& proto) {
  Mesh mesh;
  for (const xla::MeshAxisProto& axis : proto.axes()) mesh.axis_sizes.push_back(axis.size());
  mesh.ids = IntegersOf(proto.device_ids());
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(mesh.axis_sizes, "mesh"));
  if (!mesh.ids.empty()) {
    RETURN_IF_ERROR(CheckDistinct(mesh.ids, "mesh devices"));
  } else if (proto.has_iota_transform()) {
    const xla::IotaTransformProto& transform = proto.iota_transform();
    ASSIGN_OR_RETURN(mesh.ids,
                     TransposedIota(IntegersOf(transform.reshape_dims()),
                                    IntegersOf(transform.transpose_perm()), "mesh transform"));
  } else {
    mesh.ids = Iota(count);
  }
  if (static_cast<int64_t>(mesh.ids.size()) != count) {
    return InvalidArgument("a mesh of ", count, " positions has ", mesh.ids.size(), " ids");
  }
  return mesh;
}

// A part of an axis, or the whole: the axis is (pre_size, size, rest), of which it is the middle.
struct AxisRef {
  int64_t axis = 0;
  int64_t pre_size = 1;
  int64_t size = 0;
};

// Splits one axis into the parts that its references select and what lies between them, e.g. an
// axis of 8 with references (1)2 and (4)2 into 2 x 2 x 2, of which the first and last are selected.
// `refs` are positions in `all`; where each went is stored at the same position of dim_of_ref.
absl::Status SplitAxis(int64_t axis_size, const std::vector<AxisRef>& all, std::vector<size_t> refs,
                       Integers* dims, Integers* dim_of_ref) {
  absl::c_sort(refs, [&](size_t a, size_t b) { return all[a].pre_size < all[b].pre_size; });
  int64_t done = 1;
  for (size_t index : refs) {
    const AxisRef& ref = all[index];
    const bool fits = ref.pre_size > 0 && ref.size > 0 && ref.pre_size % done == 0 &&
                      ref.pre_size <= axis_size && ref.size <= axis_size / ref.pre_size &&
                      axis_size % (ref.pre_size * ref.size) == 0;
    if (!fits) {
      return InvalidArgument("sub-axis (", ref.pre_size, ")", ref.size, " does not fit axis ",
                             ref.axis, " of size ", axis_size);
    }
    if (ref.pre_size != done) dims->push_back(ref.pre_size / done);
    (*dim_of_ref)[index] = static_cast<int64_t>(dims->size());
    dims->push_back(ref.size);
    done = ref.pre_size * ref.size;
  }
  if (axis_size != done || refs.empty()) dims->push_back(axis_size / done);
  return absl::OkStatus();
}

absl::StatusOr<IdGroups> GroupAlongAxes(const Mesh& mesh, const std::vector<AxisRef>& refs) {
  std::vector<std::vector<size_t>> refs_of_axis(mesh.axis_sizes.size());
  for (size_t i = 0; i < refs.size(); ++i) refs_of_axis[refs[i].axis].push_back(i);
  Integers dims, dim_of_ref(refs.size());
  for (size_t axis = 0; axis < refs_of_axis.size(); ++axis) {
    RETURN_IF_ERROR(SplitAxis(mesh.axis_sizes[axis], refs, refs_of_axis[axis], &dims, &dim_of_ref));
  }
  // Sub-axes of size 1 can make many dimensions of few ids.
  RETURN_IF_ERROR(ElementCount(dims, "split mesh").status());
  // The dimensions to group along go last, in the order they are referred to.
  std::vector<bool> is_grouped(dims.size(), false);
  int64_t group_size = 1;
  for (int64_t dim : dim_of_ref) {
    is_grouped[dim] = true;
    group_size *= dims[dim];
  }
  Integers perm;
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    if (!is_grouped[dim]) perm.push_back(static_cast<int64_t>(dim));
  }
  perm.insert(perm.end(), dim_of_ref.begin(), dim_of_ref.end());
  return Cut(Transpose(mesh.ids, dims, perm), group_size);
}

absl::StatusOr<IdGroups> ReadMeshAxes(const xla::MeshAxesReplicaGroupListProto& list) {
  // An empty mesh is how XLA writes "everybody" here.
  if (list.mesh().ByteSizeLong() == 0 && list.axes().empty()) return IdGroups();
  ASSIGN_OR_RETURN(const Mesh mesh, ReadMesh(list.mesh()));
  std::vector<AxisRef> refs;
  for (const xla::AxisRefProto& proto : list.axes()) {
    const int64_t axis = proto.mesh_axis_index();
    if (axis < 0 || axis >= static_cast<int64_t>(mesh.axis_sizes.size())) {
      return InvalidArgument("axis ", axis, " is none of the mesh's ", mesh.axis_sizes.size());
    }
    const xla::SubAxisInfoProto& part = proto.sub_axis_info();
    refs.push_back(proto.has_sub_axis_info() ? AxisRef{axis, part.pre_size(), part.size()}
                                             : AxisRef{axis, 1, mesh.axis_sizes[axis]});
  }
  return GroupAlongAxes(mesh, refs);
}

}  // namespace

absl::StatusOr<IdGroups> IotaGroups(int64_t num_groups, int64_t group_size,
                                    const std::vector<int64_t>& dims,
                                    const std::vector<int64_t>& perm) {
  ASSIGN_OR_RETURN(const int64_t count, ElementCount({num_groups, group_size}, "iota group list"));
  ASSIGN_OR_RETURN(const int64_t num_ids, ElementCount(dims, "iota reshape"));
  if (num_ids != count) {
    return InvalidArgument(num_groups, " groups of ", group_size, " cannot be cut from ", num_ids,
                           " ids");
  }
  ASSIGN_OR_RETURN(const Integers ids, TransposedIota(dims, perm, "iota reshape"));
  return Cut(ids, group_size);
}

absl::Status CheckGroupIds(const IdGroups& groups) {
  return CheckDistinct(groups.ids(), "replica groups");
}

std::string ToString(const IdGroups& groups) {
  std::string text;
  for (size_t i = 0; i < groups.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "{" : ",{", absl::StrJoin(groups[i], ","), "}");
  }
  return text;
}

absl::StatusOr<IdGroups> ReplicaGroupsOf(const xla::HloInstructionProto& instruction) {
  if (instruction.has_iota_collective_device_list()) {
    return ReadIota(instruction.iota_collective_device_list());
  }
  if (instruction.has_mesh_axes_replica_group_list()) {
    return ReadMeshAxes(instruction.mesh_axes_replica_group_list());
  }
  // XLA believes the old list before the new one.
  if (!instruction.replica_groups().empty()) return ReadList(instruction.replica_groups());
  const xla::CollectiveDeviceListProto& list = instruction.collective_device_list();
  if (list.has_iota_replica_group_list()) return ReadIota(list.iota_replica_group_list());
  return ReadList(list.replica_groups());
}

}  // namespace meridian
