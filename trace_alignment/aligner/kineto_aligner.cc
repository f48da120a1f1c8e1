#include "trace_alignment/aligner/kineto_aligner.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/picoseconds.h"

namespace meridian {
namespace {

// 106 days either way.
constexpr absl::int128 kMaxRunPs = std::numeric_limits<int64_t>::max();

// Numbers may be written as strings.
absl::string_view WithoutQuotes(absl::string_view value) {
  const bool is_quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return is_quoted ? value.substr(1, value.size() - 2) : value;
}

// Replaces a number of microseconds by another with three digits behind the point, as Kineto writes
// them, in quotes if the old one was.
void ReplaceMicros(absl::string_view old, int64_t ns, EventEdits* edits) {
  // Room for the quotes, the sign, the point and all digits.
  char buffer[32];
  char* begin = buffer + sizeof(buffer);
  const bool is_quoted = old.front() == '"';
  if (is_quoted) *--begin = '"';
  uint64_t rest = ns < 0 ? -static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  for (int digit = 0; digit < 4 || rest > 0; ++digit) {
    if (digit == 3) *--begin = '.';
    *--begin = static_cast<char>('0' + rest % 10);
    rest /= 10;
  }
  if (ns < 0) *--begin = '-';
  if (is_quoted) *--begin = '"';
  edits->emplace_back(old, std::string(begin, buffer + sizeof(buffer) - begin));
}

// Returns where the mark of aligned traces may be put in, as the first member of the document; 0 when
// that has no members, or is marked.
size_t PlaceOfMark(absl::string_view text) {
  constexpr char kWhitespace[] = " \t\r\n";
  const size_t brace = text.find_first_not_of(kWhitespace);
  if (brace == absl::string_view::npos || text[brace] != '{') return 0;
  const size_t member = text.find_first_not_of(kWhitespace, brace + 1);
  if (member == absl::string_view::npos || text[member] != '"') return 0;
  const std::string mark = absl::StrCat("\"", kAlignedClockKey, "\"");
  return absl::StartsWith(text.substr(member), mark) ? 0 : member;
}

// Puts the mark of aligned traces in after that many bytes, which are the same as before.
class MarkingSink : public ByteSink {
 public:
  MarkingSink(size_t bytes_before, ByteSink& sink) : bytes_before_(bytes_before), sink_(sink) {}

  absl::Status Append(absl::string_view data) override {
    if (bytes_before_ == 0 || data.size() < bytes_before_) {
      bytes_before_ -= std::min(bytes_before_, data.size());
      return sink_.Append(data);
    }
    RETURN_IF_ERROR(sink_.Append(data.substr(0, bytes_before_)));
    RETURN_IF_ERROR(sink_.Append(absl::StrCat("\"", kAlignedClockKey, "\": 1, ")));
    data.remove_prefix(std::exchange(bytes_before_, 0));
    return sink_.Append(data);
  }

 private:
  size_t bytes_before_;
  ByteSink& sink_;
};

}  // namespace

std::optional<int64_t> WrittenNs(absl::int128 ps) {
  const absl::int128 half = ps < 0 ? -kPsPerNs / 2 : kPsPerNs / 2;
  return NarrowToInt64((ps + half) / kPsPerNs);
}

KinetoEventAligner::KinetoEventAligner(const NodeClock& clock, int64_t base_ns, int64_t new_base_ns)
    : line_(clock, ClockDomain::kHost),
      base_in_run_ps_((absl::int128(base_ns) - clock.run.base_ns()) * kPsPerNs),
      run_in_new_base_ps_((absl::int128(clock.run.base_ns()) - new_base_ns) * kPsPerNs) {}

std::optional<int64_t> KinetoEventAligner::NewNs(absl::int128 time_ps) {
  const absl::int128 run_ps = time_ps + base_in_run_ps_;
  if (run_ps > kMaxRunPs || run_ps < -kMaxRunPs) return std::nullopt;
  return WrittenNs(line_.Map(static_cast<int64_t>(run_ps)) + run_in_new_base_ps_);
}

void KinetoEventAligner::Edit(const WrittenEvent& event, EventEdits* edits) {
  if (event.ts.empty()) return;
  const std::optional<absl::int128> start_ps = ParseMicrosAsPicos(WithoutQuotes(event.ts));
  if (!start_ps.has_value()) return;
  const std::optional<int64_t> start_ns = NewNs(*start_ps);
  if (!start_ns.has_value()) return;
  ReplaceMicros(event.ts, *start_ns, edits);
  if (event.Is('M')) return;
  stats_.set_events(stats_.events() + 1);
  const std::optional<int64_t> old_ns =
      WrittenNs(*start_ps + base_in_run_ps_ + run_in_new_base_ps_);
  const int64_t correction_ns = *start_ns - old_ns.value_or(*start_ns);
  if (stats_.events() == 1) {
    stats_.set_min_correction_ns(correction_ns);
    stats_.set_max_correction_ns(correction_ns);
  }
  stats_.set_min_correction_ns(std::min(stats_.min_correction_ns(), correction_ns));
  stats_.set_max_correction_ns(std::max(stats_.max_correction_ns(), correction_ns));
  if (correction_ns != 0) stats_.set_events_corrected(stats_.events_corrected() + 1);
  if (event.dur.empty()) return;
  const std::optional<absl::int128> duration_ps = ParseMicrosAsPicos(WithoutQuotes(event.dur));
  if (!duration_ps.has_value() || *duration_ps < 0) return;
  const std::optional<int64_t> end_ns = NewNs(*start_ps + *duration_ps);
  // The clocks of nodes run forward.
  if (end_ns.has_value() && *end_ns >= *start_ns) {
    ReplaceMicros(event.dur, *end_ns - *start_ns, edits);
  }
}

AlignmentStats KinetoEventAligner::TakeStats() const {
  AlignmentStats stats = stats_;
  stats.set_offset_extrapolations(line_.offset_extrapolations());
  if (line_.farthest_extrapolation_ps() > 0) {
    stats.set_farthest_extrapolation_ns(line_.farthest_extrapolation_ps() / kPsPerNs);
  }
  return stats;
}

absl::StatusOr<AlignmentStats> AlignKineto(absl::string_view text, int64_t base_ns,
                                           const NodeClock& clock, ByteSink& sink) {
  KinetoEventAligner aligner(clock, base_ns, base_ns);
  MarkingSink marking(PlaceOfMark(text), sink);
  RETURN_IF_ERROR(RewriteTraceJson(
      text, [&](const WrittenEvent& event, EventEdits* edits) { aligner.Edit(event, edits); },
      marking));
  return aligner.TakeStats();
}

absl::Status CheckExtrapolation(const AlignmentStats& stats, absl::string_view trace,
                                int64_t max_extrapolation_ns) {
  if (stats.farthest_extrapolation_ns() <= max_extrapolation_ns) return absl::OkStatus();
  return InvalidArgument(
      trace, ": an event lies ", stats.farthest_extrapolation_ns() / 1'000'000,
      " ms outside the offsets; are they of this run? If so, raise --max_extrapolation_ms (now ",
      max_extrapolation_ns / 1'000'000, ")");
}

}  // namespace meridian
