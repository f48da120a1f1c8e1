// Any bytes as a file of groups: those that are accepted are written so that they are read back.
#include "absl/status/statusor.h"
#include "chakra_export/et/comm_groups.h"
#include "xla_profiler/testing/fuzz.h"

absl::Status meridian::FuzzOne(absl::string_view bytes) {
  const absl::StatusOr<CommGroups> groups = ParseCommGroups(bytes, "fuzz.json");
  if (!groups.ok()) return absl::OkStatus();
  const absl::StatusOr<CommGroups> again = ParseCommGroups(CommGroupsJson(*groups), "again.json");
  if (!again.ok()) return again.status();
  return *again == *groups ? absl::OkStatus() : absl::InternalError("the groups have changed");
}
