// Any bytes as the profile of a node, whose collectives are matched with those of a good one.
#include "trace_alignment/testing/collectives_check.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  CollectivesVerdict verdict;
  return CheckCollectives(bytes, &verdict);
}
