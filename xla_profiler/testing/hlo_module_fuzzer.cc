// Any bytes as a program, which libprotobuf must see the same way, and as pieces of its text.
#include "xla_profiler/hlo/hlo_text.h"
#include "xla_profiler/testing/fuzz.h"
#include "xla_profiler/testing/hlo_comparison.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  ParseReplicaGroups(bytes).IgnoreError();
  ParseSourceTargetPairs(bytes).IgnoreError();
  ParseShapeBytes(bytes).IgnoreError();
  HloVerdict verdict;
  return CompareHloWithLibprotobuf(bytes, &verdict);
}
