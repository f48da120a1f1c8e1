#include "chakra_export/pytorch/thread_match.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>

#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/common_subsequence.h"

namespace meridian {
namespace {

constexpr int64_t kStepsPerCall = 1'000;
// Two threads may be compared to the end, however short they are.
constexpr int64_t kFreeSteps = kMaxSubsequenceEdits * kMaxSubsequenceEdits;

// Threads that differ in few calls are found before others are looked at more closely, which takes
// the square of the edits.
constexpr int64_t kEditLimits[] = {64, 640, kMaxSubsequenceEdits};

// Returns where `part` first stands in `whole` as it is; nullopt when it does not. Linear (Knuth,
// Morris and Pratt).
std::optional<size_t> FindPart(const CalledNames& whole, const CalledNames& part) {
  // The length of the longest proper prefix of part that ends at each position.
  std::vector<size_t> border(part.size(), 0);
  for (size_t i = 1, length = 0; i < part.size(); ++i) {
    while (length > 0 && part[i] != part[length]) length = border[length - 1];
    if (part[i] == part[length]) ++length;
    border[i] = length;
  }
  for (size_t i = 0, length = 0; i < whole.size(); ++i) {
    while (length > 0 && whole[i] != part[length]) length = border[length - 1];
    if (whole[i] == part[length]) ++length;
    if (length == part.size()) return i + 1 - length;
  }
  return std::nullopt;
}

// Two threads and what is known of what they share.
struct Candidate {
  size_t a = 0;
  size_t b = 0;
  // How many calls they share at most; exactly so many once they are compared.
  size_t shared = 0;
  bool is_compared = false;
  // How they are to be compared next: as a whole, then with each of the edit limits.
  size_t comparisons = 0;
};

// Puts what may share most on top of the heap, of equal ones the first.
bool IsBelow(const Candidate& x, const Candidate& y) {
  return std::make_tuple(x.shared, y.a, y.b) < std::make_tuple(y.shared, x.a, x.b);
}

class ThreadMatcher {
 public:
  ThreadMatcher(absl::Span<const CalledNames> a, absl::Span<const CalledNames> b) : a_(a), b_(b) {}

  std::vector<ThreadMatch> Match(int64_t* steps) {
    int64_t calls = 0;
    for (const CalledNames& names : a_) calls += static_cast<int64_t>(names.size());
    for (const CalledNames& names : b_) calls += static_cast<int64_t>(names.size());
    const int64_t max_steps = kFreeSteps + kStepsPerCall * calls;
    steps_left_ = max_steps;
    std::vector<Candidate> heap;
    for (size_t a = 0; a < a_.size(); ++a) {
      for (size_t b = 0; b < b_.size(); ++b) {
        const size_t shared = std::min(a_[a].size(), b_[b].size());
        if (shared > 0) heap.push_back({a, b, shared});
      }
    }
    std::make_heap(heap.begin(), heap.end(), IsBelow);
    std::vector<ThreadMatch> matches;
    std::vector<bool> a_done(a_.size()), b_done(b_.size());
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), IsBelow);
      Candidate& best = heap.back();
      const bool is_left = !a_done[best.a] && !b_done[best.b];
      if (is_left && !best.is_compared) {
        if (Compare(&best)) {
          std::push_heap(heap.begin(), heap.end(), IsBelow);
          continue;
        }
      } else if (is_left) {
        a_done[best.a] = b_done[best.b] = true;
        matches.push_back({best.a, best.b, SharedCalls(best)});
      }
      heap.pop_back();
    }
    if (steps != nullptr) *steps = max_steps - steps_left_;
    return matches;
  }

 private:
  // Looks at the threads once more and lowers what they share at most. False when they share
  // nothing, or it would take too long to find out what.
  bool Compare(Candidate* candidate) {
    const CalledNames &a = a_[candidate->a], &b = b_[candidate->b];
    const size_t comparison = candidate->comparisons++;
    const size_t calls = a.size() + b.size();
    if (comparison == 0) {
      if (!Take(static_cast<int64_t>(calls))) return false;
      candidate->is_compared = FindShorter(a, b).has_value();
      return true;
    }
    if (comparison > std::size(kEditLimits)) return false;
    const int64_t max_edits = std::min(kEditLimits[comparison - 1], static_cast<int64_t>(calls));
    if (!Take(max_edits * max_edits + static_cast<int64_t>(calls))) return false;
    const auto common = CommonSubsequence(a, b, max_edits);
    candidate->is_compared = common.has_value();
    candidate->shared = common.has_value()
                            ? common->size()
                            : std::min(candidate->shared, (calls - max_edits - 1) / 2);
    return candidate->shared > 0;
  }

  // Returns whether there are that many steps left, and takes them.
  bool Take(int64_t steps) {
    if (steps > steps_left_) return false;
    steps_left_ -= steps;
    return true;
  }

  // Returns where the shorter of the two stands in the other.
  static std::optional<size_t> FindShorter(const CalledNames& a, const CalledNames& b) {
    return a.size() >= b.size() ? FindPart(a, b) : FindPart(b, a);
  }

  std::vector<std::pair<size_t, size_t>> SharedCalls(const Candidate& candidate) const {
    const CalledNames &a = a_[candidate.a], &b = b_[candidate.b];
    if (candidate.comparisons > 1) {
      return *CommonSubsequence(a, b, kEditLimits[candidate.comparisons - 2]);
    }
    const size_t found = *FindShorter(a, b);
    std::vector<std::pair<size_t, size_t>> calls;
    for (size_t i = 0; i < candidate.shared; ++i) {
      calls.emplace_back(a.size() >= b.size() ? found + i : i,
                         a.size() >= b.size() ? i : found + i);
    }
    return calls;
  }

  const absl::Span<const CalledNames> a_;
  const absl::Span<const CalledNames> b_;
  int64_t steps_left_ = 0;
};

}  // namespace

std::vector<ThreadMatch> MatchThreads(absl::Span<const CalledNames> a,
                                      absl::Span<const CalledNames> b, int64_t* steps) {
  MERIDIAN_CHECK(a.empty() || b.size() <= kMaxThreadPairs / a.size());
  return ThreadMatcher(a, b).Match(steps);
}

}  // namespace meridian
