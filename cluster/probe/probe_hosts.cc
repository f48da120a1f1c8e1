#include "cluster/probe/probe_hosts.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr size_t kMaxHosts = 100000;
constexpr int64_t kMaxNodesPerHost = 4096;

// Reads "host", "host:port" or "[::1]:port"; a bare IPv6 address has no port.
bool ReadHostAndPort(absl::string_view text, ProbeHost* host) {
  absl::string_view port;
  if (absl::ConsumePrefix(&text, "[")) {
    const size_t end = text.find(']');
    if (end == absl::string_view::npos) return false;
    port = text.substr(end + 1);
    text = text.substr(0, end);
    if (!port.empty() && !absl::ConsumePrefix(&port, ":")) return false;
  } else if (absl::c_count(text, ':') == 1) {
    port = text.substr(text.find(':') + 1);
    text = text.substr(0, text.find(':'));
    if (port.empty()) return false;
  }
  host->name = std::string(text);
  if (port.empty()) return !text.empty();
  return !text.empty() && absl::SimpleAtoi(port, &host->port) && host->port > 0 &&
         host->port < 65536;
}

bool ReadHost(absl::string_view text, ProbeHost* host) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.empty() || !ReadHostAndPort(words[0], host)) return false;
  for (size_t i = 1; i < words.size(); ++i) {
    absl::string_view slots = words[i];
    // Other words of MPI's host files do not matter here.
    if (!absl::ConsumePrefix(&slots, "slots=")) continue;
    if (!absl::SimpleAtoi(slots, &host->nodes) || host->nodes < 1 ||
        host->nodes > kMaxNodesPerHost) {
      return false;
    }
  }
  return true;
}

absl::string_view ShortName(absl::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

absl::StatusOr<std::vector<ProbeHost>> ParseProbeHosts(absl::string_view contents,
                                                       absl::string_view file,
                                                       const ProbeHost& defaults) {
  std::vector<ProbeHost> hosts;
  int64_t line_number = 0, next_node = 0;
  for (absl::string_view line : absl::StrSplit(contents, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    for (absl::string_view text : absl::StrSplit(line, ',')) {
      ProbeHost host = defaults;
      if (!ReadHost(text, &host) || hosts.size() == kMaxHosts) {
        return InvalidArgument(file, ":", line_number, ": '", text,
                               "' is no host; expected e.g. gpu01, gpu01:7321 or gpu01 slots=8");
      }
      host.first_node = next_node;
      next_node += host.nodes;
      hosts.push_back(std::move(host));
    }
  }
  if (hosts.size() < 2) {
    return InvalidArgument(file, ": ", hosts.size(),
                           " host(s); clocks are compared between two or more");
  }
  return hosts;
}

absl::StatusOr<size_t> FindThisHost(const std::vector<ProbeHost>& hosts, int64_t index,
                                    const LauncherVariables& variables,
                                    absl::string_view machine_name) {
  std::string source = "--host_index";
  int64_t size = 0, launched = 0;
  if (index < 0 && absl::SimpleAtoi(variables.mpi_rank, &launched)) {
    if (absl::SimpleAtoi(variables.mpi_size, &size) && size != static_cast<int64_t>(hosts.size())) {
      return InvalidArgument("MPI started ", size, " daemons for ", hosts.size(),
                             " hosts; start one per host, e.g. mpirun --map-by ppr:1:node");
    }
    index = launched;
    source = "OMPI_COMM_WORLD_RANK";
  } else if (index < 0 && absl::SimpleAtoi(variables.slurm_node_id, &launched)) {
    index = launched;
    source = "SLURM_NODEID";
  }
  if (index >= 0) {
    if (index < static_cast<int64_t>(hosts.size())) return static_cast<size_t>(index);
    return InvalidArgument(source, " is ", index, ", but there are ", hosts.size(), " hosts");
  }
  std::vector<size_t> same, same_short;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].name == machine_name) same.push_back(i);
    if (ShortName(hosts[i].name) == ShortName(machine_name)) same_short.push_back(i);
  }
  const std::vector<size_t>& found = same.empty() ? same_short : same;
  if (found.size() == 1) return found[0];
  return InvalidArgument(found.size(), " of the hosts have this machine's name, ", machine_name,
                         "; say which it is with --host_index, from 0");
}

namespace {

// Returns the hosts at the distances that all ask at, forward in the ring or back.
std::vector<size_t> InRing(size_t host, size_t num_hosts, uint64_t seed, bool is_forward) {
  // Only the generator itself gives the same numbers with every library.
  std::mt19937_64 random(seed);
  const auto shuffle = [&](std::vector<size_t>* values) {
    for (size_t i = values->size(); i > 1; --i)
      std::swap((*values)[i - 1], (*values)[random() % i]);
  };
  std::vector<size_t> ring(num_hosts);
  absl::c_iota(ring, 0);
  shuffle(&ring);
  // Up to half around: what is farther is nearer the other way, and asked from there.
  std::vector<size_t> distances;
  for (size_t distance = 2; distance <= num_hosts / 2; ++distance) distances.push_back(distance);
  shuffle(&distances);
  size_t wanted = 1;
  while ((size_t{1} << wanted) < num_hosts) ++wanted;
  distances.resize(std::min(distances.size(), wanted - 1));
  distances.push_back(1);
  const size_t place = static_cast<size_t>(absl::c_find(ring, host) - ring.begin());
  std::vector<size_t> found;
  for (const size_t distance : distances) {
    found.push_back(ring[(place + (is_forward ? distance : num_hosts - distance)) % num_hosts]);
  }
  return found;
}

}  // namespace

std::vector<size_t> NeighboursOf(size_t host, size_t num_hosts, uint64_t seed) {
  return InRing(host, num_hosts, seed, /*is_forward=*/true);
}

std::vector<size_t> AskersOf(size_t host, size_t num_hosts, uint64_t seed) {
  return InRing(host, num_hosts, seed, /*is_forward=*/false);
}

}  // namespace meridian
