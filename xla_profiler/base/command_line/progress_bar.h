// SPDX-License-Identifier: Apache-2.0
// What a terminal shows while a command works: a bar for work that takes longer than a second,
//
//   reading node3.xplane.pb  [=========>          ]  47%  eta 3s
//
// and where no bar is drawn for longer than that, what it does and since when:
//
//   combine: critical path, blame, what-if (stage 3 of 5), 12s
//
// Silent when the output is no terminal, and after HideProgress.
#ifndef XLA_PROFILER_BASE_COMMAND_LINE_PROGRESS_BAR_H_
#define XLA_PROFILER_BASE_COMMAND_LINE_PROGRESS_BAR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace meridian {

// From now on nothing is shown: --quiet.
void HideProgress();

// Shows from the third second of its life on what is done, whenever no bar was drawn for a second,
// until it is gone. There is one at a time.
class WorkingLine {
 public:
  explicit WorkingLine(std::string name);
  // Wipes the line off the terminal.
  ~WorkingLine();
  WorkingLine(const WorkingLine&) = delete;
  WorkingLine& operator=(const WorkingLine&) = delete;

  // Says what is done now, in the line that is there; nothing without one.
  static void Say(std::string what);

 private:
  struct State;

  const std::unique_ptr<State> state_;
};

struct ProgressBarOptions {
  // Null: standard error when it is a terminal, else nothing is shown.
  std::function<void(absl::string_view)> output;
  // Null: absl::Now.
  std::function<absl::Time()> now;
};

// Not thread safe.
class ProgressBar {
 public:
  // `total` 0 stands for an unknown total: the bar shows the count done instead of a share.
  ProgressBar(std::string label, uint64_t total, ProgressBarOptions options = {});
  // Wipes the bar off the terminal.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Cheap enough for every few thousand items; redraws at most ten times a second.
  void Update(uint64_t done);

 private:
  std::string Line(uint64_t done, absl::Duration elapsed) const;

  const std::string label_;
  const uint64_t total_;
  const ProgressBarOptions options_;
  const absl::Time start_;
  absl::Time next_draw_;
  bool visible_ = false;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_COMMAND_LINE_PROGRESS_BAR_H_
