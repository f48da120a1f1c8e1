#include "xla_profiler/xplane/node_ids.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

absl::Status CheckCount(size_t count, size_t files, absl::string_view what) {
  if (count == 0 || count == files) return absl::OkStatus();
  return InvalidArgument(count, " ", what, " for ", files, " files; expected one per file");
}

absl::string_view WithoutFolder(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

// Returns the number behind a word of the file's name: 3 of "rank" in "run_rank-3.json".
std::optional<int64_t> NumberBehind(const std::string& word, absl::string_view path) {
  const std::string name = absl::AsciiStrToLower(WithoutFolder(path));
  for (size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    if (at > 0 && absl::ascii_isalpha(name[at - 1])) continue;
    size_t begin = at + word.size();
    if (begin < name.size() && absl::StrContains("-_.", name[begin])) ++begin;
    size_t end = begin;
    while (end < name.size() && absl::ascii_isdigit(name[end])) ++end;
    int64_t number = 0;
    if (absl::SimpleAtoi(name.substr(begin, end - begin), &number)) return number;
  }
  return std::nullopt;
}

// Where a model is cut along these, a rank's name has its place along each. Ranks count along the
// last first.
using ModelPart = std::array<int64_t, 4>;
constexpr const char* kModelCuts[] = {"pp", "dp", "tp", "ep"};

std::optional<ModelPart> ModelPartInFileName(absl::string_view path) {
  ModelPart part = {};
  bool has_part = false;
  for (size_t i = 0; i < part.size(); ++i) {
    const std::optional<int64_t> number = NumberBehind(kModelCuts[i], path);
    has_part |= number.has_value();
    part[i] = number.value_or(0);
  }
  return has_part ? std::make_optional(part) : std::nullopt;
}

// Returns what the function finds in each name; nullopt unless all names have it and none repeats.
template <typename Found>
std::optional<std::vector<Found>> InAllNames(const std::vector<std::string>& files,
                                             std::optional<Found> (*find)(absl::string_view)) {
  std::vector<Found> all;
  std::set<Found> seen;
  for (const std::string& file : files) {
    const std::optional<Found> found = find(file);
    if (!found.has_value() || !seen.insert(*found).second) return std::nullopt;
    all.push_back(*found);
  }
  return all;
}

}  // namespace

std::optional<int64_t> RankInFileName(absl::string_view path) {
  const std::optional<int64_t> rank = NumberBehind("rank", path);
  return rank.has_value() ? rank : NumberBehind("worker", path);
}

std::optional<std::vector<int64_t>> RanksInFileNames(const std::vector<std::string>& files) {
  const std::optional<std::vector<int64_t>> ranks = InAllNames(files, RankInFileName);
  if (ranks.has_value()) return ranks;
  const std::optional<std::vector<ModelPart>> parts = InAllNames(files, ModelPartInFileName);
  if (!parts.has_value()) return std::nullopt;
  // Where a part is missing, the others' places are not known.
  for (size_t cut = 0; cut < std::size(kModelCuts); ++cut) {
    std::set<int64_t> along;
    for (const ModelPart& part : *parts) along.insert(part[cut]);
    if (*along.rbegin() != static_cast<int64_t>(along.size()) - 1) return std::nullopt;
  }
  std::vector<int64_t> places;
  for (const ModelPart& part : *parts) {
    places.push_back(
        std::count_if(parts->begin(), parts->end(), [&](const ModelPart& p) { return p < part; }));
  }
  return places;
}

std::optional<int64_t> LastIntegerInFileName(absl::string_view path) {
  const absl::string_view name = WithoutFolder(path);
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
  std::optional<std::vector<int64_t>> names = RanksInFileNames(open_files);
  if (!names.has_value()) names = InAllNames(open_files, LastIntegerInFileName);
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
