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
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module.h"

namespace meridian {

// The instructions whose results, or whose end, an instruction waits for.
struct HloSources {
  std::vector<const HloInstruction*> data;
  std::vector<const HloInstruction*> control;
};

// Returns the instructions in the order of the computation's schedule; where it has none, as they
// stand.
std::vector<const HloInstruction*> ScheduledInstructions(const HloComputation& computation);

// Finds the producers of values in one module, and remembers what it has found.
class HloDataFlow {
 public:
  // Both arguments must outlive this.
  HloDataFlow(const HloModule& module, const HloCollectives& collectives);

  // True for instructions that only arrange values or call others.
  static bool DoesNoWork(const HloInstruction& instruction);

  // Returns the sources of the instruction that do work. Those of asynchronous collectives are the
  // ones that communicate. A search that grows beyond all reason is cut short.
  const HloSources& SourcesOf(const HloInstruction& instruction);

  // Returns the instructions that call the computation, once for each time.
  absl::Span<const HloInstruction* const> CallersOf(const HloComputation& computation) const;

 private:
  // The elements of nested tuples to be taken, the innermost last.
  using Path = std::vector<int64_t>;
  struct Value {
    const HloInstruction* instruction = nullptr;
    Path path;

    friend bool operator==(const Value& a, const Value& b) {
      return a.instruction == b.instruction && a.path == b.path;
    }
    template <typename H>
    friend H AbslHashValue(H h, const Value& value) {
      return H::combine(std::move(h), value.instruction, value.path);
    }
  };

  std::vector<const HloInstruction*> Search(std::vector<Value> open) const;
  // Appends where the value comes from.
  void Follow(const Value& value, std::vector<Value>* open) const;
  void FollowParameter(const Value& value, std::vector<Value>* open) const;

  const HloCollectives& collectives_;
  absl::flat_hash_map<const HloComputation*, std::vector<const HloInstruction*>> callers_;
  absl::flat_hash_map<const HloInstruction*, HloSources> sources_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_HLO_DATA_FLOW_H_
