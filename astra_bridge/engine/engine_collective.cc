#include "astra_bridge/engine/engine_collective.h"

namespace meridian {

absl::string_view EngineCollectiveName(EngineCollective op) {
  switch (op) {
    case EngineCollective::kAllReduce:
      return "all-reduce";
    case EngineCollective::kAllGather:
      return "all-gather";
    case EngineCollective::kReduceScatter:
      return "reduce-scatter";
    case EngineCollective::kAllToAll:
      return "all-to-all";
    case EngineCollective::kBroadcast:
      return "broadcast";
  }
  return "";
}

}  // namespace meridian
