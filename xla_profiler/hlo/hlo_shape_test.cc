#include "xla_profiler/hlo/hlo_shape.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "gtest/gtest.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

xla::ShapeProto Array(int type, const std::vector<int64_t>& dimensions) {
  xla::ShapeProto shape;
  shape.set_element_type(static_cast<xla::PrimitiveType>(type));
  for (int64_t dimension : dimensions) shape.add_dimensions(dimension);
  return shape;
}

int64_t Bytes(const xla::ShapeProto& proto) { return ShapeBytes(proto).value_or(-1); }

TEST(HloShapeTest, EveryElementTypeHasItsNameAndWidth) {
  // Widths of the types whose name does not say it.
  const std::map<std::string, int64_t> special = {
      {"pred", 8}, {"tuple", 0}, {"opaque_type", 0}, {"token", 0}, {"buffer", 0}};
  const auto* types = xla::PrimitiveType_descriptor();
  for (int i = 1; i < types->value_count(); ++i) {
    const int number = types->value(i)->number();
    const std::string name = absl::AsciiStrToLower(std::string(types->value(i)->name()));
    SCOPED_TRACE(name);
    EXPECT_EQ(ElementTypeName(number), name == "opaque_type" ? "opaque" : name);
    const auto it = special.find(name);
    // "f8e4m3fn" -> 8, "bf16" -> 16.
    const int64_t bits = it != special.end()
                             ? it->second
                             : std::stoll(name.substr(name.find_first_of("0123456789")));
    // Eight elements have as many bytes as one has bits.
    EXPECT_EQ(Bytes(Array(number, {8})), bits);
  }
  for (int unknown : {0, 37, -1}) EXPECT_EQ(Bytes(Array(unknown, {8})), -1);
  EXPECT_EQ(ElementTypeName(37), "");
}

TEST(HloShapeTest, ArraysArePackedAndRoundedUp) {
  EXPECT_EQ(Bytes(Array(xla::F32, {4, 8})), 128);
  EXPECT_EQ(Bytes(Array(xla::F32, {})), 4);
  EXPECT_EQ(Bytes(Array(xla::PRED, {3})), 3);
  EXPECT_EQ(Bytes(Array(xla::C128, {2})), 32);
  EXPECT_EQ(Bytes(Array(xla::S4, {3})), 2);         // 12 bits
  EXPECT_EQ(Bytes(Array(xla::U1, {9})), 2);         // 9 bits
  EXPECT_EQ(Bytes(Array(xla::F6E2M3FN, {3})), 3);   // 18 bits
  EXPECT_EQ(Bytes(Array(xla::F4E2M1FN, {16})), 8);  // 64 bits
  EXPECT_EQ(Bytes(Array(xla::TOKEN, {})), 0);
  EXPECT_EQ(Bytes(Array(xla::OPAQUE_TYPE, {})), 0);
}

TEST(HloShapeTest, TheLayoutMayWidenElements) {
  xla::ShapeProto shape = Array(xla::S4, {3});
  shape.mutable_layout()->add_minor_to_major(0);
  EXPECT_EQ(Bytes(shape), 2);
  shape.mutable_layout()->set_element_size_in_bits(8);
  EXPECT_EQ(Bytes(shape), 3);
}

TEST(HloShapeTest, TuplesAreSummed) {
  xla::ShapeProto tuple;
  tuple.set_element_type(xla::TUPLE);
  EXPECT_EQ(Bytes(tuple), 0);
  *tuple.add_tuple_shapes() = Array(xla::F32, {4});
  *tuple.add_tuple_shapes() = Array(xla::BF16, {2, 2});
  xla::ShapeProto outer;
  outer.set_element_type(xla::TUPLE);
  *outer.add_tuple_shapes() = tuple;
  *outer.add_tuple_shapes() = Array(xla::S4, {1});
  EXPECT_EQ(Bytes(outer), 16 + 8 + 1);
  EXPECT_EQ(ShapeText(outer), "((f32[4], bf16[2,2]), s4[1])");
}

TEST(HloShapeTest, TextIsThatOfHlo) {
  EXPECT_EQ(ShapeText(Array(xla::F32, {4, 8})), "f32[4,8]");
  EXPECT_EQ(ShapeText(Array(xla::F32, {})), "f32[]");
  EXPECT_EQ(ShapeText(Array(xla::TOKEN, {})), "token[]");
  EXPECT_EQ(ShapeText(Array(xla::F32, {std::numeric_limits<int64_t>::min(), 2})), "f32[?,2]");
  EXPECT_EQ(ShapeText(Array(77, {2})), "type77[2]");
  xla::ShapeProto buffer;
  buffer.set_element_type(xla::BUFFER);
  *buffer.add_tuple_shapes() = Array(xla::F32, {2});
  EXPECT_EQ(ShapeText(buffer), "b(f32[2])");
  EXPECT_EQ(Bytes(buffer), 8);
}

TEST(HloShapeTest, SizesBeyondAllMemoryAreErrors) {
  const int64_t big = int64_t{1} << 40;
  EXPECT_THAT(ShapeBytes(Array(xla::F32, {big, big})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is beyond 2^60 bytes")));
  EXPECT_EQ(Bytes(Array(xla::F32, {big, big, 0})), 0);
  xla::ShapeProto tuple;
  tuple.set_element_type(xla::TUPLE);
  for (int i = 0; i < 100; ++i) *tuple.add_tuple_shapes() = Array(xla::U8, {int64_t{1} << 59});
  EXPECT_THAT(ShapeBytes(tuple), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(HloShapeTest, UnknownTypesAndUnboundedDimensionsHaveNoSize) {
  EXPECT_THAT(ShapeBytes(Array(99, {2})),
              StatusIs(absl::StatusCode::kInvalidArgument, "element type 99 is unknown"));
  EXPECT_THAT(ShapeBytes(Array(xla::F32, {-1})),
              StatusIs(absl::StatusCode::kInvalidArgument, "the size of f32[?] is not bounded"));
  EXPECT_THAT(ShapeBytes(xla::ShapeProto()), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(HloShapeTest, ElementTypesAreFoundByTheirNames) {
  EXPECT_EQ(FindElementType("f32"), xla::F32);
  EXPECT_EQ(FindElementType("bf16"), xla::BF16);
  EXPECT_EQ(FindElementType("f6e2m3fn"), xla::F6E2M3FN);
  EXPECT_EQ(FindElementType(""), std::nullopt);
  EXPECT_EQ(FindElementType("g7"), std::nullopt);
}

}  // namespace
}  // namespace meridian
