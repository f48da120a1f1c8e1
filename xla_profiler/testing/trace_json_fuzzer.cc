// Feeds damaged traces to the reader; see trace_json_comparison.h for what must hold.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "xla_profiler/testing/trace_json_comparison.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  meridian::TraceJsonVerdict verdict;
  const absl::Status status = meridian::CompareWithWholeDocument(
      absl::string_view(reinterpret_cast<const char*>(data), size), &verdict);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}
