// Which way a copy on a GPU goes, and how much it moves:
//
//   MemcpyH2D   kind_src:pinned kind_dst:device size:4096 dest:0 async:1
#ifndef CHAKRA_EXPORT_XSPACE_MEMORY_COPY_H_
#define CHAKRA_EXPORT_XSPACE_MEMORY_COPY_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace meridian {

enum class CopyDirection : uint8_t {
  // Neither end is known to be the host's memory, or both are.
  kWithinDevice,
  kFromHost,
  kToHost,
};

struct MemoryCopy {
  CopyDirection direction = CopyDirection::kWithinDevice;
  // 0 when it is not known.
  int64_t bytes = 0;
};

// `name` is the event's, `details` its memcpy_details. The kinds of memory decide; where the
// profiler did not know them, as in command buffers, the name does.
MemoryCopy ParseMemoryCopy(absl::string_view name, absl::string_view details);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_XSPACE_MEMORY_COPY_H_
