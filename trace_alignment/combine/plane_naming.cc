#include "trace_alignment/combine/plane_naming.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// The parts of a device's name: "/device:TPU:12 SparseCore 0" has the kind "TPU", the number "12"
// and the rest " SparseCore 0".
struct DeviceName {
  absl::string_view kind;
  absl::string_view number;
  absl::string_view rest;
};

// Returns false for planes that are not numbered devices.
bool ParseDeviceName(absl::string_view name, DeviceName* device) {
  if (!absl::ConsumePrefix(&name, kDevicePlanePrefix)) return false;
  const size_t colon = name.find(':');
  if (colon == absl::string_view::npos) return false;
  size_t end = colon + 1;
  while (end < name.size() && absl::ascii_isdigit(name[end])) ++end;
  device->kind = name.substr(0, colon);
  device->number = name.substr(colon + 1, end - colon - 1);
  device->rest = name.substr(end);
  return !device->number.empty();
}

}  // namespace

std::string NodePlaneName(int64_t node_id, absl::string_view name) {
  return absl::StrCat("/node:", node_id, absl::StartsWith(name, "/") ? "" : "/", name);
}

absl::StatusOr<std::string> PlaneNames::Name(int64_t node_id, absl::string_view name) {
  DeviceName device;
  if (naming_ == PlaneNaming::kNodePrefix || !ParseDeviceName(name, &device)) {
    return NodePlaneName(node_id, name);
  }
  const auto [it, is_new] =
      devices_.try_emplace(absl::StrCat(device.kind, " ", node_id, " ", device.number), 0);
  if (is_new) {
    it->second = counts_[std::string(device.kind)]++;
    if (++total_ > kMaxViewerDevices) {
      return absl::InvalidArgumentError(absl::StrCat(
          "more than ", kMaxViewerDevices,
          " devices, which viewers cannot show in one file; give --output_dir for one aligned file "
          "per node, or --plane_naming=node_prefix"));
    }
  }
  return absl::StrCat(kDevicePlanePrefix, device.kind, ":", it->second, device.rest);
}

}  // namespace meridian
