#ifndef ASTRA_BRIDGE_ENGINE_LINK_USE_H_
#define ASTRA_BRIDGE_ENGINE_LINK_USE_H_

#include <cstdint>

namespace meridian {

// What went over a link. Devices from the number of NPUs on are switches.
struct LinkUse {
  int32_t dimension = 0;
  int32_t from_device = 0;
  int32_t to_device = 0;
  int64_t messages = 0;
  int64_t bytes = 0;
  // How long it was sending.
  int64_t busy_ns = 0;
};

}  // namespace meridian

#endif  // ASTRA_BRIDGE_ENGINE_LINK_USE_H_
