#include "trace_alignment/clocks/clock_map.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// Returns |a - b|, which always fits.
uint64_t Distance(int64_t a, int64_t b) {
  return a < b ? static_cast<uint64_t>(b) - static_cast<uint64_t>(a)
               : static_cast<uint64_t>(a) - static_cast<uint64_t>(b);
}

absl::uint128 Quotient(absl::uint128 dividend, uint64_t divisor) {
  // The usual case, and several times faster.
  if (absl::Uint128High64(dividend) == 0) return absl::Uint128Low64(dividend) / divisor;
  return dividend / divisor;
}

// +-(factor * other / divisor) to the nearest integer, halves up; beyond +-2^65, where no sum with
// an int64 difference fits an int64, some such number.
absl::int128 RoundedProduct(bool negative, uint64_t factor, uint64_t other, uint64_t divisor) {
  const absl::uint128 product = absl::uint128(factor) * other;
  absl::uint128 quotient = Quotient(product, divisor);
  const uint64_t remainder = absl::Uint128Low64(product - quotient * divisor);
  const uint64_t missing = divisor - remainder;
  if (negative ? remainder > missing : remainder >= missing) quotient += 1;
  const auto magnitude = static_cast<absl::int128>(std::min(quotient, absl::uint128(1) << 66));
  return negative ? -magnitude : magnitude;
}

bool Precedes(const ClockKnot& a, const ClockKnot& b) {
  return std::tie(a.from_ps, a.to_ps) < std::tie(b.from_ps, b.to_ps);
}

bool Equals(const ClockKnot& a, const ClockKnot& b) {
  return a.from_ps == b.from_ps && a.to_ps == b.to_ps;
}

std::string ToString(const ClockKnot& knot) {
  return absl::StrCat("(", knot.from_ps, " ps -> ", knot.to_ps, " ps)");
}

// `knots` are sorted and distinct.
absl::Status CheckIncreasing(const std::vector<ClockKnot>& knots) {
  for (size_t i = 1; i < knots.size(); ++i) {
    const ClockKnot& last = knots[i - 1];
    const ClockKnot& next = knots[i];
    if (last.from_ps < next.from_ps && last.to_ps < next.to_ps) continue;
    const absl::string_view reason =
        last.from_ps == next.from_ps ? " contradict each other" : " run backwards";
    return InvalidArgument("clock readings ", ToString(last), " and ", ToString(next), reason);
  }
  return absl::OkStatus();
}

// True when the slope from a to b is within [1/kMaxRepairedSlope, kMaxRepairedSlope].
bool CanFollow(const ClockKnot& a, const ClockKnot& b) {
  const absl::int128 run_ps = absl::int128(b.from_ps) - a.from_ps;
  const absl::int128 rise_ps = absl::int128(b.to_ps) - a.to_ps;
  return run_ps > 0 && rise_ps > 0 && rise_ps <= run_ps * kMaxRepairedSlope &&
         run_ps <= rise_ps * kMaxRepairedSlope;
}

// Returns knots that one map goes through. Clocks run at nearly the same rate: of two that no map
// goes through, the one whose shift is farther from the median is left out. `knots` are sorted.
std::vector<ClockKnot> WithoutOutliers(const std::vector<ClockKnot>& knots) {
  std::vector<absl::int128> shifts_ps;
  for (const ClockKnot& knot : knots) {
    shifts_ps.push_back(absl::int128(knot.from_ps) - knot.to_ps);
  }
  const auto median_ps = shifts_ps.begin() + shifts_ps.size() / 2;
  std::nth_element(shifts_ps.begin(), median_ps, shifts_ps.end());
  const auto distance_ps = [&](const ClockKnot& knot) {
    const absl::int128 excess_ps = absl::int128(knot.from_ps) - knot.to_ps - *median_ps;
    return excess_ps < 0 ? -excess_ps : excess_ps;
  };
  std::vector<ClockKnot> kept;
  for (const ClockKnot& knot : knots) {
    while (!kept.empty() && !CanFollow(kept.back(), knot) &&
           distance_ps(kept.back()) > distance_ps(knot)) {
      kept.pop_back();
    }
    if (kept.empty() || CanFollow(kept.back(), knot)) kept.push_back(knot);
  }
  return kept;
}

// Returns, for each run of removed knots, the times from the last kept knot before it to the first
// after it.
std::vector<ClockInterval> RemovedIntervals(const std::vector<ClockKnot>& knots,
                                            const std::vector<ClockKnot>& kept) {
  std::vector<ClockInterval> intervals;
  size_t next_kept = 0;
  bool open = false;
  for (const ClockKnot& knot : knots) {
    if (next_kept < kept.size() && Equals(knot, kept[next_kept])) {
      ++next_kept;
      open = false;
      continue;
    }
    const int64_t begin_ps = next_kept == 0 ? knot.from_ps : kept[next_kept - 1].from_ps;
    const int64_t end_ps = next_kept == kept.size() ? knot.from_ps : kept[next_kept].from_ps;
    if (!open) intervals.push_back({begin_ps, end_ps});
    intervals.back().end_ps = end_ps;
    open = true;
  }
  return intervals;
}

}  // namespace

ClockMap ClockMap::Identity() {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  return ClockMap({ClockKnot{kMin, kMin}, ClockKnot{kMax, kMax}});
}

absl::StatusOr<ClockMap> ClockMap::Create(std::vector<ClockKnot> knots, OnDisorder on_disorder) {
  if (knots.empty()) return InvalidArgument("a clock map needs at least one reading");
  std::sort(knots.begin(), knots.end(), Precedes);
  knots.erase(std::unique(knots.begin(), knots.end(), Equals), knots.end());
  const size_t distinct = knots.size();

  std::vector<ClockInterval> repaired_intervals;
  if (on_disorder == OnDisorder::kRepair) {
    const std::vector<ClockKnot> all = std::move(knots);
    knots = WithoutOutliers(all);
    repaired_intervals = RemovedIntervals(all, knots);
  } else {
    RETURN_IF_ERROR(CheckIncreasing(knots));
  }
  ClockMap map(knots);
  map.knots_repaired_ = distinct - knots.size();
  map.repaired_intervals_ = std::move(repaired_intervals);
  return map;
}

ClockMap::ClockMap(const std::vector<ClockKnot>& knots) {
  const auto line = [](const ClockKnot& anchor, const ClockKnot& a, const ClockKnot& b) {
    if (Equals(a, b)) return Segment{anchor};
    return Segment{anchor, Distance(a.from_ps, b.from_ps), Distance(a.to_ps, b.to_ps)};
  };
  const ClockKnot& first = knots.front();
  const ClockKnot& last = knots.back();
  // The other ends of the chords that give the end slopes.
  size_t head = 0;
  while (head + 1 < knots.size() && Distance(first.from_ps, knots[head].from_ps) < kEndSlopeSpanPs)
    ++head;
  size_t tail = knots.size() - 1;
  while (tail > 0 && Distance(last.from_ps, knots[tail].from_ps) < kEndSlopeSpanPs) --tail;

  segments_.reserve(knots.size() + 1);
  segments_.push_back(line(first, first, knots[head]));
  for (size_t i = 0; i + 1 < knots.size(); ++i) {
    segments_.push_back(line(knots[i], knots[i], knots[i + 1]));
  }
  segments_.push_back(line(last, knots[tail], last));
}

int64_t ClockMap::Segment::Forward(int64_t from_ps) const {
  // Clocks run at nearly the same rate: the anchor's shift, plus what the rates differ by.
  const absl::int128 delta_ps = absl::int128(from_ps) - anchor.from_ps;
  const bool negative = (from_ps < anchor.from_ps) != (rise_ps < run_ps);
  const uint64_t excess_ps = rise_ps < run_ps ? run_ps - rise_ps : rise_ps - run_ps;
  return SaturateToInt64(
      delta_ps + anchor.to_ps +
      RoundedProduct(negative, Distance(from_ps, anchor.from_ps), excess_ps, run_ps));
}

size_t ClockMap::SegmentIndex(int64_t from_ps) const {
  const auto after = std::upper_bound(
      segments_.begin() + 1, segments_.end(), from_ps,
      [](int64_t time_ps, const Segment& segment) { return time_ps < segment.anchor.from_ps; });
  return after - segments_.begin() - 1;
}

int64_t ClockMap::Forward(int64_t from_ps) const {
  return segments_[SegmentIndex(from_ps)].Forward(from_ps);
}

ClockMap ClockMap::Inverted() const {
  ClockMap inverse = *this;
  for (Segment& segment : inverse.segments_) segment = segment.Inverted();
  for (ClockInterval& interval : inverse.repaired_intervals_) {
    interval = {Forward(interval.begin_ps), Forward(interval.end_ps)};
  }
  return inverse;
}

bool ClockMap::IsRepaired(int64_t from_ps) const {
  const auto interval = std::lower_bound(
      repaired_intervals_.begin(), repaired_intervals_.end(), from_ps,
      [](const ClockInterval& interval, int64_t time_ps) { return interval.end_ps < time_ps; });
  return interval != repaired_intervals_.end() && interval->begin_ps <= from_ps;
}

int64_t ClockMapCursor::Forward(int64_t from_ps) {
  if (!Rules(segment_, from_ps)) {
    ++segment_;
    if (segment_ >= map_->segments_.size() || !Rules(segment_, from_ps)) {
      segment_ = map_->SegmentIndex(from_ps);
    }
  }
  if (segment_ == 0 || segment_ + 1 == map_->segments_.size()) CountExtrapolation(from_ps);
  return map_->segments_[segment_].Forward(from_ps);
}

bool ClockMapCursor::Rules(size_t segment, int64_t from_ps) const {
  const std::vector<ClockMap::Segment>& segments = map_->segments_;
  return (segment == 0 || segments[segment].anchor.from_ps <= from_ps) &&
         (segment + 1 == segments.size() || from_ps < segments[segment + 1].anchor.from_ps);
}

void ClockMapCursor::CountExtrapolation(int64_t from_ps) {
  const int64_t nearest_ps = std::clamp(from_ps, map_->segments_.front().anchor.from_ps,
                                        map_->segments_.back().anchor.from_ps);
  if (nearest_ps == from_ps) return;
  ++extrapolations_;
  farthest_extrapolation_ps_ =
      std::max(farthest_extrapolation_ps_, SaturateToInt64(Distance(from_ps, nearest_ps)));
}

}  // namespace meridian
