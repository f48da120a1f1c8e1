#include "xla_profiler/base/wire/wire_writer.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(WireWriterTest, VarintSizeAgreesWithTheEncodingAtEveryBit) {
  for (int bit = 0; bit < 64; ++bit) {
    for (uint64_t value : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1, ~uint64_t{0} >> bit}) {
      std::string out;
      StringOutput output(&out);
      output.Varint(value);
      EXPECT_EQ(static_cast<int>(out.size()), VarintSize(value)) << value;
    }
  }
}

TEST(WireWriterTest, ReaderReadsWhatTheWriterWrote) {
  std::string out;
  StringOutput output(&out);
  WriteVarintField(1, static_cast<uint64_t>(int64_t{-5}), &output);
  WriteBytesField(200, "payload", &output);
  WireReader reader(out, out.data(), kMaxWireDepth);
  WireField field;
  ASSERT_TRUE(reader.Next(&field));
  EXPECT_TRUE(field.IsVarint(1));
  EXPECT_EQ(static_cast<int64_t>(field.scalar), -5);
  ASSERT_TRUE(reader.Next(&field));
  EXPECT_TRUE(field.IsBytes(200));
  EXPECT_EQ(field.bytes, "payload");
  EXPECT_FALSE(reader.Next(&field));
  EXPECT_TRUE(reader.status().ok());
}

TEST(WireWriterTest, AllOutputsGetTheSame) {
  std::string out;
  StringOutput output(&out);
  WireBuffer buffer;
  CountingOutput counting;
  const auto write = [](auto* o) {
    for (uint64_t i = 0; i < 100; ++i) WriteVarintField(3, i << (i % 64), o);
    WriteBytesField(17, std::string(1000, 'x'), o);
    WriteBytesField(18, "", o);
  };
  write(&output);
  write(&counting);
  buffer.Raw("");
  EXPECT_EQ(buffer.bytes(), "");
  write(&buffer);
  EXPECT_EQ(buffer.bytes(), out);
  EXPECT_EQ(counting.size(), out.size());
  buffer.clear();
  EXPECT_EQ(buffer.size(), 0u);
}

}  // namespace
}  // namespace meridian
