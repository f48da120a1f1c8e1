// SPDX-License-Identifier: Apache-2.0
// Small graphs to try laws on.
#ifndef CHAKRA_EXPORT_GRAPH_TESTING_RANDOM_GRAPH_H_
#define CHAKRA_EXPORT_GRAPH_TESTING_RANDOM_GRAPH_H_

#include <cstdint>
#include <random>

#include "chakra_export/graph/execution_graph.h"

namespace meridian {

struct RandomGraphOptions {
  int ranks = 1;
  // Number of nodes per rank.
  int nodes = 8;
  // Probability of an edge between two nodes.
  double edge_probability = 0.3;
  // Streams and threads per rank; nodes are spread over them.
  int resources = 2;
  // Per rank; collectives of the group of all ranks and of that of the first two, if any.
  int collectives = 0;
  // Between random ranks.
  int messages = 0;
  int64_t max_duration_ns = 5;
};

// Returns a graph whose edges go from smaller to greater ids, while indices are shuffled. Two
// collectives are ordered alike on every rank and depend on each other, so that no rank waits for
// ever; messages are sent before the first collective.
ExecutionGraph RandomExecutionGraph(const RandomGraphOptions& options, std::mt19937_64& random);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GRAPH_TESTING_RANDOM_GRAPH_H_
