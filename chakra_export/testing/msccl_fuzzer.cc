// Any bytes as an algorithm of MSCCL, and the nodes of its GPUs.
#include "absl/status/statusor.h"
#include "chakra_export/generate/msccl.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const absl::StatusOr<MscclAlgorithm> algorithm = ParseMsccl(bytes, "fuzz.xml");
  if (!algorithm.ok()) return absl::OkStatus();
  for (size_t gpu = 0; gpu < algorithm->gpus.size(); ++gpu) {
    MscclNodes(*algorithm, static_cast<int64_t>(gpu), algorithm->chunks).IgnoreError();
  }
  return absl::OkStatus();
}
