#include "xla_profiler/hlo/hlo_module_index.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/xplane/xplane.pb.h"
#include "xla_profiler/base/testing/status_matchers.h"
#include "xla_profiler/testing/hlo_module_builder.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kHloProtoStat = 1;
constexpr int64_t kProgramIdStat = 2;

// A file whose only plane is the one of the metadata.
class Profile {
 public:
  Profile() : plane_(space_.add_planes()) {
    plane_->set_name("/host:metadata");
    (*plane_->mutable_stat_metadata())[kHloProtoStat].set_name("Hlo Proto");
    (*plane_->mutable_stat_metadata())[kProgramIdStat].set_name("program_id");
  }

  tensorflow::profiler::XEventMetadata& AddEntry(int64_t key, const std::string& name) {
    auto& entry = (*plane_->mutable_event_metadata())[key];
    entry.set_id(key);
    entry.set_name(name);
    return entry;
  }

  tensorflow::profiler::XEventMetadata& AddModule(int64_t key, const std::string& name,
                                                  const std::string& bytes) {
    auto& entry = AddEntry(key, name);
    auto* stat = entry.add_stats();
    stat->set_metadata_id(kHloProtoStat);
    stat->set_bytes_value(bytes);
    return entry;
  }

  HloModuleIndex Index() {
    bytes_ = space_.SerializeAsString();
    reader_.emplace(XSpaceReader::FromBytes(bytes_, "test").value());
    return HloModuleIndex(reader_->Plane(0).value());
  }

 private:
  tensorflow::profiler::XSpace space_;
  tensorflow::profiler::XPlane* plane_;
  std::string bytes_;
  std::optional<XSpaceReader> reader_;
};

TEST(HloModuleIndexTest, TheProgramIdIsTheStatOrTheNameOrTheKey) {
  Profile profile;
  auto* stat = profile.AddModule(1, "jit_a(5)", "").add_stats();
  stat->set_metadata_id(kProgramIdStat);
  stat->set_uint64_value(1989);
  profile.AddModule(2, "jit_b(9646411105960254074)", "");
  profile.AddModule(3, "jit_c", "");
  profile.AddModule(-4, "jit_d(x)", "");
  const HloModuleIndex index = profile.Index();
  ASSERT_THAT(index.programs(), SizeIs(4));
  EXPECT_EQ(index.Find(1989)->name(), "jit_a");
  EXPECT_EQ(index.Find(5), nullptr);
  EXPECT_EQ(index.Find(9646411105960254074u)->name(), "jit_b");
  EXPECT_EQ(index.Find(3)->name(), "jit_c");
  // A stat that holds the id signed finds it too.
  EXPECT_EQ(index.Find(int64_t{-4})->name(), "jit_d(x)");
}

TEST(HloModuleIndexTest, EntriesWithoutModuleAreNoPrograms) {
  Profile profile;
  profile.AddEntry(1, "SYMBOL_MAP");
  auto* stat = profile.AddEntry(2, "text(2)").add_stats();
  stat->set_metadata_id(kHloProtoStat);
  stat->set_str_value("not bytes");
  EXPECT_THAT(profile.Index().programs(), IsEmpty());
  EXPECT_THAT(HloModuleIndex().programs(), IsEmpty());
  EXPECT_EQ(HloModuleIndex().Find(1), nullptr);
}

TEST(HloModuleIndexTest, ProgramsOfOneNameAreAllFound) {
  Profile profile;
  profile.AddModule(1, "jit_step(7)", "");
  profile.AddModule(2, "jit_other(8)", "");
  profile.AddModule(3, "jit_step(9)", "");
  const HloModuleIndex index = profile.Index();
  ASSERT_THAT(index.FindByName("jit_step"), SizeIs(2));
  for (const HloProgram* program : index.FindByName("jit_step")) {
    EXPECT_EQ(program, index.Find(program->program_id()));
  }
  EXPECT_THAT(index.FindByName("jit"), IsEmpty());
}

TEST(HloModuleIndexTest, ModulesAreDecodedOnceAndKept) {
  Profile profile;
  profile.AddModule(1, "jit_step(7)", RichModule().Serialize());
  const HloModuleIndex index = profile.Index();
  const HloProgram* program = index.Find(7);
  EXPECT_EQ(program->bytes(), RichModule().Serialize());
  ASSERT_OK_AND_ASSIGN(const HloModule* module, program->Module());
  EXPECT_EQ(module->name(), "jit_step");
  EXPECT_EQ(program->Module().value(), module);
  ASSERT_OK_AND_ASSIGN(const HloCollectives* collectives, program->Collectives());
  EXPECT_THAT(collectives->all(), SizeIs(3));
  EXPECT_EQ(program->Collectives().value(), collectives);
  ASSERT_OK_AND_ASSIGN(const absl::uint128 fingerprint, program->Fingerprint());
  EXPECT_EQ(program->Fingerprint().value(), fingerprint);
}

TEST(HloModuleIndexTest, ADamagedModuleSparesTheOthers) {
  Profile profile;
  profile.AddModule(1, "jit_bad(7)", "\x0A\x05");
  profile.AddModule(2, "jit_good(8)", RichModule().Serialize());
  const HloModuleIndex index = profile.Index();
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THAT(index.Find(7)->Module(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         ::testing::MatchesRegex("jit_bad\\(7\\): offset [0-9]+: length runs past "
                                                 "the end of the enclosing message")));
  }
  EXPECT_THAT(index.Find(7)->Collectives(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(index.Find(7)->Fingerprint(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(index.Find(8)->Module());
}

}  // namespace
}  // namespace meridian
