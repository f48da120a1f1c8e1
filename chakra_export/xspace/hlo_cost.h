// SPDX-License-Identifier: Apache-2.0
// What an instruction reads, writes and computes, as its program says.
#ifndef CHAKRA_EXPORT_XSPACE_HLO_COST_H_
#define CHAKRA_EXPORT_XSPACE_HLO_COST_H_

#include <cstdint>
#include <optional>

#include "xla_profiler/hlo/hlo_module.h"

namespace meridian {

struct HloCost {
  // Bytes of the arrays that it reads and writes; absent when a shape is not bounded.
  std::optional<int64_t> bytes;
  // Arithmetic operations: a dot counts two for each product, everything else one for each element
  // of its result, a reduction one for each element of its operand. Absent when the instruction, or
  // one that it calls, computes something that its shapes do not tell (a custom call, a loop).
  std::optional<int64_t> operations;
};

HloCost CostOf(const HloInstruction& instruction);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_HLO_COST_H_
