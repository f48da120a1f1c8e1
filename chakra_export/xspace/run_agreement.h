// SPDX-License-Identifier: Apache-2.0
// Whether the profiles of a run tell one story. What they disagree about could not be matched, and
// would be taken for collectives that merely lack members.
#ifndef CHAKRA_EXPORT_XSPACE_RUN_AGREEMENT_H_
#define CHAKRA_EXPORT_XSPACE_RUN_AGREEMENT_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "chakra_export/xspace/device_work.h"
#include "trace_alignment/collectives/collective_run.h"

namespace meridian {

// InvalidArgument when devices ran one execution of a program that their profiles hold with
// different collectives or parameters; names the program, the profiles and the first collective
// that differs. Where executions have no ids, profiles that each have a single program of the name
// must have the same. Programs of devices that are all different may share a name.
//
// The profiles are those that the collectives were read from, in the same order.
absl::Status CheckProgramsAgree(const std::vector<std::unique_ptr<ProfileWork>>& profiles,
                                const CollectiveRun& run);

// InvalidArgument when profiles that share devices, and have an instruction once, say something else
// about its kind, bytes or groups: its executions would be taken for ones that lack members.
absl::Status CheckCollectivesAgree(const CollectiveRun& run);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_RUN_AGREEMENT_H_
