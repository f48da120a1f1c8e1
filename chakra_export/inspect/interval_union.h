// Stretches of time that may overlap.
#ifndef CHAKRA_EXPORT_INSPECT_INTERVAL_UNION_H_
#define CHAKRA_EXPORT_INSPECT_INTERVAL_UNION_H_

#include <cstdint>
#include <vector>

namespace meridian {

struct TimeInterval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// Returns the same points of time as intervals that are apart from each other, ascending. Empty
// ones vanish.
std::vector<TimeInterval> UnionOf(std::vector<TimeInterval> intervals);

// Of intervals as UnionOf returns them.
int64_t TotalNs(const std::vector<TimeInterval>& intervals);
int64_t OverlapNs(const std::vector<TimeInterval>& a, const std::vector<TimeInterval>& b);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_INTERVAL_UNION_H_
