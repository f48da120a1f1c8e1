// Makes up the collectives of a run and prints what the first process of combine_mpi does with them:
// what it receives from a node, how long it takes to unpack, match and solve, and what it sends back.
//
//   ./bazelw run //cluster/combine:scale_benchmark -- 4096 1000
//
// for 4,096 nodes of one device and 1,000 all-reduces of everybody.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "trace_alignment/collectives/collective_run.h"
#include "trace_alignment/collectives/testing/run_builder.h"
#include "trace_alignment/collectives/testing/simulated_run.h"
#include "trace_alignment/combine/run_alignment.h"
#include "trace_alignment/run/node_bytes.h"
#include "trace_alignment/testing/true_clock.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/wire/packed_bytes.h"
#include "xla_profiler/xplane/session_clock.h"

namespace meridian {
namespace {

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double PeakMegabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return 1.024e-3 * static_cast<double>(usage.ru_maxrss);
}

// Writes what the nodes send: for each the number of bytes, and these.
void WriteNodes(const SimulatedRunOptions& options, std::FILE* file) {
  std::mt19937_64 random(1);
  const std::vector<TrueClock> clocks = RandomClocks(options.nodes, &random);
  RunBuilder builder = SimulateRun(options, clocks, &random);
  // Every profile names all devices of the run.
  std::vector<int64_t> devices(options.nodes);
  std::iota(devices.begin(), devices.end(), 0);
  CollectivesPacker packer;
  for (ProfileCollectives& profile : builder.profiles()) {
    profile.ops.resize(1);
    profile.assigned_devices = devices;
    LookUpGroups(&profile);
    PackedBytes bytes;
    packer.Pack(bytes, profile);
    const uint64_t size = bytes.bytes().size();
    std::fwrite(&size, sizeof(size), 1, file);
    std::fwrite(bytes.bytes().data(), 1, size, file);
  }
  std::fflush(file);
}

absl::Status Run(const SimulatedRunOptions& options) {
  std::FILE* const file = std::tmpfile();
  MERIDIAN_CHECK(file != nullptr);
  // In a process of its own, whose memory does not count.
  if (const pid_t writer = fork(); writer == 0) {
    WriteNodes(options, file);
    _exit(0);
  } else {
    waitpid(writer, nullptr, 0);
  }
  std::rewind(file);
  const double start = CpuSeconds();
  uint64_t packed_bytes = 0;
  std::vector<ProfileCollectives> profiles(options.nodes);
  CollectivesPacker unpacker;
  for (ProfileCollectives& profile : profiles) {
    uint64_t size = 0;
    MERIDIAN_CHECK(std::fread(&size, sizeof(size), 1, file) == 1);
    std::string packed(size, '\0');
    MERIDIAN_CHECK(std::fread(packed.data(), 1, size, file) == size);
    PackedBytes bytes(packed);
    unpacker.Pack(bytes, profile);
    RETURN_IF_ERROR(bytes.Finish());
    packed_bytes += size;
  }
  const double unpacked = CpuSeconds();
  const double profiles_mb = PeakMegabytes();
  ASSIGN_OR_RETURN(const CollectiveRun run, MatchCollectives(std::move(profiles)));
  const double matched = CpuSeconds();
  AlignmentInputs inputs;
  for (uint32_t n = 0; n < options.nodes; ++n) {
    ASSIGN_OR_RETURN(const SessionClock clock, SessionClock::Create("node", {}, 0));
    inputs.nodes.push_back({n, clock, std::nullopt, std::nullopt});
  }
  AlignmentOptions alignment_options;
  alignment_options.method = AlignmentMethod::kCollectives;
  const double before = CpuSeconds();
  ASSIGN_OR_RETURN(RunAlignment alignment, AlignRun(inputs, run, alignment_options));
  const double solved = CpuSeconds();
  uint64_t clock_bytes = 0;
  for (AlignedNode& node : alignment.nodes) {
    PackedBytes bytes;
    bytes(node);
    clock_bytes += bytes.bytes().size();
  }
  absl::PrintF(
      "%d nodes, %d collectives: received %.1f kB/node (%.1f MB), sent %.1f kB/node; CPU s: unpack "
      "%.2f, match %.2f, solve %.2f; profiles %.0f MB, peak %.0f MB; %d violations left\n",
      options.nodes, options.executions, 1e-3 * packed_bytes / options.nodes, 1e-6 * packed_bytes,
      1e-3 * clock_bytes / options.nodes, unpacked - start, matched - unpacked, solved - before,
      profiles_mb, PeakMegabytes(), alignment.after.violations.size());
  return absl::OkStatus();
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  meridian::SimulatedRunOptions options;
  options.all_reduce_only = true;
  if (argc != 3 || !absl::SimpleAtoi(argv[1], &options.nodes) ||
      !absl::SimpleAtoi(argv[2], &options.executions)) {
    std::fprintf(stderr, "usage: scale_benchmark nodes collectives\n");
    return 2;
  }
  const absl::Status status = meridian::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 3;
}
