#include "xla_profiler/base/command_line/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr absl::Duration kSilence = absl::Seconds(1);
constexpr absl::Duration kSilenceOfLine = absl::Seconds(2);
constexpr absl::Duration kRedrawInterval = absl::Milliseconds(100);
constexpr int kBarCells = 20;
// Leaves room for the rest in 80 columns; a line that wraps cannot be erased.
constexpr size_t kLabelColumns = 37;
constexpr absl::string_view kToLineStart = "\r";
constexpr absl::string_view kEraseToLineEnd = "\x1b[K";

std::atomic<bool> is_hidden = false;
// When a bar was drawn last, in Unix seconds.
std::atomic<int64_t> last_bar_seconds = 0;

bool ShowsProgress() {
  const char* const terminal = std::getenv("TERM");
  const bool is_dumb = terminal != nullptr && absl::string_view(terminal) == "dumb";
  return !is_hidden && !is_dumb && isatty(STDERR_FILENO);
}

void WriteToStandardError(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

ProgressBarOptions WithDefaults(ProgressBarOptions options) {
  if (options.output == nullptr && ShowsProgress()) options.output = WriteToStandardError;
  if (options.now == nullptr) options.now = absl::Now;
  return options;
}

std::string Bar(double share) {
  std::string bar(static_cast<int>(share * kBarCells), '=');
  if (bar.size() < kBarCells) bar += '>';
  bar.resize(kBarCells, ' ');
  return bar;
}

// Returns e.g. "3s", "2m05s", "1h02m".
std::string RoundedUp(absl::Duration duration) {
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1)));
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrFormat("%dm%02ds", seconds / 60, seconds % 60);
  return absl::StrFormat("%dh%02dm", seconds / 3600, seconds / 60 % 60);
}

}  // namespace

void HideProgress() { is_hidden = true; }

struct WorkingLine::State {
  std::string name;
  std::string what;
  const absl::Time start = absl::Now();
  bool is_over = false;
  bool is_visible = false;
  std::mutex mutex;
  std::condition_variable over;
  std::thread thread;
  // The one that is there.
  static State* current;

  void Draw() {
    std::unique_lock<std::mutex> lock(mutex);
    while (!over.wait_for(lock, std::chrono::seconds(1), [&] { return is_over; })) {
      const absl::Time now = absl::Now();
      const bool has_bar = absl::ToUnixSeconds(now) - last_bar_seconds <= 1;
      if (has_bar || now - start < kSilenceOfLine) continue;
      // The cursor goes back, so that a message takes the line's place.
      WriteToStandardError(absl::StrCat(kToLineStart, kEraseToLineEnd, name,
                                        what.empty() ? "" : ": ", what, ", ",
                                        RoundedUp(now - start), kToLineStart));
      is_visible = true;
    }
    if (is_visible) WriteToStandardError(absl::StrCat(kToLineStart, kEraseToLineEnd));
  }
};

WorkingLine::State* WorkingLine::State::current = nullptr;

WorkingLine::WorkingLine(std::string name)
    : state_(ShowsProgress() ? std::make_unique<State>() : nullptr) {
  if (state_ == nullptr) return;
  state_->name = std::move(name);
  State::current = state_.get();
  state_->thread = std::thread([this] { state_->Draw(); });
}

WorkingLine::~WorkingLine() {
  if (state_ == nullptr) return;
  State::current = nullptr;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->is_over = true;
  }
  state_->over.notify_all();
  state_->thread.join();
}

void WorkingLine::Say(std::string what) {
  if (State::current == nullptr) return;
  const std::lock_guard<std::mutex> lock(State::current->mutex);
  State::current->what = std::move(what);
}

ProgressBar::ProgressBar(std::string label, uint64_t total, ProgressBarOptions options)
    : label_(FirstCharacters(Printable(label), kLabelColumns)),
      total_(total),
      options_(WithDefaults(std::move(options))),
      start_(options_.now()),
      next_draw_(start_ + kSilence) {}

ProgressBar::~ProgressBar() {
  if (visible_) options_.output(absl::StrCat(kToLineStart, kEraseToLineEnd));
}

void ProgressBar::Update(uint64_t done) {
  if (options_.output == nullptr) return;
  const absl::Time now = options_.now();
  if (now < next_draw_) return;
  options_.output(absl::StrCat(kToLineStart, Line(done, now - start_), kEraseToLineEnd));
  next_draw_ = now + kRedrawInterval;
  visible_ = true;
  last_bar_seconds = absl::ToUnixSeconds(absl::Now());
}

std::string ProgressBar::Line(uint64_t done, absl::Duration elapsed) const {
  if (total_ == 0) return absl::StrCat(label_, "  ", WithThousands(done));
  const double share = std::min(static_cast<double>(done) / total_, 1.0);
  std::string line =
      absl::StrFormat("%s  [%s] %3d%%", label_, Bar(share), static_cast<int>(share * 100));
  if (done > 0) absl::StrAppend(&line, "  eta ", RoundedUp(elapsed * ((1 - share) / share)));
  return line;
}

}  // namespace meridian
