// SPDX-License-Identifier: Apache-2.0
// What workload_model report found, as a page.
#ifndef PIPELINE_WORKLOAD_PAGE_H_
#define PIPELINE_WORKLOAD_PAGE_H_

#include <string>

#include "workload_model/workload_model.pb.h"

namespace meridian {

std::string WorkloadPage(const WorkloadComparison& comparison);

}  // namespace meridian

#endif  // PIPELINE_WORKLOAD_PAGE_H_
