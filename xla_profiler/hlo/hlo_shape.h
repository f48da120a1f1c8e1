// SPDX-License-Identifier: Apache-2.0
// Shapes of HLO values: "f32[4,8]" is an array, "(f32[4], bf16[2,2])" a tuple. Nesting is as deep as
// messages may nest, so recursion over shapes is bounded.
#ifndef XLA_PROFILER_HLO_HLO_SHAPE_H_
#define XLA_PROFILER_HLO_HLO_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "third_party/hlo/hlo.pb.h"

namespace meridian {

// Returns e.g. "bf16" for 16, empty for a number that XLA does not define.
absl::string_view ElementTypeName(int64_t element_type);
// The reverse; nullopt for other names.
std::optional<xla::PrimitiveType> FindElementType(absl::string_view name);

// Returns the bytes that the value occupies: each array rounded up to whole bytes, tuples summed.
// InvalidArgument when the type is unknown, a dimension unbounded or the size beyond 2^60.
absl::StatusOr<int64_t> ShapeBytes(const xla::ShapeProto& shape);

// Returns the shape as HLO text shows it, without layout.
std::string ShapeText(const xla::ShapeProto& shape);

}  // namespace meridian

#endif  // XLA_PROFILER_HLO_HLO_SHAPE_H_
