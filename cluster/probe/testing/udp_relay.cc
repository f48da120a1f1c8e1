#include "cluster/probe/testing/udp_relay.h"

#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace meridian {
namespace {

// What is late by more is lost.
constexpr int64_t kMaxLateNs = 15000;
// Some machines wake sleepers so late; the rest of a wait is spent awake.
constexpr int64_t kMaxWakeNs = 300000;

int64_t NowNs() {
  timespec time = {};
  clock_gettime(CLOCK_REALTIME, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

}  // namespace

int64_t PathDelayNs(const PathModel& model, size_t from, size_t to, int64_t now_ns,
                    std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  if (uniform(random) < model.loss) return -1;
  const double way = from < to ? 1 + model.asymmetry : 1 - model.asymmetry;
  double delay_ns = static_cast<double>(model.delay_ns) * way +
                    static_cast<double>(model.jitter_ns) * (2 * uniform(random) - 1);
  if (model.burst_period_ns > 0 && now_ns % model.burst_period_ns < model.burst_ns) {
    delay_ns += static_cast<double>(model.burst_delay_ns) * uniform(random);
  }
  return static_cast<int64_t>(delay_ns);
}

UdpRelay::UdpRelay(std::vector<int> node_ports, const PathModel& model, Observer observer)
    : node_ports_(std::move(node_ports)),
      nodes_(node_ports_.size()),
      model_(model),
      observer_(std::move(observer)) {
  for (size_t i = 0; i < nodes_ * nodes_; ++i) sockets_.push_back(*UdpSocket::Open(0, true));
  thread_ = std::thread([this] { Run(); });
}

UdpRelay::~UdpRelay() {
  stop_ = true;
  thread_.join();
}

void UdpRelay::Run() {
  // Without this the kernel wakes sleepers up to 50 us late.
  prctl(PR_SET_TIMERSLACK, 1);
  std::vector<std::string> addresses;
  for (const int port : node_ports_) addresses.push_back(*sockets_[0].Resolve("127.0.0.1", port));
  std::vector<pollfd> files;
  for (const UdpSocket& socket : sockets_) files.push_back({socket.file(), POLLIN, 0});
  while (!stop_) {
    int64_t wait_ns = 20000000;
    if (!waiting_.empty()) {
      wait_ns = std::clamp(waiting_.top().due_ns - NowNs() - kMaxWakeNs, int64_t{0}, wait_ns);
    }
    const timespec timeout = {0, static_cast<long>(wait_ns)};
    (void)ppoll(files.data(), files.size(), &timeout, nullptr);
    const int64_t now_ns = NowNs();
    for (size_t i = 0; i < files.size(); ++i) {
      if ((files[i].revents & POLLIN) == 0) continue;
      while (auto datagram = sockets_[i].Receive()) {
        if (observer_) observer_(datagram->bytes);
        const int64_t came_ns = datagram->stamp_ns.value_or(now_ns);
        const int64_t delay_ns = PathDelayNs(model_, i / nodes_, i % nodes_, came_ns, random_);
        if (delay_ns < 0) continue;
        waiting_.push({came_ns + delay_ns, i / nodes_, i % nodes_, std::move(datagram->bytes)});
      }
    }
    while (!waiting_.empty() && waiting_.top().due_ns <= NowNs()) {
      const Waiting& next = waiting_.top();
      UdpSocket& socket = sockets_[next.to * nodes_ + next.from];
      if (NowNs() - next.due_ns <= kMaxLateNs) socket.Send(next.bytes, addresses[next.to]);
      // When it left does not matter.
      while (socket.ReceiveSent().has_value()) continue;
      waiting_.pop();
    }
  }
}

}  // namespace meridian
