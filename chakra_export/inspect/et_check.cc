#include "chakra_export/inspect/et_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/node_id_index.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/graph_order.h"
#include "chakra_export/graph/graph_replay.h"
#include "chakra_export/inspect/node_check.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

constexpr Severity kError = Severity::kError;
constexpr Severity kWarning = Severity::kWarning;

// In the order of the enumerators.
constexpr EtRuleInfo kRules[] = {
    {EtRule::kMissingRank, "missing_rank", kError},
    {EtRule::kNoNodes, "no_nodes", kError},
    {EtRule::kDuplicateId, "duplicate_id", kError},
    {EtRule::kDanglingDependency, "dangling_dependency", kError},
    {EtRule::kCycle, "cycle", kError},
    {EtRule::kBadValue, "bad_value", kError},
    {EtRule::kNoGraph, "no_graph", kError},
    {EtRule::kDuplicateAttribute, "duplicate_attribute", kWarning},
    {EtRule::kEmptyRecord, "empty_record", kWarning},
    {EtRule::kUnmatched, "unmatched", kError},
    {EtRule::kDisagreement, "disagreement", kError},
    {EtRule::kNotAMember, "not_a_member", kError},
    {EtRule::kDeadlock, "deadlock", kError},
    {EtRule::kIssueOrder, "issue_order", kWarning},
    {EtRule::kGzip, "gzip", kError},
    {EtRule::kNodeType, "node_type", kError},
    {EtRule::kMemoryNode, "memory_node", kError},
    {EtRule::kHostNode, "host_node", kWarning},
    {EtRule::kHostNodeWithMessages, "host_node_with_messages", kError},
    {EtRule::kHostCommunication, "host_communication", kError},
    {EtRule::kMissingAttribute, "missing_attribute", kError},
    {EtRule::kAttributeKind, "attribute_kind", kError},
    {EtRule::kAttributeWidth, "attribute_width", kWarning},
    {EtRule::kCollectiveType, "collective_type", kError},
    {EtRule::kCommSize, "comm_size", kError},
    {EtRule::kSmallAllGather, "small_all_gather", kWarning},
    {EtRule::kPeer, "peer", kError},
    {EtRule::kTag, "tag", kError},
    {EtRule::kGroupName, "group_name", kError},
    {EtRule::kGroupNumber, "group_number", kWarning},
    {EtRule::kUnknownGroup, "unknown_group", kError},
    {EtRule::kNoGroups, "no_groups", kWarning},
    {EtRule::kGroupOfOne, "group_of_one", kError},
    {EtRule::kInvolvedDim, "involved_dim", kError},
    {EtRule::kEarlyMessage, "early_message", kWarning},
};

constexpr bool IsInOrder() {
  size_t i = 0;
  for (const EtRuleInfo& info : kRules) {
    if (static_cast<size_t>(info.rule) != i++) return false;
  }
  return i == kEtRuleCount;
}
static_assert(IsInOrder(), "one entry per rule, in the order of the enumerators");

// Checks one file in two passes: ids first, so that the second can look them up.
class FileChecker {
 public:
  FileChecker(const EtFile& file, const EtFiles& files, const EtCheckOptions& options,
              EtProblems* problems)
      : problems_(problems), groups_(options.groups) {
    context_.rank = file.rank;
    context_.groups = &groups_;
    if (files.is_prefix) context_.rank_count = files.files.back().rank + 1;
  }

  absl::Status Run(EtReader* reader) {
    if (reader->was_compressed()) {
      Report(EtRule::kGzip, {}, {}, "the file is gzip, which ASTRA-sim does not read; gunzip it");
    }
    RETURN_IF_ERROR(reader->ForEachNode([this](const Node& node) {
      Collect(node);
      return absl::OkStatus();
    }));
    if (ids_.size() == 0) {
      Report(EtRule::kNoNodes, {}, {}, "there is no node; an idle rank needs one COMP_NODE");
    }
    repeated_ = ids_.Repeated();
    reader->Rewind();
    uint64_t position = 0;
    return reader->ForEachNode([&](const Node& node) {
      Check(node, position++, *reader);
      return absl::OkStatus();
    });
  }

 private:
  void Collect(const Node& node) {
    ids_.Add(node.id());
    if (node.type() != ChakraProtoMsg::METADATA_NODE) return;
    const absl::StatusOr<CommGroups> listed = ProcessGroupsOf(node);
    if (listed.ok()) {
      groups_.insert(listed->begin(), listed->end());
    } else {
      Report(EtRule::kBadValue, node.id(), {}, listed.status().message());
    }
  }

  void Check(const Node& node, uint64_t position, const EtReader& reader) {
    const uint64_t offset = reader.node_offset();
    if (std::binary_search(repeated_.begin(), repeated_.end(), position)) {
      Report(EtRule::kDuplicateId, node.id(), offset,
             absl::StrCat("node id ", node.id(), " occurs twice"));
    }
    if (reader.offset() - offset == 1) {
      Report(EtRule::kEmptyRecord, node.id(), offset,
             "the record is empty, which Python's reader takes for the end of the file");
    }
    for (const uint64_t id : node.data_deps()) CheckDependency(node, offset, id);
    for (const uint64_t id : node.ctrl_deps()) CheckDependency(node, offset, id);
    CheckNode(node, offset, context_, problems_);
  }

  void CheckDependency(const Node& node, uint64_t offset, uint64_t id) {
    if (ids_.Find(id).has_value()) return;
    Report(EtRule::kDanglingDependency, node.id(), offset,
           absl::StrCat("node ", node.id(), " depends on ", id, ", which no node has as id"));
  }

  void Report(EtRule rule, std::optional<uint64_t> node, std::optional<uint64_t> offset,
              absl::string_view message) {
    problems_->Add({rule, context_.rank, node, offset, std::string(message)});
  }

  EtProblems* problems_;
  CommGroups groups_;
  NodeCheckContext context_;
  NodeIdIndex ids_;
  std::vector<size_t> repeated_;
};

class GraphChecker {
 public:
  GraphChecker(const ExecutionGraph& graph, EtProblems* problems)
      : graph_(graph), problems_(problems) {}

  void Run() {
    CheckLastAndFirstMessages();
    const std::vector<NodeIndex> cycle = FindCycle(graph_);
    const CommunicationMatch match(graph_);
    for (const MatchProblem& problem : match.problems()) {
      Report(RuleOf(problem.kind), problem.node, problem.text);
    }
    if (!cycle.empty()) {
      Report(EtRule::kCycle, cycle[0], DescribeCycle(graph_, cycle));
    } else if (match.problems().empty()) {
      CheckSimulation(match);
    }
  }

 private:
  static EtRule RuleOf(MatchProblem::Kind kind) {
    switch (kind) {
      case MatchProblem::Kind::kMissingPeer:
        return EtRule::kUnmatched;
      case MatchProblem::Kind::kDisagreement:
        return EtRule::kDisagreement;
      case MatchProblem::Kind::kNotAMember:
        return EtRule::kNotAMember;
    }
    return EtRule::kUnmatched;
  }

  // ASTRA-sim's statistics throw on these.
  bool BreaksStatistics(NodeIndex node) const {
    const ChakraProtoMsg::NodeType type = graph_.type(node);
    return type == ChakraProtoMsg::INVALID_NODE || type == ChakraProtoMsg::MEM_LOAD_NODE ||
           type == ChakraProtoMsg::MEM_STORE_NODE ||
           (type == ChakraProtoMsg::COMP_NODE &&
            graph_.resource(node).kind == ResourceKind::kHostThread);
  }

  void CheckLastAndFirstMessages() {
    const SuccessorIndex successors(graph_);
    std::map<int64_t, NodeIndex> last_messages;
    std::set<int64_t> broken_ranks;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (BreaksStatistics(node)) broken_ranks.insert(graph_.rank(node));
      if (!IsMessage(graph_.type(node))) continue;
      if (successors.Of(node).empty()) last_messages.emplace(graph_.rank(node), node);
      const bool early = graph_.type(node) == ChakraProtoMsg::COMM_SEND_NODE &&
                         graph_.dependencies(node).empty() &&
                         graph_.communication(node)->bytes < kMinEarlyMessageBytes;
      if (early) {
        Report(EtRule::kEarlyMessage, node,
               absl::StrCat(graph_.Describe(node), " sends ", graph_.communication(node)->bytes,
                            " bytes at time 0, which aborts ASTRA-sim on fast links; let it wait "
                            "for a COMP_NODE"));
      }
    }
    for (const auto& [rank, node] : last_messages) {
      if (broken_ranks.count(rank) == 0) continue;
      Report(EtRule::kHostNodeWithMessages, node,
             absl::StrCat(graph_.Describe(node),
                          " may be the last event of a rank with host, "
                          "memory or invalid nodes, which aborts ASTRA-sim"));
    }
  }

  void CheckSimulation(const CommunicationMatch& match) {
    const absl::StatusOr<GraphReplay> replay = ReplayAsSimulator(graph_, match);
    if (absl::IsFailedPrecondition(replay.status())) {
      Report(EtRule::kDeadlock, kNoNodeIndex, replay.status().message());
    } else if (!replay.ok()) {
      Report(EtRule::kBadValue, kNoNodeIndex, replay.status().message());
    } else {
      CheckIssueOrder(*replay);
    }
  }

  // ASTRA-sim joins the collectives of a group in the order in which each rank issues them, we in
  // the order of ids.
  void CheckIssueOrder(const GraphReplay& replay) {
    std::map<std::pair<int64_t, GroupIndex>, std::vector<NodeIndex>> sequences;
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (graph_.type(node) != ChakraProtoMsg::COMM_COLL_NODE) continue;
      sequences[{graph_.rank(node), graph_.communication(node)->group}].push_back(node);
    }
    for (auto& [key, nodes] : sequences) {
      std::sort(nodes.begin(), nodes.end(),
                [this](NodeIndex a, NodeIndex b) { return graph_.id(a) < graph_.id(b); });
      for (size_t i = 1; i < nodes.size(); ++i) {
        if (replay.starts_ns[nodes[i - 1]] <= replay.starts_ns[nodes[i]]) continue;
        Report(EtRule::kIssueOrder, nodes[i],
               absl::StrCat(graph_.Describe(nodes[i]), " is issued before ",
                            graph_.Describe(nodes[i - 1]),
                            " of the same group; ASTRA-sim would "
                            "join it with another rank's first"));
      }
    }
  }

  void Report(EtRule rule, NodeIndex node, absl::string_view message) {
    EtProblem problem;
    problem.rule = rule;
    problem.message = std::string(message);
    if (node != kNoNodeIndex) {
      problem.rank = graph_.rank(node);
      problem.node = graph_.id(node);
    }
    problems_->Add(std::move(problem));
  }

  const ExecutionGraph& graph_;
  EtProblems* problems_;
};

}  // namespace

const EtRuleInfo& RuleInfo(EtRule rule) { return kRules[static_cast<size_t>(rule)]; }

absl::StatusOr<std::set<EtRule>> ParseRules(absl::string_view names) {
  std::set<EtRule> rules;
  if (names.empty()) return rules;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    const size_t count = rules.size();
    for (const EtRuleInfo& info : kRules) {
      if (info.name == name) rules.insert(info.rule);
    }
    if (rules.size() > count) continue;
    const std::string known = absl::StrJoin(
        kRules, ", ", [](std::string* out, const EtRuleInfo& r) { absl::StrAppend(out, r.name); });
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no rule or comes twice; expected some of ", known));
  }
  return rules;
}

void EtProblems::Add(EtProblem problem) {
  if (ignored_.count(problem.rule) > 0) return;
  const int64_t count = ++counts_[static_cast<size_t>(problem.rule)];
  if (count <= static_cast<int64_t>(kKeptPerRule)) kept_.push_back(std::move(problem));
}

int64_t EtProblems::Count(Severity severity) const {
  int64_t count = 0;
  for (const EtRuleInfo& info : kRules) {
    if (info.severity == severity) count += counts_[static_cast<size_t>(info.rule)];
  }
  return count;
}

absl::Status CheckEtFiles(FileSystem& file_system, const EtFiles& files,
                          const EtCheckOptions& options, EtProblems* problems) {
  for (const NumberRange& range : files.missing_ranks) {
    problems->Add({EtRule::kMissingRank,
                   range.first,
                   {},
                   {},
                   absl::StrCat("there is no file for ranks ", range.first, " to ", range.last)});
  }
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    if (options.on_file != nullptr) options.on_file(file, reader);
    RETURN_IF_ERROR(FileChecker(file, files, options, problems).Run(&reader));
  }
  return absl::OkStatus();
}

void CheckEtGraph(const ExecutionGraph& graph, EtProblems* problems) {
  GraphChecker(graph, problems).Run();
}

}  // namespace meridian
