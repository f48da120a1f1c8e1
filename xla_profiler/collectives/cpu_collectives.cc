// Collectives of XLA:CPU: thunk events on the host's threads. A thunk's event spans its collective;
// the marker "end: x" beside it has no hlo_op and is not looked at.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/plane_collectives.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/steps/step_events.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Profiles of other devices need not be walked for thunks.
bool HasThunks(const XPlaneVisitor& host_plane) {
  const std::vector<XStatMetadata>& stats = host_plane.StatMetadata();
  return std::any_of(stats.begin(), stats.end(), [](const XStatMetadata& metadata) {
    return metadata.type == StatType::kDeviceOrdinal;
  });
}

}  // namespace

absl::Status ReadCpuCollectives(const XSpaceReader& reader, const XPlaneVisitor& host_plane,
                                const SessionClock& clock, CollectiveCollector* collector) {
  if (!HasThunks(host_plane)) return absl::OkStatus();
  // Thunks run on other threads than what launched them, of which nothing tells the run.
  ASSIGN_OR_RETURN(std::vector<StepEvent> steps, FindXSpaceSteps(reader));
  if (!steps.empty() && steps[0].source != StepSource::kAnnotation) steps.clear();
  // Position of the device in the profile, by its ordinal, which is the global id.
  absl::flat_hash_map<int64_t, uint32_t> devices;
  const StatSelection selection({StatType::kHloOp, StatType::kDeviceOrdinal, StatType::kProgramId,
                                 StatType::kHloModule, StatType::kRunId});
  return host_plane.ForEachLine([&](const XLineVisitor& line) {
    return line.ForEachEvent(selection, [&](const XEventVisitor& event) -> absl::Status {
      if (event.IsAggregatedEvent() || event.Stats().size() < 2) return absl::OkStatus();
      const XStatVisitor* hlo_op = event.GetStat(StatType::kHloOp);
      const std::optional<int64_t> ordinal = NumberOf(event.GetStat(StatType::kDeviceOrdinal));
      if (hlo_op == nullptr || !ordinal.has_value()) return absl::OkStatus();
      const HloProgram* program = ProgramOf(event, collector->programs());
      if (program == nullptr) {
        collector->AddUnresolved("thunk of a program without HLO",
                                 std::string(hlo_op->StrOrRefValue()));
        return absl::OkStatus();
      }
      const HloCollective* collective =
          collector->FindCollective(*program, hlo_op->StrOrRefValue());
      if (collective == nullptr) return absl::OkStatus();

      const auto [device, inserted] = devices.emplace(*ordinal, 0);
      if (inserted) {
        device->second = collector->AddDevice({absl::StrCat("CPU ", *ordinal), *ordinal});
      }
      CollectivePiece piece;
      if (!ReadTimes(clock, line, event, collector, &piece)) {
        return absl::OkStatus();
      }
      piece.op = collector->OpOf(*program, *collective);
      piece.local_device = device->second;
      piece.line_id = line.Id();
      piece.run_id = NumberOf(event.GetStat(StatType::kRunId));
      // What has no run is matched by its step, for which a time is not good enough.
      const StepEvent* step = piece.run_id.has_value() ? StepAt(steps, piece.start_ps) : nullptr;
      if (step != nullptr) piece.step = step->number;
      collector->AddPiece(piece);
      return absl::OkStatus();
    });
  });
}

}  // namespace meridian
