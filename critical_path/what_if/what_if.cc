#include "critical_path/what_if/what_if.h"

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "critical_path/what_if/duration_edits.h"
#include "critical_path/what_if/selection.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using Kind = WhatIfEdit::Kind;

// Returns to how many events or delays the edit was applied.
absl::StatusOr<int64_t> ApplyEdit(const WhatIfEdit& edit, WhatIfGraph* edited) {
  if (edit.kind == Kind::kLevel) return LevelRank(edit.subject.conditions[0].number, edited);
  ASSIGN_OR_RETURN(const Selection selection, Select(*edited, edit.subject));
  RETURN_IF_ERROR(edit.kind == Kind::kScale ? ScaleTimes(selection, edit.factor, edited)
                                            : SetTimes(selection, edit.duration_ps, edited));
  return selection.count;
}

}  // namespace

absl::StatusOr<WhatIfResult> RunWhatIf(const PathGraph& measured, const CriticalPath& path,
                                       bool hta_compatible, absl::Span<const WhatIfEdit> edits) {
  if (!TimesFit(measured)) {
    return absl::OutOfRangeError("the graph's times span more than 13 days");
  }
  WhatIfResult result;
  result.edited =
      hta_compatible ? MakeHtaWhatIfGraph(measured, path) : MakeWhatIfGraph(measured, path);
  for (const WhatIfEdit& edit : edits) {
    const absl::StatusOr<int64_t> matched = ApplyEdit(edit, &result.edited);
    if (!matched.ok()) return Annotate(matched.status(), edit.text);
    result.matched.push_back(*matched);
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> times_ps, EarliestTimes(result.edited.graph));
  if (*absl::c_max_element(times_ps) >= kTimeLimitPs) {
    return absl::OutOfRangeError("the edited run lasts longer than 13 days");
  }
  if (!hta_compatible) PutTimes(times_ps, &result.edited);
  ASSIGN_OR_RETURN(result.path, FindLongestPath(result.edited.graph));
  return result;
}

}  // namespace meridian
