// SPDX-License-Identifier: Apache-2.0
// Which instructions produce what an instruction reads, when those in between do no work:
//
//   fusion.2 <- get-tuple-element.1 <- while.3          -> what the body's root is made of
//   add.7    <- all-reduce-done.1 <- all-reduce-start.1 -> all-reduce.1
//
// Tuples are followed element by element, into called computations and out of their parameters.
#ifndef CHAKRA_EXPORT_XSPACE_HLO_DATA_FLOW_H_
#define CHAKRA_EXPORT_XSPACE_HLO_DATA_FLOW_H_

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module.h"

namespace meridian {

// A value of a program: the result of an instruction, or an element of it.
struct HloValue {
  const HloInstruction* instruction = nullptr;
  // The elements of nested tuples to be taken, that of the outermost tuple last.
  std::vector<int64_t> path;

  friend bool operator==(const HloValue& a, const HloValue& b) {
    return a.instruction == b.instruction && a.path == b.path;
  }
  template <typename H>
  friend H AbslHashValue(H h, const HloValue& value) {
    return H::combine(std::move(h), value.instruction, value.path);
  }
};

// The instructions whose results, or whose end, an instruction waits for.
struct HloSources {
  // By operand: what it is, or may be, in a loop. Arguments of the program and constants, too, which
  // nobody waits for.
  std::vector<std::vector<HloValue>> operands;
  std::vector<const HloInstruction*> data;
  std::vector<const HloInstruction*> control;
};

// An all-reduce that the compiler made of several by joining their operands end to end; what they
// gave is cut out of its result:
//
//   a, b -> concatenate -> all-reduce -> slice, slice
struct HloJoined {
  const HloInstruction* concatenate = nullptr;
  // The tuple of what was joined.
  xla::ShapeProto shape;
};

// Returns the instructions in the order of the computation's schedule; where it has none, as they
// stand.
std::vector<const HloInstruction*> ScheduledInstructions(const HloComputation& computation);

// Finds the producers of values in one module, and remembers what it has found.
class HloDataFlow {
 public:
  // Module and collectives must outlive this. With `open_fusions`, what is in fusions does the work,
  // not the fusion; copies do none; and all-reduces that were joined have their operands and the
  // elements of their results apart, as if they were tuples.
  HloDataFlow(const HloModule& module, const HloCollectives& collectives,
              bool open_fusions = false);

  // True for instructions that only arrange values or call others.
  static bool DoesNoWork(const HloInstruction& instruction);
  // The same, with regard to open fusions.
  bool PassesOn(const HloInstruction& instruction) const;

  // Returns the sources of the instruction that do work. Those of asynchronous collectives are the
  // ones that communicate. A search that grows beyond all reason is cut short.
  const HloSources& SourcesOf(const HloInstruction& instruction);

  // Returns the instructions that call the computation, once for each time.
  absl::Span<const HloInstruction* const> CallersOf(const HloComputation& computation) const;

  // The all-reduces that were joined, with open fusions.
  const absl::flat_hash_map<const HloInstruction*, HloJoined>& joined() const { return joined_; }
  // Returns what the instruction reads, of an all-reduce that was joined what was joined.
  HloInstructionList OperandsOf(const HloInstruction& instruction) const;

 private:
  using Path = std::vector<int64_t>;
  using Value = HloValue;
  using Users = absl::flat_hash_map<const HloInstruction*, std::vector<const HloInstruction*>>;

  void FindJoined(const HloModule& module);
  // Returns whether nothing but one collective reads the value.
  bool IsForOneCollective(const HloInstruction& instruction, const Users& users, int depth) const;
  // Notes of a slice which joined operand's result it cuts out, if it does.
  void FindPart(const HloInstruction& slice);

  // Returns where the values come from.
  std::vector<Value> Search(std::vector<Value> open) const;
  // Returns the instructions of the values that do work, each once, but for one.
  std::vector<const HloInstruction*> WorkersOf(const std::vector<Value>& values,
                                               const HloInstruction& but) const;
  // Appends where the value comes from.
  void Follow(const Value& value, std::vector<Value>* open) const;
  void FollowParameter(const Value& value, std::vector<Value>* open) const;

  const HloCollectives& collectives_;
  const bool open_fusions_;
  absl::flat_hash_map<const HloComputation*, std::vector<const HloInstruction*>> callers_;
  absl::flat_hash_map<const HloInstruction*, HloJoined> joined_;
  // By instruction that joins or cuts apart: what it stands for, if that is one value.
  absl::flat_hash_map<const HloInstruction*, Value> arranging_;
  // Elements keep their address.
  std::unordered_map<const HloInstruction*, HloSources> sources_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_HLO_DATA_FLOW_H_
