// SPDX-License-Identifier: Apache-2.0
// Shapes of HLO values: "f32[4,8]" is an array, "(f32[4], bf16[2,2])" a tuple.
#ifndef XLA_PROFILER_HLO_HLO_SHAPE_H_
#define XLA_PROFILER_HLO_HLO_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Element types are XLA's PrimitiveType numbers. Returns e.g. "bf16" for 16, empty for a number
// that XLA does not define.
absl::string_view ElementTypeName(int64_t element_type);

// The reverse; nullopt for other names.
std::optional<int64_t> FindElementType(absl::string_view name);

struct HloShape {
  int64_t element_type = 0;
  std::vector<int64_t> dimensions;
  // From the layout; the element type's own width when 0.
  int64_t element_size_in_bits = 0;
  // The elements of a tuple. Nesting is as deep as messages may nest, at most kMaxWireDepth, so
  // recursion over shapes is bounded.
  std::vector<HloShape> tuple_shapes;

  // Decodes an xla.ShapeProto within the file that begins at `origin`.
  static absl::StatusOr<HloShape> Decode(absl::string_view bytes, const char* origin);

  // Returns the bytes that the value occupies: each array rounded up to whole bytes, tuples summed.
  // InvalidArgument when the type is unknown, a dimension unbounded or the size beyond 2^60.
  absl::StatusOr<int64_t> ByteSize() const;

  // Returns the shape as HLO text shows it, without layout.
  std::string ToString() const;
};

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_HLO_SHAPE_H_
