// Collectives of a TPU plane. Each op on "XLA Ops" has its HLO text as name and its program_id
// among the stats of its metadata; the module execution around it on "XLA Modules" has the run_id.
// An asynchronous collective is a start and a done on the line: it lasts from the one's start to
// the other's end.
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/timespan.h"
#include "xla_profiler/base/wire/wire_reader.h"
#include "xla_profiler/collectives/plane_collectives.h"
#include "xla_profiler/collectives/xspace_collectives.h"
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

// "/device:TPU:<n>" itself; its SparseCores have planes of their own and no collectives of ours.
bool IsCorePlane(absl::string_view name) {
  absl::ConsumePrefix(&name, kTpuPlanePrefix);
  return !name.empty() && absl::c_all_of(name, absl::ascii_isdigit);
}

class TpuPlaneReader {
 public:
  TpuPlaneReader(const XPlaneVisitor& plane, const SessionClock& clock,
                 CollectiveCollector* collector)
      : plane_(plane), clock_(clock), collector_(collector) {}

  absl::Status Run() {
    RETURN_IF_ERROR(ForEachEventOf(
        kXlaModulesLineName,
        [this](const XLineVisitor& line, const XEventVisitor& event) { ReadModule(line, event); }));
    absl::c_sort(runs_, [](const ModuleRun& a, const ModuleRun& b) { return a.span < b.span; });
    RETURN_IF_ERROR(ForEachEventOf(
        kXlaOpsLineName,
        [this](const XLineVisitor& line, const XEventVisitor& event) { ReadOp(line, event); }));
    for (const auto& [collective, starts] : open_starts_) {
      for (size_t i = 0; i < starts.size(); ++i) {
        collector_->AddUnresolved("start of a collective without its done",
                                  std::string(collective->instruction->name()));
      }
    }
    return absl::OkStatus();
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
      return line.ForEachEvent([&](const XEventVisitor& event) { fn(line, event); });
    });
  }

  void ReadModule(const XLineVisitor& line, const XEventVisitor& event) {
    const std::optional<int64_t> run_id = NumberOf(event.GetEventOrMetadataStat(StatType::kRunId));
    if (!run_id.has_value()) return;
    CollectivePiece run;
    if (!ReadTimes(clock_, line, event, collector_, &run)) return;
    runs_.push_back({Timespan::FromEndPoints(run.start_ps, run.end_ps), *run_id});
  }

  void ReadOp(const XLineVisitor& line, const XEventVisitor& event) {
    const auto [program, collective] = FindCollective(event);
    if (collective == nullptr) return;
    CollectivePiece piece;
    if (!ReadTimes(clock_, line, event, collector_, &piece)) return;
    piece.op = collector_->OpOf(*program, *collective);
    piece.local_device = Device();
    piece.line_id = line.Id();
    piece.run_id = RunAt(piece.start_ps);
    const absl::string_view instruction = TpuInstruction(event.Metadata());
    if (!piece.run_id.has_value()) {
      collector_->AddUnresolved("run of a collective is not in the profile",
                                std::string(instruction));
    }
    if (collective->done == nullptr) {
      collector_->AddPiece(piece);
    } else if (instruction == collective->done->name()) {
      FinishPair(*collective, piece);
    } else if (instruction == collective->start->name()) {
      open_starts_[collective].push_back(piece);
    }
  }

  // A done ends the oldest start of the same run that is still open. Profiles begin between a start
  // and its done: such a done is nobody's.
  void FinishPair(const HloCollective& collective, CollectivePiece done) {
    std::deque<CollectivePiece>& starts = open_starts_[&collective];
    const auto start = absl::c_find_if(
        starts, [&](const CollectivePiece& open) { return open.run_id == done.run_id; });
    if (start == starts.end()) {
      collector_->AddUnresolved("done of a collective without its start",
                                std::string(collective.instruction->name()));
      return;
    }
    start->execution = done.execution = ++pairs_;
    collector_->AddPiece(*start);
    collector_->AddPiece(done);
    starts.erase(start);
  }

  // Ops repeat; what their metadata leads to is found once.
  std::pair<const HloProgram*, const HloCollective*> FindCollective(const XEventVisitor& event) {
    const auto [it, inserted] = found_.try_emplace(event.Id(), nullptr, nullptr);
    if (inserted) {
      it->second.first = ProgramOf(event, collector_->programs());
      if (it->second.first != nullptr) {
        it->second.second =
            collector_->FindCollective(*it->second.first, TpuInstruction(event.Metadata()));
      }
    }
    return it->second;
  }

  // Devices without collectives are not asked for their rank.
  uint32_t Device() {
    if (!device_.has_value()) {
      device_ = collector_->AddDevice(
          {std::string(plane_.Name()), GlobalCoreId(plane_).value_or(kUnknownId)});
    }
    return *device_;
  }

  // The run of the module execution that began last before the time; executions of one core follow
  // each other, they do not nest.
  std::optional<int64_t> RunAt(int64_t time_ps) const {
    auto it = absl::c_upper_bound(runs_, time_ps, [](int64_t time, const ModuleRun& run) {
      return time < run.span.begin_ps();
    });
    if (it == runs_.begin()) return std::nullopt;
    --it;
    if (!it->span.Includes(time_ps)) return std::nullopt;
    return it->run_id;
  }

  const XPlaneVisitor& plane_;
  const SessionClock& clock_;
  CollectiveCollector* collector_;
  std::optional<uint32_t> device_;
  std::vector<ModuleRun> runs_;
  absl::flat_hash_map<int64_t, std::pair<const HloProgram*, const HloCollective*>> found_;
  absl::flat_hash_map<const HloCollective*, std::deque<CollectivePiece>> open_starts_;
  uint64_t pairs_ = 0;
};

}  // namespace

absl::Status ReadTpuCollectives(const XPlaneVisitor& plane, const SessionClock& clock,
                                CollectiveCollector* collector) {
  if (!IsCorePlane(plane.Name())) return absl::OkStatus();
  return TpuPlaneReader(plane, clock, collector).Run();
}

}  // namespace meridian
