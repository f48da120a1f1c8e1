#include "chakra_export/et_tools/et_diff.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/node_id_index.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/et_tools/et_json.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::IOInfo;
using ::ChakraProtoMsg::Node;

constexpr int kMaxDifferences = 100;
constexpr size_t kMaxTextLength = 60;
constexpr size_t kMaxIds = 8;

// Where each node of a file is.
struct NodeOffsets {
  NodeIdIndex ids;
  std::vector<uint64_t> offsets;
};

absl::StatusOr<NodeOffsets> IndexNodes(EtReader* reader) {
  NodeOffsets index;
  RETURN_IF_ERROR(reader->ForEachNode([&](const Node& node) {
    index.ids.Add(node.id());
    index.offsets.push_back(reader->node_offset());
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(index.ids.CheckAreUnique(reader));
  return index;
}

// Collects what changed between two nodes, in words.
class Changes {
 public:
  void Number(absl::string_view name, uint64_t first, uint64_t second) {
    if (first != second) list_.push_back(absl::StrCat(name, " ", first, " -> ", second));
  }

  void Text(absl::string_view name, absl::string_view first, absl::string_view second) {
    if (first == second) return;
    list_.push_back(absl::StrCat(name, " '", FirstCharacters(first, kMaxTextLength), "' -> '",
                                 FirstCharacters(second, kMaxTextLength), "'"));
  }

  template <typename Ids>
  void IdSets(absl::string_view name, const Ids& first, const Ids& second) {
    const std::multiset<uint64_t> a(first.begin(), first.end());
    const std::multiset<uint64_t> b(second.begin(), second.end());
    if (a == b) return;
    std::vector<std::string> moves;
    const auto add_missing = [&](const auto& from, const auto& in, absl::string_view sign) {
      std::vector<uint64_t> missing;
      absl::c_set_difference(from, in, std::back_inserter(missing));
      for (const uint64_t id : missing) moves.push_back(absl::StrCat(sign, id));
    };
    add_missing(a, b, "-");
    add_missing(b, a, "+");
    if (moves.size() > kMaxIds) {
      const size_t more = moves.size() - kMaxIds;
      moves.resize(kMaxIds);
      moves.push_back(absl::StrCat("and ", more, " more"));
    }
    list_.push_back(absl::StrCat(name, " ", absl::StrJoin(moves, " ")));
  }

  void Io(absl::string_view name, const IOInfo& first, const IOInfo& second) {
    Text(absl::StrCat(name, ".values"), first.values(), second.values());
    Text(absl::StrCat(name, ".shapes"), first.shapes(), second.shapes());
    Text(absl::StrCat(name, ".types"), first.types(), second.types());
  }

  void Attributes(const Node& first, const Node& second) {
    // Values in the first and in the second node, by name.
    std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> values;
    for (const AttributeProto& attribute : first.attr()) {
      values[attribute.name()].first.push_back(AttributeValueJson(attribute));
    }
    for (const AttributeProto& attribute : second.attr()) {
      values[attribute.name()].second.push_back(AttributeValueJson(attribute));
    }
    for (const auto& [name, both] : values) {
      Text(absl::StrCat("attribute ", name), absl::StrJoin(both.first, "; "),
           absl::StrJoin(both.second, "; "));
    }
  }

  std::vector<std::string> Take() && { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

// Returns what changed from one node to the other; empty when nothing did.
std::vector<std::string> NodeChanges(const Node& first, const Node& second) {
  Changes changes;
  changes.Number("id", first.id(), second.id());
  changes.Text("name", first.name(), second.name());
  changes.Text("type", ChakraProtoMsg::NodeType_Name(first.type()),
               ChakraProtoMsg::NodeType_Name(second.type()));
  changes.IdSets("ctrl_deps", first.ctrl_deps(), second.ctrl_deps());
  changes.IdSets("data_deps", first.data_deps(), second.data_deps());
  changes.Number("start_time_micros", first.start_time_micros(), second.start_time_micros());
  changes.Number("duration_micros", first.duration_micros(), second.duration_micros());
  changes.Io("inputs", first.inputs(), second.inputs());
  changes.Io("outputs", first.outputs(), second.outputs());
  changes.Attributes(first, second);
  return std::move(changes).Take();
}

// Compares the traces of one rank.
class FileDiffer {
 public:
  FileDiffer(int64_t rank, EtReader* first, EtReader* second, ChakraDiffReport* report)
      : rank_(rank), first_(first), second_(second), report_(report) {}

  absl::Status Run() {
    if (first_->metadata().SerializeAsString() != second_->metadata().SerializeAsString()) {
      report_->add_changed_metadata(rank_);
    }
    ASSIGN_OR_RETURN(NodeOffsets first, IndexNodes(first_));
    ASSIGN_OR_RETURN(NodeOffsets second, IndexNodes(second_));
    first_->Rewind();
    RETURN_IF_ERROR(first_->ForEachNode([&](const Node& node) {
      const std::optional<size_t> position = second.ids.Find(node.id());
      if (position.has_value()) return Compare(node, second.offsets[*position]);
      report_->set_nodes_only_in_first(report_->nodes_only_in_first() + 1);
      Add(node, {"only in the first"});
      return absl::OkStatus();
    }));
    second_->Rewind();
    return second_->ForEachNode([&](const Node& node) {
      if (first.ids.Find(node.id()).has_value()) return absl::OkStatus();
      report_->set_nodes_only_in_second(report_->nodes_only_in_second() + 1);
      Add(node, {"only in the second"});
      return absl::OkStatus();
    });
  }

 private:
  // Compares the node with that at an offset of the second file.
  absl::Status Compare(const Node& node, uint64_t offset) {
    second_->SeekTo(offset);
    RETURN_IF_ERROR(second_->Next(&other_).status());
    std::vector<std::string> changes;
    if (node.SerializeAsString() != other_.SerializeAsString()) {
      changes = NodeChanges(node, other_);
    }
    if (changes.empty()) {
      report_->set_equal_nodes(report_->equal_nodes() + 1);
    } else {
      report_->set_changed_nodes(report_->changed_nodes() + 1);
      Add(node, std::move(changes));
    }
    return absl::OkStatus();
  }

  void Add(const Node& node, std::vector<std::string> changes) {
    if (report_->differences_size() == kMaxDifferences) return;
    ChakraNodeDifference* difference = report_->add_differences();
    difference->set_rank(rank_);
    difference->set_node(node.id());
    difference->set_name(node.name());
    for (std::string& change : changes) difference->add_changes(std::move(change));
  }

  const int64_t rank_;
  EtReader* first_;
  EtReader* second_;
  ChakraDiffReport* report_;
  Node other_;
};

}  // namespace

absl::StatusOr<ChakraDiffReport> DiffEtFiles(FileSystem& file_system, const EtFiles& first,
                                             const EtFiles& second,
                                             const EtReaderOptions& options) {
  ChakraDiffReport report;
  // The paths of the second workload by rank.
  std::map<int64_t, std::string> others;
  for (const EtFile& file : second.files) others.emplace(file.rank, file.path);
  for (const EtFile& file : first.files) {
    // Two single files are meant to be compared, whatever their ranks.
    const bool only_pair = !first.is_prefix && !second.is_prefix;
    const auto other = only_pair ? others.begin() : others.find(file.rank);
    if (other == others.end()) {
      report.add_ranks_only_in_first(file.rank);
      continue;
    }
    ASSIGN_OR_RETURN(EtReader a, EtReader::Open(file_system, file.path, options));
    ASSIGN_OR_RETURN(EtReader b, EtReader::Open(file_system, other->second, options));
    RETURN_IF_ERROR(FileDiffer(file.rank, &a, &b, &report).Run());
    others.erase(other);
  }
  for (const auto& [rank, path] : others) report.add_ranks_only_in_second(rank);
  return report;
}

bool AreEqual(const ChakraDiffReport& report) {
  return report.changed_nodes() == 0 && report.nodes_only_in_first() == 0 &&
         report.nodes_only_in_second() == 0 && report.ranks_only_in_first().empty() &&
         report.ranks_only_in_second().empty() && report.changed_metadata().empty();
}

std::string FormatDiff(const ChakraDiffReport& report) {
  if (AreEqual(report)) return absl::StrCat("no difference in ", report.equal_nodes(), " nodes\n");
  std::string text;
  for (const ChakraNodeDifference& difference : report.differences()) {
    absl::StrAppend(&text, "rank ", difference.rank(), " node ", difference.node(), " (",
                    Printable(FirstCharacters(difference.name(), kMaxTextLength)),
                    "): ", Printable(absl::StrJoin(difference.changes(), ", ")), "\n");
  }
  const auto add_ranks = [&](const auto& ranks, absl::string_view what) {
    for (const int64_t rank : ranks) absl::StrAppend(&text, "rank ", rank, ": ", what, "\n");
  };
  add_ranks(report.changed_metadata(), "the metadata differ");
  add_ranks(report.ranks_only_in_first(), "only in the first");
  add_ranks(report.ranks_only_in_second(), "only in the second");
  absl::StrAppend(&text, WithThousands(report.equal_nodes()), " nodes equal, ",
                  WithThousands(report.changed_nodes()), " changed, ",
                  WithThousands(report.nodes_only_in_first()), " only in the first, ",
                  WithThousands(report.nodes_only_in_second()), " only in the second\n");
  return text;
}

}  // namespace meridian
