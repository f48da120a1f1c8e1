// SPDX-License-Identifier: Apache-2.0
// The steps that a Kineto trace marks: ranges of the host called "ProfilerStep#<number>".
#ifndef XLA_PROFILER_KINETO_KINETO_STEPS_H_
#define XLA_PROFILER_KINETO_KINETO_STEPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "xla_profiler/events/event_table.h"

namespace meridian {

class KinetoSteps {
 public:
  struct Step {
    int64_t start_ps = 0;
    int64_t end_ps = 0;
    int64_t number = 0;
  };

  explicit KinetoSteps(const EventTable& table);

  // In order of their starts; they follow each other.
  const std::vector<Step>& steps() const { return steps_; }

  // Returns the number of the step around a time of the table; nullopt when there is none.
  std::optional<int64_t> At(int64_t time_ps) const;

  // Returns the first step that ends after a time of the table; null when there is none.
  const Step* FirstAfter(int64_t time_ps) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_KINETO_KINETO_STEPS_H_
