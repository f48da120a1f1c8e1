#include "xla_profiler/hlo/replica_groups.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/hlo/hlo_wire.h"

namespace meridian {
namespace {

using Integers = std::vector<int64_t>;

// Real arrays have a handful; more would make the odometer of Transpose slow.
constexpr size_t kMaxRank = 64;

absl::Status Invalid(absl::string_view reason) { return absl::InvalidArgumentError(reason); }

// All messages here lie in an instruction.
template <typename Fn>
absl::Status ForEachInnerField(absl::string_view message, const char* origin, const Fn& fn) {
  return ForEachField(message, origin, kHloInstructionDepth, fn);
}

void ReadInteger(const WireField& field, uint32_t number, int64_t* integer) {
  if (field.IsVarint(number)) *integer = static_cast<int64_t>(field.scalar);
}

// Returns the number of elements of an array of these dimensions, each at least 1.
absl::StatusOr<int64_t> ElementCount(const Integers& dims, absl::string_view what) {
  if (dims.size() > kMaxRank) {
    return Invalid(absl::StrCat(what, " has ", dims.size(), " dimensions; at most ", kMaxRank));
  }
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim <= 0) return Invalid(absl::StrCat(what, " has a dimension of ", dim));
    if (dim > kMaxGroupIds / count) {
      return Invalid(absl::StrCat(what, " has more than ", kMaxGroupIds, " ids"));
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
  return Invalid(
      absl::StrCat("(", absl::StrJoin(perm, ","), ") is no permutation of ", rank, " dimensions"));
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
  std::iota(iota.begin(), iota.end(), 0);
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
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty() && sorted.front() < 0) {
    return Invalid(absl::StrCat(what, " name the negative id ", sorted.front()));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return Invalid(absl::StrCat(what, " name the id ", *twice, " twice"));
  return absl::OkStatus();
}

// --- list ---

absl::Status AppendGroup(absl::string_view bytes, const char* origin, IdGroups* groups) {
  Integers ids;
  RETURN_IF_ERROR(ForEachInnerField(bytes, origin, [&](const WireField& field) {
    if (field.number != ReplicaGroupField::kReplicaIds) return absl::OkStatus();
    return AppendIntegers(field, origin, &ids);
  }));
  if (ids.empty()) {
    return Invalid(absl::StrCat("replica group ", groups->size(), " has no members"));
  }
  if (groups->ids().size() + ids.size() > static_cast<size_t>(kMaxGroupIds)) {
    return Invalid(absl::StrCat("replica groups have more than ", kMaxGroupIds, " ids"));
  }
  groups->Add(ids);
  return absl::OkStatus();
}

// Groups listed under that field number of a message.
absl::StatusOr<IdGroups> DecodeList(absl::string_view bytes, const char* origin, uint32_t number) {
  IdGroups groups;
  RETURN_IF_ERROR(ForEachInnerField(bytes, origin, [&](const WireField& field) {
    if (!field.IsBytes(number)) return absl::OkStatus();
    return AppendGroup(field.bytes, origin, &groups);
  }));
  RETURN_IF_ERROR(CheckDistinct(groups.ids(), "replica groups"));
  return groups;
}

// --- iota ---

absl::StatusOr<IdGroups> DecodeIota(absl::string_view bytes, const char* origin) {
  int64_t num_groups = 0, group_size = 0;
  Integers dims, perm;
  RETURN_IF_ERROR(ForEachInnerField(bytes, origin, [&](const WireField& field) -> absl::Status {
    ReadInteger(field, IotaField::kNumGroups, &num_groups);
    ReadInteger(field, IotaField::kGroupSize, &group_size);
    if (field.number == IotaField::kReshapeDims) return AppendIntegers(field, origin, &dims);
    if (field.number == IotaField::kTransposePerm) return AppendIntegers(field, origin, &perm);
    return absl::OkStatus();
  }));
  // How XLA writes "everybody".
  if (num_groups == 0 && group_size == 0) return IdGroups();
  ASSIGN_OR_RETURN(const int64_t count, ElementCount({num_groups, group_size}, "iota group list"));
  if (dims.empty()) dims = {count};
  return IotaGroups(num_groups, group_size, dims, perm);
}

absl::StatusOr<IdGroups> DecodeDeviceList(absl::string_view bytes, const char* origin) {
  std::optional<absl::string_view> iota;
  RETURN_IF_ERROR(ForEachInnerField(bytes, origin, [&](const WireField& field) {
    if (field.IsBytes(DeviceListField::kIota)) iota = field.bytes;
    return absl::OkStatus();
  }));
  if (iota.has_value()) return DecodeIota(*iota, origin);
  return DecodeList(bytes, origin, DeviceListField::kReplicaGroups);
}

// --- mesh axes ---

struct Mesh {
  Integers axis_sizes;
  // Row-major over the axes.
  Integers ids;
};

struct AxisRef {
  int64_t axis = 0;
  // A sub-axis splits its axis into (pre_size, size, rest) and is the middle part.
  bool is_sub_axis = false;
  int64_t pre_size = 1;
  int64_t size = 0;
};

absl::StatusOr<Integers> DecodeIotaTransform(absl::string_view bytes, const char* origin) {
  Integers dims, perm;
  RETURN_IF_ERROR(ForEachInnerField(bytes, origin, [&](const WireField& field) -> absl::Status {
    if (field.number == IotaTransformField::kReshapeDims) {
      return AppendIntegers(field, origin, &dims);
    }
    if (field.number == IotaTransformField::kTransposePerm) {
      return AppendIntegers(field, origin, &perm);
    }
    return absl::OkStatus();
  }));
  return TransposedIota(dims, perm, "mesh transform");
}

absl::StatusOr<Mesh> DecodeMesh(absl::string_view bytes, const char* origin) {
  Mesh mesh;
  std::optional<absl::string_view> transform;
  RETURN_IF_ERROR(ForEachInnerField(bytes, origin, [&](const WireField& field) -> absl::Status {
    if (field.IsBytes(MeshField::kAxes)) {
      int64_t& size = mesh.axis_sizes.emplace_back();
      return ForEachInnerField(field.bytes, origin, [&](const WireField& axis_field) {
        ReadInteger(axis_field, MeshAxisField::kSize, &size);
        return absl::OkStatus();
      });
    }
    if (field.IsBytes(MeshField::kIotaTransform)) transform = field.bytes;
    if (field.number != MeshField::kDeviceIds) return absl::OkStatus();
    return AppendIntegers(field, origin, &mesh.ids);
  }));
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(mesh.axis_sizes, "mesh"));
  if (!mesh.ids.empty()) {
    RETURN_IF_ERROR(CheckDistinct(mesh.ids, "mesh devices"));
  } else if (transform.has_value()) {
    ASSIGN_OR_RETURN(mesh.ids, DecodeIotaTransform(*transform, origin));
  } else {
    mesh.ids = Iota(count);
  }
  if (static_cast<int64_t>(mesh.ids.size()) != count) {
    return Invalid(absl::StrCat("a mesh of ", count, " positions has ", mesh.ids.size(), " ids"));
  }
  return mesh;
}

absl::StatusOr<AxisRef> DecodeAxisRef(absl::string_view bytes, const char* origin) {
  AxisRef ref;
  RETURN_IF_ERROR(ForEachInnerField(bytes, origin, [&](const WireField& field) -> absl::Status {
    ReadInteger(field, AxisRefField::kMeshAxisIndex, &ref.axis);
    if (!field.IsBytes(AxisRefField::kSubAxis)) return absl::OkStatus();
    ref.is_sub_axis = true;
    ref.pre_size = 0;
    return ForEachInnerField(field.bytes, origin, [&](const WireField& sub_field) {
      ReadInteger(sub_field, SubAxisField::kPreSize, &ref.pre_size);
      ReadInteger(sub_field, SubAxisField::kSize, &ref.size);
      return absl::OkStatus();
    });
  }));
  return ref;
}

// Splits one axis into the parts that its references select and what lies between them, e.g. an
// axis of 8 with references (1)2 and (4)2 into 2 x 2 x 2, of which the first and last are selected.
// `refs` are positions in `all`; where each went is stored at the same position of dim_of_ref.
absl::Status SplitAxis(int64_t axis_size, const std::vector<AxisRef>& all, std::vector<size_t> refs,
                       Integers* dims, Integers* dim_of_ref) {
  std::sort(refs.begin(), refs.end(),
            [&](size_t a, size_t b) { return all[a].pre_size < all[b].pre_size; });
  int64_t done = 1;
  for (size_t index : refs) {
    AxisRef ref = all[index];
    if (!ref.is_sub_axis) ref.size = axis_size;
    const bool fits = ref.pre_size > 0 && ref.size > 0 && ref.pre_size % done == 0 &&
                      ref.pre_size <= axis_size && ref.size <= axis_size / ref.pre_size &&
                      axis_size % (ref.pre_size * ref.size) == 0;
    if (!fits) {
      return Invalid(absl::StrCat("sub-axis (", ref.pre_size, ")", ref.size, " does not fit axis ",
                                  ref.axis, " of size ", axis_size));
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
  for (size_t i = 0; i < refs.size(); ++i) {
    if (refs[i].axis < 0 || refs[i].axis >= static_cast<int64_t>(refs_of_axis.size())) {
      return Invalid(
          absl::StrCat("axis ", refs[i].axis, " is none of the mesh's ", refs_of_axis.size()));
    }
    refs_of_axis[refs[i].axis].push_back(i);
  }
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

absl::StatusOr<IdGroups> DecodeMeshAxes(absl::string_view bytes, const char* origin) {
  std::optional<absl::string_view> mesh_bytes;
  std::vector<AxisRef> refs;
  RETURN_IF_ERROR(ForEachInnerField(bytes, origin, [&](const WireField& field) -> absl::Status {
    if (field.IsBytes(MeshAxesField::kMesh)) mesh_bytes = field.bytes;
    if (!field.IsBytes(MeshAxesField::kAxes)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const AxisRef ref, DecodeAxisRef(field.bytes, origin));
    refs.push_back(ref);
    return absl::OkStatus();
  }));
  // An empty mesh is how XLA writes "everybody" here.
  if (mesh_bytes.value_or("").empty() && refs.empty()) return IdGroups();
  ASSIGN_OR_RETURN(const Mesh mesh, DecodeMesh(mesh_bytes.value_or(""), origin));
  return GroupAlongAxes(mesh, refs);
}

bool IsParticipantField(uint32_t number) {
  return number == HloInstructionField::kReplicaGroups ||
         number == HloInstructionField::kSourceTargetPairs ||
         number == HloInstructionField::kDeviceList ||
         number == HloInstructionField::kIotaDeviceList || number == HloInstructionField::kMeshAxes;
}

}  // namespace

absl::StatusOr<IdGroups> IotaGroups(int64_t num_groups, int64_t group_size,
                                    const std::vector<int64_t>& dims,
                                    const std::vector<int64_t>& perm) {
  ASSIGN_OR_RETURN(const int64_t count, ElementCount({num_groups, group_size}, "iota group list"));
  ASSIGN_OR_RETURN(const int64_t num_ids, ElementCount(dims, "iota reshape"));
  if (num_ids != count) {
    return Invalid(absl::StrCat(num_groups, " groups of ", group_size, " cannot be cut from ",
                                num_ids, " ids"));
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

absl::StatusOr<IdGroups> DecodeReplicaGroups(absl::string_view instruction, const char* origin) {
  bool has_list = false;
  // The last of the alternatives 87, 92 and 93 counts.
  WireField chosen;
  RETURN_IF_ERROR(ForEachInnerField(instruction, origin, [&](const WireField& field) {
    if (field.IsBytes(HloInstructionField::kReplicaGroups)) has_list = true;
    if (field.IsBytes(HloInstructionField::kDeviceList) ||
        field.IsBytes(HloInstructionField::kIotaDeviceList) ||
        field.IsBytes(HloInstructionField::kMeshAxes)) {
      chosen = field;
    }
    return absl::OkStatus();
  }));
  if (chosen.number == HloInstructionField::kIotaDeviceList)
    return DecodeIota(chosen.bytes, origin);
  if (chosen.number == HloInstructionField::kMeshAxes) return DecodeMeshAxes(chosen.bytes, origin);
  // XLA believes the old list before the new one.
  if (has_list) return DecodeList(instruction, origin, HloInstructionField::kReplicaGroups);
  return DecodeDeviceList(chosen.bytes, origin);
}

absl::StatusOr<std::vector<SourceTargetPair>> DecodeSourceTargetPairs(absl::string_view instruction,
                                                                      const char* origin) {
  std::vector<SourceTargetPair> pairs;
  RETURN_IF_ERROR(
      ForEachInnerField(instruction, origin, [&](const WireField& field) -> absl::Status {
        if (!field.IsBytes(HloInstructionField::kSourceTargetPairs)) return absl::OkStatus();
        SourceTargetPair& pair = pairs.emplace_back();
        return ForEachInnerField(field.bytes, origin, [&](const WireField& end) {
          ReadInteger(end, SourceTargetField::kSource, &pair.source);
          ReadInteger(end, SourceTargetField::kTarget, &pair.target);
          return absl::OkStatus();
        });
      }));
  return pairs;
}

void AppendParticipantBytes(absl::string_view instruction, const char* origin, std::string* bytes) {
  WireReader reader(instruction, origin, kHloInstructionDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (IsParticipantField(field.number)) bytes->append(field.raw.data(), field.raw.size());
  }
}

}  // namespace meridian
