// SPDX-License-Identifier: Apache-2.0
// What an instruction reads, writes and computes, as its program says.
#ifndef CHAKRA_EXPORT_XSPACE_HLO_COST_H_
#define CHAKRA_EXPORT_XSPACE_HLO_COST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/hlo/hlo_module.h"

namespace ChakraProtoMsg {
class IOInfo;
}  // namespace ChakraProtoMsg

namespace meridian {

struct HloCost {
  // The arrays that it reads and writes; tuples are taken apart.
  std::vector<xla::ShapeProto> inputs;
  std::vector<xla::ShapeProto> outputs;
  // Bytes of all of them; absent when a shape is not bounded.
  std::optional<int64_t> bytes;
  // Arithmetic operations: a dot counts two for each product, everything else one for each element
  // of its result, a reduction one for each element of its operand. Absent when the instruction, or
  // one that it calls, computes something that its shapes do not tell (a custom call, a loop).
  std::optional<int64_t> operations;
};

HloCost CostOf(const HloInstruction& instruction);

// Sets shapes and types as Chakra's converters write them: "[[4, 8], [8]]" and "['f32', 'bf16']".
void SetShapes(const std::vector<xla::ShapeProto>& shapes, ChakraProtoMsg::IOInfo* info);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_HLO_COST_H_
