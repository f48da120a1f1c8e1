#include "trace_alignment/collectives/testing/run_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

RunBuilder::RunBuilder(uint32_t nodes, uint32_t devices_per_node)
    : devices_per_node_(devices_per_node), profiles_(nodes) {
  for (uint32_t rank = 0; rank < nodes * devices_per_node; ++rank) {
    LocalDevice device;
    device.name = absl::StrCat("device ", rank % devices_per_node);
    device.global_id = rank;
    profiles_[rank / devices_per_node].devices.push_back(device);
  }
  for (uint32_t node = 0; node < nodes; ++node) profiles_[node].trace = absl::StrCat("node", node);
}

uint32_t RunBuilder::AddToAll(const CollectiveOp& op) {
  for (ProfileCollectives& profile : profiles_) {
    profile.ops.push_back(op);
    profile.ops.back().module = "jit_step";
    profile.ops.back().instruction = absl::StrCat("op.", profile.ops.size() - 1);
  }
  return static_cast<uint32_t>(profiles_[0].ops.size() - 1);
}

uint32_t RunBuilder::AddOp(CollectiveKind kind, const IdGroups& groups, int64_t operand_bytes) {
  CollectiveOp op;
  op.kind = kind;
  op.operand_bytes = operand_bytes;
  op.groups = groups;
  return AddToAll(op);
}

uint32_t RunBuilder::AddPairsOp(CollectiveKind kind, const std::vector<SourceTargetPair>& pairs,
                                int64_t operand_bytes) {
  CollectiveOp op;
  op.kind = kind;
  op.operand_bytes = operand_bytes;
  op.pairs = pairs;
  return AddToAll(op);
}

void RunBuilder::Add(const MadeUpEvent& made_up) {
  CollectiveEvent event;
  event.op = made_up.op;
  event.local_device = static_cast<uint32_t>(made_up.rank % devices_per_node_);
  event.device = made_up.rank;
  event.run_id = made_up.run;
  event.start_ps = made_up.start_ps;
  event.end_ps = made_up.end_ps;
  event.correlation_id = ++events_;
  profiles_[made_up.rank / devices_per_node_].events.push_back(event);
}

ResolvedRun RunBuilder::Resolve() {
  ResolvedRun run;
  run.profiles = std::move(profiles_);
  for (ProfileCollectives& profile : run.profiles) {
    std::stable_sort(
        profile.events.begin(), profile.events.end(),
        [](const CollectiveEvent& a, const CollectiveEvent& b) { return a.start_ps < b.start_ps; });
    LookUpGroups(&profile);
    std::vector<EventRun>& resolved = run.runs.runs.emplace_back();
    resolved.reserve(profile.events.size());
    for (const CollectiveEvent& event : profile.events) {
      resolved.push_back({*event.run_id, event.occurrence});
    }
  }
  absl::StatusOr<RankResolution> ranks = ResolveRanks(absl::MakeSpan(run.profiles));
  MERIDIAN_CHECK(ranks.ok());
  run.ranks = *std::move(ranks);
  return run;
}

absl::StatusOr<CollectiveTable> RunBuilder::TryBuild() {
  const ResolvedRun run = Resolve();
  return BuildCollectiveTable(run.profiles, run.ranks, run.runs);
}

CollectiveTable RunBuilder::Build() {
  absl::StatusOr<CollectiveTable> table = TryBuild();
  MERIDIAN_CHECK(table.ok());
  return *std::move(table);
}

}  // namespace meridian
