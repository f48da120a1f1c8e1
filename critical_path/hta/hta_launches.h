// SPDX-License-Identifier: Apache-2.0
// What HTA knows about launches: the queue lengths they cause, and the launches around
// cudaEventRecord and cudaStreamWaitEvent. All of it is found on the whole frame.
#ifndef CRITICAL_PATH_HTA_HTA_LAUNCHES_H_
#define CRITICAL_PATH_HTA_HTA_LAUNCHES_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "critical_path/hta/hta_frame.h"

namespace meridian {

class HtaLaunches {
 public:
  explicit HtaLaunches(const HtaFrame& frame);

  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();

  bool empty() const { return launches_.empty(); }

  // Returns how much was launched on the event's stream and had not started, just after the launch
  // or start that this row is; kUnknown for other rows. Streams of different devices count as one
  // when they have one number.
  int64_t QueueLength(uint32_t row) const { return queue_lengths_[row]; }

  // Returns the last launch, on any thread, on the stream recorded by the cudaEventRecord call with
  // that correlation; nullptr when there is none or the stream is unknown.
  const HtaRow* LaunchBeforeRecord(int64_t record_correlation) const;

  // Returns the next launch on the same thread and on the stream that waits, after a
  // cudaStreamWaitEvent call; nullptr when there is none.
  const HtaRow* LaunchAfterWait(uint32_t wait_index) const;

 private:
  struct Launch {
    const HtaRow* call = nullptr;
    const HtaRow* work = nullptr;
  };

  static constexpr uint32_t kNoLaunch = std::numeric_limits<uint32_t>::max();

  // Returns the device event of a call, if it is on a stream and has a partner; else nullptr.
  const HtaRow* WorkOf(const HtaRow& call) const;
  // Returns the launches' calls and the rows of that name that are wanted, in order of their
  // starts. HTA sorts before it asks which are wanted, but may leave out rows without a partner
  // before that.
  std::vector<const HtaRow*> MergeWithLaunches(
      absl::string_view name, bool with_partner,
      absl::FunctionRef<bool(const HtaRow&)> is_wanted) const;
  uint32_t& LaunchOf(const HtaRow* row) { return launch_of_row_[row - frame_.rows.data()]; }
  void FindLaunches();
  void FindQueueLengths();
  void FindRecords();
  void FindWaits();

  const HtaFrame& frame_;
  // Queue length at each row, as QueueLength returns it.
  std::vector<int64_t> queue_lengths_;
  // All launches, in order of the calls' starts.
  std::vector<Launch> launches_;
  // Position of each row's launch in launches_, or kNoLaunch.
  std::vector<uint32_t> launch_of_row_;
  // What LaunchBeforeRecord and LaunchAfterWait return, by their arguments.
  absl::flat_hash_map<int64_t, const HtaRow*> before_record_;
  absl::flat_hash_map<uint32_t, const HtaRow*> after_wait_;
};

}  // namespace meridian

#endif  // CRITICAL_PATH_HTA_HTA_LAUNCHES_H_
