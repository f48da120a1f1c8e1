#include "xla_profiler/base/files/unfinished_files.h"

#include <csignal>

#include "gtest/gtest.h"

namespace meridian {
namespace {

TEST(InterruptTest, TheSignalStays) {
  EXPECT_EQ(InterruptSignal(), 0);
  std::signal(SIGTERM, NoteInterrupt);
  std::raise(SIGTERM);
  EXPECT_EQ(InterruptSignal(), SIGTERM);
  EXPECT_EQ(InterruptSignal(), SIGTERM);
}

}  // namespace
}  // namespace meridian
