// SPDX-License-Identifier: Apache-2.0
// A measured job, run larger: the Chakra traces of p ranks rewritten for more.
//
// The ranks of a job are a mesh: its groups are rows of it, its messages go along one axis.
//
//   groups {0,1} {2,3} and {0,2} {1,3}       rank = t + 2 d:   axes of stride 1 (length 2) and 2 (2)
//   asked for 2x4                            ranks 0 to 7;     groups {0,1} ... {0,2,4,6} {1,3,5,7}
//
// A new rank does what the old rank at its place does; along an axis that became longer it takes the
// place that it has modulo the old length, and along an axis of messages (a pipeline) that of the
// first, the last, or one between. What an axis is for, and so how work changes with its length, is
// told by what is communicated along it:
//
//   pipeline   messages alone                        expert   all-to-alls alone
//   data       the largest collectives (gradients)   tensor   others: computation is divided by it
//
// Where only one axis has collectives, they do not tell data from tensor: it is taken for data, and
// ScaleOptions::kinds says otherwise. Bytes of all-gathers are one rank's share and shrink as the group
// grows; what copies exchange shrinks as more tensor parallel ranks divide it; all others stay.
#ifndef WORKLOAD_MODEL_SCALING_H_
#define WORKLOAD_MODEL_SCALING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct ScaleOptions {
  // How many ranks: the data axis becomes longer, or the outermost where there is none. Or the
  // new lengths of all axes, from neighbouring ranks outward; one of both.
  int64_t ranks = 0;
  std::vector<int64_t> layout;
  // What the axes of the layout are for, "tensor", "data" or "pipeline"; "" for those that are to be
  // told. Empty, or one for each.
  std::vector<std::string> kinds;
  // Called with the new rank that is written; may be null.
  std::function<void(int64_t rank)> progress;
};

// Reads PREFIX.<rank>.et and PREFIX.comm_groups.json, writes those of the other prefix.
// InvalidArgument when the groups are no rows of one mesh, when a message goes along no axis, when
// lengths do not fit, for an axis of two with messages, which is a ring, a pipeline or pairs, and when
// messages of the new job would have no counterpart.
absl::StatusOr<ScaleReport> ScaleWorkload(FileSystem& file_system, const std::string& prefix,
                                          const std::string& output, const ScaleOptions& options);

std::string FormatScaleReport(const ScaleReport& report);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_SCALING_H_
