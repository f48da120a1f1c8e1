#include "chakra_export/xspace/hlo_data_flow.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace meridian {
namespace {

constexpr size_t kMaxSearchedValues = 100000;

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
  if (DoesNoWork(instruction)) return true;
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
  for (const HloInstruction* operand : instruction.operands()) {
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
