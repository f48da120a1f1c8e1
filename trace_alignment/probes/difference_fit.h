// SPDX-License-Identifier: Apache-2.0
// Values of nodes from measured differences between pairs of them, by least squares:
//
//   minimise  sum over links of  weight * (x_dst - x_src - difference)^2   with x_0 = 0.
//
// Links are as few as a node has neighbours, so nothing here is a matrix: conjugate gradients, with
// the heaviest spanning tree as the first guess of the inverse. A link outside that tree is no
// heavier than any on its way through the tree, so that the number of steps is of the order of
// sqrt(links * nodes) whatever the weights; a tree takes one step, a ring two.
#ifndef TRACE_ALIGNMENT_PROBES_DIFFERENCE_FIT_H_
#define TRACE_ALIGNMENT_PROBES_DIFFERENCE_FIT_H_

#include <cstddef>
#include <vector>

namespace meridian {

class DifferenceFit {
 public:
  struct Link {
    int src = 0;
    int dst = 0;
    // Positive.
    double weight = 0;
  };

  // The links connect all nodes 0 to num_nodes - 1.
  DifferenceFit(std::vector<Link> links, int num_nodes);

  // Returns the values of the nodes for one measured difference per link. Adds to *steps, where
  // given, how often it walked all links.
  std::vector<double> Solve(const std::vector<double>& differences, int* steps = nullptr) const;

 private:
  // How a node hangs on the tree.
  struct Branch {
    int node = 0;
    int parent = 0;
    double weight = 0;
  };

  // Returns x with T * x = right, where T is the matrix of the normal equations of the tree alone.
  std::vector<double> SolveTree(std::vector<double> right) const;

  const std::vector<Link> links_;
  const size_t num_nodes_;
  // All nodes but 0, parents before their children.
  std::vector<Branch> tree_;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_PROBES_DIFFERENCE_FIT_H_
