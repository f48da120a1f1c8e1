// Feeds arbitrary bytes to the decoder of HLO modules; stops where it crashes or disagrees with
// libprotobuf.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "xla_profiler/testing/hlo_comparison.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  meridian::HloVerdict verdict;
  const absl::Status status = meridian::CompareHloWithLibprotobuf(
      absl::string_view(reinterpret_cast<const char*>(data), size), &verdict);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::abort();
  }
  return 0;
}
