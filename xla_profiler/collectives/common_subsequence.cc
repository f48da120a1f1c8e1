#include "xla_profiler/collectives/common_subsequence.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"

namespace meridian {
namespace {

// How far into `a` so many insertions and deletions reach on the diagonals
// k = (position in a) - (position in b), k = -edits .. edits.
class Frontier {
 public:
  explicit Frontier(int64_t edits) : edits_(edits), reach_(2 * edits + 1, kUnreached) {}

  int64_t at(int64_t k) const {
    return k < -edits_ || k > edits_ ? kUnreached : reach_[k + edits_];
  }
  void set(int64_t k, int64_t x) { reach_[k + edits_] = x; }

  // One more edit leads to diagonal k by skipping an element of a, or else one of b.
  bool SkipsA(int64_t k) const { return at(k - 1) + 1 > at(k + 1); }
  int64_t StepTo(int64_t k) const { return SkipsA(k) ? at(k - 1) + 1 : at(k + 1); }

 private:
  static constexpr int64_t kUnreached = std::numeric_limits<int64_t>::min() / 2;

  int64_t edits_;
  std::vector<int64_t> reach_;
};

}  // namespace

template <typename T>
std::optional<std::vector<std::pair<size_t, size_t>>> CommonSubsequence(const std::vector<T>& a,
                                                                        const std::vector<T>& b,
                                                                        int64_t max_edits) {
  const int64_t n = static_cast<int64_t>(a.size());
  const int64_t m = static_cast<int64_t>(b.size());
  // frontiers[e]: with e edits.
  std::vector<Frontier> frontiers;
  for (bool done = false; !done;) {
    const int64_t edits = static_cast<int64_t>(frontiers.size());
    if (edits > max_edits) return std::nullopt;
    Frontier frontier(edits);
    for (int64_t k = -edits; k <= edits && !done; k += 2) {
      int64_t x = edits == 0 ? 0 : frontiers.back().StepTo(k);
      if (x < std::max<int64_t>(0, k) || x > n || x - k > m) continue;
      while (x < n && x - k < m && a[x] == b[x - k]) ++x;
      frontier.set(k, x);
      done = x == n && x - k == m;
    }
    frontiers.push_back(std::move(frontier));
  }

  // Back from the end: the stretch of common elements behind each edit, then the edit.
  std::vector<std::pair<size_t, size_t>> pairs;
  int64_t x = n;
  int64_t k = n - m;
  for (size_t edits = frontiers.size() - 1;; --edits) {
    const int64_t begin = edits == 0 ? 0 : frontiers[edits - 1].StepTo(k);
    for (; x > begin; --x) pairs.emplace_back(x - 1, x - 1 - k);
    if (edits == 0) break;
    if (frontiers[edits - 1].SkipsA(k)) {
      --x;
      --k;
    } else {
      ++k;
    }
  }
  std::reverse(pairs.begin(), pairs.end());
  return pairs;
}

template std::optional<std::vector<std::pair<size_t, size_t>>> CommonSubsequence(
    const std::vector<uint64_t>& a, const std::vector<uint64_t>& b, int64_t max_edits);
template std::optional<std::vector<std::pair<size_t, size_t>>> CommonSubsequence(
    const std::vector<absl::uint128>& a, const std::vector<absl::uint128>& b, int64_t max_edits);

}  // namespace meridian
