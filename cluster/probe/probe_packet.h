// SPDX-License-Identifier: Apache-2.0
// What clock_probe sends: datagrams of 56 bytes, numbers with the lowest byte first. All kinds have
// one size, so that both ways of an exchange take equally long on a wire and an answer is never
// larger than what asked for it.
//
//   0 magic "MRCP"   4 version 2   5 kind   6 zero (2)   8 src   12 dst   16 sequence (8)
//   24 steps   28 zero (4)   32 first_ns (8)   40 second_ns (8)   48 digest (8)
//
// The digest is a keyed hash of the 48 bytes before it. It keeps strays and mistakes out: packets of
// another job, of another version, of a port scan. It is no protection from whoever has the key.
#ifndef CLUSTER_PROBE_PROBE_PACKET_H_
#define CLUSTER_PROBE_PROBE_PACKET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace meridian {

inline constexpr size_t kProbePacketBytes = 56;

struct ProbePacket {
  enum class Kind : uint8_t {
    // src asks dst; the times are 0.
    kQuestion = 1,
    // src answers: when the question came and when the answer left, as far as src knew by then.
    kAnswer = 2,
    // When the kernel says that the answer left.
    kSentTime = 3,
  };

  Kind kind = Kind::kQuestion;
  // Ids of the nodes that sent the packet and that it is for.
  uint32_t src = 0;
  uint32_t dst = 0;
  // The number of the question that it asks, answers or tells of.
  uint64_t sequence = 0;
  // How often the sender has seen its clock be set since it began.
  uint32_t steps = 0;
  // Unix times on the sender's clock.
  int64_t first_ns = 0;
  int64_t second_ns = 0;
};

std::string EncodeProbePacket(const ProbePacket& packet, absl::string_view key);

// Returns nullopt for whatever is not a packet of this version with this key.
std::optional<ProbePacket> DecodeProbePacket(absl::string_view bytes, absl::string_view key);

}  // namespace meridian

#endif  // CLUSTER_PROBE_PROBE_PACKET_H_
