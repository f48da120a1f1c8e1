#include "xla_profiler/hlo/hlo_collective.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/hlo/hlo_shape.h"
#include "xla_profiler/hlo/hlo_text.h"

namespace meridian {
namespace {

// A dozen bytes can say millions of ids, so a hostile file must not say it often. Real modules have
// a few different groupings of all devices.
constexpr size_t kMaxModuleGroupIds = size_t{1} << 25;

enum class Role {
  kWhole,
  kStart,
  // Starts the computation it calls.
  kWrapper,
  // Refers to its start by its first operand, perhaps through other links.
  kLink,
  kDone,
};

struct Opcode {
  Role role;
  // What the instruction does, when its role is kWhole or kStart.
  CollectiveKind kind = CollectiveKind::kAllReduce;
};

const Opcode* FindOpcode(absl::string_view opcode) {
  using Kind = CollectiveKind;
  static const auto& table = *new absl::flat_hash_map<absl::string_view, Opcode>{
      {"all-reduce", {Role::kWhole, Kind::kAllReduce}},
      {"all-reduce-start", {Role::kStart, Kind::kAllReduce}},
      {"all-reduce-done", {Role::kDone}},
      {"all-gather", {Role::kWhole, Kind::kAllGather}},
      {"all-gather-start", {Role::kStart, Kind::kAllGather}},
      {"all-gather-done", {Role::kDone}},
      {"reduce-scatter", {Role::kWhole, Kind::kReduceScatter}},
      {"all-to-all", {Role::kWhole, Kind::kAllToAll}},
      {"ragged-all-to-all", {Role::kWhole, Kind::kRaggedAllToAll}},
      {"collective-broadcast", {Role::kWhole, Kind::kCollectiveBroadcast}},
      {"collective-reduce", {Role::kWhole, Kind::kCollectiveReduce}},
      {"collective-permute", {Role::kWhole, Kind::kCollectivePermute}},
      {"collective-permute-start", {Role::kStart, Kind::kCollectivePermute}},
      {"collective-permute-done", {Role::kDone}},
      {"send", {Role::kStart, Kind::kSend}},
      {"send-done", {Role::kDone}},
      {"recv", {Role::kStart, Kind::kRecv}},
      {"recv-done", {Role::kDone}},
      {"async-start", {Role::kWrapper}},
      {"async-update", {Role::kLink}},
      {"async-done", {Role::kDone}},
  };
  const auto it = table.find(opcode);
  return it == table.end() ? nullptr : &it->second;
}

// The attribute as XLA passes it on: only these opcodes have it, and proto3 cannot say "absent".
std::optional<bool> UseGlobalDeviceIds(CollectiveKind kind, const xla::HloInstructionProto& proto) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return proto.use_global_device_ids();
    default:
      return std::nullopt;
  }
}

bool IsSendOrRecv(CollectiveKind kind) {
  return kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
}

// Send and recv name their pairs in an attribute. Returns "{}" when there is none.
std::string SendRecvPairs(const xla::HloInstructionProto& proto) {
  const auto& attributes = proto.frontend_attributes().map();
  const auto pairs = attributes.find("_xla_send_recv_source_target_pairs");
  return pairs == attributes.end() ? "{}" : pairs->second;
}

absl::StatusOr<std::vector<SourceTargetPair>> LogicalPairs(CollectiveKind kind,
                                                           const xla::HloInstructionProto& proto) {
  if (IsSendOrRecv(kind)) return ParseSourceTargetPairs(SendRecvPairs(proto));
  std::vector<SourceTargetPair> pairs;
  for (const xla::SourceTarget& pair : proto.source_target_pairs()) {
    pairs.push_back({pair.source(), pair.target()});
  }
  return pairs;
}

absl::Status DecodeParticipants(CollectiveKind kind, const HloInstruction& instruction,
                                CollectiveParticipants* participants) {
  const xla::HloInstructionProto& proto = instruction.proto();
  ASSIGN_OR_RETURN(participants->mode,
                   GroupMode(proto.channel_id() > 0, UseGlobalDeviceIds(kind, proto)));
  const DeviceAssignment* assignment = instruction.computation().module().device_assignment();
  participants->devices_are_logical_ids = assignment == nullptr;
  if (HasPairs(kind)) {
    ASSIGN_OR_RETURN(participants->logical_pairs, LogicalPairs(kind, proto));
    participants->device_pairs = participants->logical_pairs;
    if (assignment == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(participants->device_pairs,
                     ResolvePairs(participants->logical_pairs, participants->mode, *assignment));
  } else {
    ASSIGN_OR_RETURN(participants->logical_groups, ReplicaGroupsOf(proto));
    participants->device_groups = participants->logical_groups;
    if (assignment == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(participants->device_groups,
                     ResolveGroups(participants->logical_groups, participants->mode, *assignment));
  }
  return absl::OkStatus();
}

// Returns a text that is equal for collectives with equal participants.
std::string ParticipantsKey(CollectiveKind kind, const xla::HloInstructionProto& proto) {
  xla::HloInstructionProto key;
  key.set_opcode(std::string(CollectiveKindName(kind)));
  if (IsSendOrRecv(kind)) key.set_name(SendRecvPairs(proto));
  key.set_channel_id(proto.channel_id() > 0 ? 1 : 0);
  key.set_use_global_device_ids(proto.use_global_device_ids());
  *key.mutable_replica_groups() = proto.replica_groups();
  *key.mutable_source_target_pairs() = proto.source_target_pairs();
  if (proto.has_collective_device_list()) {
    *key.mutable_collective_device_list() = proto.collective_device_list();
  } else if (proto.has_iota_collective_device_list()) {
    *key.mutable_iota_collective_device_list() = proto.iota_collective_device_list();
  } else if (proto.has_mesh_axes_replica_group_list()) {
    *key.mutable_mesh_axes_replica_group_list() = proto.mesh_axes_replica_group_list();
  }
  return key.SerializeAsString();
}

// Returns the element of a tuple, or the shape itself when it is none or too short.
const xla::ShapeProto& ElementOf(const xla::ShapeProto& shape, int index) {
  return index < shape.tuple_shapes_size() ? shape.tuple_shapes(index) : shape;
}

}  // namespace

// Fills HloCollectives. Pairing takes two passes since a done may precede its start in a file.
class CollectiveFinder {
 public:
  explicit CollectiveFinder(HloCollectives* result)
      : result_(*result), collectives_(result->collectives_) {}

  void Find() {
    for (const HloInstruction& instruction : result_.module_->instructions()) Classify(instruction);
    for (const HloInstruction* wrapper : wrappers_) EnterWrapper(*wrapper);
    for (HloCollective& collective : collectives_) SetWrapper(&collective);
    for (const HloInstruction* link : links_) FollowLinks(link);
    for (HloCollective& collective : collectives_) SetDone(&collective);
    for (HloCollective& collective : collectives_) Describe(&collective);
  }

 private:
  void Classify(const HloInstruction& instruction) {
    const Opcode* opcode = FindOpcode(instruction.opcode());
    if (opcode == nullptr || instruction.proto().is_host_transfer()) return;
    switch (opcode->role) {
      case Role::kWhole:
      case Role::kStart: {
        const size_t index = collectives_.size();
        HloCollective& collective = collectives_.emplace_back();
        collective.kind = opcode->kind;
        collective.instruction = &instruction;
        if (opcode->role == Role::kStart) collective.start = &instruction;
        result_.by_instruction_.emplace(&instruction, index);
        first_of_computation_.emplace(&instruction.computation(), index);
        break;
      }
      case Role::kWrapper:
        wrappers_.push_back(&instruction);
        break;
      case Role::kDone:
        dones_.insert(&instruction);
        [[fallthrough]];
      case Role::kLink:
        links_.push_back(&instruction);
        break;
    }
  }

  // Lets a wrapper lead to the collective in the computation it calls.
  void EnterWrapper(const HloInstruction& wrapper) {
    for (const HloComputation* computation : wrapper.called_computations()) {
      const auto first = first_of_computation_.find(computation);
      if (first == first_of_computation_.end()) continue;
      const auto root = result_.by_instruction_.find(computation->root());
      const bool root_is_collective = root != result_.by_instruction_.end();
      const size_t index = root_is_collective ? root->second : first->second;
      result_.by_instruction_.emplace(&wrapper, index);
      wrapper_of_computation_.emplace(computation, &wrapper);
    }
  }

  void SetWrapper(HloCollective* collective) const {
    const auto wrapper = wrapper_of_computation_.find(&collective->instruction->computation());
    if (wrapper != wrapper_of_computation_.end()) collective->start = wrapper->second;
  }

  // Lets a link or done lead where its start leads. Walks up to the start, or to an instruction
  // whose start is known by then, and teaches that to the whole path, so each is walked once.
  void FollowLinks(const HloInstruction* link) {
    std::vector<const HloInstruction*> path;
    const HloInstruction* at = link;
    // Marked as leading nowhere until known: a cycle ends where it meets itself.
    while (at != nullptr && IsLink(*at) && start_of_.emplace(at, nullptr).second) {
      path.push_back(at);
      at = at->operands().empty() ? nullptr : at->operands()[0];
    }
    const HloInstruction* start = at != nullptr && IsLink(*at) ? start_of_.at(at) : at;
    const auto collective = result_.by_instruction_.find(start);
    if (collective == result_.by_instruction_.end()) return;
    const size_t index = collective->second;
    for (const HloInstruction* member : path) {
      start_of_[member] = start;
      result_.by_instruction_.emplace(member, index);
      if (dones_.contains(member)) done_of_start_.emplace(start, member);
    }
  }

  static bool IsLink(const HloInstruction& instruction) {
    const Opcode* opcode = FindOpcode(instruction.opcode());
    return opcode != nullptr && (opcode->role == Role::kLink || opcode->role == Role::kDone);
  }

  void SetDone(HloCollective* collective) const {
    const auto done = done_of_start_.find(collective->start);
    if (done != done_of_start_.end()) collective->done = done->second;
  }

  void Describe(HloCollective* collective) {
    collective->participants = ParticipantsOf(*collective);
    absl::Status status = collective->participants->status;
    status.Update(MeasureOperands(collective));
    status.Update(MeasureOutput(collective));
    collective->status = Annotate(status, collective->instruction->name());
  }

  const CollectiveParticipants* ParticipantsOf(const HloCollective& collective) {
    const HloInstruction& instruction = *collective.instruction;
    const CollectiveParticipants*& known =
        participants_by_key_[ParticipantsKey(collective.kind, instruction.proto())];
    if (known == nullptr) {
      CollectiveParticipants participants;
      const absl::Status status =
          num_group_ids_ > kMaxModuleGroupIds
              ? InvalidArgument("too many group ids in one module")
              : DecodeParticipants(collective.kind, instruction, &participants);
      num_group_ids_ += participants.logical_groups.ids().size();
      num_group_ids_ += participants.device_groups.ids().size();
      num_group_ids_ += participants.logical_pairs.size() + participants.device_pairs.size();
      if (!status.ok()) {
        participants = CollectiveParticipants();
        participants.status = status;
      }
      known = &result_.participants_.emplace_back(std::move(participants));
    }
    return known;
  }

  absl::Status MeasureOperands(HloCollective* collective) {
    if (collective->instruction->has_dangling_operands()) {
      return InvalidArgument("an operand is missing from the module");
    }
    int64_t total = 0;
    for (const HloInstruction* operand : collective->instruction->operands()) {
      ASSIGN_OR_RETURN(const int64_t bytes, ShapeBytes(operand->shape()));
      if (__builtin_add_overflow(total, bytes, &total)) {
        return InvalidArgument("operands are beyond 2^63 bytes");
      }
    }
    collective->operand_bytes = total;
    return absl::OkStatus();
  }

  static absl::Status MeasureOutput(HloCollective* collective) {
    ASSIGN_OR_RETURN(collective->output_bytes, ShapeBytes(OutputShape(*collective)));
    return absl::OkStatus();
  }

  HloCollectives& result_;
  std::vector<HloCollective>& collectives_;

  std::vector<const HloInstruction*> wrappers_;
  std::vector<const HloInstruction*> links_;
  absl::flat_hash_set<const HloInstruction*> dones_;
  absl::flat_hash_map<const HloComputation*, size_t> first_of_computation_;
  absl::flat_hash_map<const HloComputation*, const HloInstruction*> wrapper_of_computation_;
  absl::flat_hash_map<const HloInstruction*, const HloInstruction*> start_of_;
  absl::flat_hash_map<const HloInstruction*, const HloInstruction*> done_of_start_;
  absl::flat_hash_map<std::string, const CollectiveParticipants*> participants_by_key_;
  size_t num_group_ids_ = 0;
};

const xla::ShapeProto& OutputShape(const HloCollective& collective) {
  const HloInstruction& instruction = *collective.instruction;
  // The done of a pair has the result; a wrapper's done has that of its root, so ask the
  // instruction within.
  if (&instruction != collective.start) return instruction.shape();
  if (collective.done != nullptr) return collective.done->shape();
  const xla::ShapeProto& shape = instruction.shape();
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      return shape;
    case CollectiveKind::kRecv:
      // (data, context, token)
      return ElementOf(shape, 0);
    case CollectiveKind::kSend:
      // (data, context, token), of which only the token comes out.
      return ElementOf(shape, 2);
    default:
      // (operand, result, contexts...)
      return ElementOf(shape, 1);
  }
}

HloCollectives::HloCollectives(const HloModule& module) : module_(&module) {
  CollectiveFinder(this).Find();
}

const HloCollective* HloCollectives::Find(absl::string_view instruction_name) const {
  const HloInstruction* instruction = module_->FindInstruction(instruction_name);
  if (instruction == nullptr) return nullptr;
  const auto it = by_instruction_.find(instruction);
  return it == by_instruction_.end() ? nullptr : &collectives_[it->second];
}

}  // namespace meridian
