// SPDX-License-Identifier: Apache-2.0
// Which message each receive gets, where receives do not say from whom: ranks are run together, each
// until it waits for something that was not sent yet. Of what has come, messages of different senders
// and callsites come first: a neighbour that is an iteration ahead has sent twice.
#ifndef WORKLOAD_MODEL_GENERATE_ARRIVALS_H_
#define WORKLOAD_MODEL_GENERATE_ARRIVALS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/generate/generated_workload.h"
#include "workload_model/generate/evaluated_flow.h"

namespace meridian {

// Returns the message that a call sends to that rank, or receives from it.
PeerMessage MessageOf(const Visit& visit, int64_t peer);

// visits[rank] are the calls of a rank. Returns for each rank what its receives get, in the order in
// which they begin; peers are the senders. FailedPrecondition when a rule does not tell whom a rank
// sends to, and when a rank would wait for ever.
absl::StatusOr<std::vector<std::vector<PeerMessage>>> FindArrivals(
    const std::vector<const std::vector<Visit>*>& visits);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_GENERATE_ARRIVALS_H_
