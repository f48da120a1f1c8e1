#include "xla_profiler/hlo/hlo_shape.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/hlo/hlo_wire.h"

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
constexpr int64_t kTuple = 13;
constexpr int64_t kBuffer = 34;
constexpr int64_t kMaxByteSize = int64_t{1} << 60;
// An empty element is two bytes in the file and a hundred in memory.
constexpr size_t kMaxTupleShapes = size_t{1} << 20;

bool IsKnown(int64_t element_type) { return element_type > 0 && element_type < kNumElementTypes; }

absl::Status DecodeLayout(absl::string_view bytes, const char* origin, int depth, HloShape* shape) {
  return ForEachField(bytes, origin, depth, [&](const WireField& field) {
    if (field.IsVarint(LayoutField::kElementSizeInBits)) {
      shape->element_size_in_bits = static_cast<int64_t>(field.scalar);
    }
    return absl::OkStatus();
  });
}

// `depth` is how many levels may still nest below the shape.
absl::Status DecodeShape(absl::string_view bytes, const char* origin, int depth, HloShape* shape) {
  WireReader reader(bytes, origin, depth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.number == ShapeField::kDimensions) {
      RETURN_IF_ERROR(AppendIntegers(field, origin, &shape->dimensions));
    } else if (field.IsVarint(ShapeField::kElementType)) {
      shape->element_type = static_cast<int32_t>(field.scalar);
    } else if (field.IsBytes(ShapeField::kLayout)) {
      RETURN_IF_ERROR(DecodeLayout(field.bytes, origin, depth - 1, shape));
    } else if (field.IsBytes(ShapeField::kTupleShapes)) {
      if (depth == 0) return WireError(field.bytes.data(), origin, "messages nest too deeply");
      if (shape->tuple_shapes.size() == kMaxTupleShapes) {
        return WireError(field.bytes.data(), origin, "a tuple has too many elements");
      }
      shape->tuple_shapes.emplace_back();
      RETURN_IF_ERROR(DecodeShape(field.bytes, origin, depth - 1, &shape->tuple_shapes.back()));
    }
  }
  return reader.status();
}

absl::StatusOr<int64_t> ArrayByteSize(const HloShape& shape) {
  if (!IsKnown(shape.element_type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("element type ", shape.element_type, " is unknown"));
  }
  int64_t bits = shape.element_size_in_bits > 0 ? shape.element_size_in_bits
                                                : kElementTypes[shape.element_type].bits;
  bool overflow = false;
  for (int64_t dimension : shape.dimensions) {
    if (dimension < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the size of ", shape.ToString(), " is not bounded"));
    }
    overflow |= __builtin_mul_overflow(bits, dimension, &bits);
  }
  const bool is_empty =
      std::find(shape.dimensions.begin(), shape.dimensions.end(), 0) != shape.dimensions.end();
  if (is_empty) return 0;
  if (overflow) {
    return absl::InvalidArgumentError(absl::StrCat(shape.ToString(), " is beyond 2^60 bytes"));
  }
  return bits / 8 + (bits % 8 != 0);
}

absl::Status AddByteSize(const HloShape& shape, int64_t* total) {
  if (shape.element_type != kTuple && shape.element_type != kBuffer) {
    ASSIGN_OR_RETURN(const int64_t bytes, ArrayByteSize(shape));
    *total += bytes;
    if (*total > kMaxByteSize) return absl::InvalidArgumentError("a tuple is beyond 2^60 bytes");
    return absl::OkStatus();
  }
  for (const HloShape& element : shape.tuple_shapes) RETURN_IF_ERROR(AddByteSize(element, total));
  return absl::OkStatus();
}

void AppendText(const HloShape& shape, std::string* text) {
  if (shape.element_type == kTuple || shape.element_type == kBuffer) {
    absl::StrAppend(text, shape.element_type == kBuffer ? "b(" : "(");
    absl::string_view separator;
    for (const HloShape& element : shape.tuple_shapes) {
      absl::StrAppend(text, separator);
      AppendText(element, text);
      separator = ", ";
    }
    absl::StrAppend(text, ")");
    return;
  }
  if (IsKnown(shape.element_type)) {
    absl::StrAppend(text, ElementTypeName(shape.element_type), "[");
  } else {
    absl::StrAppend(text, "type", shape.element_type, "[");
  }
  const auto append_dimension = [](std::string* out, int64_t dimension) {
    absl::StrAppend(out, dimension < 0 ? "?" : absl::StrCat(dimension));
  };
  absl::StrAppend(text, absl::StrJoin(shape.dimensions, ",", append_dimension), "]");
}

}  // namespace

absl::string_view ElementTypeName(int64_t element_type) {
  return IsKnown(element_type) ? kElementTypes[element_type].name : "";
}

std::optional<int64_t> FindElementType(absl::string_view name) {
  if (name.empty()) return std::nullopt;
  int64_t type = 0;
  for (const ElementType& candidate : kElementTypes) {
    if (candidate.name == name) return type;
    ++type;
  }
  return std::nullopt;
}

absl::StatusOr<HloShape> HloShape::Decode(absl::string_view bytes, const char* origin) {
  HloShape shape;
  RETURN_IF_ERROR(DecodeShape(bytes, origin, kHloInstructionDepth - 1, &shape));
  return shape;
}

absl::StatusOr<int64_t> HloShape::ByteSize() const {
  int64_t total = 0;
  RETURN_IF_ERROR(AddByteSize(*this, &total));
  return total;
}

std::string HloShape::ToString() const {
  std::string text;
  AppendText(*this, &text);
  return text;
}

}  // namespace meridian
