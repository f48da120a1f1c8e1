#include "critical_path/hta/unstable_order.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/numeric/bits.h"

namespace meridian {
namespace {

constexpr ptrdiff_t kInsertionLimit = 15;

class Sorter {
 public:
  Sorter(absl::Span<const int64_t> keys, std::vector<uint32_t>* order)
      : keys_(keys), order_(*order) {}

  void Sort() {
    if (order_.empty()) return;
    const int depth_limit = 2 * static_cast<int>(absl::bit_width(order_.size()) - 1);
    std::vector<Range> waiting = {{0, static_cast<ptrdiff_t>(order_.size()) - 1, depth_limit}};
    while (!waiting.empty()) {
      Range range = waiting.back();
      waiting.pop_back();
      if (range.depth < 0) {
        SortByHeap(range.first, range.last - range.first + 1);
        continue;
      }
      // The depth is looked at once for each range that waited, not at each parting.
      while (range.last - range.first > kInsertionLimit) waiting.push_back(Part(&range));
      SortByInsertion(range.first, range.last);
    }
  }

 private:
  // Places in the order from first to last, both of which belong to the range, and how many more
  // partings there may be before it is sorted by heap.
  struct Range {
    ptrdiff_t first;
    ptrdiff_t last;
    int depth;
  };

  int64_t Key(ptrdiff_t at) const { return keys_[order_[at]]; }
  void SwapIfLess(ptrdiff_t a, ptrdiff_t b) {
    if (Key(a) < Key(b)) std::swap(order_[a], order_[b]);
  }

  // Shrinks the range to its smaller part and returns the larger.
  Range Part(Range* range) {
    const ptrdiff_t middle = range->first + (range->last - range->first) / 2;
    SwapIfLess(middle, range->first);
    SwapIfLess(range->last, middle);
    SwapIfLess(middle, range->first);
    const int64_t pivot = Key(middle);
    ptrdiff_t low = range->first, high = range->last - 1;
    std::swap(order_[middle], order_[high]);
    while (true) {
      do ++low;
      while (Key(low) < pivot);
      do --high;
      while (pivot < Key(high));
      if (low >= high) break;
      std::swap(order_[low], order_[high]);
    }
    std::swap(order_[low], order_[range->last - 1]);
    const int depth = --range->depth;
    const Range below = {range->first, low - 1, depth}, above = {low + 1, range->last, depth};
    const bool below_is_smaller = low - range->first < range->last - low;
    *range = below_is_smaller ? below : above;
    return below_is_smaller ? above : below;
  }

  void SortByInsertion(ptrdiff_t first, ptrdiff_t last) {
    for (ptrdiff_t i = first + 1; i <= last; ++i) {
      const uint32_t moved = order_[i];
      ptrdiff_t hole = i;
      for (; hole > first && keys_[moved] < Key(hole - 1); --hole) order_[hole] = order_[hole - 1];
      order_[hole] = moved;
    }
  }

  void SortByHeap(ptrdiff_t first, ptrdiff_t count) {
    for (ptrdiff_t root = count / 2; root > 0; --root) {
      SiftDown(first, root, count, order_[first + root - 1]);
    }
    for (; count > 1; --count) {
      const uint32_t moved = order_[first + count - 1];
      order_[first + count - 1] = order_[first];
      SiftDown(first, 1, count - 1, moved);
    }
  }

  // Places the entry into the heap of `count` entries below the root, which counts from 1.
  void SiftDown(ptrdiff_t first, ptrdiff_t root, ptrdiff_t count, uint32_t entry) {
    ptrdiff_t hole = root;
    for (ptrdiff_t child = 2 * root; child <= count; child = 2 * hole) {
      if (child < count && Key(first + child - 1) < Key(first + child)) ++child;
      if (keys_[entry] >= Key(first + child - 1)) break;
      order_[first + hole - 1] = order_[first + child - 1];
      hole = child;
    }
    order_[first + hole - 1] = entry;
  }

  absl::Span<const int64_t> keys_;
  std::vector<uint32_t>& order_;
};

}  // namespace

std::vector<uint32_t> UnstableOrder(absl::Span<const int64_t> keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  Sorter(keys, &order).Sort();
  return order;
}

}  // namespace meridian
