// What a piece of computation costs, free of any machine: simulators with a roofline price it from
// this, others take the duration that it has at a given speed.
#ifndef CHAKRA_EXPORT_GENERATE_WORK_COST_H_
#define CHAKRA_EXPORT_GENERATE_WORK_COST_H_

#include <cstdint>

namespace meridian {

struct WorkCost {
  // Arithmetic operations; a multiplication and an addition are two.
  int64_t operations = 0;
  // Read from memory and written to it.
  int64_t bytes = 0;
};

// Returns how long the operations take at so many of them (10^12) per second, to the nearest
// nanosecond.
int64_t DurationNs(const WorkCost& cost, double tflops);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_GENERATE_WORK_COST_H_
