// SPDX-License-Identifier: Apache-2.0
// An editor that moves every event by a constant: what any alignment costs beside its arithmetic.
// By 0 it is the identity, found out event by event.
#ifndef XLA_PROFILER_TESTING_MOVING_EDITOR_H_
#define XLA_PROFILER_TESTING_MOVING_EDITOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "xla_profiler/xplane/xplane_rewriter.h"

namespace meridian {

struct Movement {
  int64_t offset_ps = 0;
  int64_t duration_ps = 0;
  // By how much the bases of the lines move.
  int64_t timestamp_ns = 0;
};

class MovingEditor : public XSpaceEditor {
 public:
  explicit MovingEditor(const Movement& movement) : movement_(movement) {}

  absl::Status EditPlane(const XPlaneVisitor&, PlaneEdit* edit) override {
    edit->edit_lines = true;
    return absl::OkStatus();
  }

  absl::Status EditLine(const XPlaneLayout&, const XLineHeader& line, RewritePass,
                        LineEdit* edit) override {
    edit->timestamp_ns = Plus(line.timestamp_ns, movement_.timestamp_ns);
    for (EventTimes& times : edit->times) {
      times.offset_ps = Plus(times.offset_ps, movement_.offset_ps);
      times.duration_ps = Plus(times.duration_ps, movement_.duration_ps);
    }
    return absl::OkStatus();
  }

  // Wraps around on overflow: tests move hostile times, too.
  static int64_t Plus(int64_t value, int64_t delta) {
    return static_cast<int64_t>(static_cast<uint64_t>(value) + static_cast<uint64_t>(delta));
  }

 private:
  const Movement movement_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_TESTING_MOVING_EDITOR_H_
