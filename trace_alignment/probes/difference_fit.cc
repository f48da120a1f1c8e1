#include "trace_alignment/probes/difference_fit.h"

#include <utility>

#include "Eigen/IterativeLinearSolvers"

namespace meridian {

DifferenceFit::DifferenceFit(std::vector<Link> links, int num_nodes)
    : links_(std::move(links)), equations_(num_nodes - 1, num_nodes - 1) {
  std::vector<Eigen::Triplet<double>> entries;
  for (const Link& link : links_) {
    for (const int node : {link.src, link.dst}) {
      if (node > 0) entries.emplace_back(node - 1, node - 1, link.weight);
    }
    if (link.src == 0 || link.dst == 0) continue;
    entries.emplace_back(link.src - 1, link.dst - 1, -link.weight);
    entries.emplace_back(link.dst - 1, link.src - 1, -link.weight);
  }
  // Adds up what is at the same place.
  equations_.setFromTriplets(entries.begin(), entries.end());
}

std::vector<double> DifferenceFit::Solve(const std::vector<double>& differences) const {
  std::vector<double> values(equations_.rows() + 1, 0.0);
  if (equations_.rows() == 0) return values;
  Eigen::VectorXd pulls = Eigen::VectorXd::Zero(equations_.rows());
  for (size_t i = 0; i < links_.size(); ++i) {
    const double pull = links_[i].weight * differences[i];
    if (links_[i].dst > 0) pulls[links_[i].dst - 1] += pull;
    if (links_[i].src > 0) pulls[links_[i].src - 1] -= pull;
  }
  // Every node probes a few others at random distances: complete factors would fill up.
  Eigen::ConjugateGradient<Eigen::SparseMatrix<double>, Eigen::Lower | Eigen::Upper,
                           Eigen::IncompleteCholesky<double>>
      solver(equations_);
  const Eigen::VectorXd solution = solver.solve(pulls);
  for (size_t node = 1; node < values.size(); ++node) values[node] = solution[node - 1];
  return values;
}

}  // namespace meridian
