// Real profiles: what the modules in them say must be what XLA prints about the same programs, and
// the ranks of a run must agree.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/hlo/hlo_module_index.h"
#include "xla_profiler/testing/hlo_comparison.h"
#include "xla_profiler/testing/shared_data.h"
#include "xla_profiler/xplane/xplane_schema.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::SizeIs;

// An open profile and its programs.
class Profile {
 public:
  explicit Profile(const std::string& path)
      : reader_(XSpaceReader::Open(FileSystem::Posix(), path).value()) {
    const auto plane = reader_.FindPlane(kMetadataPlaneName).value();
    if (plane.has_value()) index_ = HloModuleIndex(*plane);
  }

  const HloModuleIndex& index() const { return index_; }

  // The only program of that name.
  const HloProgram& Program(absl::string_view name) const {
    const auto programs = index_.FindByName(name);
    EXPECT_THAT(programs, SizeIs(1));
    return *programs.at(0);
  }

 private:
  XSpaceReader reader_;
  HloModuleIndex index_;
};

// Collectives as the text of a module prints them.
struct PrintedCollective {
  std::string name;
  // As printed: XLA shows an async-start of an all-reduce as "all-reduce-start".
  std::string opcode;
  int64_t operand_bytes = 0;
  std::vector<std::string> operands;
};

// "(f32[4,8]{1,0}, f32[])" -> 132. All types in these texts have as many bits as their name says.
int64_t PrintedBytes(absl::string_view shape) {
  int64_t total = 0;
  for (size_t open = shape.find('['); open != absl::string_view::npos; open = shape.find('[')) {
    size_t type = open;
    while (type > 0 && absl::ascii_isalnum(shape[type - 1])) --type;
    const absl::string_view name = shape.substr(type, open - type);
    int64_t bytes = 1;
    if (name != "pred") {
      EXPECT_TRUE(absl::SimpleAtoi(name.substr(name.find_first_of("0123456789")), &bytes)) << name;
      bytes /= 8;
    }
    const size_t close = shape.find(']', open);
    for (absl::string_view dim :
         absl::StrSplit(shape.substr(open + 1, close - open - 1), ',', absl::SkipEmpty())) {
      int64_t size = 0;
      EXPECT_TRUE(absl::SimpleAtoi(dim, &size)) << dim;
      bytes *= size;
    }
    total += bytes;
    shape.remove_prefix(close + 1);
  }
  return total;
}

// Cuts "%name = shape opcode(%a, %b), ..." into its parts; false for other lines.
bool ParseLine(absl::string_view line, std::string* name, std::string* shape, std::string* opcode,
               std::vector<std::string>* operands) {
  line = absl::StripLeadingAsciiWhitespace(line);
  absl::ConsumePrefix(&line, "ROOT ");
  const size_t equals = line.find(" = ");
  if (!absl::ConsumePrefix(&line, "%") || equals == absl::string_view::npos) return false;
  *name = std::string(line.substr(0, equals - 1));
  line.remove_prefix(equals - 1 + 3);
  // A tuple's shape has spaces within parentheses.
  size_t end = 0;
  for (int depth = 0; end < line.size() && (depth > 0 || line[end] != ' '); ++end) {
    depth += line[end] == '(' ? 1 : line[end] == ')' ? -1 : 0;
  }
  *shape = std::string(line.substr(0, end));
  line.remove_prefix(std::min(line.size(), end + 1));
  const size_t open = line.find('(');
  if (open == absl::string_view::npos) return false;
  *opcode = std::string(line.substr(0, open));
  const size_t close = line.find(')', open);
  operands->clear();
  for (absl::string_view operand :
       absl::StrSplit(line.substr(open + 1, close - open - 1), ", ", absl::SkipEmpty())) {
    absl::ConsumePrefix(&operand, "%");
    operands->emplace_back(operand);
  }
  return true;
}

bool IsCollectiveOpcode(absl::string_view opcode) {
  static const auto& kinds = *new std::set<std::string>{
      "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"};
  if (!absl::ConsumeSuffix(&opcode, "-start")) absl::ConsumeSuffix(&opcode, "-done");
  return kinds.count(std::string(opcode)) != 0;
}

std::vector<PrintedCollective> ReadText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::map<std::string, std::string> shapes;
  std::vector<PrintedCollective> collectives;
  for (std::string line; std::getline(file, line);) {
    std::string name, shape, opcode;
    std::vector<std::string> operands;
    if (!ParseLine(line, &name, &shape, &opcode, &operands)) continue;
    shapes[name] = shape;
    if (!IsCollectiveOpcode(opcode)) continue;
    PrintedCollective& collective = collectives.emplace_back();
    collective.name = name;
    collective.opcode = opcode;
    collective.operands = operands;
    // Operands precede their users.
    for (const std::string& operand : operands) {
      collective.operand_bytes += PrintedBytes(shapes.at(operand));
    }
  }
  return collectives;
}

struct PrintedProgram {
  const char* folder;
  const char* text;
  const char* module;
  // Executed collectives: synchronous ones and starts.
  size_t num_collectives;
};

class PrintedProgramTest : public ::testing::TestWithParam<PrintedProgram> {};

TEST_P(PrintedProgramTest, CollectivesAreThoseOfTheText) {
  const auto shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const std::string folder = absl::StrCat(*shared, "/traces/", GetParam().folder, "/");
  const Profile profile(folder + "rank0.xplane.pb");
  ASSERT_OK_AND_ASSIGN(const HloCollectives* collectives,
                       profile.Program(GetParam().module).Collectives());
  size_t printed_starts = 0;
  for (const PrintedCollective& printed : ReadText(folder + GetParam().text)) {
    SCOPED_TRACE(printed.name);
    const HloCollective* collective = collectives->Find(printed.name);
    ASSERT_NE(collective, nullptr);
    EXPECT_OK(collective->status);
    absl::string_view kind = printed.opcode;
    if (absl::ConsumeSuffix(&kind, "-done")) {
      EXPECT_EQ(collective->done->name(), printed.name);
      EXPECT_EQ(collective, collectives->Find(printed.operands.at(0)));
    } else {
      const bool is_async = absl::ConsumeSuffix(&kind, "-start");
      EXPECT_EQ((is_async ? collective->start : collective->instruction)->name(), printed.name);
      EXPECT_EQ(collective->operand_bytes, printed.operand_bytes);
      ++printed_starts;
    }
    EXPECT_EQ(CollectiveKindName(collective->kind), kind);
  }
  EXPECT_EQ(printed_starts, GetParam().num_collectives);
  EXPECT_THAT(collectives->all(), SizeIs(GetParam().num_collectives));
}

INSTANTIATE_TEST_SUITE_P(
    Traces, PrintedProgramTest,
    ::testing::Values(PrintedProgram{"jax_cuda2", "step.hlo.txt", "jit_train_step", 2},
                      PrintedProgram{"jax_cuda2", "zoo.hlo.txt", "jit_zoo", 5},
                      PrintedProgram{"jax_cpu4", "step.hlo.txt", "jit_train_step", 1},
                      PrintedProgram{"jax_cpu4", "zoo.hlo.txt", "jit_zoo", 5},
                      PrintedProgram{"jax_tp_cuda4", "step.hlo.txt", "jit_step", 48}));

// A 2 x 2 mesh of data (dp) and tensor (tp) parallelism.
TEST(HloProfileTest, SubGroupsOfAMesh) {
  const auto shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const Profile profile(*shared + "/traces/jax_tp_cuda4/rank0.xplane.pb");
  ASSERT_OK_AND_ASSIGN(const HloCollectives* collectives,
                       profile.Program("jit_step").Collectives());
  const auto groups = [&](absl::string_view name) {
    return ToString(collectives->Find(name)->participants->device_groups);
  };
  EXPECT_EQ(groups("all-reduce-start"), "{0,1},{2,3}");   // [2,2]<=[4]
  EXPECT_EQ(groups("all-reduce.45"), "{0,2},{1,3}");      // [2,2]<=[2,2]T(1,0)
  EXPECT_EQ(groups("all-to-all-done.2"), "{0,1},{2,3}");  // mesh['axis_0'=2,'axis_1'=2] {'axis_1'}
  EXPECT_THAT(collectives->Find("collective-permute-start.1")->participants->device_pairs,
              ::testing::ElementsAre(SourceTargetPair{1, 0}, SourceTargetPair{3, 2}));
}

TEST(HloProfileTest, CpuDevicesAreNotSmallNumbers) {
  const auto shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const Profile profile(*shared + "/traces/jax_cpu4/rank2.xplane.pb");
  ASSERT_OK_AND_ASSIGN(const HloCollectives* collectives, profile.Program("jit_zoo").Collectives());
  EXPECT_EQ(ToString(collectives->Find("all-to-all")->participants->device_groups),
            "{0,2048,4096,6144}");
  EXPECT_THAT(collectives->Find("ppermute.3")->participants->device_pairs,
              ::testing::ElementsAre(SourceTargetPair{0, 2048}, SourceTargetPair{2048, 4096},
                                     SourceTargetPair{4096, 6144}, SourceTargetPair{6144, 0}));
}

// Its group list is in a place that newer XLA has abandoned, its program ids only in names.
TEST(HloProfileTest, TpuSample) {
  const auto shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const Profile profile(*shared + "/samples/xplane/tpu_inference_2.xplane.pb");
  EXPECT_THAT(profile.index().programs(), SizeIs(4));
  const HloProgram* program = profile.index().Find(9646411105960254074u);
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->name(), "jit__psum");
  ASSERT_OK_AND_ASSIGN(const HloCollectives* collectives, program->Collectives());
  ASSERT_THAT(collectives->all(), SizeIs(1));
  EXPECT_EQ(ToString(collectives->all()[0].participants->device_groups), "{0,4},{1,5},{2,6},{3,7}");
  EXPECT_EQ(collectives->all()[0].operand_bytes, 5368709120);
}

TEST(HloProfileTest, AllModulesAreSound) {
  const std::vector<std::string> files = SharedXSpaceFiles();
  if (files.empty()) GTEST_SKIP() << kSharedDataMissing;
  size_t num_modules = 0;
  for (const std::string& path : files) {
    const Profile profile(path);
    for (const HloProgram& program : profile.index().programs()) {
      SCOPED_TRACE(absl::StrCat(path, ": ", program.name()));
      ++num_modules;
      HloVerdict verdict = HloVerdict::kRefused;
      EXPECT_OK(CompareHloWithLibprotobuf(program.bytes(), &verdict));
      EXPECT_EQ(verdict, HloVerdict::kAccepted);
      ASSERT_OK_AND_ASSIGN(const HloModule* module, program.Module());
      EXPECT_EQ(module->name(), program.name());
      EXPECT_EQ(module->num_problems(), 0);
      EXPECT_NE(module->entry(), nullptr);
      ASSERT_OK_AND_ASSIGN(const HloCollectives* collectives, program.Collectives());
      for (const HloCollective& collective : collectives->all()) {
        EXPECT_OK(collective.status);
        EXPECT_GT(collective.operand_bytes, 0);
        EXPECT_GT(collective.output_bytes, 0);
      }
    }
  }
  EXPECT_GT(num_modules, 500);
}

// The fingerprints of the programs that communicate, sorted.
std::vector<absl::uint128> Fingerprints(const Profile& profile) {
  std::vector<absl::uint128> fingerprints;
  for (const HloProgram& program : profile.index().programs()) {
    if ((*program.Collectives())->all().empty()) continue;
    fingerprints.push_back(program.Fingerprint().value());
  }
  std::sort(fingerprints.begin(), fingerprints.end());
  return fingerprints;
}

TEST(HloProfileTest, RanksAgreeOnFingerprints) {
  const auto shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const auto run = [&](const std::string& folder, int num_ranks, const std::string& suffix) {
    SCOPED_TRACE(folder);
    std::set<absl::uint128> distinct;
    std::vector<absl::uint128> first;
    for (int rank = 0; rank < num_ranks; ++rank) {
      SCOPED_TRACE(rank);
      const Profile profile(
          absl::StrCat(*shared, "/traces/", folder, "/rank", rank, ".xplane.pb", suffix));
      const std::vector<absl::uint128> fingerprints = Fingerprints(profile);
      if (rank == 0) first = fingerprints;
      EXPECT_EQ(fingerprints, first);
      distinct.insert(fingerprints.begin(), fingerprints.end());
    }
    return distinct.size();
  };
  // jit__identity_fn for two shapes, jit_train_step, jit_zoo.
  EXPECT_EQ(run("jax_cuda2", 2, ""), 4);
  EXPECT_EQ(run("jax_cpu4", 4, ""), 4);
  EXPECT_EQ(run("jax_tp_cuda4", 4, ""), 1);
  // Five kinds at fifteen sizes, all of them called jit__lambda.
  EXPECT_EQ(run("sweep_cuda2", 2, ".gz"), 75);
  EXPECT_EQ(run("sweep_cuda4", 4, ".gz"), 75);
  EXPECT_EQ(run("sweep_cpu4", 4, ".gz"), 75);
}

// A guard, not a measurement: 5 ms are expected, machines differ.
TEST(HloProfileTest, DecodingIsFast) {
  const auto shared = SharedDataDirectory();
  if (!shared.has_value()) GTEST_SKIP() << kSharedDataMissing;
  const Profile profile(*shared + "/traces/jax_tp_cuda4/rank0.xplane.pb");
  const auto begin = std::chrono::steady_clock::now();
  for (const HloProgram& program : profile.index().programs()) EXPECT_OK(program.Collectives());
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  std::printf("decoding took %.3f ms\n", elapsed.count());
  EXPECT_LT(elapsed.count(), 200);
}

}  // namespace
}  // namespace meridian
