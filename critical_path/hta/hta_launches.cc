#include "critical_path/hta/hta_launches.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "critical_path/hta/unstable_order.h"

namespace meridian {
namespace {

// Returns the rows as HTA's sort by start leaves them.
std::vector<const HtaRow*> SortedByStart(const std::vector<const HtaRow*>& rows) {
  return UnstablySorted(rows, [](const HtaRow* row) { return row->start_ps; });
}

// True for the calls that count as launches: those that enqueue one kernel, copy or set. CUDA
// graphs, cooperative launches and synchronous copies are not among them.
bool IsLaunchName(absl::string_view name) {
  static const auto* const kNames = new absl::flat_hash_set<absl::string_view>(
      {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx",
       "cudaMemcpyAsync", "cudaMemsetAsync", "hipLaunchKernel", "hipExtModuleLaunchKernel",
       "hipMemcpyAsync", "hipMemsetAsync", "hipMemcpyWithStream",
       "runFunction - job_prep_and_submit_for_execution"});
  return kNames->contains(name);
}

}  // namespace

HtaLaunches::HtaLaunches(const HtaFrame& frame)
    : frame_(frame),
      queue_lengths_(frame.rows.size(), kUnknown),
      launch_of_row_(frame.rows.size(), kNoLaunch) {
  FindLaunches();
  FindQueueLengths();
  FindRecords();
  FindWaits();
}

const HtaRow* HtaLaunches::LaunchBeforeRecord(int64_t record_correlation) const {
  const auto it = before_record_.find(record_correlation);
  return it == before_record_.end() ? nullptr : it->second;
}

const HtaRow* HtaLaunches::LaunchAfterWait(uint32_t wait_index) const {
  const auto it = after_wait_.find(wait_index);
  return it == after_wait_.end() ? nullptr : it->second;
}

void HtaLaunches::FindLaunches() {
  std::vector<bool> is_launch(frame_.names.size());
  for (NameId name = 0; name < is_launch.size(); ++name) {
    is_launch[name] = IsLaunchName(frame_.names.Get(name));
  }
  std::vector<const HtaRow*> calls;
  for (const HtaRow& row : frame_.rows) {
    if (is_launch[row.name] && row.partner > 0) calls.push_back(&row);
  }
  for (const HtaRow* call : SortedByStart(calls)) {
    const HtaRow* work = WorkOf(*call);
    if (work == nullptr) continue;
    LaunchOf(call) = static_cast<uint32_t>(launches_.size());
    launches_.push_back({call, work});
  }
}

void HtaLaunches::FindQueueLengths() {
  absl::flat_hash_map<int64_t, int64_t> stream_of_correlation;
  for (const Launch& launch : launches_) {
    stream_of_correlation[launch.call->correlation] = launch.work->stream;
  }
  // First all launches, then all work, each in the frame's order.
  std::vector<const HtaRow*> changes;
  for (const HtaRow& row : frame_.rows) {
    if (LaunchOf(&row) != kNoLaunch) changes.push_back(&row);
  }
  for (const HtaRow& row : frame_.rows) {
    if (row.stream != -1 && stream_of_correlation.contains(row.correlation)) {
      changes.push_back(&row);
    }
  }
  absl::flat_hash_map<int64_t, int64_t> length_of_stream;
  for (const HtaRow* row : SortedByStart(changes)) {
    const uint32_t launch = LaunchOf(row);
    const bool is_launch = launch != kNoLaunch;
    int64_t& length = length_of_stream[is_launch ? launches_[launch].work->stream : row->stream];
    length += is_launch ? 1 : -1;
    queue_lengths_[row - frame_.rows.data()] = length;
  }
}

const HtaRow* HtaLaunches::WorkOf(const HtaRow& call) const {
  const HtaRow* work = frame_.Find(call.partner);
  return work == nullptr || work->stream == -1 || work->partner <= 0 ? nullptr : work;
}

std::vector<const HtaRow*> HtaLaunches::MergeWithLaunches(
    absl::string_view name, bool with_partner,
    absl::FunctionRef<bool(const HtaRow&)> is_wanted) const {
  NameId id = 0;
  while (id < frame_.names.size() && frame_.names.Get(id) != name) ++id;
  std::vector<const HtaRow*> rows, merged;
  for (const HtaRow& row : frame_.rows) {
    if (row.name == id && (!with_partner || row.partner > 0)) rows.push_back(&row);
  }
  for (const Launch& launch : launches_) merged.push_back(launch.call);
  for (const HtaRow* row : SortedByStart(rows)) {
    if (is_wanted(*row)) merged.push_back(row);
  }
  return SortedByStart(merged);
}

void HtaLaunches::FindRecords() {
  // The stream that each record is on, told by whoever waits for it. A device is known by its pid.
  using DeviceStream = std::pair<NameId, int64_t>;
  absl::flat_hash_map<int64_t, DeviceStream> recorded;
  for (const HtaRow& row : frame_.rows) {
    const auto wait = frame_.waits.find(row.index);
    if (wait == frame_.waits.end() || wait->second.stream <= -1) continue;
    recorded.try_emplace(wait->second.record_correlation, row.process, wait->second.stream);
  }
  if (recorded.empty()) return;
  absl::flat_hash_map<DeviceStream, uint32_t> last_launch;
  const auto is_recorded = [&](const HtaRow& row) { return recorded.contains(row.correlation); };
  for (const HtaRow* row :
       MergeWithLaunches("cudaEventRecord", /*with_partner=*/false, is_recorded)) {
    const uint32_t launch = LaunchOf(row);
    if (launch != kNoLaunch) {
      const HtaRow* work = launches_[launch].work;
      uint32_t& last = last_launch.try_emplace({work->process, work->stream}, 0).first->second;
      last = std::max(last, launch);
      continue;
    }
    const auto last = last_launch.find(recorded[row->correlation]);
    if (last != last_launch.end()) before_record_[row->correlation] = launches_[last->second].call;
  }
}

void HtaLaunches::FindWaits() {
  std::vector<const HtaRow*> sorted =
      MergeWithLaunches("cudaStreamWaitEvent", /*with_partner=*/true,
                        [&](const HtaRow& row) { return WorkOf(row) != nullptr; });
  std::reverse(sorted.begin(), sorted.end());
  absl::flat_hash_map<std::tuple<NameId, NameId, int64_t>, uint32_t> next_launch;
  for (const HtaRow* row : sorted) {
    const uint32_t launch = LaunchOf(row);
    if (launch != kNoLaunch) {
      const auto key = std::make_tuple(row->process, row->thread, launches_[launch].work->stream);
      uint32_t& next = next_launch.try_emplace(key, launch).first->second;
      next = std::min(next, launch);
      continue;
    }
    const auto next =
        next_launch.find(std::make_tuple(row->process, row->thread, WorkOf(*row)->stream));
    if (next != next_launch.end()) after_wait_[row->index] = launches_[next->second].call;
  }
}

}  // namespace meridian
