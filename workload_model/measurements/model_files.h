// SPDX-License-Identifier: Apache-2.0
// Model files in the form of the published Ember motif, which tells them apart by their names, and
// this reader by their content:
//
//   typed rows   [source] callsite threads TYPE numbers...
//                  1 2 1 EXPONENTIAL -0.0050 0.0799 0.3816 -2.7159
//                  33 34 1 TRACE 59.0 143.0 43.0
//   table        header: callsite_source callsite_destination threads_per_rank 0,0 1,0 0,1 ...
//                rows:   1 2 1 -6890.8582 1593.4272 ...      column "x,y" is that of size^x nodes^y
//
// Times have two callsites, messages one. Numbers are written so that they are read back the same.
#ifndef WORKLOAD_MODEL_MEASUREMENTS_MODEL_FILES_H_
#define WORKLOAD_MODEL_MEASUREMENTS_MODEL_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// True for text that begins as such a file does.
bool IsModelFile(absl::string_view text);

// Returns the models in file order, each as the `value` of a CallModel; messages are those without
// destination. InvalidArgument with file and line for anything else, for rows of both kinds, and for
// a key that comes twice.
absl::StatusOr<std::vector<CallModel>> ParseModelFile(absl::string_view text,
                                                      const std::string& name);

// Returns the models as such a file: polynomials as a table, others as typed rows. InvalidArgument
// for none, for types that the motif does not know and for polynomials of different terms.
absl::StatusOr<std::string> FormatModelFile(absl::Span<const CallModel> models);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MEASUREMENTS_MODEL_FILES_H_
