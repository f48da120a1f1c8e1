#include "chakra_export/xspace/host_pace.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "gtest/gtest.h"

namespace meridian {
namespace {

constexpr int64_t kPsPerUs = 1'000'000;

// A device that works for some time in each step, without a pause, and the host's two calls for
// each step.
class HostPaceTest : public ::testing::Test {
 protected:
  // The first call of each step begins at the time given for it, in us; the work of step i, two
  // kernels, ends at ends_us[i].
  void Mark(const std::vector<int64_t>& calls_us, const std::vector<int64_t>& ends_us) {
    for (size_t i = 0; i < calls_us.size(); ++i) {
      for (const int64_t call : {0, 1}) {
        const int64_t start_ps = (calls_us[i] + 10 * call) * kPsPerUs;
        calls_.push_back({start_ps, start_ps + 5 * kPsPerUs, 0, 3});
        DeviceWork& work = work_.emplace_back();
        work.call = &calls_.back();
        work.step = static_cast<int64_t>(i);
        work.end_ps = (ends_us[i] - 10 * (1 - call)) * kPsPerUs;
      }
    }
    MarkHostWaits(&work_);
  }

  int64_t Marked() const {
    return std::count_if(work_.begin(), work_.end(),
                         [](const DeviceWork& work) { return work.host_waited; });
  }

  std::deque<HostCall> calls_;
  std::vector<DeviceWork> work_;
};

// The device is late in every third step.
std::vector<int64_t> EndsOf(size_t steps) {
  std::vector<int64_t> ends_us;
  int64_t end_us = 2000;
  for (size_t i = 0; i < steps; ++i) {
    end_us += 1000 + (i % 3 == 0 ? 700 : 0);
    ends_us.push_back(end_us);
  }
  return ends_us;
}

TEST_F(HostPaceTest, AHostThatComesLaterWhenItsDeviceIsLaterWaitsForIt) {
  // Step i + 1 is launched 30 us before the work of step i has ended, so that the device is busy.
  const std::vector<int64_t> ends_us = EndsOf(12);
  std::vector<int64_t> calls_us = {0};
  for (size_t i = 0; i + 1 < ends_us.size(); ++i) calls_us.push_back(ends_us[i] - 30);
  Mark(calls_us, ends_us);
  EXPECT_EQ(Marked(), 12);
  for (size_t i = 0; i < work_.size(); ++i) {
    EXPECT_EQ(work_[i].host_waited, i % 2 == 0) << "only the first call of a step";
  }
}

TEST_F(HostPaceTest, AHostMayWaitForTheStepBeforeTheLast) {
  const std::vector<int64_t> ends_us = EndsOf(12);
  std::vector<int64_t> calls_us = {0, 100};
  for (size_t i = 0; i + 2 < ends_us.size(); ++i) calls_us.push_back(ends_us[i] + 40);
  Mark(calls_us, ends_us);
  EXPECT_EQ(Marked(), 12);
}

TEST_F(HostPaceTest, AHostWithAPaceOfItsOwnDoesNotWait) {
  // It takes between 1000 and 1060 us for a step, whatever the device does.
  const std::vector<int64_t> ends_us = EndsOf(12);
  std::vector<int64_t> calls_us;
  for (int64_t i = 0; i < 12; ++i) calls_us.push_back(i * 1000 + (i * 7 % 4) * 20);
  Mark(calls_us, ends_us);
  EXPECT_EQ(Marked(), 0);
}

TEST_F(HostPaceTest, AHostWithAPaceOfItsOwnMayTakeUnevenlyLongToLaunch) {
  // A step a millisecond, as a data loader gives them; the last call is early or late.
  for (int64_t i = 0; i < 12; ++i) {
    for (const int64_t us : {int64_t{0}, i % 2 == 0 ? int64_t{100} : int64_t{400}}) {
      const int64_t start_ps = (i * 1000 + us) * kPsPerUs;
      calls_.push_back({start_ps, start_ps + 5 * kPsPerUs, 0, 3});
      DeviceWork& work = work_.emplace_back();
      work.call = &calls_.back();
      work.step = i;
      work.end_ps = (i * 1000 + 1200) * kPsPerUs;
    }
  }
  MarkHostWaits(&work_);
  EXPECT_EQ(Marked(), 0);
}

TEST_F(HostPaceTest, ADeviceThatFollowsItsHostIsNotWaitedFor) {
  // The host comes late at times, and the work ends when the next launch has come. Three steps of
  // either take the same time.
  std::vector<int64_t> calls_us, ends_us;
  int64_t call_us = 0;
  for (int64_t i = 0; i < 12; ++i) {
    calls_us.push_back(call_us);
    ends_us.push_back(call_us + 400);
    call_us += 300 + (i % 3 == 0 ? 50 : 0);
  }
  Mark(calls_us, ends_us);
  EXPECT_EQ(Marked(), 0);
}

TEST_F(HostPaceTest, AFewStepsTellNothing) {
  const std::vector<int64_t> ends_us = EndsOf(8);
  std::vector<int64_t> calls_us = {0};
  for (size_t i = 0; i + 1 < ends_us.size(); ++i) calls_us.push_back(ends_us[i] - 30);
  Mark(calls_us, ends_us);
  EXPECT_EQ(Marked(), 0);
}

}  // namespace
}  // namespace meridian
