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
//
// And those of generated motifs (workload_model/generate): typed rows may be NORMAL (most u, 1 for
// linear sizes, the coefficients of kMotifTerms) and POLYNOMIAL (powers of size and of nodes,
// coefficient; for each term), those behind "class 1" are of the second class of ranks, and times may
// say how long the FIRST time takes, the WHOLE with the call at its end, and the LAST as a multiple:
//
//                class 0
//                  1 2 1 CONSTANT 15
//                  1 2 1 FIRST CONSTANT 1020
//                  1 2 1 WHOLE CONSTANT 20
#ifndef WORKLOAD_MODEL_MEASUREMENTS_MODEL_FILES_H_
#define WORKLOAD_MODEL_MEASUREMENTS_MODEL_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "workload_model/workload_model.pb.h"

namespace meridian {

// The terms of a normal form in the order of a NORMAL row.
inline constexpr absl::string_view kMotifTerms[] = {"1", "lg n", "u^0.5", "u", "u^1.5"};

// True for text that begins as such a file does.
bool IsModelFile(absl::string_view text);

// Returns the models in file order, each as the `value` of a CallModel, of times with a WHOLE as its
// `compute`; messages are those without destination. The class of ranks is its number, empty for rows
// of all. InvalidArgument with file and line for anything else, for rows of both kinds, and for a key
// that comes twice.
absl::StatusOr<std::vector<CallModel>> ParseModelFile(absl::string_view text,
                                                      const std::string& name);

// Returns the models as such a file: polynomials as a table, others as typed rows. InvalidArgument
// for none, for types that the motif does not know, for polynomials of different terms and for models of
// several classes of ranks.
absl::StatusOr<std::string> FormatModelFile(absl::Span<const CallModel> models);

}  // namespace meridian

#endif  // WORKLOAD_MODEL_MEASUREMENTS_MODEL_FILES_H_
