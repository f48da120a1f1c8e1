// SPDX-License-Identifier: Apache-2.0
// What motifs of SST's Ember have in common; $WORDS$ are replaced by what a workload has of its own.
#ifndef WORKLOAD_MODEL_GENERATE_EMBER_MOTIF_TEXT_H_
#define WORKLOAD_MODEL_GENERATE_EMBER_MOTIF_TEXT_H_

namespace meridian {

// The C++ of the generator, and the Python that SST runs.
extern const char kEmberMotifSource[];
extern const char kEmberMotifSdl[];

}  // namespace meridian

#endif  // WORKLOAD_MODEL_GENERATE_EMBER_MOTIF_TEXT_H_
