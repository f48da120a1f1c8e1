#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "xla_profiler/testing/codec_comparison.h"

// Any bytes: never a crash, and the same verdict and view as libprotobuf.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  meridian::CodecVerdict verdict;
  const absl::Status status = meridian::CompareWithLibprotobuf(
      absl::string_view(reinterpret_cast<const char*>(data), size), &verdict);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::abort();
  }
  return 0;
}
