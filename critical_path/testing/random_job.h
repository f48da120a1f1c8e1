// SPDX-License-Identifier: Apache-2.0
// Jobs of several ranks for tests: made event by event, or at random.
#ifndef CRITICAL_PATH_TESTING_RANDOM_JOB_H_
#define CRITICAL_PATH_TESTING_RANDOM_JOB_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "critical_path/job/rank_join.h"

namespace meridian {

// Each rank does one thing after the other on one stream; the time between is host gap.
class JobMaker {
 public:
  explicit JobMaker(int ranks);

  // Returns the position of the rank's new event. It must not start before the last one ended.
  GraphEventId Add(size_t rank, const std::string& name, int64_t start_ps, int64_t end_ps,
                   BoundBy bound_by = BoundBy::kGpuCompute);

  int64_t EndPs(size_t rank) const { return ends_ps_[rank]; }

  // Events on which every member waits for every other.
  struct Member {
    size_t rank = 0;
    GraphEventId event = 0;
  };
  void Meet(const std::string& name, std::optional<int64_t> step,
            const std::vector<Member>& members);

  // Windows last from 0 to the rank's last end.
  JobGraph Make() &&;

 private:
  JobGraph job_;
  std::vector<int64_t> ends_ps_;
};

// Returns a job of up to 5 ranks that compute, and that meet in random groups at the times at which
// the last has come.
JobGraph RandomJob(std::mt19937& random);

}  // namespace meridian

#endif  // CRITICAL_PATH_TESTING_RANDOM_JOB_H_
