#include "chakra_export/xspace/hlo_data_flow.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace meridian {
namespace {

constexpr size_t kMaxSearchedValues = 100000;

// How many instructions that do no work may lie between a concatenation and its collective.
constexpr int kMaxCallDepth = 64;

// Opcodes whose value is that of their operand, element by element.
constexpr absl::string_view kPassedOn[] = {"async-update", "async-done", "while",
                                           "opt-barrier",  "bitcast",    "copy-done"};

}  // namespace

std::vector<const HloInstruction*> ScheduledInstructions(const HloComputation& computation) {
  const HloInstructionList schedule = computation.schedule();
  std::vector<const HloInstruction*> order(schedule.begin(), schedule.end());
  if (!order.empty()) return order;
  for (const HloInstruction& instruction : computation.instructions()) {
    order.push_back(&instruction);
  }
  return order;
}

HloDataFlow::HloDataFlow(const HloModule& module, const HloCollectives& collectives,
                         bool open_fusions)
    : collectives_(collectives), open_fusions_(open_fusions) {
  for (const HloInstruction& instruction : module.instructions()) {
    for (const HloComputation* called : instruction.called_computations()) {
      callers_[called].push_back(&instruction);
    }
  }
  if (open_fusions) FindJoined(module);
}

void HloDataFlow::FindJoined(const HloModule& module) {
  Users users;
  for (const HloInstruction& instruction : module.instructions()) {
    for (const HloInstruction* operand : instruction.operands()) {
      users[operand].push_back(&instruction);
    }
  }
  for (const HloInstruction& instruction : module.instructions()) {
    const HloCollective* collective = collectives_.Find(instruction.name());
    if (collective == nullptr || collective->instruction != &instruction ||
        collective->kind != CollectiveKind::kAllReduce || instruction.operands().size() != 1) {
      continue;
    }
    const std::vector<Value> sources = Search({{instruction.operands()[0], {}}});
    if (sources.size() != 1 || sources[0].instruction->opcode() != "concatenate") continue;
    const HloInstruction& concatenate = *sources[0].instruction;
    // What the framework joined has a name of the framework.
    if (concatenate.shape().dimensions_size() != 1 || concatenate.operands().size() < 2 ||
        !concatenate.proto().metadata().op_name().empty() ||
        !IsForOneCollective(concatenate, users, kMaxCallDepth)) {
      continue;
    }
    HloJoined joined{&concatenate, {}};
    joined.shape.set_element_type(xla::TUPLE);
    for (const HloInstruction* operand : concatenate.operands()) {
      *joined.shape.add_tuple_shapes() = operand->shape();
    }
    joined_[&instruction] = std::move(joined);
  }
  for (const auto& [instruction, joined] : joined_) arranging_[joined.concatenate] = {};
  for (const HloInstruction& instruction : module.instructions()) {
    if (!joined_.empty() && instruction.opcode() == "slice") FindPart(instruction);
  }
}

bool HloDataFlow::IsForOneCollective(const HloInstruction& instruction, const Users& users,
                                     int depth) const {
  if (depth == 0) return false;
  const HloInstruction* user = nullptr;
  if (const auto found = users.find(&instruction); found != users.end()) {
    if (found->second.size() == 1) user = found->second[0];
  } else if (instruction.computation().root() == &instruction) {
    const auto callers = CallersOf(instruction.computation());
    if (callers.size() == 1) return IsForOneCollective(*callers[0], users, depth - 1);
  }
  if (user == nullptr) return false;
  if (collectives_.Find(user->name()) != nullptr) return true;
  return PassesOn(*user) && IsForOneCollective(*user, users, depth - 1);
}

void HloDataFlow::FindPart(const HloInstruction& slice) {
  if (slice.operands().size() != 1 || slice.proto().slice_dimensions_size() != 1) return;
  const std::vector<Value> sources = Search({{slice.operands()[0], {}}});
  if (sources.size() != 1 || !sources[0].path.empty()) return;
  const auto joined = joined_.find(sources[0].instruction);
  if (joined == joined_.end()) return;
  const auto& cut = slice.proto().slice_dimensions(0);
  int64_t start = 0;
  for (int64_t i = 0; i < joined->second.shape.tuple_shapes_size() && start <= cut.start(); ++i) {
    const xla::ShapeProto& part = joined->second.shape.tuple_shapes(static_cast<int>(i));
    const int64_t size = part.dimensions_size() == 1 ? part.dimensions(0) : 0;
    // Sizes of a broken program may not add up to a number.
    if (size < 0 || size > std::numeric_limits<int64_t>::max() - start) return;
    if (start == cut.start() && start + size == cut.limit() && cut.stride() == 1) {
      arranging_[&slice] = {sources[0].instruction, {i}};
      return;
    }
    start += size;
  }
}

HloInstructionList HloDataFlow::OperandsOf(const HloInstruction& instruction) const {
  const auto joined = joined_.find(&instruction);
  return joined == joined_.end() ? instruction.operands() : joined->second.concatenate->operands();
}

bool HloDataFlow::DoesNoWork(const HloInstruction& instruction) {
  static constexpr absl::string_view kOpcodes[] = {
      "parameter",   "constant",          "tuple", "get-tuple-element", "bitcast",
      "opt-barrier", "after-all",         "call",  "add-dependency",    "async-start",
      "async-done",  "async-update",      "while", "conditional",       "copy-done",
      "send-done",   "recv-done",         "iota",  "partition-id",      "replica-id",
      "domain",      "get-dimension-size"};
  return absl::c_linear_search(kOpcodes, instruction.opcode());
}

bool HloDataFlow::PassesOn(const HloInstruction& instruction) const {
  if (DoesNoWork(instruction) || arranging_.contains(&instruction)) return true;
  const absl::string_view opcode = instruction.opcode();
  if (opcode == "fusion") return open_fusions_ && !instruction.called_computations().empty();
  return open_fusions_ && (opcode == "copy" || opcode == "copy-start");
}

absl::Span<const HloInstruction* const> HloDataFlow::CallersOf(
    const HloComputation& computation) const {
  const auto it = callers_.find(&computation);
  if (it == callers_.end()) return {};
  return it->second;
}

const HloSources& HloDataFlow::SourcesOf(const HloInstruction& instruction) {
  const auto [it, is_new] = sources_.try_emplace(&instruction);
  if (!is_new) return it->second;
  HloSources found;
  std::vector<Value> data;
  for (const HloInstruction* operand : OperandsOf(instruction)) {
    const std::vector<Value>& values = found.operands.emplace_back(Search({{operand, {}}}));
    data.insert(data.end(), values.begin(), values.end());
  }
  std::vector<Value> control;
  const auto add_control = [&](const HloInstruction& of) {
    for (const HloInstruction* before : of.control_predecessors()) control.push_back({before, {}});
  };
  add_control(instruction);
  const HloCollective* collective = collectives_.Find(instruction.name());
  // What orders the start of an asynchronous collective orders the collective.
  if (collective != nullptr && collective->start != nullptr && collective->start != &instruction) {
    add_control(*collective->start);
  }
  found.data = WorkersOf(data, instruction);
  found.control = WorkersOf(Search(std::move(control)), instruction);
  return sources_[&instruction] = std::move(found);
}

std::vector<HloValue> HloDataFlow::Search(std::vector<Value> open) const {
  absl::flat_hash_set<Value> seen;
  std::vector<Value> result;
  while (!open.empty() && seen.size() < kMaxSearchedValues) {
    const Value value = std::move(open.back());
    open.pop_back();
    if (!seen.insert(value).second) continue;
    const HloCollective* collective = collectives_.Find(value.instruction->name());
    if (collective == nullptr && PassesOn(*value.instruction)) {
      const size_t before = open.size();
      Follow(value, &open);
      if (open.size() > before) continue;
    }
    result.push_back(
        {collective != nullptr ? collective->instruction : value.instruction, value.path});
  }
  return result;
}

std::vector<const HloInstruction*> HloDataFlow::WorkersOf(const std::vector<Value>& values,
                                                          const HloInstruction& but) const {
  absl::flat_hash_set<const HloInstruction*> found = {&but};
  std::vector<const HloInstruction*> result;
  for (const Value& value : values) {
    const bool works =
        collectives_.Find(value.instruction->name()) != nullptr || !PassesOn(*value.instruction);
    if (works && found.insert(value.instruction).second) result.push_back(value.instruction);
  }
  return result;
}

void HloDataFlow::Follow(const Value& value, std::vector<Value>* open) const {
  const HloInstruction& instruction = *value.instruction;
  const absl::string_view opcode = instruction.opcode();
  if (opcode == "parameter") {
    FollowParameter(value, open);
    return;
  }
  if (const auto part = arranging_.find(&instruction);
      part != arranging_.end() && part->second.instruction != nullptr) {
    open->push_back(part->second);
    return;
  }
  if (opcode == "get-tuple-element" && !instruction.operands().empty()) {
    Value element{instruction.operands()[0], value.path};
    element.path.push_back(instruction.proto().tuple_index());
    open->push_back(std::move(element));
    return;
  }
  if (opcode == "tuple" && !value.path.empty()) {
    const int64_t index = value.path.back();
    if (index < 0 || index >= static_cast<int64_t>(instruction.operands().size())) return;
    Value element{instruction.operands()[static_cast<size_t>(index)], value.path};
    element.path.pop_back();
    open->push_back(std::move(element));
    return;
  }
  for (const HloComputation* called : instruction.called_computations()) {
    // Of a loop the condition's root is as good as the body's: the next iteration waits for it.
    if (called->root() != nullptr) open->push_back({called->root(), value.path});
  }
  const bool calls = opcode == "call" || opcode == "async-start" || opcode == "fusion";
  if (calls && !instruction.called_computations().empty()) return;
  for (const HloInstruction* operand : instruction.operands()) {
    open->push_back({operand, absl::c_linear_search(kPassedOn, opcode) ? value.path : Path()});
  }
}

void HloDataFlow::FollowParameter(const Value& value, std::vector<Value>* open) const {
  const HloComputation& computation = value.instruction->computation();
  const int64_t number = value.instruction->proto().parameter_number();
  for (const HloInstruction* caller : CallersOf(computation)) {
    int64_t operand = number;
    if (caller->opcode() == "while") {
      // The first iteration has the loop's operand, the others what the body made.
      for (const HloComputation* called : caller->called_computations()) {
        if (called->root() != nullptr) open->push_back({called->root(), value.path});
      }
    } else if (caller->opcode() == "conditional") {
      const HloComputationList branches = caller->called_computations();
      const auto branch = std::find(branches.begin(), branches.end(), &computation);
      operand = 1 + (branch - branches.begin());
    }
    if (operand < 0 || operand >= static_cast<int64_t>(caller->operands().size())) continue;
    open->push_back({caller->operands()[static_cast<size_t>(operand)], value.path});
  }
}

}  // namespace meridian
