// SPDX-License-Identifier: Apache-2.0
// A transformer whose costs can be worked out by hand.
#ifndef CHAKRA_EXPORT_GENERATE_TESTING_TINY_TRANSFORMER_H_
#define CHAKRA_EXPORT_GENERATE_TESTING_TINY_TRANSFORMER_H_

#include "chakra_export/generate/transformer_step.h"

namespace meridian {

// 2 x 2 x 2 ranks, two layers on each, three microbatches of 2 sequences of 8 tokens, t = 16;
// h = 64 and v = 128, so on a rank, at 1,000 operations in a nanosecond,
//   attention   (8*16*64*64 + 4*16*8*64) / 2 = (524288 + 32768) / 2 = 278528    279 ns
//   MLP         16*16*64*64 / 2 = 524288                                        524 ns
// and backward 557 ns and 1049 ns.
TransformerOptions TinyTransformer();

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_TESTING_TINY_TRANSFORMER_H_
