// Messages of Megascale between slices of TPUs, as the host of each end sees them: events "MegaScale:
// Communication Transport Send" on the one's threads and "... Receive" on the other's, with what both
// have in common as stats. A receive has arrived when its event begins.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/collectives/plane_collectives.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

constexpr absl::string_view kDcnSend = "MegaScale: Communication Transport Send";
constexpr absl::string_view kDcnReceive = "MegaScale: Communication Transport Receive";

bool HasMessages(const XPlaneVisitor& host_plane) {
  const std::vector<XStatMetadata>& stats = host_plane.StatMetadata();
  return std::any_of(stats.begin(), stats.end(), [](const XStatMetadata& metadata) {
    return metadata.type == StatType::kDcnLabel;
  });
}

// One end of a message.
struct DcnMessage {
  // The collective, without the number of its execution, and that.
  std::string collective;
  int64_t execution = 0;
  int64_t source_slice = 0, source_device = 0, destination_slice = 0, destination_device = 0;
  int64_t chunk = 0, loop = 0, bytes = 0;

  // Equal at both ends.
  std::string Key() const {
    return absl::StrCat("megascale ", collective, " chunk ", chunk, " loop ", loop, " from slice ",
                        source_slice, " device ", source_device, " to slice ", destination_slice,
                        " device ", destination_device);
  }
};

// Returns nullopt when something is missing.
std::optional<DcnMessage> ReadMessage(const XEventVisitor& event) {
  const auto number = [&](StatType type) { return NumberOf(event.GetStat(type)); };
  const std::optional<int64_t> source_slice = number(StatType::kDcnSourceSliceId),
                               source_device = number(StatType::kDcnSourceDeviceId),
                               destination_slice = number(StatType::kDcnDestinationSliceId),
                               destination_device = number(StatType::kDcnDestinationDeviceId);
  DcnMessage message;
  message.collective = std::string(TextOf(event.GetStat(StatType::kDcnLabel)));
  if (message.collective.empty() || !source_slice || !source_device || !destination_slice ||
      !destination_device) {
    return std::nullopt;
  }
  const size_t cut = message.collective.rfind('_');
  if (cut != std::string::npos &&
      absl::SimpleAtoi(message.collective.substr(cut + 1), &message.execution)) {
    message.collective.resize(cut);
  }
  message.source_slice = *source_slice;
  message.source_device = *source_device;
  message.destination_slice = *destination_slice;
  message.destination_device = *destination_device;
  message.chunk = number(StatType::kDcnChunk).value_or(0);
  message.loop = number(StatType::kDcnLoopIndex).value_or(0);
  message.bytes = number(StatType::kPayloadSizeBytes).value_or(0);
  return message;
}

}  // namespace

absl::Status ReadMegascaleMessages(const XPlaneVisitor& host_plane, const SessionClock& clock,
                                   CollectiveCollector* collector) {
  if (!HasMessages(host_plane)) return absl::OkStatus();
  std::map<std::pair<std::string, bool>, uint32_t> ops;
  const StatSelection selection({StatType::kDcnLabel, StatType::kDcnSourceSliceId,
                                 StatType::kDcnSourceDeviceId, StatType::kDcnDestinationSliceId,
                                 StatType::kDcnDestinationDeviceId, StatType::kDcnChunk,
                                 StatType::kDcnLoopIndex, StatType::kPayloadSizeBytes});
  return host_plane.ForEachLine([&](const XLineVisitor& line) {
    return line.ForEachEvent(selection, [&](const XEventVisitor& event) -> absl::Status {
      const bool is_sent = event.Name() == kDcnSend;
      if (event.IsAggregatedEvent() || (!is_sent && event.Name() != kDcnReceive)) {
        return absl::OkStatus();
      }
      const std::optional<DcnMessage> message = ReadMessage(event);
      CollectivePiece piece;
      if (!message.has_value()) {
        collector->AddUnresolved("message of Megascale that does not say between whom", "");
        return absl::OkStatus();
      }
      // Within a slice it goes another way.
      if (message->source_slice == message->destination_slice ||
          !ReadTimes(clock, line, event, collector, &piece)) {
        return absl::OkStatus();
      }
      const auto [op, inserted] = ops.try_emplace({message->Key(), is_sent}, 0);
      if (inserted) {
        CollectiveOp described;
        described.kind = is_sent ? CollectiveKind::kSend : CollectiveKind::kRecv;
        described.module = message->Key();
        described.instruction = is_sent ? "send" : "receive";
        described.operand_bytes = described.output_bytes = message->bytes;
        described.pairs_are_members = true;
        op->second = collector->AddOp(std::move(described));
      }
      if (!is_sent) piece.end_ps = piece.start_ps;
      piece.op = op->second;
      piece.local_device =
          collector->HostDevice(is_sent ? message->source_slice : message->destination_slice,
                                is_sent ? message->source_device : message->destination_device);
      piece.line_id = line.Id();
      piece.run_id = message->execution;
      collector->AddPiece(piece);
      return absl::OkStatus();
    });
  });
}

}  // namespace meridian
