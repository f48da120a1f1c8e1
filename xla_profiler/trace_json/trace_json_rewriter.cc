#include "xla_profiler/trace_json/trace_json_rewriter.h"

#include <algorithm>
#include <cstddef>

#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"

namespace meridian {
namespace {

// What is collected before it goes to the sink.
constexpr size_t kFlushedBytes = size_t{1} << 18;

constexpr std::pair<absl::string_view, absl::string_view WrittenEvent::*> kFields[] = {
    {"ph", &WrittenEvent::ph},   {"name", &WrittenEvent::name}, {"cat", &WrittenEvent::cat},
    {"pid", &WrittenEvent::pid}, {"tid", &WrittenEvent::tid},   {"ts", &WrittenEvent::ts},
    {"dur", &WrittenEvent::dur}, {"id", &WrittenEvent::id},     {"args", &WrittenEvent::args}};

}  // namespace

bool ReadWrittenEvent(absl::string_view element, WrittenEvent* event) {
  JsonCutter cutter(element);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    const absl::string_view value = cutter.CutValue();
    for (const auto& [name, field] : kFields) {
      if (key == name) event->*field = value;
    }
  }
  return cutter.status().ok();
}

void AppendEdited(absl::string_view element, EditEvent edit, std::string* out) {
  WrittenEvent event;
  EventEdits edits;
  if (ReadWrittenEvent(element, &event)) edit(event, &edits);
  std::sort(edits.begin(), edits.end(),
            [](const auto& a, const auto& b) { return a.first.data() < b.first.data(); });
  const char* from = element.data();
  for (const auto& [value, text] : edits) {
    out->append(from, value.data() - from);
    out->append(text);
    from = value.data() + value.size();
  }
  out->append(from, element.data() + element.size() - from);
}

absl::Status RewriteTraceJson(absl::string_view text, EditEvent edit, ByteSink& sink) {
  std::string buffer;
  const char* from = text.data();
  const auto flush = [&](size_t limit) -> absl::Status {
    if (buffer.size() < limit) return absl::OkStatus();
    RETURN_IF_ERROR(sink.Append(buffer));
    buffer.clear();
    return absl::OkStatus();
  };
  const auto on_event = [&](absl::string_view element) -> absl::Status {
    if (element.empty()) return absl::OkStatus();
    buffer.append(from, element.data() - from);
    from = element.data() + element.size();
    AppendEdited(element, edit, &buffer);
    return flush(kFlushedBytes);
  };
  const auto on_member = [](absl::string_view, absl::string_view) { return absl::OkStatus(); };
  RETURN_IF_ERROR(CutTrace(text, on_event, on_member));
  RETURN_IF_ERROR(flush(0));
  return sink.Append(text.substr(from - text.data()));
}

}  // namespace meridian
