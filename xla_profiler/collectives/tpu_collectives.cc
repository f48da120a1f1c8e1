// Collectives of a TPU plane. Each op on "XLA Ops" has its HLO text as name and its program_id
// among the stats of its metadata; the module execution around it on "XLA Modules" has the run_id.
// An asynchronous collective is a start and a done on the line: it lasts from the one's start to
// the other's end.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/collectives/plane_collectives.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/wire/wire_reader.h"
#include "xla_profiler/xplane/timespan.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// Field of the CoreDetails message: the core's number in the whole system.
constexpr uint32_t kGlobalCoreIdField = 6;

std::optional<int64_t> GlobalCoreId(const XPlaneVisitor& plane) {
  const XStatVisitor* details = plane.GetStat(StatType::kCoreDetails);
  if (details == nullptr || details->value_case() != XStatVisitor::ValueCase::kBytes) {
    return std::nullopt;
  }
  // proto3 leaves out a zero.
  int64_t id = 0;
  const absl::string_view bytes = details->BytesValue();
  WireReader reader(bytes, bytes.data(), kMaxWireDepth);
  WireField field;
  while (reader.Next(&field)) {
    if (field.IsVarint(kGlobalCoreIdField)) id = static_cast<int64_t>(field.scalar);
  }
  if (reader.failed()) return std::nullopt;
  return id;
}

// "%all-reduce.1 = f32[8]{0} all-reduce(...)" -> "all-reduce.1".
absl::string_view InstructionOf(const XEventMetadata& metadata) {
  absl::string_view name = metadata.name;
  if (!absl::StartsWith(name, "%")) return metadata.display_name;
  name.remove_prefix(1);
  return name.substr(0, name.find(' '));
}

class TpuPlaneReader {
 public:
  TpuPlaneReader(const XPlaneVisitor& plane, const ProfileTimes& times,
                 CollectiveCollector* collector)
      : plane_(plane), times_(times), collector_(collector) {}

  absl::Status Run() {
    LocalDevice device{std::string(plane_.Name())};
    if (const std::optional<int64_t> core = GlobalCoreId(plane_)) {
      device.global_id = *core;
      device.source = DeviceIdSource::kCoreDetails;
    }
    device_ = collector_->AddDevice(std::move(device));
    RETURN_IF_ERROR(ForEachEventOf(kXlaModulesLineName,
                                   [this](const XLineVisitor& line, const XEventVisitor& event) {
                                     return ReadModule(line, event);
                                   }));
    std::sort(runs_.begin(), runs_.end(),
              [](const ModuleRun& a, const ModuleRun& b) { return a.span < b.span; });
    return ForEachEventOf(kXlaOpsLineName,
                          [this](const XLineVisitor& line, const XEventVisitor& event) {
                            return ReadOp(line, event);
                          });
  }

 private:
  struct ModuleRun {
    Timespan span;
    int64_t run_id;
  };

  template <typename Fn>
  absl::Status ForEachEventOf(absl::string_view line_name, Fn fn) {
    return plane_.ForEachLine([&](const XLineVisitor& line) {
      if (line.Name() != line_name) return absl::OkStatus();
      return line.ForEachEvent([&](const XEventVisitor& event) { return fn(line, event); });
    });
  }

  absl::Status ReadModule(const XLineVisitor& line, const XEventVisitor& event) {
    const XStatVisitor* run_id = event.GetEventOrMetadataStat(StatType::kRunId);
    if (run_id == nullptr || !run_id->IntOrUintValue().has_value()) return absl::OkStatus();
    int64_t start_ps = 0, end_ps = 0;
    RETURN_IF_ERROR(times_.Read(line.Header(), event, &start_ps, &end_ps));
    runs_.push_back({Timespan::FromEndPoints(start_ps, end_ps), *run_id->IntOrUintValue()});
    return absl::OkStatus();
  }

  absl::Status ReadOp(const XLineVisitor& line, const XEventVisitor& event) {
    const HloCollective* collective = nullptr;
    const HloProgram* program = nullptr;
    FindCollective(event, &program, &collective);
    if (collective == nullptr) return absl::OkStatus();
    CollectivePiece piece;
    piece.op = collector_->OpOf(*program, *collective);
    piece.local_device = device_;
    piece.line_id = line.Id();
    RETURN_IF_ERROR(times_.Read(line.Header(), event, &piece.start_ps, &piece.end_ps));
    piece.run_id = RunAt(piece.start_ps);
    if (!piece.run_id.has_value()) {
      collector_->AddUnresolved("run of a collective is not in the profile",
                                std::string(InstructionOf(event.Metadata())));
    }
    if (collective->done != nullptr) piece.execution = PairNumber(event, *collective);
    collector_->AddPiece(piece);
    return absl::OkStatus();
  }

  // Ops repeat; what their metadata leads to is found once.
  void FindCollective(const XEventVisitor& event, const HloProgram** program,
                      const HloCollective** collective) {
    const auto [it, inserted] = found_.try_emplace(event.Id(), nullptr, nullptr);
    if (inserted) {
      it->second.first = ProgramOf(event, *collector_);
      if (it->second.first != nullptr) {
        it->second.second =
            collector_->FindCollective(*it->second.first, InstructionOf(event.Metadata()));
      }
    }
    *program = it->second.first;
    *collective = it->second.second;
  }

  // Numbers the pairs of start and done: the n-th start and the n-th done of an op share a number,
  // and updates belong to the start before them.
  uint64_t PairNumber(const XEventVisitor& event, const HloCollective& collective) {
    const absl::string_view name = InstructionOf(event.Metadata());
    auto& [starts, dones] = pairs_[&collective];
    if (name == collective.done->name()) return ++dones;
    if (name == collective.start->name()) return ++starts;
    return starts;
  }

  // The run whose module execution was going on; the last that began when there are several.
  std::optional<int64_t> RunAt(int64_t time_ps) const {
    auto it = std::upper_bound(
        runs_.begin(), runs_.end(), time_ps,
        [](int64_t time, const ModuleRun& run) { return time < run.span.begin_ps(); });
    if (it == runs_.begin()) return std::nullopt;
    --it;
    if (!it->span.Includes(time_ps)) return std::nullopt;
    return it->run_id;
  }

  const XPlaneVisitor& plane_;
  const ProfileTimes& times_;
  CollectiveCollector* collector_;
  uint32_t device_ = 0;
  std::vector<ModuleRun> runs_;
  absl::flat_hash_map<int64_t, std::pair<const HloProgram*, const HloCollective*>> found_;
  absl::flat_hash_map<const HloCollective*, std::pair<uint64_t, uint64_t>> pairs_;
};

}  // namespace

absl::Status ReadTpuCollectives(const XPlaneVisitor& plane, const ProfileTimes& times,
                                CollectiveCollector* collector) {
  return TpuPlaneReader(plane, times, collector).Run();
}

}  // namespace meridian
