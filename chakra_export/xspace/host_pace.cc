#include "chakra_export/xspace/host_pace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

// Of fewer steps the spread is not known.
constexpr size_t kFewestSteps = 8;
// Hosts are looked for that wait for up to so many steps before.
constexpr size_t kMostStepsAhead = 4;
// Times without a common cause vary more together than each of them does alone.
constexpr double kFarLess = 0.5;
// What is less does not tell who waits.
constexpr double kNotablePs = 1e6;

// The calls and the device work of a step.
struct StepPace {
  const HostCall* first_call = nullptr;
  int64_t calls_end_ps = 0;
  int64_t work_end_ps = 0;
};

std::map<int64_t, StepPace> FindPaces(const std::vector<DeviceWork>& work) {
  std::map<int64_t, StepPace> paces;
  for (const DeviceWork& item : work) {
    if (!item.step.has_value() || item.call == nullptr) continue;
    const auto [it, is_new] =
        paces.try_emplace(*item.step, StepPace{item.call, item.call->end_ps, item.end_ps});
    if (is_new) continue;
    StepPace& pace = it->second;
    if (item.call->start_ps < pace.first_call->start_ps) pace.first_call = item.call;
    pace.calls_end_ps = std::max(pace.calls_end_ps, item.call->end_ps);
    pace.work_end_ps = std::max(pace.work_end_ps, item.end_ps);
  }
  return paces;
}

// Returns the mean distance from the median: late steps count even if they are few.
double Spread(const std::vector<double>& values) {
  const double median = Median(values);
  double sum = 0;
  for (const double value : values) sum += std::abs(value - median);
  return sum / static_cast<double>(values.size());
}

bool WaitsForDevice(const std::vector<StepPace>& steps) {
  for (size_t ahead = 1; ahead <= kMostStepsAhead && ahead + kFewestSteps <= steps.size();
       ++ahead) {
    std::vector<double> since_first_call, since_calls, since_work;
    for (size_t i = ahead; i < steps.size(); ++i) {
      const auto call_ps = static_cast<double>(steps[i].first_call->start_ps);
      since_first_call.push_back(call_ps -
                                 static_cast<double>(steps[i - ahead].first_call->start_ps));
      since_calls.push_back(call_ps - static_cast<double>(steps[i - ahead].calls_end_ps));
      since_work.push_back(call_ps - static_cast<double>(steps[i - ahead].work_end_ps));
    }
    // A host that comes at a pace of its own does so by its first calls, whatever the others take.
    const double of_host = std::min(Spread(since_first_call), Spread(since_calls));
    if (of_host >= kNotablePs && Spread(since_work) < kFarLess * of_host) return true;
  }
  return false;
}

}  // namespace

void MarkHostWaits(std::vector<DeviceWork>* work) {
  const std::map<int64_t, StepPace> paces = FindPaces(*work);
  std::vector<StepPace> steps;
  for (const auto& [number, pace] : paces) steps.push_back(pace);
  if (!WaitsForDevice(steps)) return;
  for (DeviceWork& item : *work) {
    if (!item.step.has_value() || item.call == nullptr) continue;
    item.host_waited = item.call == paces.at(*item.step).first_call;
  }
}

}  // namespace meridian
