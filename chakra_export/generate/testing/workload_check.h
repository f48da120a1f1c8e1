// SPDX-License-Identifier: Apache-2.0
// What chakra_inspect would say of a made-up workload.
#ifndef CHAKRA_EXPORT_GENERATE_TESTING_WORKLOAD_CHECK_H_
#define CHAKRA_EXPORT_GENERATE_TESTING_WORKLOAD_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/generate/generated_workload.h"

namespace meridian {

// Writes the traces, reads them again and applies every rule of et_check.h; returns what is wrong,
// warnings too. An error is one of files.
absl::StatusOr<std::vector<std::string>> ProblemsOf(const GeneratedWorkload& workload);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_TESTING_WORKLOAD_CHECK_H_
