// The rows of a frame that HTA's critical path looks at.
#ifndef CRITICAL_PATH_HTA_HTA_WINDOW_H_
#define CRITICAL_PATH_HTA_HTA_WINDOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "critical_path/hta/hta_frame.h"
#include "critical_path/window_choice.h"

namespace meridian {

struct HtaWindow {
  int64_t start_ps = 0;
  int64_t end_ps = 0;
  // Rows of the frame, by their events' ids.
  std::vector<uint32_t> rows;
};

// The window spans the chosen occurrences of the annotation, which are events of any kind in the
// frame's order. In it are
//
// - events without a stream that start in the window and last longer than 0,
// - events with a stream whose call is one of those,
// - every "Stream Wait Event" with a stream, whenever it is.
//
// NotFound when the annotation does not occur, naming those there are; OutOfRange when it occurs
// too seldom.
absl::StatusOr<HtaWindow> ChooseHtaWindow(const HtaFrame& frame, const WindowChoice& choice);

}  // namespace meridian

#endif  // CRITICAL_PATH_HTA_HTA_WINDOW_H_
