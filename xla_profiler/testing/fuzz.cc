#include "xla_profiler/testing/fuzz.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::Status status =
      meridian::FuzzOne(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}
