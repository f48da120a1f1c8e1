// SPDX-License-Identifier: Apache-2.0
// Made-up workloads of matrix products: one large product divided between ranks, and a training step
// of a recurrent network. docs/chakra_generate.md says what they compute and communicate.
#ifndef CHAKRA_EXPORT_GENERATE_MATRIX_WORKLOADS_H_
#define CHAKRA_EXPORT_GENERATE_MATRIX_WORKLOADS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "chakra_export/generate/device_model.h"
#include "chakra_export/generate/generated_workload.h"

namespace meridian {

// A product on a grid of ranks: each axis divides m, n or k. A rank has a part of both factors, and
// gathers the rest of the rows and columns that it needs; where k is divided, results are summed.
//
//   rank = row + rows * (column + columns * part of k)
struct GemmOptions {
  MatrixProduct product;
  // Ranks along m, n and k.
  std::vector<int64_t> grid;
  int64_t repeats = 1;
  int64_t element_bytes = 2;
  DeviceModel device;
};

// A training step of layers of LSTM cells. A cell of one time step waits for its own of the step
// before and for that of the layer below. Tensor parallel ranks divide the gates.
struct LstmOptions {
  int64_t tensor_parallel = 1;
  int64_t data_parallel = 1;
  int64_t layers = 2;
  int64_t hidden = 1024;
  int64_t sequence = 64;
  // Sequences of the step, over all data parallel copies.
  int64_t batch = 32;
  int64_t element_bytes = 2;
  DeviceModel device;
};

// InvalidArgument or OutOfRange for sizes that are out of range, do not divide each other or make a
// workload that is too large.
absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeGemm(const GemmOptions& options);
absl::StatusOr<std::unique_ptr<GeneratedWorkload>> MakeLstmStep(const LstmOptions& options);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_MATRIX_WORKLOADS_H_
