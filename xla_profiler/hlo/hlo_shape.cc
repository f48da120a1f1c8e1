#include "xla_profiler/hlo/hlo_shape.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

struct ElementType {
  const char* name;
  int64_t bits;
};

// Element types by their PrimitiveType number.
constexpr ElementType kElementTypes[] = {
    {"invalid", 0},    {"pred", 8},     {"s8", 8},       {"s16", 16},          {"s32", 32},
    {"s64", 64},       {"u8", 8},       {"u16", 16},     {"u32", 32},          {"u64", 64},
    {"f16", 16},       {"f32", 32},     {"f64", 64},     {"tuple", 0},         {"opaque", 0},
    {"c64", 64},       {"bf16", 16},    {"token", 0},    {"c128", 128},        {"f8e5m2", 8},
    {"f8e4m3fn", 8},   {"s4", 4},       {"u4", 4},       {"f8e4m3b11fnuz", 8}, {"f8e5m2fnuz", 8},
    {"f8e4m3fnuz", 8}, {"s2", 2},       {"u2", 2},       {"f8e4m3", 8},        {"f8e3m4", 8},
    {"s1", 1},         {"u1", 1},       {"f4e2m1fn", 4}, {"f8e8m0fnu", 8},     {"buffer", 0},
    {"f6e3m2fn", 6},   {"f6e2m3fn", 6},
};
constexpr int64_t kNumElementTypes = std::size(kElementTypes);
constexpr int64_t kMaxByteSize = int64_t{1} << 60;

bool IsKnown(int64_t element_type) { return element_type > 0 && element_type < kNumElementTypes; }

bool IsTuple(const xla::ShapeProto& shape) {
  return shape.element_type() == xla::TUPLE || shape.element_type() == xla::BUFFER;
}

absl::StatusOr<int64_t> ArrayByteSize(const xla::ShapeProto& shape) {
  if (!IsKnown(shape.element_type())) {
    return InvalidArgument("element type ", static_cast<int>(shape.element_type()), " is unknown");
  }
  const int64_t layout_bits = shape.layout().element_size_in_bits();
  int64_t bits = layout_bits > 0 ? layout_bits : kElementTypes[shape.element_type()].bits;
  bool overflow = false;
  for (int64_t dimension : shape.dimensions()) {
    if (dimension < 0) return InvalidArgument("the size of ", ShapeText(shape), " is not bounded");
    overflow |= __builtin_mul_overflow(bits, dimension, &bits);
  }
  const bool is_empty = absl::c_linear_search(shape.dimensions(), 0);
  if (is_empty) return 0;
  if (overflow) return InvalidArgument(ShapeText(shape), " is beyond 2^60 bytes");
  return bits / 8 + (bits % 8 != 0);
}

absl::Status AddByteSize(const xla::ShapeProto& shape, int64_t* total) {
  if (!IsTuple(shape)) {
    ASSIGN_OR_RETURN(const int64_t bytes, ArrayByteSize(shape));
    *total += bytes;
    if (*total > kMaxByteSize) return InvalidArgument("a tuple is beyond 2^60 bytes");
    return absl::OkStatus();
  }
  for (const xla::ShapeProto& element : shape.tuple_shapes()) {
    RETURN_IF_ERROR(AddByteSize(element, total));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view ElementTypeName(int64_t element_type) {
  return IsKnown(element_type) ? kElementTypes[element_type].name : "";
}

std::optional<xla::PrimitiveType> FindElementType(absl::string_view name) {
  if (name.empty()) return std::nullopt;
  for (int type = 0; type < kNumElementTypes; ++type) {
    if (kElementTypes[type].name == name) return static_cast<xla::PrimitiveType>(type);
  }
  return std::nullopt;
}

absl::StatusOr<int64_t> ShapeBytes(const xla::ShapeProto& shape) {
  int64_t total = 0;
  RETURN_IF_ERROR(AddByteSize(shape, &total));
  return total;
}

std::string ShapeText(const xla::ShapeProto& shape) {
  if (IsTuple(shape)) {
    const auto append_element = [](std::string* out, const xla::ShapeProto& element) {
      absl::StrAppend(out, ShapeText(element));
    };
    return absl::StrCat(shape.element_type() == xla::BUFFER ? "b(" : "(",
                        absl::StrJoin(shape.tuple_shapes(), ", ", append_element), ")");
  }
  const auto append_dimension = [](std::string* out, int64_t dimension) {
    absl::StrAppend(out, dimension < 0 ? "?" : absl::StrCat(dimension));
  };
  return absl::StrCat(IsKnown(shape.element_type())
                          ? std::string(ElementTypeName(shape.element_type()))
                          : absl::StrCat("type", static_cast<int>(shape.element_type())),
                      "[", absl::StrJoin(shape.dimensions(), ",", append_dimension), "]");
}

}  // namespace meridian
