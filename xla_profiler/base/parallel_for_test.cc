#include "xla_profiler/base/parallel_for.h"

#include <pthread.h>

#include <atomic>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

void Ignore(uint64_t) {}

TEST(ParallelForTest, DoesAllOnceOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 8}) {
    std::vector<int> calls(100, 0);
    std::vector<uint64_t> told;
    EXPECT_OK(ParallelFor(
        calls.size(), threads,
        [&](size_t i) {
          ++calls[i];
          return absl::OkStatus();
        },
        [&](uint64_t done) { told.push_back(done); }));
    EXPECT_THAT(calls, Each(1));
    ASSERT_EQ(told.size(), 100);
    EXPECT_EQ(told.back(), 100);
  }
}

TEST(ParallelForTest, OneThreadGoesInOrder) {
  std::vector<size_t> order;
  EXPECT_OK(ParallelFor(
      3, 1,
      [&](size_t i) {
        order.push_back(i);
        return absl::OkStatus();
      },
      Ignore));
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
}

TEST(ParallelForTest, TheErrorOfTheSmallestNumberWinsEvenWhenItIsLate) {
  for (const int threads : {1, 2, 8}) {
    std::atomic<int> calls = 0;
    EXPECT_THAT(ParallelFor(
                    10'000, threads,
                    [&](size_t i) {
                      ++calls;
                      if (i < 3) return absl::OkStatus();
                      if (i == 3) absl::SleepFor(absl::Milliseconds(20));
                      return absl::InvalidArgumentError(absl::StrCat("number ", i));
                    },
                    Ignore),
                StatusIs(absl::StatusCode::kInvalidArgument, "number 3"));
    EXPECT_LE(calls, 3 + threads);
  }
}

// Threads whose stack is larger than the address space cannot be made.
TEST(ParallelForTest, WithoutThreadsTheCallerDoesAllInsteadOfAborting) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_getattr_default_np(&attributes), 0);
  size_t stack_bytes = 0;
  pthread_attr_getstacksize(&attributes, &stack_bytes);
  pthread_attr_setstacksize(&attributes, size_t{1} << 60);
  ASSERT_EQ(pthread_setattr_default_np(&attributes), 0);
  std::vector<int> calls(100, 0);
  EXPECT_OK(ParallelFor(
      calls.size(), 8,
      [&](size_t i) {
        ++calls[i];
        return absl::OkStatus();
      },
      Ignore));
  EXPECT_THAT(calls, Each(1));
  pthread_attr_setstacksize(&attributes, stack_bytes);
  EXPECT_EQ(pthread_setattr_default_np(&attributes), 0);
  pthread_attr_destroy(&attributes);
}

TEST(ParallelForTest, NothingToDoIsDone) {
  EXPECT_OK(ParallelFor(
      0, 4, [](size_t) { return absl::InternalError("called"); }, Ignore));
}

TEST(ParallelForTest, AMachineHasAThread) { EXPECT_GE(MachineThreads(), 1); }

}  // namespace
}  // namespace meridian
