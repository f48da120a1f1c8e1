// SPDX-License-Identifier: Apache-2.0
// Values of nodes from measured differences between pairs of them, by least squares:
//
//   minimise  sum over links of  weight * (x_dst - x_src - difference)^2   with x_0 = 0.
#ifndef TRACE_ALIGNMENT_PROBES_DIFFERENCE_FIT_H_
#define TRACE_ALIGNMENT_PROBES_DIFFERENCE_FIT_H_

#include <vector>

#include "Eigen/SparseCore"

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

  // Returns the values of the nodes for one measured difference per link.
  std::vector<double> Solve(const std::vector<double>& differences) const;

 private:
  const std::vector<Link> links_;
  // The normal equations of all nodes but the first.
  Eigen::SparseMatrix<double> equations_;
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_PROBES_DIFFERENCE_FIT_H_
