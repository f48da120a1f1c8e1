#include "xla_profiler/base/command_line/progress_bar.h"

#include <pty.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace meridian {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class ProgressBarTest : public ::testing::Test {
 protected:
  ProgressBarOptions Options() {
    ProgressBarOptions options;
    options.output = [this](absl::string_view text) { absl::StrAppend(&output_, text); };
    options.now = [this] { return now_; };
    return options;
  }

  std::string TakeOutput() { return std::exchange(output_, ""); }

  absl::Time now_ = absl::UnixEpoch();
  std::string output_;
};

TEST_F(ProgressBarTest, IsSilentInTheFirstSecond) {
  {
    ProgressBar bar("reading", 100, Options());
    bar.Update(10);
    now_ += absl::Milliseconds(999);
    bar.Update(50);
  }
  EXPECT_EQ(output_, "");
}

TEST_F(ProgressBarTest, ShowsShareAndTimeLeftAndWipesItself) {
  {
    ProgressBar bar("reading node3.xplane.pb", 100, Options());
    // 47 % in 2.5 s: 53/47 * 2.5 s = 2.8 s are left.
    now_ += absl::Milliseconds(2500);
    bar.Update(47);
    EXPECT_EQ(TakeOutput(), "\rreading node3.xplane.pb  [=========>          ]  47%  eta 3s\x1b[K");
  }
  EXPECT_EQ(output_, "\r\x1b[K");
}

TEST_F(ProgressBarTest, RedrawsAtMostTenTimesASecond) {
  ProgressBar bar("a", 100, Options());
  now_ += absl::Seconds(1);
  bar.Update(50);
  EXPECT_NE(TakeOutput(), "");
  now_ += absl::Milliseconds(99);
  bar.Update(51);
  EXPECT_EQ(TakeOutput(), "");
  now_ += absl::Milliseconds(1);
  bar.Update(52);
  EXPECT_EQ(TakeOutput(), "\ra  [==========>         ]  52%  eta 2s\x1b[K");
}

TEST_F(ProgressBarTest, IsFullAtTheEndAndBeyond) {
  ProgressBar bar("a", 10, Options());
  now_ += absl::Seconds(1);
  bar.Update(10);
  EXPECT_EQ(TakeOutput(), "\ra  [====================] 100%  eta 0s\x1b[K");
  now_ += absl::Seconds(1);
  bar.Update(11);
  EXPECT_EQ(TakeOutput(), "\ra  [====================] 100%  eta 0s\x1b[K");
}

TEST_F(ProgressBarTest, PromisesNothingBeforeTheFirstItem) {
  ProgressBar bar("a", 10, Options());
  now_ += absl::Seconds(5);
  bar.Update(0);
  EXPECT_EQ(TakeOutput(), "\ra  [>                   ]   0%\x1b[K");
}

TEST_F(ProgressBarTest, ShowsTheCountWhenTheTotalIsUnknown) {
  ProgressBar bar("events", 0, Options());
  now_ += absl::Seconds(1);
  bar.Update(1234567);
  EXPECT_EQ(TakeOutput(), "\revents  1,234,567\x1b[K");
}

TEST_F(ProgressBarTest, ShowsLongTimesInMinutesAndHours) {
  ProgressBar bar("a", 2, Options());
  now_ += absl::Seconds(125);
  bar.Update(1);
  EXPECT_EQ(TakeOutput(), "\ra  [==========>         ]  50%  eta 2m05s\x1b[K");
  now_ += absl::Seconds(3725 - 125);
  bar.Update(1);
  EXPECT_EQ(TakeOutput(), "\ra  [==========>         ]  50%  eta 1h02m\x1b[K");
}

TEST_F(ProgressBarTest, KeepsTheLabelOffTheTerminal) {
  ProgressBar bar("a\x1b[2J\nb", 0, Options());
  now_ += absl::Seconds(1);
  bar.Update(1);
  EXPECT_EQ(TakeOutput(), "\ra?[2J?b  1\x1b[K");
}

TEST_F(ProgressBarTest, ShortensALabelThatWouldWrapTheLine) {
  std::string label;
  for (int i = 0; i < 41; ++i) label += "é";
  ProgressBar bar(label, 0, Options());
  now_ += absl::Seconds(1);
  bar.Update(1);
  EXPECT_EQ(TakeOutput(), absl::StrCat("\r", label.substr(0, 74), "...  1\x1b[K"));
}

// Returns what a line of work shows on a terminal within so long.
std::string LineOnTerminal(absl::Duration duration) {
  int terminal = -1, end = -1;
  EXPECT_EQ(openpty(&terminal, &end, nullptr, nullptr, nullptr), 0);
  const int kept = dup(STDERR_FILENO);
  dup2(end, STDERR_FILENO);
  {
    const WorkingLine line("combine");
    WorkingLine::Say("critical path");
    absl::SleepFor(duration);
  }
  dup2(kept, STDERR_FILENO);
  for (const int used : {kept, end}) close(used);
  std::string text;
  char buffer[256];
  ssize_t count = 0;
  while ((count = read(terminal, buffer, sizeof(buffer))) > 0) text.append(buffer, count);
  close(terminal);
  return text;
}

TEST(WorkingLineTest, SaysOnATerminalWhatIsDoneAndSinceWhenUnlessHidden) {
  setenv("TERM", "xterm", /*overwrite=*/1);
  EXPECT_EQ(LineOnTerminal(absl::Milliseconds(100)), "");
  const std::string shown = LineOnTerminal(absl::Milliseconds(3500));
  EXPECT_THAT(shown, HasSubstr("combine: critical path, "));
  EXPECT_THAT(shown, EndsWith("\r\x1b[K"));
  HideProgress();
  EXPECT_EQ(LineOnTerminal(absl::Milliseconds(3500)), "");
}

}  // namespace
}  // namespace meridian
