#include "cluster/probe/testing/simulated_hosts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/probe/probe_writer.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

SimulatedHosts::SimulatedHosts(std::vector<SimulatedClock> clocks, const PathModel& model,
                               int64_t start_ns, uint64_t seed, int64_t nodes_per_host)
    : clocks_(std::move(clocks)),
      model_(model),
      start_ns_(start_ns),
      random_(seed),
      outboxes_(clocks_.size()) {
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < clocks_.size(); ++i) {
    hosts_.push_back(
        {absl::StrCat("host", i), 0, static_cast<int64_t>(i) * nodes_per_host, nodes_per_host});
    ids.push_back(static_cast<uint32_t>(hosts_.back().first_node));
  }
  for (size_t i = 0; i < clocks_.size(); ++i) {
    ProbeNodeOptions options;
    options.node_id = ids[i];
    options.partners = ids;
    options.seed = seed;
    for (const size_t j : NeighboursOf(i, clocks_.size(), seed)) {
      options.neighbours.push_back(ids[j]);
    }
    nodes_.push_back(std::make_unique<ProbeNode>(
        options, ReadingAt(i, start_ns_),
        [this, i](const ProbePacket& packet) { outboxes_[i].push_back(packet); }));
  }
}

int64_t SimulatedHosts::Shown(size_t host, int64_t true_ns) const {
  const SimulatedClock& clock = clocks_[host];
  const int64_t since_ns = true_ns - start_ns_;
  const int64_t step_ns =
      clock.step_after_ns > 0 && since_ns >= clock.step_after_ns ? clock.step_ns : 0;
  return true_ns + clock.offset_ns + step_ns +
         std::llround(clock.drift_ppm * 1e-6 * static_cast<double>(since_ns));
}

int64_t SimulatedHosts::TrueTime(size_t host, int64_t shown_ns) const {
  const double drift = clocks_[host].drift_ppm * 1e-6;
  const int64_t moved_ns = shown_ns - clocks_[host].offset_ns;
  return moved_ns - std::llround(static_cast<double>(moved_ns - start_ns_) * drift / (1 + drift));
}

ClockReading SimulatedHosts::ReadingAt(size_t host, int64_t true_ns) const {
  constexpr int64_t kBracketNs = 60;
  return {Shown(host, true_ns), Shown(host, true_ns + kBracketNs),
          true_ns - start_ns_ + 1000000000 + kBracketNs / 2};
}

void SimulatedHosts::Deliver(size_t host, int64_t true_ns) {
  // Sending may make more to send.
  while (!outboxes_[host].empty()) {
    const std::vector<ProbePacket> outbox = std::exchange(outboxes_[host], {});
    for (const ProbePacket& packet : outbox) {
      true_ns += 3000 + static_cast<int64_t>(random_() % 3000);
      const size_t to = packet.dst / static_cast<size_t>(hosts_[0].nodes);
      const int64_t delay_ns = PathDelayNs(model_, host, to, true_ns, random_);
      if (delay_ns >= 0) arrivals_.push({true_ns + delay_ns, host, to, packet});
      nodes_[host]->Sent(packet, Shown(host, true_ns));
    }
  }
}

absl::Status SimulatedHosts::Run(int64_t duration_ns, const std::string& folder) {
  std::vector<RotatingFile> files;
  for (const ProbeHost& host : hosts_) {
    files.emplace_back(FileSystem::Posix(), folder, absl::StrCat("probes_node", host.first_node));
  }
  const auto write = [&](size_t host, const ClockReading& now, bool all) -> absl::Status {
    for (const ProbeWindow& window : nodes_[host]->TakeWindows(now, all)) {
      RETURN_IF_ERROR(
          files[host].Append(ProbeLines(hosts_[host], window, ProbeNodeOptions().window_ns)));
    }
    return absl::OkStatus();
  };
  // The second clock began one second before.
  std::vector<int64_t> wakes(hosts_.size(), start_ns_);
  int64_t now_ns = start_ns_;
  while (now_ns < start_ns_ + duration_ns) {
    const size_t host =
        static_cast<size_t>(std::min_element(wakes.begin(), wakes.end()) - wakes.begin());
    if (!arrivals_.empty() && arrivals_.top().due_ns < wakes[host]) {
      const Arrival arrival = arrivals_.top();
      arrivals_.pop();
      // The program runs some time after the packet came.
      now_ns = arrival.due_ns + 5000 + static_cast<int64_t>(random_() % 30000);
      nodes_[arrival.to]->Receive(arrival.packet, Shown(arrival.to, arrival.due_ns),
                                  ReadingAt(arrival.to, now_ns));
      Deliver(arrival.to, now_ns);
      continue;
    }
    now_ns = wakes[host];
    const ClockReading reading = ReadingAt(host, now_ns);
    nodes_[host]->Wake(reading);
    Deliver(host, now_ns);
    RETURN_IF_ERROR(write(host, reading, false));
    wakes[host] = std::max(now_ns + 1000, nodes_[host]->next_wake_ns() - 1000000000 + start_ns_);
  }
  for (size_t i = 0; i < hosts_.size(); ++i) {
    RETURN_IF_ERROR(write(i, ReadingAt(i, now_ns), true));
  }
  return absl::OkStatus();
}

}  // namespace meridian
