#include "cluster/probe/probe_daemon.h"

#include <poll.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cluster/probe/probe_writer.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// The flag to stop is looked at so often.
constexpr int64_t kMaxSleepNs = 100000000;
// Asking for a name may take seconds in which nobody is answered, so it is done ever more seldom.
constexpr int64_t kFirstResolvePeriodNs = 2000000000;
constexpr int64_t kLongestResolvePeriodNs = 300000000000;
// When no neighbour's name is known by then, it is an error.
constexpr int64_t kResolveTimeoutNs = 60000000000;
// So many datagrams are read at once, and so many a second. A flood beyond that fills the socket's
// buffer, and the kernel drops it there.
constexpr int kMaxBatch = 64;
constexpr double kMaxDatagramsPerS = 20000;

class Daemon {
 public:
  Daemon(const ProbeDaemonOptions& options, UdpSocket& socket, ClockSource& clock,
         FileSystem& file_system, const std::atomic<bool>& stop)
      : options_(options),
        socket_(socket),
        clock_(clock),
        stop_(stop),
        host_(options.hosts[options.host]),
        start_(clock.Read()),
        partners_(Partners()),
        node_(NodeOptions(), start_, [this](const ProbePacket& packet) { Send(packet); }),
        file_(file_system, options.output_folder, absl::StrCat("probes_node", host_.first_node)) {}

  absl::StatusOr<ProbeCounts> Run() {
    ClockReading now = clock_.Read();
    const int64_t end_ns = start_.second_ns + options_.duration_ns;
    while (!stop_ && (options_.duration_ns == 0 || now.second_ns < end_ns)) {
      RETURN_IF_ERROR(ResolveMissing(now));
      node_.Wake(now);
      ReadSent();
      RETURN_IF_ERROR(WriteFinished(now, false));
      const bool may_read = RefillBudget(now);
      pollfd file = {socket_.file(), static_cast<short>(may_read ? POLLIN : 0), 0};
      now = clock_.Read();
      const int64_t wait_ns = node_.next_wake_ns() - now.second_ns;
      const timespec timeout = {
          0, static_cast<long>(std::clamp(wait_ns, int64_t{0}, kMaxSleepNs))};  // NOLINT: tv_nsec
      (void)ppoll(&file, 1, &timeout, nullptr);
      // Reading also takes an error off the socket, which would else wake the loop forever.
      if (file.revents != 0) {
        ReadSent();
        ReadReceived();
      }
      now = clock_.Read();
    }
    RETURN_IF_ERROR(WriteFinished(now, true));
    return node_.counts();
  }

 private:
  // Names that are not known yet, as of machines that just start, are asked for again and again; the
  // others are measured meanwhile.
  absl::Status ResolveMissing(const ClockReading& now) {
    if (now.second_ns < next_resolve_ns_) return absl::OkStatus();
    next_resolve_ns_ = std::numeric_limits<int64_t>::max();
    absl::Status failure;
    for (const ProbeHost& host : partners_) {
      std::string& address = addresses_[static_cast<uint32_t>(host.first_node)];
      if (!address.empty()) continue;
      absl::StatusOr<std::string> found = socket_.Resolve(host.name, host.port);
      if (found.ok()) {
        address = *std::move(found);
        continue;
      }
      failure = found.status();
      next_resolve_ns_ = now.second_ns + resolve_period_ns_;
    }
    resolve_period_ns_ = std::min(2 * resolve_period_ns_, kLongestResolvePeriodNs);
    const bool none = absl::c_all_of(addresses_, [](const auto& a) { return a.second.empty(); });
    const bool late = now.second_ns - start_.second_ns >= kResolveTimeoutNs;
    return none && late ? failure : absl::OkStatus();
  }

  // Returns the hosts that are asked or ask.
  std::vector<ProbeHost> Partners() const {
    const size_t num_hosts = options_.hosts.size();
    std::set<size_t> positions;
    for (const auto of : {&NeighboursOf, &AskersOf}) {
      for (const size_t i : of(options_.host, num_hosts, options_.seed)) positions.insert(i);
    }
    std::vector<ProbeHost> partners;
    for (const size_t i : positions) partners.push_back(options_.hosts[i]);
    return partners;
  }

  ProbeNodeOptions NodeOptions() const {
    ProbeNodeOptions options;
    options.node_id = static_cast<uint32_t>(host_.first_node);
    for (const ProbeHost& host : partners_) {
      options.partners.push_back(static_cast<uint32_t>(host.first_node));
    }
    for (const size_t i : NeighboursOf(options_.host, options_.hosts.size(), options_.seed)) {
      options.neighbours.push_back(static_cast<uint32_t>(options_.hosts[i].first_node));
    }
    options.seed = options_.seed;
    options.packets_per_s = options_.packets_per_s;
    return options;
  }

  void Send(const ProbePacket& packet) {
    const std::string& address = addresses_[packet.dst];
    if (!address.empty()) socket_.Send(EncodeProbePacket(packet, options_.key), address);
  }

  void ReadSent() {
    for (int i = 0; i < kMaxBatch; ++i) {
      const std::optional<UdpSocket::Datagram> datagram = socket_.ReceiveSent();
      if (!datagram.has_value()) return;
      const absl::string_view bytes = datagram->bytes;
      if (!datagram->stamp_ns.has_value() || bytes.size() < kProbePacketBytes) continue;
      const std::optional<ProbePacket> packet =
          DecodeProbePacket(bytes.substr(bytes.size() - kProbePacketBytes), options_.key);
      if (packet.has_value()) node_.Sent(*packet, clock_.FromRealtime(*datagram->stamp_ns));
    }
  }

  void ReadReceived() {
    for (int i = 0; i < kMaxBatch; ++i) {
      const std::optional<UdpSocket::Datagram> datagram = socket_.Receive();
      if (!datagram.has_value()) break;
      --budget_;
      const std::optional<ProbePacket> packet = DecodeProbePacket(datagram->bytes, options_.key);
      if (!packet.has_value()) {
        node_.CountForeign();
        continue;
      }
      // Begun after the datagram came, so its first reading can stand for the kernel's stamp.
      const ClockReading now = clock_.Read();
      int64_t received_ns = now.before_ns;
      if (datagram->stamp_ns.has_value()) {
        received_ns = std::min(received_ns, clock_.FromRealtime(*datagram->stamp_ns));
      }
      node_.Receive(*packet, received_ns, now);
    }
    ReadSent();
  }

  bool RefillBudget(const ClockReading& now) {
    const double passed_s = static_cast<double>(now.second_ns - budget_at_ns_) / 1e9;
    budget_ = std::min(kMaxDatagramsPerS / 10, budget_ + passed_s * kMaxDatagramsPerS);
    budget_at_ns_ = now.second_ns;
    return budget_ >= 1;
  }

  absl::Status WriteFinished(const ClockReading& now, bool all) {
    for (const ProbeWindow& window : node_.TakeWindows(now, all)) {
      RETURN_IF_ERROR(file_.Append(ProbeLines(host_, window, ProbeNodeOptions().window_ns)));
    }
    return absl::OkStatus();
  }

  const ProbeDaemonOptions& options_;
  UdpSocket& socket_;
  ClockSource& clock_;
  const std::atomic<bool>& stop_;
  const ProbeHost host_;
  const ClockReading start_;
  const std::vector<ProbeHost> partners_;
  ProbeNode node_;
  RotatingFile file_;
  int64_t next_resolve_ns_ = 0;
  int64_t resolve_period_ns_ = kFirstResolvePeriodNs;
  // Socket addresses of the partners, by node id; empty when they are not known.
  absl::flat_hash_map<uint32_t, std::string> addresses_;
  // How many datagrams may be read, and since when, on the second clock.
  double budget_ = 0;
  int64_t budget_at_ns_ = 0;
};

}  // namespace

absl::StatusOr<ProbeCounts> RunProbeDaemon(const ProbeDaemonOptions& options, UdpSocket& socket,
                                           ClockSource& clock, FileSystem& file_system,
                                           const std::atomic<bool>& stop) {
  MERIDIAN_CHECK(options.hosts.size() >= 2 && options.host < options.hosts.size());
  RETURN_IF_ERROR(file_system.CreateDirectories(options.output_folder));
  return Daemon(options, socket, clock, file_system, stop).Run();
}

}  // namespace meridian
