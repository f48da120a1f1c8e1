#include "cluster/probe/udp_socket.h"

#include <linux/net_tstamp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr size_t kMaxBytes = 256;

bool SetOption(int file, int level, int option, int value) {
  return setsockopt(file, level, option, &value, sizeof(value)) == 0;
}

// Returns the kernel's stamp among what came with a message. Both forms begin with a timespec.
std::optional<int64_t> StampOf(msghdr* message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET ||
        (part->cmsg_type != SCM_TIMESTAMPING && part->cmsg_type != SCM_TIMESTAMPNS) ||
        part->cmsg_len < CMSG_LEN(sizeof(timespec))) {
      continue;
    }
    timespec time;
    std::memcpy(&time, CMSG_DATA(part), sizeof(time));
    if (time.tv_sec > 0) return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<UdpSocket> UdpSocket::Open(int port, bool kernel_stamps) {
  UdpSocket udp;
  const std::string context = absl::StrCat("UDP port ", port);
  sockaddr_storage address = {};
  socklen_t size = sizeof(sockaddr_in6);
  udp.family_ = AF_INET6;
  udp.file_ = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  reinterpret_cast<sockaddr_in6&>(address).sin6_family = AF_INET6;
  reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(static_cast<uint16_t>(port));
  if (udp.file_ < 0 || !SetOption(udp.file_, IPPROTO_IPV6, IPV6_V6ONLY, 0)) {
    if (udp.file_ >= 0) close(udp.file_);
    udp.family_ = AF_INET;
    udp.file_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (udp.file_ < 0) return ErrnoToStatus(errno, context);
    // The port is at the same place in both.
    address.ss_family = AF_INET;
    size = sizeof(sockaddr_in);
  }
  if (bind(udp.file_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(udp.file_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return ErrnoToStatus(errno, context);
  }
  udp.port_ = ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
  constexpr int kReceived = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE;
  // Some kernels say only when packets came.
  if (kernel_stamps && !SetOption(udp.file_, SOL_SOCKET, SO_TIMESTAMPING,
                                  kReceived | SOF_TIMESTAMPING_TX_SOFTWARE)) {
    SetOption(udp.file_, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  }
  return udp;
}

UdpSocket::UdpSocket(UdpSocket&& other) noexcept
    : file_(std::exchange(other.file_, -1)), family_(other.family_), port_(other.port_) {}

UdpSocket::~UdpSocket() {
  if (file_ >= 0) close(file_);
}

absl::StatusOr<std::string> UdpSocket::Resolve(const std::string& host, int port) const {
  addrinfo hints = {};
  hints.ai_family = family_;
  hints.ai_socktype = SOCK_DGRAM;
  // IPv4 addresses too, in the form that an IPv6 socket takes; the first is what the system prefers.
  if (family_ == AF_INET6) hints.ai_flags = AI_V4MAPPED | AI_ALL;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) return NotFound(host, ": ", gai_strerror(error));
  const std::string address(reinterpret_cast<const char*>(found->ai_addr), found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

void UdpSocket::Send(absl::string_view bytes, const std::string& to) {
  (void)!sendto(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(to.data()), static_cast<socklen_t>(to.size()));
}

std::optional<UdpSocket::Datagram> UdpSocket::Receive() { return Receive(0); }

std::optional<UdpSocket::Datagram> UdpSocket::ReceiveSent() { return Receive(MSG_ERRQUEUE); }

std::optional<UdpSocket::Datagram> UdpSocket::Receive(int flags) {
  char bytes[kMaxBytes];
  alignas(cmsghdr) char control[512];
  sockaddr_storage from;
  iovec part = {bytes, sizeof(bytes)};
  msghdr message = {};
  message.msg_name = &from;
  message.msg_namelen = sizeof(from);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(file_, &message, flags | MSG_DONTWAIT);
  if (size < 0) return std::nullopt;
  Datagram datagram;
  datagram.bytes.assign(bytes, static_cast<size_t>(size));
  datagram.from.assign(reinterpret_cast<const char*>(&from), message.msg_namelen);
  datagram.stamp_ns = StampOf(&message);
  return datagram;
}

}  // namespace meridian
