// How long it takes to index the programs of a profile and to find its collectives.
//
//   ./bazelw run //benchmarks:hlo_index_benchmark -- --trace=FILE
//
// Exits with 1 when decoding all programs takes longer than 20 ms of CPU time.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

#include "benchmarks/ratio_benchmark.h"
#include "tools/command.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

Flag<std::string> FLAGS_trace("trace", "", "The profile to measure on.");
Flag<int> FLAGS_rounds("rounds", 5, "How often each part runs.");

constexpr double kReachSeconds = 0.020;

// Returns the number of instructions of all programs.
absl::StatusOr<size_t> DecodeAll(const XPlaneVisitor& metadata) {
  size_t instructions = 0;
  const HloModuleIndex index(metadata);
  for (const HloProgram& program : index.programs()) {
    ASSIGN_OR_RETURN(const HloModule* module, program.Module());
    RETURN_IF_ERROR(program.Collectives().status());
    instructions += module->instructions().size();
  }
  return instructions;
}

absl::StatusOr<int> Measure() {
  ASSIGN_OR_RETURN(const XSpaceReader reader,
                   XSpaceReader::Open(FileSystem::Posix(), UserPath(FLAGS_trace.value())));
  ASSIGN_OR_RETURN(const std::optional<XPlaneVisitor> metadata,
                   reader.FindPlane(kMetadataPlaneName));
  if (!metadata.has_value()) return absl::InvalidArgumentError("the profile holds no programs");
  double index_s = std::numeric_limits<double>::infinity(), collectives_s = index_s;
  size_t instructions = 0, events = 0;
  for (int round = 0; round < std::max(1, FLAGS_rounds.value()); ++round) {
    const double begin_s = CpuSeconds();
    ASSIGN_OR_RETURN(instructions, DecodeAll(*metadata));
    const double indexed_s = CpuSeconds();
    ASSIGN_OR_RETURN(const ProfileCollectives profile, ReadXSpaceCollectives(reader));
    events = profile.events.size();
    index_s = std::min(index_s, indexed_s - begin_s);
    collectives_s = std::min(collectives_s, CpuSeconds() - indexed_s);
  }
  std::printf("index of %zu instructions: %.2f CPU ms (reach %.0f)\n", instructions, index_s * 1e3,
              kReachSeconds * 1e3);
  std::printf("%zu collectives of the whole profile: %.2f CPU ms\n", events, collectives_s * 1e3);
  return index_s <= kReachSeconds ? kExitDone : kExitCheckFailed;
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  return meridian::RunCommand({"hlo_index_benchmark",
                               "Measures the index of a profile's programs and collectives.",
                               {"hlo_index_benchmark --trace=node0.xplane.pb"},
                               {&meridian::FLAGS_trace, &meridian::FLAGS_rounds},
                               meridian::Measure},
                              argc, argv);
}
