// Any bytes as a list of comm edges.
#include "astra_bridge/edges/comm_edge_list.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  ParseCommEdges(bytes, "fuzz.jsonl").IgnoreError();
  return absl::OkStatus();
}
