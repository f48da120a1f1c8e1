// SPDX-License-Identifier: Apache-2.0
// Whether a host waits for its device before it launches a step, though the device is never idle.
//
//   host     [launch 3]  . waits .  [launch 4]  . . . waits . . .  [launch 5]
//   device   [step 2 ............][step 3 .......................][step 4 ...
//
// A host that launches ahead waits for a part of what it has launched: for an earlier step's result,
// or for room in a queue. A call that comes while the device works does not tell: the host may as
// well have been busy. Many steps do: a host that waits comes later when its device is later. So it
// waits if the times from the end of an earlier step's work to its first call of a step vary far
// less than those from that step's first call, and from the end of its calls, do.
#ifndef CHAKRA_EXPORT_XSPACE_HOST_PACE_H_
#define CHAKRA_EXPORT_XSPACE_HOST_PACE_H_

#include <vector>

#include "chakra_export/xspace/device_work.h"

namespace meridian {

// Sets DeviceWork::host_waited of what the first call of each step launched, if the host of that
// device waits for it. Steps must be known; a few of them tell nothing.
void MarkHostWaits(std::vector<DeviceWork>* work);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_HOST_PACE_H_
