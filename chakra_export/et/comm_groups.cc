#include "chakra_export/et/comm_groups.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/files/input_paths.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/json/json_writer.h"

namespace meridian {
namespace {

// What Python's str() puts around a list of one text.
constexpr absl::string_view kTableBegin = "['";
constexpr absl::string_view kTableEnd = "']";
// What errors call a table of groups in a METADATA node.
constexpr absl::string_view kTableSource = "table of process groups";

// Returns what is wrong with the ranks of a group; empty when nothing is.
std::string ProblemOfRanks(std::vector<int64_t> ranks) {
  absl::c_sort(ranks);
  if (ranks.empty()) return "has no ranks";
  if (ranks.front() < 0) return absl::StrCat("has the negative rank ", ranks.front());
  const auto twice = absl::c_adjacent_find(ranks);
  if (twice != ranks.end()) return absl::StrCat("has rank ", *twice, " twice");
  return "";
}

// Returns what is wrong with adding the group; empty when it was added.
std::string AddGroup(absl::string_view name, std::vector<int64_t> ranks, CommGroups* groups) {
  const std::string problem = ProblemOfRanks(ranks);
  if (!problem.empty()) return absl::StrCat("group \"", name, "\" ", problem);
  const auto [it, added] = groups->emplace(PlainGroupName(name), std::move(ranks));
  return added ? "" : absl::StrCat("group \"", it->first, "\" comes twice");
}

// Errors name the offset of `part` in `text`.
absl::Status PartError(absl::string_view part, absl::string_view text, absl::string_view source,
                       absl::string_view problem) {
  return InvalidArgument(source, ": offset ", part.data() - text.data(), ": ", problem);
}

// Reads a member of the file; returns what is wrong with it, as AddGroup.
std::string ReadGroup(absl::string_view key, absl::string_view value, CommGroups* groups) {
  const std::optional<std::string> name = ParseJsonString(absl::StrCat("\"", key, "\""));
  const std::optional<std::vector<int64_t>> ranks = JsonValue(value).AsInt64Array();
  if (!name.has_value()) return "a name is no JSON string";
  if (!ranks.has_value()) {
    return absl::StrCat("group \"", *name, "\" is no list of ranks; expected e.g. [0, 1]");
  }
  return AddGroup(*name, *ranks, groups);
}

// The same for an entry of PyTorch's table.
std::string ReadProcessGroup(const JsonValue& entry, CommGroups* groups) {
  const std::optional<std::string> name = entry.Find("pg_name").AsString();
  const std::optional<std::vector<int64_t>> ranks = entry.Find("ranks").AsInt64Array();
  if (!name.has_value()) return "an entry has no pg_name";
  if (!ranks.has_value()) return absl::StrCat("group \"", *name, "\" has no list of ranks");
  return ranks->empty() ? "" : AddGroup(*name, *ranks, groups);
}

}  // namespace

bool GroupNameLess::operator()(const std::string& a, const std::string& b) const {
  return NaturalLess(a, b);
}

bool IsWorldGroup(absl::string_view name) { return name.empty() || name == "0"; }

std::string PlainGroupName(absl::string_view name) {
  const absl::string_view number = name.substr(0, name.find('.'));
  const absl::string_view fraction = name.substr(number.size());
  const bool is_number = !number.empty() && number != "0" &&
                         absl::c_all_of(number, absl::ascii_isdigit) &&
                         fraction.find_first_not_of('0', 1) == absl::string_view::npos;
  return std::string(is_number ? number : name);
}

absl::StatusOr<CommGroups> ParseCommGroups(absl::string_view json, absl::string_view source) {
  CommGroups groups;
  JsonCutter cutter(json);
  cutter.Enter('{');
  for (absl::string_view key; cutter.NextMember(&key);) {
    const std::string problem = ReadGroup(key, cutter.CutValue(), &groups);
    if (!problem.empty()) return PartError(key, json, source, problem);
  }
  if (cutter.status().ok() && !cutter.AtEnd()) cutter.Fail("there is more after the object");
  if (!cutter.status().ok()) return Annotate(cutter.status(), source);
  return groups;
}

absl::StatusOr<CommGroups> ReadCommGroups(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ParseCommGroups(file.bytes(), path);
}

std::string CommGroupsPath(absl::string_view prefix) {
  return absl::StrCat(prefix, ".comm_groups.json");
}

std::string CommGroupsBeside(FileSystem& file_system, absl::string_view prefix) {
  const std::string path = CommGroupsPath(prefix);
  return file_system.Kind(path).ok() ? path : "";
}

absl::StatusOr<CommGroups> FindCommGroups(FileSystem& file_system, std::string path,
                                          absl::string_view prefix) {
  if (path.empty() && !prefix.empty()) path = CommGroupsBeside(file_system, prefix);
  if (path.empty()) return CommGroups();
  return ReadCommGroups(file_system, path);
}

std::string CommGroupsJson(const CommGroups& groups) {
  std::string text;
  JsonWriter json(&text, JsonSpacing::kSpaced);
  json.BeginObject(JsonLayout::kIndented);
  for (const auto& [name, ranks] : groups) {
    json.Key(name);
    json.List(ranks);
  }
  json.EndObject();
  return text + "\n";
}

absl::StatusOr<CommGroups> ProcessGroupsOf(const ChakraProtoMsg::Node& metadata_node) {
  CommGroups groups;
  absl::string_view table = metadata_node.inputs().values();
  if (!absl::ConsumePrefix(&table, kTableBegin) || !absl::ConsumeSuffix(&table, kTableEnd)) {
    return groups;
  }
  JsonCutter cutter(table);
  if (cutter.Peek() != '[') return groups;
  cutter.Enter('[');
  while (cutter.NextElement()) {
    const absl::string_view entry = cutter.CutValue();
    const std::string problem = ReadProcessGroup(JsonValue(entry), &groups);
    if (!problem.empty()) return PartError(entry, table, kTableSource, problem);
  }
  if (!cutter.status().ok()) return Annotate(cutter.status(), kTableSource);
  return groups;
}

std::string ProcessGroupTable(const CommGroups& groups) {
  std::string table;
  JsonWriter json(&table, JsonSpacing::kSpaced);
  json.BeginArray();
  for (const auto& [name, ranks] : groups) {
    json.BeginObject();
    json.Member("pg_name", name);
    json.Key("ranks");
    json.List(ranks);
    json.EndObject();
  }
  json.EndArray();
  return absl::StrCat(kTableBegin, table, kTableEnd);
}

}  // namespace meridian
