#include "xla_profiler/trace_json/trace_json_reader.h"

#include <algorithm>
#include <deque>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/json/json_cutter.h"

namespace meridian {
namespace {

constexpr absl::string_view kBaseTimeKey = "baseTimeNanoseconds";

// Nullopt: no problem.
using MaybeProblem = std::optional<absl::string_view>;

// Parses one event after the other, of which CutTrace has seen to it that they are JSON; texts of an
// event are valid until the next.
class EventParser {
 public:
  MaybeProblem Parse(absl::string_view element, TraceJsonEvent* event) {
    if (element.empty() || element.front() != '{') return TraceJsonProblem::kNotAnObject;
    if (element.size() > kMaxTraceJsonEventBytes) return TraceJsonProblem::kTooLong;
    if (MaybeProblem problem = ParseFields(element, event)) return problem;
    if (event->ph == '\0') return TraceJsonProblem::kMissingPhase;
    if (!event->ts_ps.has_value() && event->ph != 'M') return TraceJsonProblem::kMissingTime;
    if (event->dur_ps < 0) return TraceJsonProblem::kNegativeDuration;
    return std::nullopt;
  }

 private:
  MaybeProblem ParseFields(absl::string_view element, TraceJsonEvent* event) {
    unescaped_.clear();
    JsonCutter cutter(element);
    cutter.Enter('{');
    for (absl::string_view key; cutter.NextMember(&key);) {
      const absl::string_view value = cutter.CutValue();
      Unescape(&key);
      if (MaybeProblem problem = ParseField(key, value, event)) return problem;
    }
    return std::nullopt;
  }

  MaybeProblem ParseField(absl::string_view key, absl::string_view value, TraceJsonEvent* event) {
    if (key == "ph") return ParsePhase(value, &event->ph);
    if (key == "name") return ParseText(value, &event->name);
    if (key == "cat") return ParseText(value, &event->cat);
    if (key == "pid") return ParseTextOrNumber(value, &event->pid);
    if (key == "tid") return ParseTextOrNumber(value, &event->tid);
    if (key == "ts") return ParseTime(value, &event->ts_ps);
    if (key == "dur") return ParseDuration(value, event);
    if (key == "args") return ParseArgs(value, &event->args);
    return std::nullopt;
  }

  // Replaces the inside of a JSON string by what it stands for.
  void Unescape(absl::string_view* text) {
    if (!absl::StrContains(*text, '\\')) return;
    // With the quotes around it.
    *text =
        unescaped_.emplace_back(ParseJsonString({text->data() - 1, text->size() + 2}).value_or(""));
  }

  MaybeProblem ParsePhase(absl::string_view value, char* ph) {
    absl::string_view text;
    if (MaybeProblem problem = ParseText(value, &text)) return problem;
    if (text.size() != 1) return TraceJsonProblem::kWrongType;
    *ph = text.front();
    return std::nullopt;
  }

  MaybeProblem ParseText(absl::string_view value, absl::string_view* text) {
    if (value.front() != '"') return TraceJsonProblem::kWrongType;
    *text = value.substr(1, value.size() - 2);
    Unescape(text);
    return std::nullopt;
  }

  MaybeProblem ParseTextOrNumber(absl::string_view value, absl::string_view* text) {
    if (value.front() == '"') return ParseText(value, text);
    if (value.front() != '-' && !absl::ascii_isdigit(value.front())) {
      return TraceJsonProblem::kWrongType;
    }
    // Nearly always a plain integer; the rest is read as a number to see whether it is one.
    const bool is_number = std::all_of(value.begin(), value.end(), absl::ascii_isdigit) ||
                           ParseMicrosAsPicos(value).has_value();
    if (!is_number) return TraceJsonProblem::kWrongType;
    *text = value;
    return std::nullopt;
  }

  MaybeProblem ParseTime(absl::string_view value, std::optional<absl::int128>* ps) {
    if (value.front() == '"') {
      if (MaybeProblem problem = ParseText(value, &value)) return problem;
    }
    *ps = ParseMicrosAsPicos(value);
    return ps->has_value() ? std::nullopt : MaybeProblem(TraceJsonProblem::kBadTime);
  }

  MaybeProblem ParseDuration(absl::string_view value, TraceJsonEvent* event) {
    std::optional<absl::int128> wide;
    if (MaybeProblem problem = ParseTime(value, &wide)) return problem;
    const std::optional<int64_t> narrow = NarrowToInt64(*wide);
    if (!narrow.has_value()) return TraceJsonProblem::kBadTime;
    event->dur_ps = *narrow;
    event->has_dur = true;
    return std::nullopt;
  }

  MaybeProblem ParseArgs(absl::string_view value, JsonValue* args) {
    if (value.front() != '{') return TraceJsonProblem::kWrongType;
    *args = JsonValue(value);
    return std::nullopt;
  }

  // What the event's texts with escapes stand for; few have any.
  std::deque<std::string> unescaped_;
};

bool IsEmptyObject(absl::string_view element) {
  JsonCutter cutter(element);
  cutter.Enter('{');
  return cutter.Peek() == '}';
}

// Takes a member that stands beside the events.
absl::Status AddMember(absl::string_view key, JsonValue value, uint64_t offset,
                       TraceJsonHeader* header) {
  header->members.emplace_back(key, value);
  if (key != kBaseTimeKey) return absl::OkStatus();
  header->base_time_ns = value.AsInt64();
  if (header->base_time_ns.has_value()) return absl::OkStatus();
  return InvalidArgument("offset ", offset, ": ", kBaseTimeKey, " is not an integer");
}

}  // namespace

void TraceJsonProblems::Add(absl::string_view problem, uint64_t offset) {
  Tally& tally = tallies_[problem];
  if (tally.count++ == 0) tally.first_offset = offset;
}

uint64_t TraceJsonProblems::count(absl::string_view problem) const {
  const auto it = tallies_.find(problem);
  return it == tallies_.end() ? 0 : it->second.count;
}

uint64_t TraceJsonProblems::total() const {
  uint64_t total = 0;
  for (const auto& [problem, tally] : tallies_) total += tally.count;
  return total;
}

std::optional<uint64_t> TraceJsonProblems::first_offset(absl::string_view problem) const {
  const auto it = tallies_.find(problem);
  return it == tallies_.end() ? std::nullopt : std::make_optional(it->second.first_offset);
}

std::string TraceJsonProblems::ToString() const {
  return absl::StrJoin(tallies_, ", ", [](std::string* text, const auto& entry) {
    const auto& [problem, tally] = entry;
    absl::StrAppend(text, tally.count, " ", problem,
                    tally.count == 1 ? " (at offset " : " (first at offset ", tally.first_offset,
                    ")");
  });
}

JsonValue TraceJsonHeader::Find(absl::string_view key) const {
  for (auto it = members.rbegin(); it != members.rend(); ++it) {
    if (it->first == key) return it->second;
  }
  return JsonValue();
}

absl::StatusOr<TraceJsonHeader> ReadTraceJson(
    absl::string_view text, absl::FunctionRef<absl::Status(const TraceJsonEvent&)> on_event,
    TraceJsonProblems* problems) {
  TraceJsonHeader header;
  EventParser parser;
  uint64_t next_position = 0;
  RETURN_IF_ERROR(CutTrace(
      text,
      [&](absl::string_view element) {
        TraceJsonEvent event;
        event.offset = element.data() - text.data();
        event.position = next_position++;
        if (MaybeProblem problem = parser.Parse(element, &event)) {
          if (!IsEmptyObject(element)) problems->Add(*problem, event.offset);
          return absl::OkStatus();
        }
        return on_event(event);
      },
      [&](absl::string_view key, absl::string_view value) {
        return AddMember(key, JsonValue(value), key.data() - text.data(), &header);
      }));
  return header;
}

}  // namespace meridian
