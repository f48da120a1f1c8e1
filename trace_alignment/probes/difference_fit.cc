#include "trace_alignment/probes/difference_fit.h"

#include <cmath>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

// By how much the error, squared, must have shrunk: to the rounding of doubles.
constexpr double kEnough = 1e-30;

// Several times what the weights' bound asks for, should rounding slow the descent.
int MaxSteps(size_t links, size_t nodes) {
  return 100 + 4 * static_cast<int>(std::sqrt(static_cast<double>(links) * nodes));
}

double Product(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void AddScaled(double factor, const std::vector<double>& other, std::vector<double>* values) {
  for (size_t i = 0; i < values->size(); ++i) (*values)[i] += factor * other[i];
}

}  // namespace

DifferenceFit::DifferenceFit(std::vector<Link> links, int num_nodes)
    : links_(std::move(links)), num_nodes_(num_nodes) {
  std::vector<std::vector<size_t>> links_of(num_nodes_);
  for (size_t i = 0; i < links_.size(); ++i) {
    links_of[links_[i].src].push_back(i);
    links_of[links_[i].dst].push_back(i);
  }
  // Grows the tree by the heaviest link that leads out of it; of equal ones by the one whose node
  // was reached first, which keeps ways short.
  struct Candidate {
    const Link* link;
    int from;
    size_t reached_as;
  };
  const auto comes_later = [](const Candidate& a, const Candidate& b) {
    return std::tie(a.link->weight, b.reached_as, b.link) <
           std::tie(b.link->weight, a.reached_as, a.link);
  };
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(comes_later)> outward(
      comes_later);
  std::vector<bool> reached(num_nodes_);
  const auto reach = [&](int node) {
    reached[node] = true;
    for (const size_t i : links_of[node]) outward.push({&links_[i], node, tree_.size()});
  };
  reach(0);
  while (!outward.empty()) {
    const Candidate next = outward.top();
    outward.pop();
    const int node = next.link->src == next.from ? next.link->dst : next.link->src;
    if (reached[node]) continue;
    tree_.push_back({node, next.from, next.link->weight});
    reach(node);
  }
  MERIDIAN_CHECK(tree_.size() + 1 == num_nodes_);
}

std::vector<double> DifferenceFit::Solve(const std::vector<double>& differences, int* steps) const {
  // The matrix A of the normal equations times what changes; rows of node 0 stay 0.
  const auto pull = [this](const auto& difference_of) {
    std::vector<double> sums(num_nodes_, 0.0);
    for (size_t i = 0; i < links_.size(); ++i) {
      const double pulled = links_[i].weight * difference_of(i);
      sums[links_[i].dst] += pulled;
      sums[links_[i].src] -= pulled;
    }
    sums[0] = 0;
    return sums;
  };
  std::vector<double> values(num_nodes_, 0.0);
  std::vector<double> residual = pull([&](size_t i) { return differences[i]; });
  std::vector<double> corrected = SolveTree(residual);
  std::vector<double> direction = corrected;
  double error = Product(residual, corrected);
  const double enough = kEnough * error;
  for (int step = MaxSteps(links_.size(), num_nodes_); step > 0 && error > enough; --step) {
    if (steps != nullptr) ++*steps;
    const std::vector<double> pulled =
        pull([&](size_t i) { return direction[links_[i].dst] - direction[links_[i].src]; });
    const double length = error / Product(direction, pulled);
    AddScaled(length, direction, &values);
    AddScaled(-length, pulled, &residual);
    corrected = SolveTree(residual);
    const double last = std::exchange(error, Product(residual, corrected));
    for (size_t i = 0; i < num_nodes_; ++i) {
      direction[i] = corrected[i] + error / last * direction[i];
    }
  }
  return values;
}

std::vector<double> DifferenceFit::SolveTree(std::vector<double> right) const {
  // What flows over a branch is what its whole subtree pulls.
  for (size_t i = tree_.size(); i-- > 0;) right[tree_[i].parent] += right[tree_[i].node];
  right[0] = 0;
  for (const Branch& branch : tree_) {
    right[branch.node] = right[branch.parent] + right[branch.node] / branch.weight;
  }
  return right;
}

}  // namespace meridian
