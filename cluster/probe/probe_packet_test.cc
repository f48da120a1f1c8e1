#include "cluster/probe/probe_packet.h"

#include "gtest/gtest.h"

namespace meridian {
namespace {

ProbePacket Example() {
  ProbePacket packet;
  packet.kind = ProbePacket::Kind::kAnswer;
  packet.src = 3;
  packet.dst = 4000000000;
  packet.sequence = uint64_t{1} << 63;
  packet.steps = 7;
  packet.first_ns = 1790000000000000001;
  packet.second_ns = -5;
  return packet;
}

TEST(ProbePacketTest, SurvivesTheWire) {
  const std::string bytes = EncodeProbePacket(Example(), "key");
  ASSERT_EQ(bytes.size(), kProbePacketBytes);
  const std::optional<ProbePacket> packet = DecodeProbePacket(bytes, "key");
  ASSERT_TRUE(packet.has_value());
  EXPECT_EQ(packet->kind, ProbePacket::Kind::kAnswer);
  EXPECT_EQ(packet->src, 3u);
  EXPECT_EQ(packet->dst, 4000000000u);
  EXPECT_EQ(packet->sequence, uint64_t{1} << 63);
  EXPECT_EQ(packet->steps, 7u);
  EXPECT_EQ(packet->first_ns, 1790000000000000001);
  EXPECT_EQ(packet->second_ns, -5);
}

TEST(ProbePacketTest, AnythingElseIsForeign) {
  const std::string bytes = EncodeProbePacket(Example(), "key");
  EXPECT_FALSE(DecodeProbePacket(bytes, "other key").has_value());
  EXPECT_FALSE(DecodeProbePacket("", "key").has_value());
  EXPECT_FALSE(DecodeProbePacket(bytes + "x", "key").has_value());
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(DecodeProbePacket(bytes.substr(0, i), "key").has_value()) << i;
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(DecodeProbePacket(changed, "key").has_value()) << i;
  }
}

TEST(ProbePacketTest, UnknownKindsAreForeignEvenWithTheKey) {
  ProbePacket packet = Example();
  packet.kind = static_cast<ProbePacket::Kind>(9);
  EXPECT_FALSE(DecodeProbePacket(EncodeProbePacket(packet, "key"), "key").has_value());
}

}  // namespace
}  // namespace meridian
