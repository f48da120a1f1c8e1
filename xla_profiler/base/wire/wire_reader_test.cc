#include "xla_profiler/base/wire/wire_reader.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reads all fields; returns the final status.
absl::Status ReadAll(absl::string_view message, std::vector<WireField>* fields = nullptr,
                     int depth = kMaxWireDepth) {
  WireReader reader(message, message.data(), depth);
  WireField field;
  while (reader.Next(&field)) {
    if (fields != nullptr) fields->push_back(field);
  }
  return reader.status();
}

std::string Bytes(std::initializer_list<int> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

TEST(WireReaderTest, ReadsEveryWireType) {
  const std::string message = Bytes({0x08, 0x96, 0x01,                             // 1: varint 150
                                     0x12, 0x02, 'h',  'i',                        // 2: bytes
                                     0x1D, 0x78, 0x56, 0x34, 0x12,                 // 3: fixed32
                                     0x21, 1,    0,    0,    0,    0, 0, 0, 0x80,  // 4: fixed64
                                     0x2B, 0x08, 0x01, 0x2C});  // 5: group { 1: 1 }
  std::vector<WireField> fields;
  ASSERT_TRUE(ReadAll(message, &fields).ok());
  ASSERT_EQ(fields.size(), 5u);
  EXPECT_EQ(fields[0].scalar, 150u);
  EXPECT_EQ(fields[1].bytes, "hi");
  EXPECT_EQ(fields[2].scalar, 0x12345678u);
  EXPECT_EQ(fields[3].scalar, 0x8000000000000001u);
  EXPECT_EQ(fields[4].bytes, "\x08\x01");
  EXPECT_EQ(fields[4].number, 5u);
  std::string joined;
  for (const WireField& field : fields) joined += std::string(field.raw);
  EXPECT_EQ(joined, message);
}

TEST(WireReaderTest, NegativeInt64TakesTenBytes) {
  std::vector<WireField> fields;
  ASSERT_TRUE(
      ReadAll(Bytes({0x08, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}), &fields)
          .ok());
  EXPECT_EQ(static_cast<int64_t>(fields[0].scalar), -2);
}

TEST(WireReaderTest, VarintsOfEveryLengthAreReadWithAndWithoutRoomBehind) {
  for (int bit = 0; bit < 64; ++bit) {
    for (uint64_t wanted : {uint64_t{1} << bit, ~uint64_t{0} >> bit}) {
      std::string bytes;
      for (uint64_t rest = wanted;; rest >>= 7) {
        bytes.push_back(static_cast<char>(rest < 0x80 ? rest : rest | 0x80));
        if (rest < 0x80) break;
      }
      for (size_t room = 0; room < 10; ++room) {
        const std::string padded = bytes + std::string(room, '\xFF');
        uint64_t value = 0;
        const char* end = ParseVarint(padded.data(), padded.data() + padded.size(), &value);
        ASSERT_EQ(end, padded.data() + bytes.size());
        ASSERT_EQ(value, wanted);
      }
      uint64_t value = 0;
      ASSERT_EQ(ParseVarint(bytes.data(), bytes.data() + bytes.size() - 1, &value), nullptr);
    }
  }
}

struct BadCase {
  std::string message;
  std::string error;
};

TEST(WireReaderTest, ErrorsNameOffsetAndReason) {
  const BadCase cases[] = {
      {Bytes({0x08}), "offset 1: varint runs past the end"},
      {Bytes({0x08, 0x80, 0x80}), "offset 1: varint runs past the end"},
      {Bytes({0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}),
       "offset 1: varint is longer than 10 bytes"},
      {Bytes({0x08, 0x01, 0x12, 0x05, 'x'}), "offset 3: length runs past the end"},
      {Bytes({0x12, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}),
       "offset 1: length runs past the end"},
      {Bytes({0x12, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00}), "more than 5 bytes"},
      {Bytes({0x88, 0x80, 0x80, 0x80, 0x80, 0x00, 0x00}), "offset 0: field tag is longer"},
      {Bytes({0x00}), "offset 0: field number 0"},
      {Bytes({0x02, 0x00}), "offset 0: field number 0"},
      {Bytes({0x0E}), "offset 0: wire type"},
      {Bytes({0x0C}), "offset 0: group ends that never began"},
      {Bytes({0x0B, 0x14}), "offset 1: group ends with another"},
      {Bytes({0x0B, 0x08, 0x01}), "offset 1: group does not end"},
      {Bytes({0x09, 1, 2, 3}), "offset 1: fixed64"},
      {Bytes({0x0D, 1, 2, 3}), "offset 1: fixed32"},
  };
  for (const BadCase& bad : cases) {
    EXPECT_THAT(std::string(ReadAll(bad.message).message()), HasSubstr(bad.error));
  }
}

TEST(WireReaderTest, GroupsNestOnlyAsDeepAsAllowed) {
  const auto nested = [](int levels) {
    return std::string(levels, '\x0B') + std::string(levels, '\x0C');
  };
  EXPECT_TRUE(ReadAll(nested(kMaxWireDepth)).ok());
  EXPECT_THAT(std::string(ReadAll(nested(kMaxWireDepth + 1)).message()),
              HasSubstr("nest too deeply"));
  EXPECT_FALSE(ReadAll(nested(1), nullptr, 0).ok());
}

TEST(WireReaderTest, RepeatedVarintsComePackedAndUnpacked) {
  std::vector<WireField> fields;
  const std::string message = Bytes({0x32, 0x03, 0x01, 0x96, 0x01, 0x30, 0x07});
  ASSERT_TRUE(ReadAll(message, &fields).ok());
  std::vector<int64_t> values;
  for (const WireField& field : fields) {
    EXPECT_TRUE(ForEachRepeatedVarint(field, [&](int64_t v) { values.push_back(v); }));
  }
  EXPECT_THAT(values, ElementsAre(1, 150, 7));
}

TEST(WireReaderTest, CutPackedPayloadIsRefused) {
  std::vector<WireField> fields;
  const std::string message = Bytes({0x32, 0x02, 0x01, 0x96});
  ASSERT_TRUE(ReadAll(message, &fields).ok());
  EXPECT_FALSE(ForEachRepeatedVarint(fields[0], [](int64_t) {}));
}

}  // namespace
}  // namespace meridian
