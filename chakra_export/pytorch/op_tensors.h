// SPDX-License-Identifier: Apache-2.0
// What the tensors that an operator of PyTorch was given tell: what its device work waited for, and
// what it costs.
#ifndef CHAKRA_EXPORT_PYTORCH_OP_TENSORS_H_
#define CHAKRA_EXPORT_PYTORCH_OP_TENSORS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "chakra_export/pytorch/host_trace.h"
#include "chakra_export/pytorch/rank_timeline.h"

namespace meridian {

// Which device work consumes what other device work produced, by the tensors of the operators that
// launched them: device work reads its operator's inputs and writes its outputs. In the order of
// the launches,
//
//   read of a storage    waits for the last write of it
//   write of a storage   waits for the last write of it and for the reads since
//
// This is how the optimizer's kernel comes to wait for the all-reduce on another stream when the
// profile has no events of the waits between streams.
//
// Finds the nodes' tensor_op and adds edges of kind kData to the timeline; those against the
// measured times are left out, since then the work did not touch the same bytes.
void AddTensorDependencies(const HostTrace& host, RankTimeline* timeline);

// What an operator of PyTorch moves and computes.
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

#endif  // CHAKRA_EXPORT_PYTORCH_OP_TENSORS_H_
