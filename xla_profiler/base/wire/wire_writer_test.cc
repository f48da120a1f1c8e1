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

TEST(WireWriterTest, CountingMeasuresWhatStringOutputWrites) {
  std::string out;
  StringOutput output(&out);
  CountingOutput counting;
  const auto write = [](auto* o) {
    WriteVarintField(3, 300, o);
    WriteBytesField(17, std::string(1000, 'x'), o);
  };
  write(&output);
  write(&counting);
  EXPECT_EQ(counting.size(), out.size());
}

}  // namespace
}  // namespace meridian
