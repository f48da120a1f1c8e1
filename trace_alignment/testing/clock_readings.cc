#include "trace_alignment/testing/clock_readings.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/testing/xplane_utils.h"

namespace meridian {
namespace {

// Rates are taken over so much time on either side.
constexpr int64_t kRateSpanPs = 1'000'000'000;
// From receiving a probe to answering it.
constexpr int64_t kAnswerPs = 5'000 * kPsPerNs;

// True times from one period before the run to one after it.
std::vector<int64_t> Instants(const SyntheticCluster& cluster, int64_t period_ns) {
  MERIDIAN_CHECK(period_ns > 0);
  const int64_t period_ps = period_ns * kPsPerNs;
  std::vector<int64_t> instants;
  for (int64_t true_ps = -period_ps; true_ps < cluster.end_ps() + 2 * period_ps;
       true_ps += period_ps) {
    instants.push_back(true_ps);
  }
  return instants;
}

// The Unix time that a node's host shows.
int64_t HostNs(const SyntheticCluster& cluster, int64_t node, int64_t true_ps) {
  return cluster.options().start_ns + FloorToNs(cluster.HostPs(node, true_ps));
}

int64_t TracerNs(const SyntheticCluster& cluster, int64_t node, int64_t true_ps) {
  return FloorToNs(cluster.TracerPs(node, true_ps));
}

std::string Header(const ClusterNode& node, int64_t node_id) {
  return absl::StrCat("\"node_id\":", node_id, ",\"start_walltime_ns\":", node.start_walltime_ns,
                      ",\"start_gpu_ns\":", node.start_gpu_ns);
}

// Exact to the picosecond, e.g. "-750.800".
std::string Nanos(int64_t ps) {
  return absl::StrFormat("%s%d.%03d", ps < 0 ? "-" : "", std::abs(ps) / kPsPerNs,
                         std::abs(ps) % kPsPerNs);
}

// How much faster a node's clock runs than another's around a time, as a fraction.
double RateBetween(const SyntheticCluster& cluster, int64_t src, int64_t dst, int64_t true_ps) {
  const auto elapsed_ps = [&](int64_t node) {
    return cluster.HostPs(node, true_ps + kRateSpanPs) -
           cluster.HostPs(node, true_ps - kRateSpanPs);
  };
  return static_cast<double>(elapsed_ps(dst) - elapsed_ps(src)) /
         static_cast<double>(elapsed_ps(src));
}

std::vector<int64_t> Candidates(int64_t node, int64_t nodes) {
  std::vector<int64_t> candidates;
  for (int64_t step : {int64_t{1}, 1 + nodes / 3}) {
    const int64_t other = (node + step) % nodes;
    if (other != node && std::count(candidates.begin(), candidates.end(), other) == 0) {
      candidates.push_back(other);
    }
  }
  return candidates;
}

// The nodes that a node asks.
std::vector<int64_t> Asked(int64_t node, int64_t nodes) {
  std::vector<int64_t> asked;
  for (int64_t other : Candidates(node, nodes)) {
    const std::vector<int64_t> back = Candidates(other, nodes);
    if (other > node || std::count(back.begin(), back.end(), node) == 0) asked.push_back(other);
  }
  return asked;
}

// What a message takes at least, each way.
struct Link {
  int64_t forth_ns = 0;
  int64_t back_ns = 0;
};

Link LinkBetween(const SyntheticCluster& cluster, const ProbeOptions& options, int64_t src,
                 int64_t dst) {
  std::mt19937_64 random(cluster.options().seed * 1'000'003 + src * 4096 + dst);
  const int64_t longer_ns = Draw(-options.max_asymmetry_ns, options.max_asymmetry_ns, &random);
  return {options.min_delay_ns + std::max<int64_t>(0, longer_ns),
          options.min_delay_ns + std::max<int64_t>(0, -longer_ns)};
}

std::string WindowEdge(const SyntheticCluster& cluster, const ProbeOptions& options, int64_t src,
                       int64_t dst, int64_t start_ps, int64_t middle_ps) {
  const Link link = LinkBetween(cluster, options, src, dst);
  const int64_t beta_ps = cluster.HostPs(dst, start_ps) - cluster.HostPs(src, start_ps) +
                          (link.forth_ns - link.back_ns) * kPsPerNs / 2;
  return absl::StrFormat("{\"dst\":%d,\"alpha\":%.10f,\"beta\":%d,\"pairs\":%d,\"lost\":0}", dst,
                         RateBetween(cluster, src, dst, middle_ps), beta_ps / kPsPerNs,
                         options.probes_per_window);
}

}  // namespace

std::string SnapshotPairsJsonl(const SyntheticCluster& cluster, int64_t node,
                               const SnapshotOptions& options) {
  const ClusterNode& clocks = cluster.node(node);
  std::mt19937_64 random(cluster.options().seed * 1'000'003 + node);
  std::string out = absl::StrCat("{\"meta\":true,", Header(clocks, node),
                                 ",\"absolute\":", options.absolute ? "true" : "false", "}\n");
  const int64_t sys_base_ns = options.absolute ? 0 : clocks.start_walltime_ns;
  const int64_t tracer_base_ns = options.absolute ? 0 : clocks.start_gpu_ns;
  for (int64_t true_ps : Instants(cluster, options.period_ns)) {
    const auto sys_ns = [&](int64_t at_ps) { return HostNs(cluster, node, at_ps) - sys_base_ns; };
    if (options.max_bracket_ns == 0) {
      absl::StrAppend(&out, "{\"sys_ns\":", sys_ns(true_ps));
    } else {
      const int64_t half_ns = options.max_bracket_ns / 2;
      absl::StrAppend(&out,
                      "{\"sys_before_ns\":", sys_ns(true_ps - Draw(1, half_ns, &random) * kPsPerNs),
                      ",\"sys_after_ns\":", sys_ns(true_ps + Draw(1, half_ns, &random) * kPsPerNs));
    }
    absl::StrAppend(&out, ",\"tracer_ns\":", TracerNs(cluster, node, true_ps) - tracer_base_ns,
                    "}\n");
  }
  return out;
}

void AddSnapshotsPlane(const SyntheticCluster& cluster, int64_t node, int64_t period_ns,
                       XSpaceProto* profile) {
  XPlaneBuilder plane(FindOrAddMutablePlaneWithName(profile, kSnapshotsPlaneName));
  XLineBuilder line = plane.GetOrCreateLine(0);
  line.SetName("Clock Snapshots");
  const int64_t session_start_ns = HostNs(cluster, node, cluster.node(node).session_start_ps);
  for (int64_t true_ps : Instants(cluster, period_ns)) {
    const int64_t sys_ns = HostNs(cluster, node, true_ps);
    if (line.NumEvents() == 0) line.SetTimestampNs(sys_ns - session_start_ns);
    XEventBuilder event = line.AddEvent(*plane.GetOrCreateEventMetadata("Snapshot"));
    event.SetOffsetPs((sys_ns - session_start_ns - line.TimestampNs()) * kPsPerNs);
    event.AddStatValue(*plane.GetOrCreateStatMetadata(StatType::kRocmNs),
                       static_cast<uint64_t>(TracerNs(cluster, node, true_ps)));
  }
}

std::string OffsetsJsonl(const SyntheticCluster& cluster, const OffsetsOptions& options) {
  const int64_t nodes = cluster.options().nodes;
  const int64_t half_window_ps = options.period_ns * kPsPerNs / 4;
  std::string out;
  if (!options.legacy) {
    absl::StrAppend(&out, "{\"meta\":true,\"nodes\":[");
    for (int64_t n = 0; n < nodes; ++n) {
      absl::StrAppend(&out, n == 0 ? "{" : ",{", Header(cluster.node(n), n), "}");
    }
    absl::StrAppend(&out, "]}\n");
  }
  int64_t round = 0;
  for (int64_t true_ps : Instants(cluster, options.period_ns)) {
    for (int64_t n = 0; n < nodes; ++n) {
      const std::string offset = Nanos(cluster.OffsetPs(n, true_ps));
      if (options.legacy) {
        absl::StrAppend(&out, "{\"node_id\":", n,
                        ",\"midpoint_sys_ns\":", HostNs(cluster, 0, true_ps),
                        ",\"offset_ns\":", offset, "}\n");
        continue;
      }
      absl::StrAppendFormat(
          &out,
          "{\"round_id\":%d,\"window_id\":%d,\"window_start_ns\":%d,\"window_end_ns\":%d,"
          "\"node_id\":%d,\"offset_ns\":%s,\"drift_ppm\":%.6f,\"residual\":0,"
          "\"reachable\":true,\"converged\":true}\n",
          round, round, HostNs(cluster, n, true_ps - half_window_ps),
          HostNs(cluster, n, true_ps + half_window_ps), n, offset,
          RateBetween(cluster, 0, n, true_ps) * 1e6);
    }
    ++round;
  }
  return out;
}

std::string ProbeWindowsJsonl(const SyntheticCluster& cluster, int64_t node,
                              const ProbeOptions& options) {
  std::string out = absl::StrCat("{\"meta\":true,", Header(cluster.node(node), node), "}\n");
  int64_t round = 0;
  for (int64_t start_ps : Instants(cluster, options.window_ns)) {
    const int64_t middle_ps = start_ps + options.window_ns * kPsPerNs / 2;
    const int64_t end_ps = start_ps + options.window_ns * kPsPerNs;
    absl::StrAppend(&out, "{\"window_start_ns\":", HostNs(cluster, node, start_ps),
                    ",\"window_end_ns\":", HostNs(cluster, node, end_ps), ",\"window_id\":", round,
                    ",\"round_id\":", round, ",\"node_id\":", node, ",\"edges\":[");
    const char* separator = "";
    for (int64_t other : Asked(node, cluster.options().nodes)) {
      absl::StrAppend(&out, separator,
                      WindowEdge(cluster, options, node, other, start_ps, middle_ps));
      separator = ",";
    }
    absl::StrAppend(&out, "]}\n");
    ++round;
  }
  return out;
}

std::string TwoWayProbesJsonl(const SyntheticCluster& cluster, const ProbeOptions& options) {
  std::mt19937_64 random(cluster.options().seed);
  std::string out;
  const int64_t gap_ns = options.window_ns / options.probes_per_window;
  for (int64_t node = 0; node < cluster.options().nodes; ++node) {
    for (int64_t other : Asked(node, cluster.options().nodes)) {
      const Link link = LinkBetween(cluster, options, node, other);
      const auto travel_ps = [&](int64_t least_ns) {
        return (least_ns + Draw(0, options.max_queue_ns, &random)) * kPsPerNs;
      };
      for (int64_t sent_ps : Instants(cluster, gap_ns)) {
        const int64_t received_ps = sent_ps + travel_ps(link.forth_ns);
        const int64_t answered_ps = received_ps + kAnswerPs;
        const int64_t back_ps = answered_ps + travel_ps(link.back_ns);
        absl::StrAppend(&out, "{\"src\":", node, ",\"dst\":", other,
                        ",\"t1\":", HostNs(cluster, node, sent_ps),
                        ",\"t2\":", HostNs(cluster, other, received_ps),
                        ",\"t3\":", HostNs(cluster, other, answered_ps),
                        ",\"t4\":", HostNs(cluster, node, back_ps), "}\n");
      }
    }
  }
  return out;
}

}  // namespace meridian
