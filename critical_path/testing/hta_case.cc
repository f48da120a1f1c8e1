#include "critical_path/testing/hta_case.h"

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace meridian {
namespace {

namespace fs = std::filesystem;
using ::simdjson::dom::element;

// Returns the folder's only file, or "".
std::string OnlyFile(const fs::path& folder) {
  std::string file;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!file.empty()) return "";
    file = entry.path().string();
  }
  return file;
}

}  // namespace

std::string JsonText(element value) { return std::string(std::string_view(value)); }

std::optional<HtaCase> ReadHtaCase(element json, const std::string& shared) {
  HtaCase result;
  element value;
  if (!json["files"].get(value) && value.is_string()) {
    result.trace = absl::StrCat(shared, "/", JsonText(value));
  } else {
    result.trace = OnlyFile(fs::path(shared) / JsonText(json["dir"]));
  }
  if (!fs::exists(result.trace)) return std::nullopt;
  WindowChoice& window = result.options.window;
  window.annotation = JsonText(json["annotation"]);
  const element instance = json["instance"];
  if (instance.is_int64()) {
    window.instances = {int64_t(instance), int64_t(instance)};
  } else if (instance.is_array()) {
    window.instances = {int64_t(instance.at(0)), int64_t(instance.at(1))};
  }
  result.options.hta_compatible = true;
  result.options.zero_weight_launch_edges = int64_t(json["zero_launch"]) != 0;
  if (!json["dl"].get(value) && value.is_array()) {
    for (element text : value) result.options.data_load_events.push_back(JsonText(text));
  }
  return result;
}

}  // namespace meridian
