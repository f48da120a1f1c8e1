#include "xla_profiler/trace_json/trace_json_reader.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "simdjson.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/exact_decimal.h"
#include "xla_profiler/base/json/json_cutter.h"

namespace meridian {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr absl::string_view kBaseTimeKey = "baseTimeNanoseconds";

// Nullopt: no problem.
using MaybeProblem = std::optional<TraceJsonProblem>;

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

// Raw text reaches up to the token that follows. Only JSON's white space goes: other control
// characters are junk that must stay visible.
absl::string_view WithoutSpaceBehind(std::string_view raw) {
  return {raw.data(), raw.find_last_not_of(" \n\r\t") + 1};
}

// The first token of a value, which for numbers and literals is all of it. Never empty.
absl::string_view Token(ondemand::value value) {
  return WithoutSpaceBehind(value.raw_json_token());
}

// Parses one event after the other; buffers are reused.
class EventParser {
 public:
  MaybeProblem Parse(absl::string_view element, TraceJsonEvent* event) {
    if (element.empty() || element.front() != '{') return TraceJsonProblem::kNotAnObject;
    if (element.size() > kMaxTraceJsonEventBytes) return TraceJsonProblem::kTooLong;
    element_ = element;
    if (padded_.size() < element.size() + simdjson::SIMDJSON_PADDING) {
      padded_.resize(2 * element.size() + simdjson::SIMDJSON_PADDING);
    }
    std::memcpy(padded_.data(), element.data(), element.size());
    if (MaybeProblem problem = ParseFields(event)) return problem;
    if (event->ph == '\0') return TraceJsonProblem::kMissingPhase;
    if (!event->ts_ps.has_value() && event->ph != 'M') return TraceJsonProblem::kMissingTime;
    if (event->dur_ps < 0) return TraceJsonProblem::kNegativeDuration;
    return std::nullopt;
  }

 private:
  MaybeProblem ParseFields(TraceJsonEvent* event) {
    const simdjson::padded_string_view json(padded_.data(), element_.size(), padded_.size());
    ondemand::document document;
    if (parser_.iterate(json).get(document)) return TraceJsonProblem::kMalformed;
    ondemand::object object;
    if (document.get_object().get(object)) return TraceJsonProblem::kMalformed;
    for (auto result : object) {
      ondemand::field field;
      if (std::move(result).get(field)) return TraceJsonProblem::kMalformed;
      std::string_view key;
      if (field.unescaped_key().get(key)) return TraceJsonProblem::kMalformed;
      if (MaybeProblem problem = ParseField(key, field.value(), event)) return problem;
    }
    return std::nullopt;
  }

  MaybeProblem ParseField(std::string_view key, ondemand::value value, TraceJsonEvent* event) {
    if (key == "ph") return ParsePhase(value, &event->ph);
    if (key == "name") return ParseText(value, &event->name);
    if (key == "cat") return ParseText(value, &event->cat);
    if (key == "pid") return ParseTextOrNumber(value, &event->pid);
    if (key == "tid") return ParseTextOrNumber(value, &event->tid);
    if (key == "ts") return ParseTime(value, &event->ts_ps);
    if (key == "dur") return ParseDuration(value, event);
    if (key == "args") return ParseArgs(value, &event->args);
    if (key == "id") return ParseTextOrNumber(value, &event->id);
    if (key == "bp") return ParseText(value, &event->bp);
    return std::nullopt;
  }

  MaybeProblem ParsePhase(ondemand::value value, char* ph) {
    absl::string_view text;
    if (MaybeProblem problem = ParseText(value, &text)) return problem;
    if (text.size() != 1) return TraceJsonProblem::kWrongType;
    *ph = text.front();
    return std::nullopt;
  }

  MaybeProblem ParseText(ondemand::value value, absl::string_view* text) {
    std::string_view view;
    switch (value.get_string().get(view)) {
      case simdjson::SUCCESS:
        *text = ToAbsl(view);
        return std::nullopt;
      case simdjson::INCORRECT_TYPE:
        return TraceJsonProblem::kWrongType;
      default:
        return TraceJsonProblem::kMalformed;
    }
  }

  MaybeProblem ParseTextOrNumber(ondemand::value value, absl::string_view* text) {
    const absl::string_view token = Token(value);
    if (token.front() == '"') return ParseText(value, text);
    if (token.front() != '-' && !absl::ascii_isdigit(token.front())) {
      return TraceJsonProblem::kWrongType;
    }
    // Nearly always a plain integer; the rest is read as a number to see whether it is one.
    const bool is_number = std::all_of(token.begin(), token.end(), absl::ascii_isdigit) ||
                           ParseMicrosAsPicos(token).has_value();
    if (!is_number) return TraceJsonProblem::kMalformed;
    *text = token;
    return std::nullopt;
  }

  MaybeProblem ParseTime(ondemand::value value, std::optional<absl::int128>* ps) {
    absl::string_view number = Token(value);
    if (number.front() == '"') {
      if (MaybeProblem problem = ParseText(value, &number)) return problem;
    }
    *ps = ParseMicrosAsPicos(number);
    return ps->has_value() ? std::nullopt : MaybeProblem(TraceJsonProblem::kBadTime);
  }

  MaybeProblem ParseDuration(ondemand::value value, TraceJsonEvent* event) {
    std::optional<absl::int128> wide;
    if (MaybeProblem problem = ParseTime(value, &wide)) return problem;
    const std::optional<int64_t> narrow = NarrowToInt64(*wide);
    if (!narrow.has_value()) return TraceJsonProblem::kBadTime;
    event->dur_ps = *narrow;
    event->has_dur = true;
    return std::nullopt;
  }

  MaybeProblem ParseArgs(ondemand::value value, JsonValue* args) {
    ondemand::object object;
    if (value.get_object().get(object)) return TraceJsonProblem::kWrongType;
    std::string_view raw;
    if (object.raw_json().get(raw)) return TraceJsonProblem::kMalformed;
    const absl::string_view trimmed = WithoutSpaceBehind(raw);
    // The same bytes in the text itself, which outlives the copy.
    *args = JsonValue(element_.substr(trimmed.data() - padded_.data(), trimmed.size()));
    return std::nullopt;
  }

  // The event with the room behind it that simdjson asks for.
  std::vector<char> padded_;
  absl::string_view element_;
  ondemand::parser parser_;
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
  return absl::InvalidArgumentError(
      absl::StrCat("offset ", offset, ": ", kBaseTimeKey, " is not an integer"));
}

}  // namespace

absl::string_view TraceJsonProblemText(TraceJsonProblem problem) {
  // In the order of the enum.
  static constexpr absl::string_view kNames[] = {"not an object",
                                                 "malformed",
                                                 "too long",
                                                 "with a field of the wrong type",
                                                 "without ph",
                                                 "without ts",
                                                 "with a ts or dur that is no usable number",
                                                 "with a negative duration",
                                                 "more than 106 days from the first event"};
  static_assert(std::size(kNames) == kNumTraceJsonProblems);
  return kNames[static_cast<int>(problem)];
}

void TraceJsonProblems::Add(TraceJsonProblem problem, uint64_t offset) {
  Tally& tally = tallies_[static_cast<int>(problem)];
  if (tally.count++ == 0) tally.first_offset = offset;
}

uint64_t TraceJsonProblems::total() const {
  uint64_t total = 0;
  for (const Tally& tally : tallies_) total += tally.count;
  return total;
}

std::optional<uint64_t> TraceJsonProblems::first_offset(TraceJsonProblem problem) const {
  const Tally& tally = Get(problem);
  return tally.count == 0 ? std::nullopt : std::optional<uint64_t>(tally.first_offset);
}

std::string TraceJsonProblems::ToString() const {
  std::string text;
  for (int i = 0; i < kNumTraceJsonProblems; ++i) {
    const Tally& tally = tallies_[i];
    if (tally.count == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", tally.count, " ",
                    TraceJsonProblemText(static_cast<TraceJsonProblem>(i)),
                    tally.count == 1 ? " (at offset " : " (first at offset ", tally.first_offset,
                    ")");
  }
  return text;
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

absl::Status RefuseInverted(const TraceJsonProblems& problems) {
  const uint64_t count = problems.count(TraceJsonProblem::kNegativeDuration);
  if (count == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      count, " event(s) end before they start, the first at offset ",
      *problems.first_offset(TraceJsonProblem::kNegativeDuration),
      " (inflated): the times of the trace cannot be trusted; record it anew, or drop these "
      "events"));
}

}  // namespace meridian
