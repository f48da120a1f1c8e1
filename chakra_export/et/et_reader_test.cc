#include "chakra_export/et/et_reader.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/testing/et_nodes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/base/testing/temporary_directory.h"
#include "xla_profiler/testing/damage.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::StatusCode kBad = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kTorn = absl::StatusCode::kDataLoss;

absl::StatusOr<std::vector<Node>> ReadAll(absl::string_view bytes) {
  ASSIGN_OR_RETURN(EtReader reader, EtReader::OverBytes(bytes, "w.0.et"));
  std::vector<Node> nodes;
  RETURN_IF_ERROR(reader.ForEachNode([&](const Node& node) {
    nodes.push_back(node);
    return absl::OkStatus();
  }));
  return nodes;
}

std::vector<uint64_t> Ids(const std::vector<Node>& nodes) {
  std::vector<uint64_t> ids;
  for (const Node& node : nodes) ids.push_back(node.id());
  return ids;
}

// A bit of everything that records may hold.
std::vector<Node> Workload() {
  std::vector<Node> nodes = {
      CompNode(1, 100),
      CollectiveNode(2, ChakraProtoMsg::ALL_GATHER, 1 << 20, {1}, "3"),
      SendNode(3, 0, 1, 4096, 7, {1, 2}),
      RecvNode(4, 1, 0, 4096, 8, {3}),
  };
  nodes[0].mutable_inputs()->set_shapes("[[2, 3]]");
  nodes[0].add_ctrl_deps(4);
  nodes[1].add_attr()->mutable_string_list()->add_values("text");
  nodes[1].add_attr()->mutable_double_list()->add_values(0.5);
  return nodes;
}

TEST(EtReaderTest, ReadsMetadataAndNodes) {
  const std::string bytes = EncodeEt(Workload());
  ASSERT_OK_AND_ASSIGN(EtReader reader, EtReader::OverBytes(bytes, "w.0.et"));
  EXPECT_EQ(reader.metadata().version(), "1.0.0");
  uint64_t offset = 8;  // a length byte, tag, length, "1.0.0"
  for (const Node& expected : Workload()) {
    Node node;
    EXPECT_THAT(reader.Next(&node), IsOkAndHolds(true));
    EXPECT_EQ(reader.node_offset(), offset);
    offset += 1 + expected.ByteSizeLong();
    EXPECT_EQ(node.SerializeAsString(), expected.SerializeAsString());
  }
  Node node;
  EXPECT_THAT(reader.Next(&node), IsOkAndHolds(false));
  EXPECT_EQ(offset, bytes.size());
}

TEST(EtReaderTest, GoesBackToNodes) {
  const std::string bytes = EncodeEt({CompNode(5, 1), CompNode(6, 1)});
  ASSERT_OK_AND_ASSIGN(EtReader reader, EtReader::OverBytes(bytes, "w.0.et"));
  Node node;
  EXPECT_OK(reader.Next(&node));
  EXPECT_OK(reader.Next(&node));
  const uint64_t second = reader.node_offset();
  EXPECT_GT(second, 8);
  reader.Rewind();
  EXPECT_THAT(reader.Next(&node), IsOkAndHolds(true));
  EXPECT_EQ(node.id(), 5);
  EXPECT_EQ(reader.node_offset(), 8);
  EXPECT_THAT(reader.NodeError("no"), StatusIs(kBad, "w.0.et: offset 8: no"));
  EXPECT_THAT(reader.NodeErrorAt(1, "no"),
              StatusIs(kBad, absl::StrCat("w.0.et: offset ", second, ": no")));
}

TEST(EtReaderTest, SaysAtWhichNodeAVisitorFailed) {
  const std::string bytes = EncodeEt({CompNode(5, 1), CompNode(6, 1)});
  ASSERT_OK_AND_ASSIGN(EtReader reader, EtReader::OverBytes(bytes, "w.0.et"));
  EXPECT_THAT(reader.ForEachNode([](const Node&) { return absl::InvalidArgumentError("no"); }),
              StatusIs(kBad, "w.0.et: offset 8: node 5: no"));
  // It goes on with the node after that, and leaves errors that are not about the node alone.
  EXPECT_THAT(reader.ForEachNode([](const Node& node) {
    return absl::ResourceExhaustedError(absl::StrCat("disk full at ", node.id()));
  }),
              StatusIs(absl::StatusCode::kResourceExhausted, "disk full at 6"));
}

TEST(EtReaderTest, ReportsProgress) {
  Node node = CompNode(1, 1);
  node.mutable_inputs()->set_values(std::string(400000, ' '));
  const std::string bytes = EncodeEt({node, node, node, node, CompNode(2, 1)});
  std::vector<uint64_t> reported;
  ASSERT_OK_AND_ASSIGN(EtReader reader, EtReader::OverBytes(bytes, "w.0.et", [&](uint64_t more) {
                         reported.push_back(more);
                       }));
  ASSERT_OK(reader.ForEachNode([](const Node&) { return absl::OkStatus(); }));
  // After a mebibyte, and at the end; the metadata are not counted.
  ASSERT_EQ(reported.size(), 2);
  EXPECT_GT(reported[0], 1200000);
  EXPECT_EQ(reported[0] + reported[1], bytes.size() - 8);
}

TEST(EtReaderTest, ATraceWithoutNodesIsEmpty) {
  EXPECT_THAT(ReadAll(EncodeEt({})), IsOkAndHolds(IsEmpty()));
}

TEST(EtReaderTest, RecordsOfLengthZeroAreNodes) {
  // Metadata without fields, then two nodes of defaults around one with an id.
  ASSERT_OK_AND_ASSIGN(const std::vector<Node> nodes,
                       ReadAll(absl::string_view("\0\0\2\x08\x05\0", 6)));
  EXPECT_THAT(Ids(nodes), ElementsAre(0, 5, 0));
}

TEST(EtReaderTest, UnknownFieldsStay) {
  Node with_unknown;
  // Field 99, length-delimited, "keep"; and an attribute with field 77, varint.
  const std::string bytes("\x9A\x06\x04keep\x52\x03\xE8\x04\x01", 12);
  ASSERT_TRUE(with_unknown.ParseFromString(bytes));
  ASSERT_OK_AND_ASSIGN(const std::vector<Node> nodes, ReadAll(EncodeEt({with_unknown})));
  ASSERT_EQ(nodes.size(), 1);
  EXPECT_THAT(nodes[0].SerializeAsString(), HasSubstr("keep"));
  EXPECT_EQ(nodes[0].SerializeAsString(), with_unknown.SerializeAsString());
}

TEST(EtReaderTest, DetectsGzipByContent) {
  const TemporaryDirectory directory;
  const std::string bytes = EncodeEt(Workload());
  for (const std::string& path :
       {directory.Write("plain.et.gz", bytes), directory.Write("packed.et", GzipText(bytes))}) {
    ASSERT_OK_AND_ASSIGN(EtReader reader, EtReader::Open(FileSystem::Posix(), path));
    EXPECT_EQ(reader.was_compressed(), path == directory.PathOf("packed.et"));
    Node node;
    EXPECT_THAT(reader.Next(&node), IsOkAndHolds(true));
    EXPECT_EQ(node.id(), 1);
  }
}

TEST(EtReaderTest, CutGzipDataIsAnError) {
  const TemporaryDirectory directory;
  const std::string packed = GzipText(EncodeEt(Workload()));
  const std::string path = directory.Write("w.0.et", packed.substr(0, packed.size() - 9));
  EXPECT_THAT(EtReader::Open(FileSystem::Posix(), path), StatusIs(kBad, HasSubstr("truncated")));
}

TEST(EtReaderTest, SaysWhereAndWhyAFileIsBroken) {
  EXPECT_THAT(ReadAll(""), StatusIs(kBad, HasSubstr("w.0.et: offset 0: the file is empty")));
  EXPECT_THAT(ReadAll("{\"schema\": \"1.1.1\"}"),
              StatusIs(kTorn,
                       "w.0.et: offset 0: the record has 123 bytes, the file ends after 18 "
                       "of them; it was cut short"));
  const std::string head = EncodeEt({});
  EXPECT_THAT(ReadAll(head + "\xFF"),
              StatusIs(kTorn, HasSubstr("offset 8: the file ends within the length of a record")));
  EXPECT_THAT(ReadAll(head + std::string(11, '\xFF')),
              StatusIs(kBad, "w.0.et: offset 8: the record has no valid length"));
  EXPECT_THAT(ReadAll(head + "\xFF\xFF\xFF\xFF\x0F"),
              StatusIs(kBad, HasSubstr("offset 8: the record's length is 4294967295, more than")));
  // A field that runs past its record: id without a value, a name of five bytes in two.
  EXPECT_THAT(ReadAll(head + "\x01\x08"), StatusIs(kBad, HasSubstr("offset 10: varint runs past")));
  EXPECT_THAT(ReadAll(head + "\x03\x12\x05x"), StatusIs(kBad, HasSubstr("offset 10: length runs")));
}

TEST(EtReaderTest, RecordsAreAsLongAsTheLimitAndNoLonger) {
  const std::string head = EncodeEt({});
  ASSERT_EQ(kMaxEtRecordBytes, uint64_t{1} << 26);
  // Nothing follows the lengths.
  EXPECT_THAT(ReadAll(head + "\x80\x80\x80\x20"),
              StatusIs(kTorn, HasSubstr("offset 8: the record has 67108864 bytes, the file ends")));
  EXPECT_THAT(ReadAll(head + "\x81\x80\x80\x20"),
              StatusIs(kBad, HasSubstr("the record's length is 67108865, more than 67108864;")));
}

TEST(EtReaderTest, TextsMustBeUtf8) {
  std::string bytes = EncodeEt({CompNode(1, 1)});
  const size_t at = bytes.find("is_cpu_op");
  bytes[at + 3] = '\xFF';
  EXPECT_THAT(ReadAll(bytes),
              StatusIs(kBad, absl::StrCat("w.0.et: offset ", at + 3, ": text is not UTF-8")));
}

TEST(EtReaderTest, AFirstRecordThatIsANodeIsRefused) {
  std::string bytes;
  AppendEtRecord(CompNode(1, 1), &bytes);
  EXPECT_THAT(ReadAll(bytes), StatusIs(kBad, HasSubstr("offset 0: the first record is a node")));
}

TEST(EtReaderTest, EveryCutIsAnErrorExceptBetweenRecords) {
  const std::vector<Node> nodes = Workload();
  const std::string bytes = EncodeEt(nodes);
  std::vector<size_t> boundaries;
  for (size_t count = 0; count <= nodes.size(); ++count) {
    boundaries.push_back(EncodeEt(std::vector<Node>(nodes.begin(), nodes.begin() + count)).size());
  }
  size_t whole_records = 0;
  for (size_t size = 1; size <= bytes.size(); ++size) {
    const absl::StatusOr<std::vector<Node>> read =
        ReadAll(absl::string_view(bytes).substr(0, size));
    if (whole_records < boundaries.size() && size == boundaries[whole_records]) {
      ASSERT_OK(read);
      EXPECT_EQ(read->size(), whole_records);
      ++whole_records;
    } else {
      ASSERT_THAT(read, StatusIs(kTorn, HasSubstr("w.0.et: offset "))) << size;
    }
  }
}

TEST(EtReaderTest, DamagedBytesNeverCrash) {
  const std::string bytes = EncodeEt(Workload());
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const absl::StatusOr<std::vector<Node>> read = ReadAll(Damage(bytes, random));
    if (read.ok()) continue;
    ++refused;
    ASSERT_THAT(std::string(read.status().message()), HasSubstr("w.0.et: offset "));
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace meridian
