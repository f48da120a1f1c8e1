// SPDX-License-Identifier: Apache-2.0
// Which device work consumes what other device work produced, by the tensors of the operators that
// launched them: device work reads its operator's inputs and writes its outputs. In the order of
// the launches,
//
//   read of a storage    waits for the last write of it
//   write of a storage   waits for the last write of it and for the reads since
//
// This is how the optimizer's kernel comes to wait for the all-reduce on another stream when the
// profile has no events of the waits between streams.
#ifndef CHAKRA_EXPORT_PYTORCH_TENSOR_DEPENDENCIES_H_
#define CHAKRA_EXPORT_PYTORCH_TENSOR_DEPENDENCIES_H_

#include "chakra_export/pytorch/host_trace.h"
#include "chakra_export/pytorch/rank_timeline.h"

namespace meridian {

// Finds the nodes' tensor_op and adds edges of kind kData to the timeline; those against the
// measured times are left out, since then the work did not touch the same bytes.
void AddTensorDependencies(const HostTrace& host, RankTimeline* timeline);

// Returns the nearest of the operator and its callers that has tensors on the device; kNoHostOp
// when none has.
HostOpIndex NearestOpWithTensors(const HostTrace& host, HostOpIndex op);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_PYTORCH_TENSOR_DEPENDENCIES_H_
