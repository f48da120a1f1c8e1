// Which steps of a job are meant. Ranks may have been recorded from different steps on, so steps
// are told by their numbers: the n-th occurrence is the n-th number that any rank has.
#ifndef CRITICAL_PATH_STEP_CHOICE_H_
#define CRITICAL_PATH_STEP_CHOICE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "critical_path/window_choice.h"

namespace meridian {

// Both ends belong to it.
struct StepNumbers {
  int64_t first = 0;
  int64_t last = 0;

  bool Contains(int64_t number) const { return number >= first && number <= last; }
};

class StepChoice {
 public:
  // A step is called e.g. "train#3", as Kineto calls its own.
  void Add(absl::string_view name, int64_t number);

  // Returns the numbers of the chosen occurrences of steps whose name contains the annotation.
  // NotFound naming those there are; OutOfRange when there are too few.
  absl::StatusOr<StepNumbers> Choose(const WindowChoice& choice) const;

 private:
  // By number.
  std::map<int64_t, std::string> names_;
};

}  // namespace meridian

#endif  // CRITICAL_PATH_STEP_CHOICE_H_
