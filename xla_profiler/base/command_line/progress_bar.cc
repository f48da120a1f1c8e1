#include "xla_profiler/base/command_line/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr absl::Duration kSilence = absl::Seconds(1);
constexpr absl::Duration kRedrawInterval = absl::Milliseconds(100);
constexpr int kBarCells = 20;
// Leaves room for the rest in 80 columns; a line that wraps cannot be erased.
constexpr size_t kLabelColumns = 37;
constexpr absl::string_view kToLineStart = "\r";
constexpr absl::string_view kEraseToLineEnd = "\x1b[K";

void WriteToStandardError(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

ProgressBarOptions WithDefaults(ProgressBarOptions options) {
  if (options.output == nullptr && isatty(STDERR_FILENO)) options.output = WriteToStandardError;
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
