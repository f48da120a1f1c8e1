#include "xla_profiler/testing/trace_json_comparison.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "re2/re2.h"
#include "simdjson.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/trace_json/trace_json_reader.h"

namespace meridian {
namespace {

namespace dom = simdjson::dom;

// A TraceJsonEvent that outlives its callback.
struct Event {
  char ph = '\0';
  std::string name, cat, pid, tid;
  std::optional<absl::int128> ts_ps;
  int64_t dur_ps = 0;
  std::string args;
  uint64_t offset = 0;
};

Event Copy(const TraceJsonEvent& event) {
  return {event.ph,
          std::string(event.name),
          std::string(event.cat),
          std::string(event.pid),
          std::string(event.tid),
          event.ts_ps,
          event.dur_ps,
          std::string(event.args.text()),
          event.offset};
}

absl::Status Differ(const Event& event, absl::string_view what) {
  return absl::InternalError(absl::StrCat("event at offset ", event.offset, ": ", what));
}

std::optional<std::string> StringOf(const dom::element& element) {
  std::string_view text;
  if (element.get_string().get(text)) return std::nullopt;
  return std::string(text);
}

std::optional<double> NumberOf(const dom::element& element) {
  double number = 0;
  if (element.get_double().get(number)) return std::nullopt;
  return number;
}

// A time may be a number or a string that holds one.
std::optional<double> TimeOf(const dom::element& element) {
  const std::optional<std::string> text = StringOf(element);
  if (!text.has_value()) return NumberOf(element);
  simdjson::dom::parser parser;
  dom::element number;
  // White space around the number is not ours to accept, and simdjson skips it.
  if (text->find_first_not_of("+-.0123456789eE") != std::string::npos) return std::nullopt;
  if (parser.parse(*text).get(number)) return std::nullopt;
  return NumberOf(number);
}

// Finds the last field of that name; the reader refuses events with a bad one before it, too.
class Fields {
 public:
  explicit Fields(const dom::object& object) : object_(object) {}

  std::optional<dom::element> Last(std::string_view key) const {
    std::optional<dom::element> last;
    for (const dom::key_value_pair field : object_) {
      if (field.key == key) last = field.value;
    }
    return last;
  }

  template <typename Predicate>
  bool All(std::initializer_list<std::string_view> keys, Predicate predicate) const {
    for (const dom::key_value_pair field : object_) {
      for (std::string_view key : keys) {
        if (field.key == key && !predicate(field.value)) return false;
      }
    }
    return true;
  }

 private:
  const dom::object& object_;
};

// Times of 10^24 us and more have more digits than the reader takes.
bool IsUsableTime(const dom::element& value, double limit_us) {
  const std::optional<double> us = TimeOf(value);
  return us.has_value() && std::abs(*us) < limit_us;
}

// True when the times lie so close to a limit that a double cannot tell the side.
bool NearLimit(const Fields& fields) {
  return !fields.All({"ts", "dur"}, [](const dom::element& value) {
    const double us = std::abs(TimeOf(value).value_or(0));
    return std::abs(us / 1e24 - 1) > 1e-9 && std::abs(us / 9223372036854.775807 - 1) > 1e-9;
  });
}

bool IsUsable(const dom::object& object) {
  const Fields fields(object);
  const auto is_string = [](const dom::element& value) { return value.is_string(); };
  // Numbers with more digits than times have are no ids to the reader.
  const auto is_id = [](const dom::element& value) {
    return value.is_string() || std::abs(NumberOf(value).value_or(1e24)) < 1e24;
  };
  const std::optional<dom::element> ph = fields.Last("ph");
  const std::optional<dom::element> dur = fields.Last("dur");
  return fields.All({"ph"},
                    [](const dom::element& value) {
                      const std::optional<std::string> text = StringOf(value);
                      return text.has_value() && text->size() == 1 && (*text)[0] != '\0';
                    }) &&
         fields.All({"name", "cat"}, is_string) && fields.All({"pid", "tid"}, is_id) &&
         fields.All({"ts"}, [](const dom::element& value) { return IsUsableTime(value, 1e24); }) &&
         fields.All(
             {"dur"},
             [](const dom::element& value) { return IsUsableTime(value, 9223372036854.775807); }) &&
         fields.All({"args"}, [](const dom::element& value) { return value.is_object(); }) &&
         ph.has_value() && (fields.Last("ts").has_value() || *StringOf(*ph) == "M") &&
         // Down to half a picosecond below 0 rounds to 0.
         (!dur.has_value() || *TimeOf(*dur) > -0.5e-6);
}

bool SameText(const Fields& fields, std::string_view key, const std::string& ours) {
  const std::optional<dom::element> theirs = fields.Last(key);
  return ours == (theirs.has_value() ? *StringOf(*theirs) : "");
}

bool SameId(const Fields& fields, std::string_view key, const std::string& ours) {
  const std::optional<dom::element> theirs = fields.Last(key);
  if (!theirs.has_value()) return ours.empty();
  if (theirs->is_string()) return ours == *StringOf(*theirs);
  double number = 0;
  return absl::SimpleAtod(ours, &number) && number == *NumberOf(*theirs);
}

bool SameTime(const Fields& fields, std::string_view key, absl::int128 ours_ps) {
  const std::optional<dom::element> theirs = fields.Last(key);
  const double theirs_us = theirs.has_value() ? *TimeOf(*theirs) : 0;
  return std::abs(static_cast<double>(ours_ps) * 1e-6 - theirs_us) <=
         0.51e-6 + std::abs(theirs_us) * 1e-14;
}

bool SameArgs(const Fields& fields, const std::string& ours) {
  const std::optional<dom::element> theirs = fields.Last("args");
  if (!theirs.has_value()) return ours.empty();
  simdjson::dom::parser parser;
  dom::element parsed;
  return !parser.parse(ours).get(parsed) && simdjson::minify(parsed) == simdjson::minify(*theirs);
}

absl::Status CompareEvent(const Event& ours, const dom::object& theirs) {
  const Fields fields(theirs);
  if (!SameText(fields, "ph", std::string(1, ours.ph))) return Differ(ours, "ph");
  if (!SameText(fields, "name", ours.name)) return Differ(ours, "name");
  if (!SameText(fields, "cat", ours.cat)) return Differ(ours, "cat");
  if (!SameId(fields, "pid", ours.pid)) return Differ(ours, "pid");
  if (!SameId(fields, "tid", ours.tid)) return Differ(ours, "tid");
  if (fields.Last("ts").has_value() != ours.ts_ps.has_value()) return Differ(ours, "has ts");
  if (!SameTime(fields, "ts", ours.ts_ps.value_or(0))) return Differ(ours, "ts");
  if (!SameTime(fields, "dur", ours.dur_ps)) return Differ(ours, "dur");
  if (!SameArgs(fields, ours.args)) return Differ(ours, "args");
  return absl::OkStatus();
}

// What we made of the text.
struct Reading {
  std::vector<Event> events;
  TraceJsonProblems problems;
  absl::Status status;
};

Reading Read(absl::string_view text) {
  Reading reading;
  reading.status = ReadTraceJson(
                       text,
                       [&](const TraceJsonEvent& event) {
                         reading.events.push_back(Copy(event));
                         return absl::OkStatus();
                       },
                       &reading.problems)
                       .status();
  return reading;
}

absl::Status CompareEvents(const Reading& ours, const std::vector<dom::array>& theirs) {
  size_t next = 0;
  uint64_t unusable = 0;
  for (const dom::array& array : theirs) {
    for (const dom::element element : array) {
      dom::object object;
      const bool is_object = !element.get_object().get(object);
      if (is_object && object.size() == 0) continue;
      if (is_object && NearLimit(Fields(object))) return absl::OkStatus();
      if (!is_object || !IsUsable(object)) {
        ++unusable;
        continue;
      }
      if (next == ours.events.size()) {
        return absl::InternalError(
            absl::StrCat("an event is missing: ", std::string(simdjson::minify(object)),
                         "; problems: ", ours.problems.ToString()));
      }
      RETURN_IF_ERROR(CompareEvent(ours.events[next++], object));
    }
  }
  if (next != ours.events.size()) return Differ(ours.events[next], "should not be there");
  if (unusable != ours.problems.total()) {
    return absl::InternalError(
        absl::StrCat(unusable, " unusable events, but: ", ours.problems.ToString()));
  }
  return absl::OkStatus();
}

// Finds the arrays of events. False when the document is no trace.
bool FindEvents(const dom::element& document, std::vector<dom::array>* events) {
  dom::array bare;
  if (!document.get_array().get(bare)) {
    events->push_back(bare);
    return true;
  }
  dom::object object;
  if (document.get_object().get(object)) return false;
  for (const dom::key_value_pair member : object) {
    int64_t base_time_ns = 0;
    if (member.key == "baseTimeNanoseconds" && !member.value.is_string() &&
        member.value.get_int64().get(base_time_ns)) {
      return false;
    }
    if (member.key != "traceEvents") continue;
    dom::array array;
    if (member.value.get_array().get(array)) return false;
    events->push_back(array);
  }
  return !events->empty();
}

bool IsOutsideOurConventions(absl::string_view text, const absl::Status& status) {
  return absl::StartsWith(text, "\xEF\xBB\xBF") ||
         absl::StrContains(status.message(), "nested too deep") ||
         absl::StrContains(status.message(), "baseTimeNanoseconds");
}

// True when the text is JSON but for what we take beyond it: the last bracket of a bare array may be
// missing, numbers may be of any size, and NaN and Infinity are numbers.
bool IsReadByUsAlone(absl::string_view text) {
  std::string plain(text);
  RE2::GlobalReplace(&plain, "([0-9.][eE][+-]?[0-9])[0-9]+", "\\1");
  RE2::GlobalReplace(&plain, "[0-9]{16,}", "1");
  RE2::GlobalReplace(&plain, "NaN|-?Infinity", "1");
  simdjson::dom::parser parser;
  dom::element ignored;
  if (!parser.parse(plain).get(ignored)) return true;
  RE2::Replace(&plain, ",?\\s*$", "]");
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "[") &&
         !parser.parse(plain).get(ignored);
}

// Keys are told apart as written, so an escaped one may hide a name that matters.
bool HasEscapes(absl::string_view text) { return absl::StrContains(text, '\\'); }

}  // namespace

absl::Status CompareWithWholeDocument(absl::string_view text, TraceJsonVerdict* verdict) {
  const Reading ours = Read(text);
  simdjson::dom::parser parser;
  dom::element document;
  const simdjson::padded_string padded(text.data(), text.size());
  if (const simdjson::error_code error = parser.parse(padded).get(document)) {
    const bool refused = !ours.status.ok();
    *verdict = refused ? TraceJsonVerdict::kMalformed : TraceJsonVerdict::kNotComparable;
    if (refused || IsReadByUsAlone(text)) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("read, but simdjson says: ", simdjson::error_message(error)));
  }
  std::vector<dom::array> theirs;
  const bool is_trace = FindEvents(document, &theirs);
  if (is_trace != ours.status.ok()) {
    *verdict = TraceJsonVerdict::kNotComparable;
    if (HasEscapes(text) || IsOutsideOurConventions(text, ours.status)) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(is_trace ? "a trace" : "no trace", ", but we say ", ours.status.ToString()));
  }
  *verdict = is_trace ? TraceJsonVerdict::kAccepted : TraceJsonVerdict::kNoTrace;
  return is_trace ? CompareEvents(ours, theirs) : absl::OkStatus();
}

}  // namespace meridian
