#include "chakra_export/generate/testing/tiny_transformer.h"

namespace meridian {

TransformerOptions TinyTransformer() {
  TransformerOptions options;
  options.tensor_parallel = 2;
  options.data_parallel = 2;
  options.pipeline_parallel = 2;
  options.layers = 4;
  options.hidden = 64;
  options.sequence = 8;
  options.vocabulary = 128;
  options.batch = 12;
  options.microbatches = 3;
  options.tflops = 1;
  return options;
}

}  // namespace meridian
