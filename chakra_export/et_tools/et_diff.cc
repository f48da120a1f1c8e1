#include "chakra_export/et_tools/et_diff.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "chakra_export/et/node_id_index.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "google/protobuf/util/message_differencer.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::Node;

constexpr int kMaxDifferences = 100;
constexpr size_t kMaxChanges = 16;
constexpr size_t kMaxTextLength = 120;

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

// Returns what changed from one node to the other; empty when nothing did.
std::vector<std::string> NodeChanges(const Node& first, const Node& second) {
  const auto* node = Node::descriptor();
  std::string text;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.TreatAsSet(node->FindFieldByNumber(Node::kCtrlDepsFieldNumber));
  differencer.TreatAsSet(node->FindFieldByNumber(Node::kDataDepsFieldNumber));
  differencer.TreatAsMap(
      node->FindFieldByNumber(Node::kAttrFieldNumber),
      AttributeProto::descriptor()->FindFieldByNumber(AttributeProto::kNameFieldNumber));
  differencer.ReportDifferencesToString(&text);
  if (differencer.Compare(first, second)) return {};
  std::vector<std::string> changes = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (changes.size() > kMaxChanges) changes.resize(kMaxChanges);
  for (std::string& change : changes) change = FirstCharacters(change, kMaxTextLength);
  return changes;
}

class FileDiffer {
 public:
  FileDiffer(int64_t rank, ChakraDiffReport* report) : rank_(rank), report_(report) {}

  absl::Status Run(EtReader* first, EtReader* second) {
    if (first->metadata().SerializeAsString() != second->metadata().SerializeAsString()) {
      Add(nullptr, {"the metadata differ"});
    }
    ASSIGN_OR_RETURN(const NodeOffsets in_first, IndexNodes(first));
    ASSIGN_OR_RETURN(const NodeOffsets in_second, IndexNodes(second));
    first->Rewind();
    Node other;
    RETURN_IF_ERROR(first->ForEachNode([&](const Node& node) -> absl::Status {
      const std::optional<size_t> position = in_second.ids.Find(node.id());
      if (!position.has_value()) {
        Add(&node, {"only in the first"});
        return absl::OkStatus();
      }
      second->SeekTo(in_second.offsets[*position]);
      RETURN_IF_ERROR(second->Next(&other).status());
      std::vector<std::string> changes;
      if (node.SerializeAsString() != other.SerializeAsString()) changes = NodeChanges(node, other);
      if (changes.empty()) {
        report_->set_equal_nodes(report_->equal_nodes() + 1);
      } else {
        Add(&node, changes);
      }
      return absl::OkStatus();
    }));
    second->Rewind();
    return second->ForEachNode([&](const Node& node) {
      if (!in_first.ids.Find(node.id()).has_value()) Add(&node, {"only in the second"});
      return absl::OkStatus();
    });
  }

  // Adds what differs of a node, or of the whole rank when it is null.
  void Add(const Node* node, const std::vector<std::string>& changes) {
    report_->set_different(report_->different() + 1);
    if (report_->differences_size() == kMaxDifferences) return;
    ChakraDifference* difference = report_->add_differences();
    difference->set_rank(rank_);
    if (node != nullptr) {
      difference->set_node(node->id());
      difference->set_name(node->name());
    }
    difference->mutable_changes()->Add(changes.begin(), changes.end());
  }

 private:
  const int64_t rank_;
  ChakraDiffReport* report_;
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
    FileDiffer differ(file.rank, &report);
    if (other == others.end()) {
      differ.Add(nullptr, {"only in the first"});
      continue;
    }
    ASSIGN_OR_RETURN(EtReader a, EtReader::Open(file_system, file.path, options));
    ASSIGN_OR_RETURN(EtReader b, EtReader::Open(file_system, other->second, options));
    RETURN_IF_ERROR(differ.Run(&a, &b));
    others.erase(other);
  }
  for (const auto& [rank, path] : others) {
    FileDiffer(rank, &report).Add(nullptr, {"only in the second"});
  }
  return report;
}

std::string FormatDiff(const ChakraDiffReport& report) {
  if (report.different() == 0) {
    return absl::StrCat("no difference in ", report.equal_nodes(), " nodes\n");
  }
  std::string text;
  for (const ChakraDifference& difference : report.differences()) {
    absl::StrAppend(&text, "rank ", difference.rank());
    if (difference.has_node()) {
      absl::StrAppend(&text, " node ", difference.node(), " (",
                      Printable(FirstCharacters(difference.name(), kMaxTextLength)), ")");
    }
    absl::StrAppend(&text, ": ", Printable(absl::StrJoin(difference.changes(), ", ")), "\n");
  }
  absl::StrAppend(&text, WithThousands(report.equal_nodes()), " nodes equal, ",
                  WithThousands(report.different()), " differences\n");
  return text;
}

}  // namespace meridian
