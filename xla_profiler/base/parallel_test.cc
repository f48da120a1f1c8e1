#include "xla_profiler/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(ParallelForTest, CallsEachNumberOnce) {
  std::vector<int> calls(1000);
  EXPECT_TRUE(ParallelFor(calls.size(), [&](size_t number) {
                ++calls[number];
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(calls, std::vector<int>(1000, 1));
  EXPECT_TRUE(ParallelFor(0, [](size_t) { return absl::InternalError("called"); }).ok());
}

// Two calls that wait for each other end only when they run at once.
TEST(ParallelForTest, RunsAtOnceWhereThereAreCores) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one core";
  std::atomic<int> running{0};
  EXPECT_TRUE(ParallelFor(2, [&](size_t) {
                ++running;
                while (running < 2) std::this_thread::yield();
                return absl::OkStatus();
              }).ok());
}

TEST(ParallelForTest, HasNoMoreThreadsThanTold) {
  std::vector<int> order;
  EXPECT_TRUE(ParallelFor(
                  1000,
                  [&](size_t number) {
                    order.push_back(static_cast<int>(number));
                    return absl::OkStatus();
                  },
                  nullptr, /*most_threads=*/1)
                  .ok());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), 1000);
}

TEST(ParallelForTest, TellsTheProgressInOrder) {
  std::vector<size_t> told;
  EXPECT_TRUE(ParallelFor(
                  1000, [](size_t) { return absl::OkStatus(); },
                  [&](size_t number) { told.push_back(number); })
                  .ok());
  std::vector<size_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(told, all);
}

TEST(ParallelForTest, ReturnsTheErrorOfTheLeastNumber) {
  for (int round = 0; round < 100; ++round) {
    const absl::Status status = ParallelFor(50, [](size_t number) {
      return number % 7 == 3 ? absl::InvalidArgumentError(absl::StrCat(number)) : absl::OkStatus();
    });
    EXPECT_EQ(std::string(status.message()), "3");
  }
}

}  // namespace
}  // namespace meridian
