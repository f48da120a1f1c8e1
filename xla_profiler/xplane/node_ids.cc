#include "xla_profiler/xplane/node_ids.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

absl::Status CheckCount(size_t count, size_t files, absl::string_view what) {
  if (count == 0 || count == files) return absl::OkStatus();
  return InvalidArgument(count, " ", what, " for ", files, " files; expected one per file");
}

// Returns the integers of the names when they can serve as ids: every name has one, none repeats.
std::optional<std::vector<int64_t>> IdsFromNames(const std::vector<std::string>& files) {
  std::vector<int64_t> ids;
  absl::flat_hash_set<int64_t> seen;
  for (const std::string& file : files) {
    const std::optional<int64_t> id = LastIntegerInFileName(file);
    if (!id.has_value() || !seen.insert(*id).second) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

}  // namespace

std::optional<int64_t> LastIntegerInFileName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  const absl::string_view name = slash == absl::string_view::npos ? path : path.substr(slash + 1);
  size_t end = name.size();
  while (end > 0 && !absl::ascii_isdigit(name[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && absl::ascii_isdigit(name[begin - 1])) --begin;
  int64_t value = 0;
  if (!absl::SimpleAtoi(name.substr(begin, end - begin), &value)) return std::nullopt;
  return value;
}

absl::StatusOr<std::vector<AssignedNodeId>> AssignNodeIds(const NodeIdInputs& inputs) {
  const size_t count = inputs.files.size();
  RETURN_IF_ERROR(CheckCount(inputs.given.size(), count, "node ids"));
  RETURN_IF_ERROR(CheckCount(inputs.from_snapshots.size(), count, "snapshot ids"));

  std::vector<AssignedNodeId> nodes(count);
  std::vector<size_t> open;
  std::vector<std::string> open_files;
  for (size_t i = 0; i < count; ++i) {
    if (!inputs.given.empty()) {
      nodes[i].id = inputs.given[i];
    } else if (!inputs.from_snapshots.empty() && inputs.from_snapshots[i].has_value()) {
      nodes[i].id = *inputs.from_snapshots[i];
    } else {
      open.push_back(i);
      open_files.push_back(inputs.files[i]);
    }
  }
  const std::optional<std::vector<int64_t>> names = IdsFromNames(open_files);
  for (size_t k = 0; k < open.size(); ++k) {
    nodes[open[k]] = {names.has_value() ? (*names)[k] : static_cast<int64_t>(open[k]),
                      !names.has_value()};
  }

  absl::flat_hash_map<int64_t, size_t> owner;
  for (size_t i = 0; i < count; ++i) {
    const auto [it, inserted] = owner.emplace(nodes[i].id, i);
    if (inserted) continue;
    return InvalidArgument("node id ", nodes[i].id, " belongs to both ", inputs.files[it->second],
                           " and ", inputs.files[i], "; give --node_ids with one id per file");
  }
  return nodes;
}

}  // namespace meridian
