// Any bytes as the profile of a node: combined with another, it has the events of a naive merge.
#include "trace_alignment/testing/naive_merge.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  MergeVerdict verdict;
  RETURN_IF_ERROR(CompareWithNaiveMerge(bytes, PlaneNaming::kViewer, &verdict));
  return CompareWithNaiveMerge(bytes, PlaneNaming::kNodePrefix, &verdict);
}
