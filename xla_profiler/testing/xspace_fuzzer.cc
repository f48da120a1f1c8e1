// Any bytes as an XSpace: the same verdict and view as libprotobuf's.
#include "xla_profiler/testing/codec_comparison.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  CodecVerdict verdict;
  return CompareWithLibprotobuf(bytes, &verdict);
}
