#include "xla_profiler/testing/hlo_comparison.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "third_party/hlo/hlo.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/hlo/hlo_collective.h"
#include "xla_profiler/hlo/hlo_module.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/hlo/hlo_shape.h"
#include "xla_profiler/hlo/replica_groups.h"

namespace meridian {
namespace {

absl::Status Differ(absl::string_view what) {
  return absl::InternalError(absl::StrCat("decoders differ: ", what));
}

#define EXPECT_SAME(a, b, what)             \
  do {                                      \
    if (!((a) == (b))) return Differ(what); \
  } while (false)

template <typename Ours, typename Ids>
absl::Status CompareReferences(const Ours& ours, const Ids& ids, int64_t num_problems,
                               absl::string_view what) {
  // Some are left out of a module with problems.
  if (num_problems != 0) return absl::OkStatus();
  EXPECT_SAME(ours.size(), static_cast<size_t>(ids.size()), what);
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_SAME(ours[i]->id(), ids.Get(static_cast<int>(i)), what);
  }
  return absl::OkStatus();
}

absl::Status CompareInstruction(const HloInstruction& ours, const xla::HloInstructionProto& theirs,
                                int64_t num_problems) {
  EXPECT_SAME(ours.id(), theirs.id(), "instruction id");
  EXPECT_SAME(ours.name(), theirs.name(), "instruction name");
  RETURN_IF_ERROR(
      CompareReferences(ours.operands(), theirs.operand_ids(), num_problems, "operands"));
  RETURN_IF_ERROR(CompareReferences(ours.control_predecessors(), theirs.control_predecessor_ids(),
                                    num_problems, "control predecessors"));
  return CompareReferences(ours.called_computations(), theirs.called_computation_ids(),
                           num_problems, "called computations");
}

absl::Status CompareComputation(const HloComputation& ours, const xla::HloComputationProto& theirs,
                                int64_t num_problems) {
  EXPECT_SAME(ours.id(), theirs.id(), "computation id");
  EXPECT_SAME(ours.name(), theirs.name(), "computation name");
  if (ours.root() != nullptr) EXPECT_SAME(ours.root()->id(), theirs.root_id(), "root");
  EXPECT_SAME(ours.instructions().size(), static_cast<size_t>(theirs.instructions_size()),
              "number of instructions");
  for (size_t i = 0; i < ours.instructions().size(); ++i) {
    const xla::HloInstructionProto& instruction = theirs.instructions(static_cast<int>(i));
    RETURN_IF_ERROR(CompareInstruction(ours.instructions()[i], instruction, num_problems));
  }
  return absl::OkStatus();
}

absl::Status CompareModule(const HloModule& ours, const xla::HloModuleProto& theirs) {
  EXPECT_SAME(ours.id(), theirs.id(), "module id");
  EXPECT_SAME(ours.name(), theirs.name(), "module name");
  EXPECT_SAME(ours.computations().size(), static_cast<size_t>(theirs.computations_size()),
              "number of computations");
  for (size_t i = 0; i < ours.computations().size(); ++i) {
    RETURN_IF_ERROR(CompareComputation(
        ours.computations()[i], theirs.computations(static_cast<int>(i)), ours.num_problems()));
  }
  return absl::OkStatus();
}

#undef EXPECT_SAME

// Asks for everything; what comes back does not matter, that it comes back does.
void Walk(const HloModule& module) {
  for (const HloInstruction& instruction : module.instructions()) {
    module.FindInstruction(instruction.name());
    ReplicaGroupsOf(instruction.proto()).status().IgnoreError();
    ShapeText(instruction.shape());
    ShapeBytes(instruction.shape()).status().IgnoreError();
  }
  const HloCollectives collectives(module);
  for (const HloInstruction& instruction : module.instructions()) {
    collectives.Find(instruction.name());
  }
  HloFingerprint(module, collectives).status().IgnoreError();
}

}  // namespace

absl::Status CompareHloWithLibprotobuf(absl::string_view bytes, HloVerdict* verdict) {
  xla::HloProto theirs;
  const bool accepted = theirs.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  const absl::StatusOr<std::unique_ptr<HloModule>> ours = HloModule::Decode(bytes, bytes.data());
  if (!ours.ok()) {
    *verdict = HloVerdict::kRefused;
    // Well-formed, but contradicts itself.
    const bool ours_only = absl::StrContains(ours.status().message(), "device assignment");
    return accepted && !ours_only ? Differ(ours.status().ToString()) : absl::OkStatus();
  }
  if (!accepted) return Differ("libprotobuf refuses it");
  Walk(**ours);
  *verdict = HloVerdict::kAccepted;
  return CompareModule(**ours, theirs.hlo_module());
}

}  // namespace meridian
