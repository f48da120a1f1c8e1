// SPDX-License-Identifier: Apache-2.0
// How long computation takes on a device: at so many operations per second, or by a hierarchical
// roofline, which knows how matrix products are cut into tiles.
//
//   units      each computes one tile of the result at a time; the last wave may leave some idle
//   memory 0   (e.g. L2) where tiles read their rows and columns from
//   memory 1   (e.g. HBM) where blocks that fit into memory 0 are read from, as often as needed
//
//     m x k times k x n, tiles of a x b:   m k ceil(n / b) + k n ceil(m / a) + m n   elements moved
//
// A product lasts as long as the slowest of these takes, with the tiles that suit it best.
#ifndef CHAKRA_EXPORT_GENERATE_DEVICE_MODEL_H_
#define CHAKRA_EXPORT_GENERATE_DEVICE_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "chakra_export/generate/generated_workload.h"

namespace meridian {

// So many products of m x k and k x n matrices, all at once.
struct MatrixProduct {
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
  int64_t count = 1;

  // In floating point, as it may not fit into 64 bits.
  double operations() const;
};

struct MemoryLevel {
  // Of all units together. What is in the outermost memory fits, whatever its size.
  double bytes = 0;
  double bytes_per_ns = 0;
};

struct DeviceModel {
  // What all units together reach in large products, in 10^12 operations per second.
  double tflops = 300;
  int64_t units = 1;
  // Sides of tiles.
  std::vector<int64_t> tiles = {64, 128, 256};
  // What each kernel takes besides.
  double launch_ns = 0;
  // The innermost first. Empty: computation takes its operations and nothing else.
  std::vector<MemoryLevel> memories;
};

// Parses YAML; errors name source and key.
//
//   {tflops: 50, units: 132, tiles: [64, 128], launch_us: 5,
//    memories: [{size: 50MB, gb_per_s: 5500}, {gb_per_s: 4800}]}
absl::StatusOr<DeviceModel> ParseDeviceModel(absl::string_view yaml, absl::string_view source);

double ProductNs(const DeviceModel& device, const MatrixProduct& product, int64_t element_bytes);

// Returns how long work takes of which the products are a part.
int64_t DurationNs(const DeviceModel& device, const WorkCost& cost,
                   absl::Span<const MatrixProduct> products, int64_t element_bytes);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_DEVICE_MODEL_H_
