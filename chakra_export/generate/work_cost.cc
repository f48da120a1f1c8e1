#include "chakra_export/generate/work_cost.h"

#include <cmath>

namespace meridian {

int64_t DurationNs(const WorkCost& cost, double tflops) {
  return std::llround(static_cast<double>(cost.operations) / (tflops * 1000));
}

}  // namespace meridian
