// Any bytes as trace JSON: what simdjson reads of the whole document, the reader does too.
#include "xla_profiler/testing/fuzz.h"
#include "xla_profiler/testing/trace_json_comparison.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  TraceJsonVerdict verdict;
  return CompareWithWholeDocument(bytes, &verdict);
}
