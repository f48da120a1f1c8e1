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
// ScaleOptions::layout says otherwise. Bytes of all-gathers are one rank's share and shrink as the group
// grows; what copies exchange shrinks as more tensor parallel ranks divide it; all others stay.
#ifndef WORKLOAD_MODEL_SCALING_SCALING_H_
#define WORKLOAD_MODEL_SCALING_SCALING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "workload_model/workload_model.pb.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

struct ScaleOptions {
  // How many ranks: the data axis becomes longer, or the outermost where there is none; 0 where the
  // layout says it.
  int64_t ranks = 0;
  // The new lengths of all axes, from neighbouring ranks outward, and what these are for: "tensor",
  // "data", "pipeline", or "" for what is to be told. Empty where the number of ranks says it.
  std::vector<std::pair<int64_t, std::string>> layout;
  // Called with the new rank that is written; may be null.
  std::function<void(int64_t rank)> progress;
};

// Reads the layout from "2x4" or, with what the axes are for, "tensor=2,data=4"; nothing from "".
// InvalidArgument, which says --layout, for other texts, and when there is not either a layout or a
// number of ranks.
absl::Status ParseLayout(const std::string& text, ScaleOptions* options);

// Reads PREFIX.<rank>.et and PREFIX.comm_groups.json, writes those of the other prefix.
// InvalidArgument when the groups are no rows of one mesh, when a message goes along no axis, when
// lengths do not fit, for an axis of two with messages, which is a ring, a pipeline or pairs, and when
// messages of the new job would have no counterpart, or a file that is read would be overwritten.
absl::StatusOr<ScaleReport> ScaleWorkload(FileSystem& file_system, const std::string& prefix,
                                          const std::string& output, const ScaleOptions& options);

std::string FormatScaleReport(const ScaleReport& report);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_SCALING_SCALING_H_
