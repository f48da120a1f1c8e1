// SPDX-License-Identifier: Apache-2.0
// A UDP socket whose kernel says when packets came and left.
#ifndef CLUSTER_PROBE_UDP_SOCKET_H_
#define CLUSTER_PROBE_UDP_SOCKET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace meridian {

class UdpSocket {
 public:
  struct Datagram {
    // Cut off behind 256 bytes.
    std::string bytes;
    // The bytes of the sender's socket address.
    std::string from;
    // CLOCK_REALTIME; absent when the kernel does not say.
    std::optional<int64_t> stamp_ns;
  };

  // Listens at the port of all of the machine's addresses (0: any free port), without ever blocking.
  // `kernel_stamps` false is for comparison.
  static absl::StatusOr<UdpSocket> Open(int port, bool kernel_stamps);
  UdpSocket(UdpSocket&& other) noexcept;
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;
  ~UdpSocket();

  int file() const { return file_; }
  int port() const { return port_; }

  // Returns the bytes of the host's socket address. NotFound when the name has none.
  absl::StatusOr<std::string> Resolve(const std::string& host, int port) const;

  // What cannot be sent is lost, as packets are.
  void Send(absl::string_view bytes, const std::string& to);
  // Returns the next datagram that came, or nullopt when there is none.
  std::optional<Datagram> Receive();
  // Returns the next one that left, of which `bytes` holds the headers too: the end is what was sent.
  std::optional<Datagram> ReceiveSent();

 private:
  UdpSocket() = default;
  std::optional<Datagram> Receive(int flags);

  int file_ = -1;
  // AF_INET6, which serves IPv4 too, or AF_INET where there is no IPv6.
  int family_ = 0;
  int port_ = 0;
};

}  // namespace meridian

#endif  // CLUSTER_PROBE_UDP_SOCKET_H_
