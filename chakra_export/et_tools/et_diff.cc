#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/et_tools/et_summary.h"
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

using Nodes = std::map<uint64_t, Node>;

absl::StatusOr<Nodes> ReadNodes(EtReader* reader) {
  Nodes nodes;
  Node node;
  while (true) {
    ASSIGN_OR_RETURN(const bool found, reader->Next(&node));
    if (!found) return nodes;
    if (nodes.emplace(node.id(), node).second) continue;
    return reader->NodeError(absl::StrCat("node id ", node.id(), " occurs twice"));
  }
}

// Returns what changed from one node to the other; empty when nothing did.
std::vector<std::string> NodeChanges(const Node& first, const Node& second) {
  if (first.SerializeAsString() == second.SerializeAsString()) return {};
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

// Adds what differs of a node, or of the whole rank when it is null.
void Add(int64_t rank, const Node* node, const std::vector<std::string>& changes,
         ChakraDiffReport* report) {
  report->set_different(report->different() + 1);
  if (report->differences_size() == kMaxDifferences) return;
  ChakraDifference* difference = report->add_differences();
  difference->set_rank(rank);
  if (node != nullptr) {
    difference->set_node(node->id());
    difference->set_name(node->name());
  }
  difference->mutable_changes()->Add(changes.begin(), changes.end());
}

absl::Status DiffRank(int64_t rank, EtReader* first, EtReader* second, ChakraDiffReport* report) {
  if (first->metadata().SerializeAsString() != second->metadata().SerializeAsString()) {
    Add(rank, nullptr, {"the metadata differ"}, report);
  }
  ASSIGN_OR_RETURN(const Nodes in_first, ReadNodes(first));
  ASSIGN_OR_RETURN(const Nodes in_second, ReadNodes(second));
  for (const auto& [id, node] : in_first) {
    const auto other = in_second.find(id);
    const std::vector<std::string> changes = other == in_second.end()
                                                 ? std::vector<std::string>{"only in the first"}
                                                 : NodeChanges(node, other->second);
    if (changes.empty()) {
      report->set_equal_nodes(report->equal_nodes() + 1);
    } else {
      Add(rank, &node, changes, report);
    }
  }
  for (const auto& [id, node] : in_second) {
    if (in_first.count(id) == 0) Add(rank, &node, {"only in the second"}, report);
  }
  return absl::OkStatus();
}

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
      Add(file.rank, nullptr, {"only in the first"}, &report);
      continue;
    }
    ASSIGN_OR_RETURN(EtReader a, EtReader::Open(file_system, file.path, options));
    ASSIGN_OR_RETURN(EtReader b, EtReader::Open(file_system, other->second, options));
    RETURN_IF_ERROR(DiffRank(file.rank, &a, &b, &report));
    others.erase(other);
  }
  for (const auto& [rank, path] : others) {
    Add(rank, nullptr, {"only in the second"}, &report);
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
