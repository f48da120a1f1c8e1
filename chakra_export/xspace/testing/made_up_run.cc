#include "chakra_export/xspace/testing/made_up_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/collectives/xspace_collectives.h"
#include "xla_profiler/xplane/xspace_reader.h"

namespace meridian {

MadeUpRun::MadeUpRun(const std::vector<XSpaceProto>& spaces) {
  std::vector<ProfileCollectives> collectives;
  for (const XSpaceProto& space : spaces) {
    bytes.push_back(space.SerializeAsString());
    auto reader = XSpaceReader::FromBytes(bytes.back(), absl::StrCat("profile", profiles.size()));
    MERIDIAN_CHECK(reader.ok());
    auto profile = ReadXSpaceCollectives(*reader);
    MERIDIAN_CHECK(profile.ok());
    collectives.push_back(*std::move(profile));
    auto work = ReadDeviceWork(*std::move(reader), std::nullopt, FileSystem::Posix(),
                               InputFileOptions().temporary_directory);
    MERIDIAN_CHECK(work.ok());
    profiles.push_back(*std::move(work));
  }
  auto matched = MatchCollectives(std::move(collectives), {});
  MERIDIAN_CHECK(matched.ok());
  run = *std::move(matched);
}

}  // namespace meridian
