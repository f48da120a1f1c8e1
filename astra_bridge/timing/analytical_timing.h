// SPDX-License-Identifier: Apache-2.0
// Times comm edges by formulas: what is moved in each step of the algorithm, over a link's
// bandwidth, plus a latency per link and the endpoint's delay per step. A message of x bytes to a
// peer h links away takes T(x) = h * latency + x / bandwidth; with n ranks, m bytes / n per
// message, delay d:
//
//   ring     all-reduce  d + 2 (n-1) (T(m) + d)      all-to-all  d + n (n-1) / 2 (T(m) + d)
//            reduce-scatter, all-gather  d + (n-1) (T + d)
//   direct   all-reduce  3 d + 2 T(m)                the others  2 d + T
//   halving and doubling, trees   d + sum of (T + d) over the messages on the longest way
//
// Edges never slow each other down, reductions cost nothing, and nothing is rounded. The embedded
// engine says the same, congestion-unaware and without local memory bandwidth, up to its rounding.
#ifndef ASTRA_BRIDGE_TIMING_ANALYTICAL_TIMING_H_
#define ASTRA_BRIDGE_TIMING_ANALYTICAL_TIMING_H_

#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "astra_bridge/timing/fabric.h"
#include "astra_bridge/timing/fabric_timing.h"

namespace meridian {

class AnalyticalTiming : public FabricTiming {
 public:
  explicit AnalyticalTiming(std::shared_ptr<const FabricSet> fabrics)
      : FabricTiming({"analytical", "1"}, BatchRule::kIndependent, std::move(fabrics),
                     /*cache=*/nullptr) {}

 protected:
  Times TogetherNs(const Fabric& fabric, absl::Span<const CommEdge> edges,
                   absl::Span<const double> isolated_ns) override;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_TIMING_ANALYTICAL_TIMING_H_
