#include "xla_profiler/kineto/process_groups.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/json/json_cutter.h"

namespace meridian {
namespace {

// "[0, 1, 2, 3]", or cut short: "[0, 1, 2, ...]", "[0, 1, ..., 7]".
struct RankList {
  std::vector<int64_t> head;
  bool is_cut = false;
  // The ranks listed behind the dots.
  std::vector<int64_t> tail;
};

// Reads a list in a string or an array. Nullopt when it is none, or empty.
std::optional<RankList> ReadRankList(const JsonValue& value) {
  const std::string text = value.AsString().value_or(std::string(value.text()));
  absl::string_view inside = text;
  if (!absl::ConsumePrefix(&inside, "[") || !absl::ConsumeSuffix(&inside, "]")) return std::nullopt;
  RankList list;
  for (absl::string_view element : absl::StrSplit(inside, ',')) {
    element = absl::StripAsciiWhitespace(element);
    int32_t rank = 0;
    if (element == "..." && !list.is_cut) {
      list.is_cut = true;
    } else if (absl::SimpleAtoi(element, &rank) && rank >= 0) {
      (list.is_cut ? list.tail : list.head).push_back(rank);
    } else {
      return std::nullopt;
    }
  }
  return list;
}

// Continues the head of a list that was cut short to the group's size. Nullopt when that is no
// arithmetic sequence, or does not end in the list's tail.
std::optional<std::vector<int64_t>> Continue(const RankList& list, int64_t group_size) {
  const int64_t listed = static_cast<int64_t>(list.head.size() + list.tail.size());
  if (list.head.size() < 2 || group_size < listed || group_size > kMaxGroupIds) return std::nullopt;
  const int64_t stride = list.head[1] - list.head[0];
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < group_size; ++i) ranks.push_back(list.head[0] + i * stride);
  if (stride == 0 || ranks.back() < 0 ||
      !std::equal(list.head.begin(), list.head.end(), ranks.begin()) ||
      !std::equal(list.tail.rbegin(), list.tail.rend(), ranks.rbegin())) {
    return std::nullopt;
  }
  return ranks;
}

}  // namespace

std::string ProcessGroupName(const std::string& name, const std::string& description) {
  return description.empty() ? name : absl::StrCat(name, " (", description, ")");
}

ProcessGroups::ProcessGroups(const JsonValue& distributed_info) {
  JsonCutter cutter(distributed_info.Find("pg_config").text());
  cutter.Enter('[');
  while (cutter.NextElement()) {
    const JsonValue group(cutter.CutValue());
    std::optional<RankList> ranks = ReadRankList(group.Find("ranks"));
    const bool is_complete = ranks.has_value() && !ranks->is_cut;
    const std::string name = group.Find("pg_name").AsString().value_or("");
    names_.try_emplace(is_complete ? ranks->head : std::vector<int64_t>(),
                       ProcessGroupName(name, group.Find("pg_desc").AsString().value_or("")));
    if (is_complete) header_ranks_[name] = std::move(ranks->head);
  }
}

std::vector<AssumedGroup> ProcessGroups::GroupsOf(int64_t rank) const {
  std::vector<AssumedGroup> groups;
  for (const auto& [ranks, name] : names_) {
    if (ranks.empty()) groups.push_back({name, {}});
    const bool may_be_in = rank < 0 || absl::c_linear_search(ranks, rank);
    if (ranks.size() > 1 && may_be_in) groups.push_back({name, {ranks}});
  }
  if (groups.empty()) groups.emplace_back();
  return groups;
}

std::optional<std::vector<int64_t>> ProcessGroups::RanksOf(const JsonValue& args) const {
  const std::optional<int64_t> size = args.Find("Group size").AsInt64();
  std::optional<std::vector<int64_t>> ranks = ListedRanks(args, size);
  if (ranks.has_value() && size.has_value() && static_cast<int64_t>(ranks->size()) != *size) {
    return std::nullopt;
  }
  return ranks;
}

std::optional<std::vector<int64_t>> ProcessGroups::ListedRanks(const JsonValue& args,
                                                               std::optional<int64_t> size) const {
  const std::optional<RankList> list = ReadRankList(args.Find("Process Group Ranks"));
  if (list.has_value() && !list->is_cut) return list->head;
  const auto it = header_ranks_.find(args.Find("Process Group Name").AsString().value_or(""));
  if (it != header_ranks_.end()) return it->second;
  if (!list.has_value() || !size.has_value()) return std::nullopt;
  return Continue(*list, *size);
}

}  // namespace meridian
