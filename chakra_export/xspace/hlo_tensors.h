// SPDX-License-Identifier: Apache-2.0
// The tensors of a program as objects: two nodes that use one tensor name the same id, and tensors
// that XLA put into one piece of memory the same storage.
//
//   values  [[7, 2, 4096, 1024, 4, 'device:0'], ...]
//             tensor, storage, offset in it, elements, bytes of one, where
//   shapes  [[32, 32], ...]
//   types   ['Tensor(f32)', ...]
#ifndef CHAKRA_EXPORT_XSPACE_HLO_TENSORS_H_
#define CHAKRA_EXPORT_XSPACE_HLO_TENSORS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "chakra_export/xspace/hlo_data_flow.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module.h"

namespace ChakraProtoMsg {
class Node;
}  // namespace ChakraProtoMsg

namespace meridian {

class HloTensors {
 public:
  // The module must outlive this. With `open_fusions`, tensors are those of the instructions in
  // fusions (HloDataFlow). With `loops_run_once`, instructions are added in the order in which they
  // run, and what a loop hands on to its next iteration is read by none.
  HloTensors(const HloModule& module, bool open_fusions, bool loops_run_once = false);

  // How many ids its tensors and storages take.
  uint64_t id_count() const { return id_count_; }

  // Finds what the instruction reads and writes.
  void Add(const HloInstruction& instruction);

  // Writes what was found of an instruction that was added; of a collective all operands, or the one
  // of that number and what becomes of it. Ids count from first_id on.
  void Describe(const HloInstruction& instruction, int operand, uint64_t first_id, int64_t rank,
                ChakraProtoMsg::Node* message) const;

 private:
  struct Tensor {
    uint64_t id = 0;
    uint64_t storage = 0;
    int64_t offset = 0;
    // An array.
    const xla::ShapeProto* shape = nullptr;
  };
  struct Access {
    // By operand.
    std::vector<std::vector<Tensor>> reads;
    std::vector<Tensor> writes;
  };
  // An allocation and the offset in it.
  using Place = std::pair<uint64_t, int64_t>;

  void ReadPlaces();
  // Returns the shape of the instruction's value, as others see it.
  const xla::ShapeProto& ShapeOf(const HloInstruction& instruction) const;
  // Nullopt for a value that is no array.
  std::optional<Tensor> TensorOf(const HloValue& value) const;
  // Appends the arrays in a value; `next_id` is the number of the first.
  void AddArrays(const xla::ShapeProto& shape, uint64_t* next_id, HloValue* value,
                 std::vector<Tensor>* arrays) const;
  Tensor ArrayAt(uint64_t id, const xla::ShapeProto& shape, const HloValue& value) const;

  const HloModule& module_;
  const HloCollectives collectives_;
  const bool loops_run_once_;
  HloDataFlow flow_;
  uint64_t id_count_ = 0;
  // The number of the first array in each instruction's value.
  absl::flat_hash_map<const HloInstruction*, uint64_t> first_id_;
  // Where values are. Those that the program does not place are storages of their own, numbered
  // behind the allocations.
  absl::flat_hash_map<HloValue, Place> places_;
  uint64_t allocations_ = 0;
  absl::flat_hash_map<const HloInstruction*, Access> accesses_;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_HLO_TENSORS_H_
