#include "xla_profiler/trace_json/trace_json_rewriter.h"

#include <algorithm>
#include <utility>

#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_cutter.h"

namespace meridian {
namespace {

// What is collected before it goes to the sink.
constexpr size_t kFlushedBytes = size_t{1} << 18;

constexpr std::pair<absl::string_view, absl::string_view WrittenEvent::*> kFields[] = {
    {"ph", &WrittenEvent::ph},   {"name", &WrittenEvent::name}, {"cat", &WrittenEvent::cat},
    {"pid", &WrittenEvent::pid}, {"ts", &WrittenEvent::ts},     {"dur", &WrittenEvent::dur},
    {"id", &WrittenEvent::id},   {"args", &WrittenEvent::args}};

}  // namespace

bool EventRewriter::Append(
    absl::string_view element,
    absl::FunctionRef<void(const WrittenEvent& event, EventEdits* edits)> edit, std::string* out) {
  WrittenEvent event;
  event.element = element;
  JsonCutter cutter(element);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    const absl::string_view value = cutter.CutValue();
    for (const auto& [name, field] : kFields) {
      if (key == name) event.*field = value;
    }
  }
  edits_.edits_.clear();
  edits_.texts_.clear();
  const bool is_readable = cutter.status().ok();
  if (is_readable) edit(event, &edits_);
  std::sort(edits_.edits_.begin(), edits_.edits_.end(),
            [](const auto& a, const auto& b) { return a.value.data() < b.value.data(); });
  const char* from = element.data();
  for (const EventEdits::Edit& replaced : edits_.edits_) {
    out->append(from, replaced.value.data() - from);
    out->append(edits_.texts_, replaced.begin, replaced.size);
    from = replaced.value.data() + replaced.value.size();
  }
  out->append(from, element.data() + element.size() - from);
  return is_readable;
}

absl::Status RewriteTraceJson(
    absl::string_view text,
    absl::FunctionRef<void(const WrittenEvent& event, EventEdits* edits)> edit, ByteSink& sink,
    int64_t* unreadable) {
  EventRewriter rewriter;
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
    if (!rewriter.Append(element, edit, &buffer) && unreadable != nullptr) ++*unreadable;
    return flush(kFlushedBytes);
  };
  const auto on_member = [](absl::string_view, absl::string_view) { return absl::OkStatus(); };
  RETURN_IF_ERROR(CutTrace(text, on_event, on_member));
  RETURN_IF_ERROR(flush(0));
  return sink.Append(text.substr(from - text.data()));
}

}  // namespace meridian
