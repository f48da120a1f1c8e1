#include "critical_path/hta/hta_window.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

bool IsAnnotation(absl::string_view category) {
  return category == "user_annotation" || category == "gpu_user_annotation";
}

absl::Status ChooseSpan(const HtaFrame& frame, const WindowChoice& choice, HtaWindow* window) {
  std::vector<bool> matches(frame.names.size());
  for (NameId name = 0; name < matches.size(); ++name) {
    matches[name] = absl::StrContains(frame.names.Get(name), choice.annotation);
  }
  window->start_ps = std::numeric_limits<int64_t>::max();
  window->end_ps = std::numeric_limits<int64_t>::min();
  KnownAnnotations known;
  int64_t occurrences = 0;
  for (const HtaRow& row : frame.rows) {
    if (IsAnnotation(frame.texts.Get(row.category))) known.Add(frame.names.Get(row.name));
    if (!matches[row.name]) continue;
    const int64_t occurrence = occurrences++;
    if (occurrence < choice.instances.first || occurrence > choice.instances.last) continue;
    window->start_ps = std::min(window->start_ps, row.start_ps);
    window->end_ps = std::max(window->end_ps, row.end_ps());
  }
  if (occurrences == 0) return known.NotFound(choice.annotation);
  if (occurrences <= choice.instances.first) return NoSuchInstance(choice, occurrences);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HtaWindow> ChooseHtaWindow(const HtaFrame& frame, const WindowChoice& choice) {
  HtaWindow window;
  // Every event's name contains the empty text.
  WindowChoice spanned = choice;
  if (choice.annotation.empty()) {
    spanned.instances = {0, std::numeric_limits<int64_t>::max()};
  }
  RETURN_IF_ERROR(ChooseSpan(frame, spanned, &window));
  std::vector<bool> chosen(frame.rows.size());
  for (uint32_t i = 0; i < frame.rows.size(); ++i) {
    const HtaRow& row = frame.rows[i];
    if (row.stream != -1) {
      if (frame.names.Get(row.name) == "Stream Wait Event") chosen[i] = true;
      continue;
    }
    if (row.start_ps < window.start_ps || row.start_ps > window.end_ps) continue;
    if (row.duration_ps <= 0) continue;
    chosen[i] = true;
    const HtaRow* partner = frame.Find(row.partner);
    if (partner != nullptr && partner->stream != -1) chosen[partner - frame.rows.data()] = true;
  }
  for (uint32_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) window.rows.push_back(i);
  }
  std::sort(window.rows.begin(), window.rows.end(),
            [&](uint32_t a, uint32_t b) { return frame.rows[a].index < frame.rows[b].index; });
  return window;
}

}  // namespace meridian
