// SPDX-License-Identifier: Apache-2.0
// Tables that the programs of nccl-tests print (all_reduce_perf, all_gather_perf, ...), as runs
// whose transfers are known by size alone:
//
//   #  Rank  0 Group  0 Pid 116147 on  nid005597 device  0 [0x01] NVIDIA GH200 120GB
//   #       size         count      type   redop    root     time   algbw   busbw #wrong     time ...
//   #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) ...
//              8             2     float     sum      -1    19.41    0.00    0.00      0    19.23 ...
//
// Times are those out of place; rows with wrong values are left out. Lines may begin with what
// "srun -l" puts there ("0: ").
#ifndef ASTRA_BRIDGE_CALIBRATION_NCCL_TESTS_H_
#define ASTRA_BRIDGE_CALIBRATION_NCCL_TESTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "astra_bridge/calibration/transfers.h"

namespace meridian {

// Returns whether a file that begins like this is such a table.
bool IsNcclTestsTable(absl::string_view head);

// Returns the table as a run of as many ranks as it lists. InvalidArgument, with the line, for a
// table that is cut off or has no row, for a second table, ranks that are missing or split into
// groups, times of the processor, and for a table that tells neither by a line nor by the name of
// its file which program printed it.
absl::StatusOr<CalibrationRun> ParseNcclTestsTable(absl::string_view text, const std::string& path);

}  // namespace meridian

#endif  // ASTRA_BRIDGE_CALIBRATION_NCCL_TESTS_H_
