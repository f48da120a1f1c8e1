#include "trace_alignment/clocks/clock_log.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/statistics.h"

namespace meridian {
namespace {

using Fields = std::vector<absl::string_view>;

// chrony writes rows at most so far apart: every 1,024 s at its largest polling interval.
constexpr int64_t kLongestPollNs = 2048LL * 1000 * 1000 * 1000;
// An hour; a clock that is farther off tells nothing.
constexpr double kFarthestNs = 3.6e12;

std::optional<double> Number(absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return std::nullopt;
  return value;
}

struct TrackingRow {
  int64_t time_ns = 0;
  // Nothing while the clock follows no source: then the other columns say nothing of it.
  std::optional<double> within_ns;
};

// Returns nullopt for banners and rows of another form. Columns: date, time, source, stratum,
// frequency, its error, offset, leap status, sources, deviation of the offset, remaining
// correction, root delay, root dispersion; newer versions have more.
std::optional<TrackingRow> ReadTrackingRow(const Fields& fields) {
  if (fields.size() < 13) return std::nullopt;
  absl::Time time;
  if (!absl::ParseTime("%Y-%m-%d %H:%M:%S", absl::StrCat(fields[0], " ", fields[1]),
                       absl::UTCTimeZone(), &time, nullptr)) {
    return std::nullopt;
  }
  const std::optional<double> offset = Number(fields[6]), correction = Number(fields[10]),
                              delay = Number(fields[11]), dispersion = Number(fields[12]);
  if (!offset || !correction || !delay || !dispersion) return std::nullopt;
  if (fields[7] == "?") return TrackingRow{absl::ToUnixNanos(time), std::nullopt};
  return TrackingRow{absl::ToUnixNanos(time), 1e9 * (std::abs(*offset) + std::abs(*correction) +
                                                     std::abs(*delay) / 2 + std::abs(*dispersion))};
}

std::string UtcText(int64_t time_ns) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(time_ns), absl::UTCTimeZone());
}

// Returns the largest of the rows of the time, with the one before and the one after.
absl::StatusOr<double> LargestWithinNs(const std::vector<TrackingRow>& rows, absl::string_view name,
                                       int64_t begin_ns, int64_t end_ns) {
  std::optional<double> largest_ns;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool is_before = i + 1 < rows.size() && rows[i + 1].time_ns <= begin_ns;
    const bool is_after = i > 0 && rows[i - 1].time_ns >= end_ns;
    const bool is_far =
        rows[i].time_ns < begin_ns - kLongestPollNs || rows[i].time_ns > end_ns + kLongestPollNs;
    if (is_before || is_after || is_far) continue;
    if (!rows[i].within_ns.has_value()) {
      return InvalidArgument(name, ": at ", UtcText(rows[i].time_ns),
                             " UTC the clock was not synchronised (leap status ?); leave its place "
                             "in --clock_logs empty");
    }
    largest_ns = std::max(largest_ns.value_or(0), *rows[i].within_ns);
  }
  if (largest_ns.has_value()) return *largest_ns;
  return InvalidArgument(name, ": no row is of the time of the profile, ", UtcText(begin_ns),
                         " UTC; the rows are from ", UtcText(rows.front().time_ns), " to ",
                         UtcText(rows.back().time_ns));
}

// Whether a row of ptp4l or phc2sys says how far the clock is off while it is not locked.
bool IsUnlockedPtp(const Fields& fields) {
  for (size_t i = 0; i + 2 < fields.size(); ++i) {
    if (fields[i] == "offset" && (fields[i + 2] == "s0" || fields[i + 2] == "s1")) return true;
  }
  return false;
}

// Returns how far the clock is off by a row of ptp4l or phc2sys; nullopt for others, and while it is
// not locked.
std::optional<double> ReadPtpOffsetNs(const Fields& fields) {
  for (size_t i = 0; i + 1 < fields.size(); ++i) {
    if (fields[i] == "max" && i >= 2 && fields[i - 2] == "rms") return Number(fields[i + 1]);
    if (fields[i] != "offset" || i + 2 >= fields.size()) continue;
    const bool is_locked = fields[i + 2] == "s2" || fields[i + 2] == "s3";
    const std::optional<double> offset_ns = Number(fields[i + 1]);
    if (is_locked && offset_ns.has_value()) return std::abs(*offset_ns);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<int64_t> ClockWithinNs(absl::string_view log, absl::string_view name,
                                      int64_t begin_ns, int64_t end_ns) {
  std::vector<TrackingRow> tracking;
  std::vector<double> ptp4l_ns, phc2sys_ns;
  bool is_unlocked = false;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    const Fields fields = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (const std::optional<TrackingRow> row = ReadTrackingRow(fields); row.has_value()) {
      tracking.push_back(*row);
    } else if (const std::optional<double> offset_ns = ReadPtpOffsetNs(fields)) {
      (absl::StrContains(line, "phc2sys") ? phc2sys_ns : ptp4l_ns).push_back(*offset_ns);
    } else {
      is_unlocked |= IsUnlockedPtp(fields);
    }
  }
  if (tracking.empty() && ptp4l_ns.empty() && phc2sys_ns.empty()) {
    return InvalidArgument(name, is_unlocked
                                     ? ": the clock is never locked (s2)"
                                     : ": no row of chrony's tracking.log, ptp4l or phc2sys");
  }
  double within_ns = 0;
  if (!tracking.empty()) {
    ASSIGN_OR_RETURN(within_ns, LargestWithinNs(tracking, name, begin_ns, end_ns));
  }
  for (std::vector<double>* offsets_ns : {&ptp4l_ns, &phc2sys_ns}) {
    if (!offsets_ns->empty()) within_ns += Quantile(std::move(*offsets_ns), 0.9);
  }
  if (within_ns > kFarthestNs) {
    return InvalidArgument(name, ": a clock that is more than an hour off");
  }
  return static_cast<int64_t>(std::ceil(std::max(1.0, within_ns)));
}

absl::StatusOr<int64_t> LoadClockLog(FileSystem& file_system, const std::string& path,
                                     int64_t begin_ns, int64_t end_ns) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ClockWithinNs(file.bytes(), path, begin_ns, end_ns);
}

}  // namespace meridian
