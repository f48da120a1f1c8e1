#include "chakra_export/xspace/work_nodes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/xspace/hlo_data_flow.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/hlo/hlo_shape.h"

namespace meridian {
namespace {

// Op kind of the node that all nodes of a program wait for.
constexpr absl::string_view kProgramOpKind = "program";

// How deep computations may lie within computations.
constexpr int kMaxDepth = 64;

// Returns the programs that ran in the order of their first starts; all when none did. A program
// that several profiles hold counts once.
std::vector<const HloProgram*> ListPrograms(
    const std::vector<std::unique_ptr<ProfileWork>>& profiles) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  using StartedProgram = std::pair<int64_t, const HloProgram*>;
  std::map<std::pair<std::string, absl::uint128>, StartedProgram> known;
  for (const auto& profile : profiles) {
    absl::flat_hash_map<const HloProgram*, int64_t> starts_ns;
    for (const WorkingDevice& device : profile->devices) {
      for (const DeviceWork& work : device.work.view()) {
        int64_t& start_ns = starts_ns.try_emplace(work.op->program, kNever).first->second;
        start_ns = std::min(start_ns, profile->base_ns + work.start_ps / 1000);
      }
    }
    for (const HloProgram& program : profile->programs.programs()) {
      const absl::StatusOr<absl::uint128> fingerprint = program.Fingerprint();
      const absl::uint128 identity = fingerprint.ok() ? *fingerprint : program.program_id();
      auto& [start_ns, first] =
          known.try_emplace({std::string(program.name()), identity}, kNever, &program)
              .first->second;
      const auto start = starts_ns.find(&program);
      if (start != starts_ns.end()) start_ns = std::min(start_ns, start->second);
    }
  }
  std::vector<StartedProgram> sorted;
  for (const auto& [identity, program] : known) sorted.push_back(program);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const HloProgram*> programs;
  for (const auto& [start_ns, program] : sorted) {
    if (start_ns != kNever || sorted[0].first == kNever) programs.push_back(program);
  }
  return programs;
}

class ProgramNodeMaker {
 public:
  ProgramNodeMaker(const CollectiveRun& run, bool undo)
      : run_(run),
        undo_(undo),
        groups_(static_cast<int64_t>(run.ranks.device_of_rank.size())),
        last_(run.ranks.device_of_rank.size()) {
    out_.graph.rank_count = static_cast<int64_t>(run.ranks.device_of_rank.size());
  }

  absl::StatusOr<WorkNodes> Run(const std::vector<const HloProgram*>& programs) {
    for (const HloProgram* program : programs) RETURN_IF_ERROR(AddProgram(*program));
    if (out_.graph.nodes.empty()) {
      return InvalidArgument(
          "the profiles hold no program with a device assignment; expected HLO in /host:metadata");
    }
    AddIdleNodes();
    out_.graph.groups = groups_.groups();
    for (const std::string& note : notes_) out_.notes.push_back(note);
    return std::move(out_);
  }

 private:
  // The nodes of one program on one rank.
  struct RankProgram {
    int64_t rank = 0;
    NodeIndex program_node = kNoNodeIndex;
    absl::flat_hash_map<const HloInstruction*, std::vector<NodeIndex>> nodes;
    absl::flat_hash_set<NodeIndex> has_successor;
    // Combined collectives of which each operand has a node.
    absl::flat_hash_set<const HloInstruction*> divided;
    int32_t sends = 0;
    int32_t receives = 0;
  };

  absl::Status AddProgram(const HloProgram& program) {
    ASSIGN_OR_RETURN(const HloModule* module, program.Module());
    ASSIGN_OR_RETURN(collectives_, program.Collectives());
    if (module->entry() == nullptr || module->device_assignment() == nullptr) {
      notes_.insert(
          absl::StrCat(std::string(program.name()), " says nothing about its devices: left out"));
      return absl::OkStatus();
    }
    HloDataFlow flow(*module, *collectives_, undo_);
    flow_ = &flow;
    std::set<int64_t> ranks;
    for (const int64_t device : module->device_assignment()->device_ids()) {
      const int64_t rank = run_.ranks.RankOf(device);
      if (rank != kUnknownId) ranks.insert(rank);
    }
    for (const int64_t rank : ranks) AddToRank(program, *module, rank);
    ++program_count_;
    return absl::OkStatus();
  }

  void AddToRank(const HloProgram& program, const HloModule& module, int64_t rank) {
    RankProgram here;
    here.rank = rank;
    RunNode node = NewNode(rank, program.name());
    node.op_kind = kProgramOpKind;
    here.program_node = Push(node);
    for (const NodeIndex before : last_[static_cast<size_t>(rank)]) {
      out_.graph.edges.push_back({here.program_node, before, EdgeKind::kControl});
    }
    AddComputation(*module.entry(), kMaxDepth, &here);
    std::vector<NodeIndex>& last = last_[static_cast<size_t>(rank)];
    last.clear();
    for (NodeIndex i = here.program_node; i < out_.graph.nodes.size(); ++i) {
      if (!here.has_successor.contains(i)) last.push_back(i);
    }
  }

  void AddComputation(const HloComputation& computation, int depth, RankProgram* here) {
    if (depth == 0) return;
    for (const HloInstruction* instruction : ScheduledInstructions(computation)) {
      AddInstruction(*instruction, depth, here);
    }
  }

  void AddInstruction(const HloInstruction& instruction, int depth, RankProgram* here) {
    if (const HloCollective* collective = collectives_->Find(instruction.name())) {
      const HloInstruction* first =
          collective->start != nullptr ? collective->start : collective->instruction;
      if (&instruction == first) AddCollective(*collective, here);
      return;
    }
    const absl::string_view opcode = instruction.opcode();
    const bool calls = opcode == "while" || opcode == "conditional" || opcode == "call" ||
                       opcode == "async-start" || (undo_ && opcode == "fusion");
    if (calls && !instruction.called_computations().empty()) {
      if (opcode == "while" || opcode == "conditional") {
        notes_.insert(absl::StrCat(
            std::string(instruction.name()), ": a ", std::string(opcode),
            opcode == "while" ? " counts as one iteration" : " counts as its first branch"));
      }
      AddComputation(*instruction.called_computations()[0], depth - 1, here);
      return;
    }
    if (flow_->PassesOn(instruction)) return;
    RunNode node = NewNode(here->rank, NameOf(instruction));
    node.instruction = &instruction;
    Connect(Push(node), instruction, kWhole, here);
  }

  // What it is called where the framework's name counts.
  absl::string_view NameOf(const HloInstruction& instruction) const {
    const std::string& name = instruction.proto().metadata().op_name();
    return undo_ && !name.empty() ? absl::string_view(name) : instruction.name();
  }

  // Returns the name of each collective that was combined into one: "jit(f)/(a:b)" is "jit(f)/a" and
  // "jit(f)/b".
  const std::vector<absl::string_view>& PartNamesOf(const HloInstruction& instruction,
                                                    size_t parts) {
    const auto [it, is_new] = part_names_.try_emplace(&instruction);
    if (!is_new) return it->second;
    const absl::string_view whole = NameOf(instruction);
    const size_t open = whole.find("/(");
    if (open != absl::string_view::npos && absl::EndsWith(whole, ")")) {
      const absl::string_view list = whole.substr(open + 2, whole.size() - open - 3);
      for (const absl::string_view name : absl::StrSplit(list, ':')) {
        out_.names.push_back(
            absl::StrCat(std::string(whole.substr(0, open + 1)), std::string(name)));
        it->second.push_back(out_.names.back());
      }
    }
    if (it->second.size() != parts) it->second.assign(parts, whole);
    return it->second;
  }

  void AddCollective(const HloCollective& collective, RankProgram* here) {
    const HloInstructionList operands = flow_->OperandsOf(*collective.instruction);
    if (undo_ && !HasPairs(collective.kind) && operands.size() > 1 &&
        operands.size() <= std::numeric_limits<int16_t>::max()) {
      here->divided.insert(collective.instruction);
      const std::vector<absl::string_view>& names =
          PartNamesOf(*collective.instruction, operands.size());
      for (int i = 0; i < static_cast<int>(operands.size()); ++i) {
        const int64_t bytes = ShapeBytes(operands[i]->shape()).value_or(0);
        AddCollectiveNodes(collective, CollectiveOf(collective, bytes, i, *here), i, names[i],
                           here);
      }
      return;
    }
    AddCollectiveNodes(collective,
                       HasPairs(collective.kind)
                           ? MessagesOf(collective, here)
                           : CollectiveOf(collective, collective.operand_bytes, kWhole, *here),
                       kWhole, NameOf(*collective.instruction), here);
  }

  void AddCollectiveNodes(const HloCollective& collective, std::vector<RunNode> nodes, int part,
                          absl::string_view name, RankProgram* here) {
    if (nodes.empty()) {
      RunNode node = NewNode(here->rank, name);
      node.op_kind = kLocalOpKind;
      nodes.push_back(node);
    }
    std::vector<NodeIndex> added;
    for (RunNode& node : nodes) {
      node.name = name;
      node.instruction = collective.instruction;
      node.operand = static_cast<int16_t>(part);
      added.push_back(Push(node));
    }
    for (const NodeIndex node : added) Connect(node, *collective.instruction, part, here);
  }

  std::vector<RunNode> CollectiveOf(const HloCollective& collective, int64_t bytes, int part,
                                    const RankProgram& here) {
    const std::optional<ChakraProtoMsg::CollectiveCommType> type =
        SimulatedCommTypeOf(collective.kind);
    if (!type.has_value() || bytes <= 0) return {};
    const IdGroups& groups = collective.participants->device_groups;
    for (size_t g = 0; g < groups.size(); ++g) {
      std::vector<int64_t> ranks;
      for (const int64_t device : groups[g]) ranks.push_back(run_.ranks.RankOf(device));
      if (ranks.size() < 2 || std::find(ranks.begin(), ranks.end(), here.rank) == ranks.end()) {
        continue;
      }
      RunNode node = NewNode(here.rank, "");
      node.SetCollective(bytes, *type, groups_.Add(ranks));
      node.instance = InstanceOf(collective.instruction->id(), static_cast<int64_t>(g), -2 - part);
      return {node};
    }
    return {};
  }

  std::vector<RunNode> MessagesOf(const HloCollective& collective, RankProgram* here) {
    const bool sends = collective.kind != CollectiveKind::kRecv;
    const bool receives = collective.kind != CollectiveKind::kSend;
    // The n-th send of a program is received by its n-th receive.
    const int32_t tag = (sends ? here->sends++ : here->receives) % kCommTagLimit;
    if (receives) ++here->receives;
    if (collective.operand_bytes <= 0) return {};
    std::vector<RunNode> nodes;
    for (const SourceTargetPair& pair : collective.participants->device_pairs) {
      const int64_t source = run_.ranks.RankOf(pair.source);
      const int64_t target = run_.ranks.RankOf(pair.target);
      if (source == target || source == kUnknownId || target == kUnknownId) continue;
      const bool is_send = sends && source == here->rank;
      const bool is_receive = receives && target == here->rank;
      if (!is_send && !is_receive) continue;
      RunNode node = NewNode(here->rank, "");
      node.SetMessage(is_send, collective.operand_bytes, source, target, tag);
      node.instance = InstanceOf(tag, source, target);
      nodes.push_back(node);
    }
    return nodes;
  }

  // The numbers are an instruction's, its group's and a negative one, or a tag, a source and a target.
  uint32_t InstanceOf(int64_t a, int64_t b, int64_t c) {
    return instances_
        .emplace(std::make_tuple(program_count_, a, b, c), static_cast<uint32_t>(instances_.size()))
        .first->second;
  }

  // `part` is the operand that the node of a divided collective communicates.
  void Connect(NodeIndex node, const HloInstruction& instruction, int part, RankProgram* here) {
    here->nodes[&instruction].push_back(node);
    const HloSources& sources = flow_->SourcesOf(instruction);
    std::set<NodeIndex> data;
    for (int i = 0; i < static_cast<int>(sources.operands.size()); ++i) {
      if (part != kWhole && part != i) continue;
      for (const HloValue& value : sources.operands[i]) {
        const std::vector<NodeIndex> nodes = NodesOf(value, *here);
        data.insert(nodes.begin(), nodes.end());
      }
    }
    std::set<NodeIndex> control;
    for (const HloInstruction* source : sources.control) {
      const std::vector<NodeIndex> nodes = NodesOf({source, {}}, *here);
      control.insert(nodes.begin(), nodes.end());
    }
    const bool waits = AddEdges(node, data, EdgeKind::kData, here) |
                       AddEdges(node, control, EdgeKind::kControl, here);
    if (waits) return;
    out_.graph.edges.push_back({node, here->program_node, EdgeKind::kControl});
    here->has_successor.insert(here->program_node);
  }

  // Returns the nodes that make the value, so far.
  static std::vector<NodeIndex> NodesOf(const HloValue& value, const RankProgram& here) {
    const auto nodes = here.nodes.find(value.instruction);
    if (nodes == here.nodes.end()) return {};
    if (!here.divided.contains(value.instruction) || value.path.empty()) return nodes->second;
    const size_t part = static_cast<size_t>(value.path.back());
    if (part >= nodes->second.size()) return {};
    return {nodes->second[part]};
  }

  // Returns whether it added any. Sources that come later belong to the next iteration.
  bool AddEdges(NodeIndex node, const std::set<NodeIndex>& sources, EdgeKind kind,
                RankProgram* here) {
    bool any = false;
    for (const NodeIndex before : sources) {
      if (before >= node) continue;
      out_.graph.edges.push_back({node, before, kind});
      here->has_successor.insert(before);
      any = true;
    }
    return any;
  }

  RunNode NewNode(int64_t rank, absl::string_view name) const {
    RunNode node;
    node.name = name;
    node.resource = {rank, ResourceKind::kCompute, 0};
    node.start_ns = kNoTimeNs;
    node.end_ns = kNoTimeNs;
    return node;
  }

  NodeIndex Push(const RunNode& node) {
    out_.graph.nodes.push_back(node);
    if (node.IsCommunication()) {
      out_.graph.nodes.back().resource.kind = ResourceKind::kCommunication;
    }
    return static_cast<NodeIndex>(out_.graph.nodes.size() - 1);
  }

  // A simulator wants at least one node of every rank.
  void AddIdleNodes() {
    for (size_t rank = 0; rank < last_.size(); ++rank) {
      if (!last_[rank].empty()) continue;
      RunNode node = NewNode(static_cast<int64_t>(rank), "idle");
      node.op_kind = kHostGapOpKind;
      Push(node);
    }
  }

  // The operand that nodes have of a collective that is not divided.
  static constexpr int kWhole = RunNode::kAllOperands;

  const CollectiveRun& run_;
  const bool undo_;
  ProcessGroupList groups_;
  WorkNodes out_;
  const HloCollectives* collectives_ = nullptr;
  HloDataFlow* flow_ = nullptr;
  // The nodes of each rank that nothing waits for yet.
  std::vector<std::vector<NodeIndex>> last_;
  // Numbers of executions, by program, instruction and group, or by program, tag, source and
  // target.
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, uint32_t> instances_;
  int64_t program_count_ = 0;
  absl::flat_hash_map<const HloInstruction*, std::vector<absl::string_view>> part_names_;
  std::set<std::string> notes_;
};

}  // namespace

absl::StatusOr<WorkNodes> MakeProgramNodes(
    const std::vector<std::unique_ptr<ProfileWork>>& profiles, const CollectiveRun& run,
    bool undo) {
  return ProgramNodeMaker(run, undo).Run(ListPrograms(profiles));
}

}  // namespace meridian
