// SPDX-License-Identifier: Apache-2.0
// What an operator of PyTorch moves and computes, as the tensors it was given tell.
#ifndef CHAKRA_EXPORT_PYTORCH_OP_COST_H_
#define CHAKRA_EXPORT_PYTORCH_OP_COST_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "chakra_export/pytorch/host_trace.h"

namespace meridian {

struct OpCost {
  // Bytes of its tensors on the device, both those it reads and those it writes.
  int64_t bytes = 0;
  // Arithmetic operations: two for each product of a matrix product, a convolution or an attention;
  // of other operators one for each element of the largest argument. Absent for operators that do
  // more than their shapes tell (the backward pass of an attention, a recurrent layer).
  std::optional<int64_t> operations;
};

OpCost CostOfOperator(absl::string_view name, const HostOpDetails& details);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_OP_COST_H_
