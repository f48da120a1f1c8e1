#include "cluster/probe/probe_packet.h"

#include "absl/numeric/int128.h"
#include "absl/strings/match.h"
#include "xla_profiler/base/content_hash.h"

namespace meridian {
namespace {

constexpr absl::string_view kMagic("MRCP\x02", 5);
constexpr size_t kDigestAt = 48;

void AppendNumber(uint64_t number, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(number >> (8 * i)));
}

uint64_t NumberAt(absl::string_view bytes, size_t at, int size) {
  uint64_t number = 0;
  for (int i = size - 1; i >= 0; --i) {
    number = number << 8 | static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)]);
  }
  return number;
}

uint64_t Digest(absl::string_view bytes, absl::string_view key) {
  ContentHash hash;
  hash.AddText(key);
  hash.AddText(bytes);
  return absl::Uint128Low64(hash.value());
}

}  // namespace

std::string EncodeProbePacket(const ProbePacket& packet, absl::string_view key) {
  std::string bytes(kMagic);
  AppendNumber(static_cast<uint64_t>(packet.kind), 1, &bytes);
  AppendNumber(0, 2, &bytes);
  AppendNumber(packet.src, 4, &bytes);
  AppendNumber(packet.dst, 4, &bytes);
  AppendNumber(packet.sequence, 8, &bytes);
  AppendNumber(packet.steps, 4, &bytes);
  AppendNumber(0, 4, &bytes);
  AppendNumber(static_cast<uint64_t>(packet.first_ns), 8, &bytes);
  AppendNumber(static_cast<uint64_t>(packet.second_ns), 8, &bytes);
  AppendNumber(Digest(bytes, key), 8, &bytes);
  return bytes;
}

std::optional<ProbePacket> DecodeProbePacket(absl::string_view bytes, absl::string_view key) {
  if (bytes.size() != kProbePacketBytes || !absl::StartsWith(bytes, kMagic)) return std::nullopt;
  if (NumberAt(bytes, kDigestAt, 8) != Digest(bytes.substr(0, kDigestAt), key)) return std::nullopt;
  const uint64_t kind = NumberAt(bytes, 5, 1);
  if (kind < 1 || kind > 3) return std::nullopt;
  ProbePacket packet;
  packet.kind = static_cast<ProbePacket::Kind>(kind);
  packet.src = static_cast<uint32_t>(NumberAt(bytes, 8, 4));
  packet.dst = static_cast<uint32_t>(NumberAt(bytes, 12, 4));
  packet.sequence = NumberAt(bytes, 16, 8);
  packet.steps = static_cast<uint32_t>(NumberAt(bytes, 24, 4));
  packet.first_ns = static_cast<int64_t>(NumberAt(bytes, 32, 8));
  packet.second_ns = static_cast<int64_t>(NumberAt(bytes, 40, 8));
  return packet;
}

}  // namespace meridian
