#include "trace_alignment/probes/two_way_probes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/jsonl_row.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

using Bound = OffsetCorridor::Bound;
using ProbeStamps = std::tuple<int64_t, int64_t, int64_t>;

constexpr absl::string_view kProbeExample =
    R"({"src":0,"dst":1,"t1":1000,"t2":1300,"t3":1400,"t4":1500})";

constexpr double kPpm = 1e6;
// The year 2116: products of two differences of such times fit 127 bits.
constexpr int64_t kMaxTimeNs = int64_t{1} << 62;
// Clocks may be 92 days apart.
constexpr int64_t kMaxOffsetNs = 8000000000000000;

absl::StatusOr<TwoWayProbe> ReadProbe(const JsonlRow& row) {
  TwoWayProbe probe;
  ASSIGN_OR_RETURN(probe.src, row.Int64("src"));
  ASSIGN_OR_RETURN(probe.dst, row.Int64("dst"));
  ASSIGN_OR_RETURN(probe.src_sent_ns, row.Int64("t1"));
  ASSIGN_OR_RETURN(probe.dst_received_ns, row.Int64("t2"));
  ASSIGN_OR_RETURN(probe.dst_sent_ns, row.Int64("t3"));
  ASSIGN_OR_RETURN(probe.src_received_ns, row.Int64("t4"));
  if (probe.src == probe.dst) return row.Error("dst is src itself");
  for (int64_t time_ns :
       {probe.src_sent_ns, probe.dst_received_ns, probe.dst_sent_ns, probe.src_received_ns}) {
    if (time_ns < 0 || time_ns >= kMaxTimeNs) {
      return row.Error(absl::StrCat(time_ns, " is no Unix time in ns"));
    }
  }
  if (probe.src_received_ns < probe.src_sent_ns) return row.Error("t4 is before t1");
  if (probe.dst_sent_ns < probe.dst_received_ns) return row.Error("t3 is before t2");
  return probe;
}

Bound Negated(const Bound& bound) { return {bound.time_ns, -bound.offset_ns}; }

double RateBetween(const Bound& a, const Bound& b) {
  return static_cast<double>(b.offset_ns - a.offset_ns) /
         static_cast<double>(b.time_ns - a.time_ns);
}

// Whether b lies above the line from a to c; a is before c.
bool IsAbove(const Bound& a, const Bound& b, const Bound& c) {
  return absl::int128(b.offset_ns - a.offset_ns) * (c.time_ns - a.time_ns) >
         absl::int128(c.offset_ns - a.offset_ns) * (b.time_ns - a.time_ns);
}

// Returns the corners of the lower hull, in the order of time.
std::vector<Bound> LowerHull(std::vector<Bound> points) {
  std::sort(points.begin(), points.end(), [](const Bound& a, const Bound& b) {
    return std::tie(a.time_ns, a.offset_ns) < std::tie(b.time_ns, b.offset_ns);
  });
  std::vector<Bound> hull;
  for (const Bound& point : points) {
    if (!hull.empty() && hull.back().time_ns == point.time_ns) continue;
    while (hull.size() >= 2 &&
           !IsAbove(Negated(hull[hull.size() - 2]), Negated(hull.back()), Negated(point))) {
      hull.pop_back();
    }
    hull.push_back(point);
  }
  return hull;
}

// The hulls of the two kinds of bounds, both as lower hulls: that of the lower bounds upside down.
struct Hulls {
  std::vector<Bound> upper;
  std::vector<Bound> negated_lower;
};

struct RateRange {
  double min = 0;
  double max = 0;
};

// Returns the slopes of lines that pass above the lower bounds and below the upper ones; the smallest
// is above the largest when there is no line.
RateRange PossibleRates(const Hulls& hulls, double max_rate) {
  constexpr double kNoRate = std::numeric_limits<double>::infinity();
  RateRange rates = {-max_rate, max_rate};
  for (const Bound& negated : hulls.negated_lower) {
    const Bound lower = Negated(negated);
    for (const Bound& upper : hulls.upper) {
      if (lower.time_ns < upper.time_ns) {
        rates.max = std::min(rates.max, RateBetween(lower, upper));
      } else if (upper.time_ns < lower.time_ns) {
        rates.min = std::max(rates.min, RateBetween(upper, lower));
      } else if (upper.offset_ns < lower.offset_ns) {
        return {kNoRate, -kNoRate};
      }
    }
  }
  return rates;
}

// Returns the slopes at which the highest line below a hull may turn from one corner to the next.
std::vector<double> TurningRates(const std::vector<Bound>& hull, const RateRange& rates) {
  std::vector<double> turns = {rates.min, rates.max};
  for (size_t i = 0; i + 1 < hull.size(); ++i) {
    const double rate = RateBetween(hull[i], hull[i + 1]);
    if (rates.min < rate && rate < rates.max) turns.push_back(rate);
  }
  return turns;
}

// Returns the highest offset at time 0 of a line of that slope below the hull.
double HighestOffset(const std::vector<Bound>& hull, double rate) {
  double offset_ns = std::numeric_limits<double>::infinity();
  for (const Bound& corner : hull) {
    offset_ns = std::min(offset_ns, static_cast<double>(corner.offset_ns) -
                                        rate * static_cast<double>(corner.time_ns));
  }
  return offset_ns;
}

int64_t SumAsPicos(int64_t origin_ns, double rest_ps) {
  return SaturateToInt64(absl::int128(origin_ns) * 1000 + absl::int128(rest_ps));
}

// What the probes of one pair of nodes prove in one window.
struct WindowBounds {
  std::vector<Bound> upper;
  std::vector<Bound> lower;
};

// Adds what the probe says about the higher node's clock less the lower node's, by the lower's
// time. Each message was received no earlier than it was sent, whoever asked.
void AddBounds(const TwoWayProbe& probe, WindowBounds* bounds) {
  if (probe.src < probe.dst) {
    bounds->upper.push_back({probe.src_sent_ns, probe.dst_received_ns - probe.src_sent_ns});
    bounds->lower.push_back({probe.src_received_ns, probe.dst_sent_ns - probe.src_received_ns});
  } else {
    bounds->lower.push_back({probe.dst_received_ns, probe.src_sent_ns - probe.dst_received_ns});
    bounds->upper.push_back({probe.dst_sent_ns, probe.src_received_ns - probe.dst_sent_ns});
  }
}

int64_t MiddleNs(const WindowBounds& bounds) {
  int64_t first_ns = kMaxTimeNs;
  int64_t last_ns = 0;
  for (const std::vector<Bound>* side : {&bounds.upper, &bounds.lower}) {
    for (const Bound& bound : *side) {
      first_ns = std::min(first_ns, bound.time_ns);
      last_ns = std::max(last_ns, bound.time_ns);
    }
  }
  return first_ns + (last_ns - first_ns) / 2;
}

// Returns the middle of the corridor at that time: no other estimate has a smaller worst error.
ProbeEdge MiddleOf(const OffsetCorridor& corridor, int64_t time_ns) {
  ProbeEdge edge;
  edge.midpoint_src_ns = time_ns;
  const OffsetCorridor::Interval interval = corridor.At(time_ns);
  edge.offset_ps = static_cast<int64_t>((absl::int128(interval.low_ps) + interval.high_ps) / 2);
  edge.rate = (corridor.min_rate() + corridor.max_rate()) / 2;
  ProbeEdge::Bounds bounds;
  bounds.offset_ps = std::max(interval.high_ps - edge.offset_ps, edge.offset_ps - interval.low_ps);
  bounds.rate = (corridor.max_rate() - corridor.min_rate()) / 2;
  const double bound_ns = static_cast<double>(bounds.offset_ps + 1) / kPsPerNs;
  edge.weight = 1 / (bound_ns * bound_ns);
  edge.bounds = bounds;
  return edge;
}

}  // namespace

absl::StatusOr<std::vector<TwoWayProbe>> ParseTwoWayProbes(absl::string_view contents,
                                                           const std::string& name) {
  std::vector<TwoWayProbe> probes;
  // The other stamps and the line in the file, by (src, dst, t1).
  absl::flat_hash_map<ProbeStamps, std::pair<ProbeStamps, int64_t>> known;
  RETURN_IF_ERROR(
      ForEachJsonlRow(contents, name, kProbeExample, [&](const JsonlRow& row) -> absl::Status {
        ASSIGN_OR_RETURN(const TwoWayProbe probe, ReadProbe(row));
        const ProbeStamps fate = {probe.dst_received_ns, probe.dst_sent_ns, probe.src_received_ns};
        const auto [first, inserted] =
            known.try_emplace({probe.src, probe.dst, probe.src_sent_ns}, fate, row.line());
        if (inserted) {
          probes.push_back(probe);
        } else if (first->second.first != fate) {
          return row.Error(absl::StrCat("contradicts line ", first->second.second,
                                        ", which has the same src, dst and t1"));
        }
        return absl::OkStatus();
      }));
  return probes;
}

absl::StatusOr<OffsetCorridor> OffsetCorridor::Fit(std::vector<Bound> upper,
                                                   std::vector<Bound> lower, double max_rate) {
  MERIDIAN_CHECK(!upper.empty() && !lower.empty() && max_rate >= 0);
  OffsetCorridor corridor;
  corridor.origin_ = upper.front();
  // From here on relative to the origin, so that doubles hold small numbers.
  for (std::vector<Bound>* side : {&upper, &lower}) {
    for (Bound& bound : *side) {
      if (std::abs(bound.offset_ns) > kMaxOffsetNs) {
        return absl::OutOfRangeError("the clocks are more than 92 days apart");
      }
      bound.time_ns -= corridor.origin_.time_ns;
      bound.offset_ns -= corridor.origin_.offset_ns;
    }
  }
  for (Bound& bound : lower) bound = Negated(bound);
  const Hulls hulls = {LowerHull(std::move(upper)), LowerHull(std::move(lower))};
  RateRange rates = PossibleRates(hulls, max_rate);
  // Bounds that leave exactly one line may miss it by the rounding of doubles.
  constexpr double kRounding = 1e-15;
  if (rates.min > rates.max + kRounding) {
    return InvalidArgument("they contradict each other, or clocks drift by more than ",
                           max_rate * kPpm, " ppm");
  }
  rates.min = std::min(rates.min, rates.max);
  corridor.min_rate_ = rates.min;
  corridor.max_rate_ = rates.max;
  for (double rate : TurningRates(hulls.upper, rates)) {
    corridor.highest_.push_back({rate, HighestOffset(hulls.upper, rate)});
  }
  for (double negated : TurningRates(hulls.negated_lower, {-rates.max, -rates.min})) {
    corridor.lowest_.push_back({-negated, -HighestOffset(hulls.negated_lower, negated)});
  }
  return corridor;
}

OffsetCorridor::Interval OffsetCorridor::At(int64_t time_ns) const {
  const double since_origin_ns = static_cast<double>(absl::int128(time_ns) - origin_.time_ns);
  double low_ns = std::numeric_limits<double>::infinity();
  double high_ns = -std::numeric_limits<double>::infinity();
  for (const Line& line : lowest_) {
    low_ns = std::min(low_ns, line.offset_ns + line.rate * since_origin_ns);
  }
  for (const Line& line : highest_) {
    high_ns = std::max(high_ns, line.offset_ns + line.rate * since_origin_ns);
  }
  return {SumAsPicos(origin_.offset_ns, std::floor(low_ns * kPsPerNs)),
          SumAsPicos(origin_.offset_ns, std::ceil(high_ns * kPsPerNs))};
}

TwoWayEstimates EstimateEdges(const std::vector<TwoWayProbe>& probes,
                              const TwoWayOptions& options) {
  MERIDIAN_CHECK(options.window_ns > 0);
  // What is known, by lower node id, higher node id and window.
  absl::btree_map<std::tuple<int64_t, int64_t, int64_t>, WindowBounds> windows;
  for (const TwoWayProbe& probe : probes) {
    const int64_t time_ns = probe.src < probe.dst ? probe.src_sent_ns : probe.dst_received_ns;
    const int64_t round_id = time_ns / options.window_ns;
    AddBounds(probe,
              &windows[{std::min(probe.src, probe.dst), std::max(probe.src, probe.dst), round_id}]);
  }
  TwoWayEstimates estimates;
  for (auto& [key, bounds] : windows) {
    const auto& [src, dst, round_id] = key;
    const int64_t middle_ns = MiddleNs(bounds);
    const absl::StatusOr<OffsetCorridor> corridor = OffsetCorridor::Fit(
        std::move(bounds.upper), std::move(bounds.lower), options.max_drift_ppm / kPpm);
    if (!corridor.ok()) {
      estimates.notes.push_back(absl::StrCat("probes between nodes ", src, " and ", dst,
                                             " in window ", round_id,
                                             " are not used: ", corridor.status().message()));
      continue;
    }
    ProbeEdge edge = MiddleOf(*corridor, middle_ns);
    edge.src = src;
    edge.dst = dst;
    edge.round_id = round_id;
    estimates.edges.push_back(edge);
  }
  return estimates;
}

}  // namespace meridian
