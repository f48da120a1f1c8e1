// SPDX-License-Identifier: Apache-2.0
// Made-up profiles, read and matched, as the passes after reading take them.
#ifndef CHAKRA_EXPORT_XSPACE_TESTING_MADE_UP_RUN_H_
#define CHAKRA_EXPORT_XSPACE_TESTING_MADE_UP_RUN_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "chakra_export/xspace/device_work.h"
#include "trace_alignment/collectives/collective_run.h"
#include "xla_profiler/testing/xplane_builder.h"

namespace meridian {

// The profiles must be sound: reading them is not what is tested. Stays where it is, since what was
// read points into the bytes.
struct MadeUpRun {
  explicit MadeUpRun(const std::vector<XSpaceProto>& spaces);
  MadeUpRun(const MadeUpRun&) = delete;
  MadeUpRun& operator=(const MadeUpRun&) = delete;

  std::deque<std::string> bytes;
  // Named "profile0", "profile1", ...
  std::vector<std::unique_ptr<ProfileWork>> profiles;
  CollectiveRun run;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_TESTING_MADE_UP_RUN_H_
