// SPDX-License-Identifier: Apache-2.0
// Random graphs without cycles, to hold laws against.
#ifndef CRITICAL_PATH_TESTING_RANDOM_GRAPH_H_
#define CRITICAL_PATH_TESTING_RANDOM_GRAPH_H_

#include <cstdint>
#include <random>

#include "critical_path/graph/path_graph.h"

namespace meridian {

// Returns a graph of that many instants, two for each event, in which every edge leads from an
// instant to one with a greater number, no two edges join the same instants, and a weight of 0 and
// of equal sums is common.
PathGraph RandomGraph(int instants, std::mt19937& random);

}  // namespace meridian

#endif  // CRITICAL_PATH_TESTING_RANDOM_GRAPH_H_
