#include "chakra_export/et_tools/et_rewrite.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/et/node_id_index.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/graph/execution_graph.h"
#include "re2/re2.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/number_range.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

// What waited for a removed node waits for all that it waited for: thousands of nodes before it and
// after it would become millions of dependencies.
constexpr size_t kMaxReplacements = 1'000'000;
constexpr size_t kMaxReplacementsPerDependency = 16;

// Which kept nodes stand for each node of a rank that is removed.
class Replacements {
 public:
  // Takes down so many dependencies of the trace itself.
  void AddDependencies(size_t count) { limit_ += kMaxReplacementsPerDependency * count; }

  // Counts dependencies that take the place of the trace's own.
  absl::Status Count(size_t replacements) {
    total_ += replacements;
    if (total_ <= limit_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("so much waits for the nodes that go that over ", limit_,
                     " dependencies would take their place; keep some of them"));
  }

  // Takes down a removed node with all that it waits for.
  void AddRemoved(const Node& node) {
    Removed& removed = removed_[node.id()];
    removed.waits_for.assign(node.data_deps().begin(), node.data_deps().end());
    removed.waits_for.insert(removed.waits_for.end(), node.ctrl_deps().begin(),
                             node.ctrl_deps().end());
    order_.push_back(node.id());
  }

  // Replaces what removed nodes wait for by kept nodes, each once and in ascending order. An error
  // is about the node failed_node().
  absl::Status Resolve() {
    for (const uint64_t id : order_) RETURN_IF_ERROR(ResolveFrom(id));
    return absl::OkStatus();
  }

  uint64_t failed_node() const { return failed_node_; }

  bool IsRemoved(uint64_t id) const { return removed_.contains(id); }

  // Returns the ids of the kept nodes that stand for the node, itself if it is kept.
  absl::Span<const uint64_t> Of(const uint64_t& id) const {
    const auto it = removed_.find(id);
    return it == removed_.end() ? absl::MakeConstSpan(&id, 1) : it->second.waits_for;
  }

 private:
  enum class State : uint8_t { kUntouched, kBegun, kResolved };
  struct Removed {
    std::vector<uint64_t> waits_for;
    State state = State::kUntouched;
  };

  // Depth first, without recursion: a trace may be one long chain.
  absl::Status ResolveFrom(uint64_t id) {
    std::vector<uint64_t> stack = {id};
    while (!stack.empty()) {
      Removed& top = removed_.at(stack.back());
      if (top.state == State::kResolved) {
        stack.pop_back();
        continue;
      }
      const bool begun = top.state == State::kBegun;
      top.state = State::kBegun;
      const size_t depth = stack.size();
      for (const uint64_t source : top.waits_for) {
        const auto it = removed_.find(source);
        if (it == removed_.end() || it->second.state == State::kResolved) continue;
        if (it->second.state == State::kBegun || begun) {
          failed_node_ = source;
          return absl::InvalidArgumentError(
              absl::StrCat("node ", source, " waits for itself by way of other nodes"));
        }
        stack.push_back(source);
      }
      if (stack.size() > depth) continue;
      failed_node_ = stack.back();
      RETURN_IF_ERROR(Finish(&top));
    }
    return absl::OkStatus();
  }

  absl::Status Finish(Removed* node) {
    std::vector<uint64_t> kept;
    for (const uint64_t source : node->waits_for) {
      const absl::Span<const uint64_t> instead = Of(source);
      kept.insert(kept.end(), instead.begin(), instead.end());
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    RETURN_IF_ERROR(Count(kept.size()));
    node->waits_for = std::move(kept);
    node->state = State::kResolved;
    return absl::OkStatus();
  }

  absl::flat_hash_map<uint64_t, Removed> removed_;
  std::vector<uint64_t> order_;
  size_t limit_ = kMaxReplacements;
  size_t total_ = 0;
  uint64_t failed_node_ = 0;
};

absl::StatusOr<std::set<int>> ParseTypes(absl::string_view names) {
  std::set<int> types;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    ChakraProtoMsg::NodeType type;
    if (!ChakraProtoMsg::NodeType_Parse(std::string(name), &type)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--types: '", name, "' is no type of node; expected e.g. COMP_NODE, COMM_COLL_NODE, ",
          "COMM_SEND_NODE, COMM_RECV_NODE, MEM_LOAD_NODE, MEM_STORE_NODE, METADATA_NODE"));
    }
    types.insert(type);
  }
  return types;
}

class FileFilter {
 public:
  FileFilter(const EtFilterOptions& options, ChakraRewriteReport* report)
      : options_(options), report_(report) {}

  // Decides what goes and finds out what is wrong with the file.
  absl::Status Prepare(EtReader* reader) {
    RETURN_IF_ERROR(reader->ForEachNode([this](const Node& node) {
      ids_.Add(node.id());
      keeps_.push_back(options_.keep(node));
      replacements_.AddDependencies(node.data_deps_size() + node.ctrl_deps_size());
      if (!keeps_.back()) replacements_.AddRemoved(node);
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(ids_.CheckAreUnique(reader));
    const absl::Status resolved = replacements_.Resolve();
    if (resolved.ok()) return resolved;
    return reader->NodeErrorAt(*ids_.Find(replacements_.failed_node()), resolved.message());
  }

  bool KeepsAny() const { return absl::c_linear_search(keeps_, true); }

  absl::Status Write(EtReader* reader, EtWorkloadWriter* writer) {
    Node node;
    reader->Rewind();
    for (const bool keeps : keeps_) {
      RETURN_IF_ERROR(reader->Next(&node).status());
      if (!keeps) {
        report_->set_removed_nodes(report_->removed_nodes() + 1);
        continue;
      }
      report_->set_nodes(report_->nodes() + 1);
      RETURN_IF_ERROR(ReplaceDependencies(reader, &node));
      RETURN_IF_ERROR(writer->Add(node));
    }
    return absl::OkStatus();
  }

 private:
  // Kinds of dependencies by the id of what is waited for.
  using Dependencies = std::map<uint64_t, EdgeKinds>;

  void Add(uint64_t id, EdgeKinds kinds, Dependencies* dependencies) {
    for (const uint64_t kept : replacements_.Of(id)) {
      if (ids_.Find(kept).has_value()) {
        (*dependencies)[kept] |= kinds;
      } else {
        report_->set_removed_dependencies(report_->removed_dependencies() + 1);
      }
    }
  }

  // True for a dependency that stays as it is.
  bool Stays(uint64_t id) { return !replacements_.IsRemoved(id) && ids_.Find(id).has_value(); }

  absl::Status ReplaceDependencies(EtReader* reader, Node* node) {
    const auto stays = [this](uint64_t id) { return Stays(id); };
    if (std::all_of(node->data_deps().begin(), node->data_deps().end(), stays) &&
        std::all_of(node->ctrl_deps().begin(), node->ctrl_deps().end(), stays)) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::optional<std::string> text,
                     GetStringAttribute(node->attr(), kDependencyKindsAttribute));
    const std::optional<std::vector<EdgeKinds>> kinds =
        text.has_value() ? ParseEdgeKinds(*text) : std::nullopt;
    const bool has_kinds =
        kinds.has_value() && kinds->size() == static_cast<size_t>(node->data_deps_size());
    Dependencies data;
    for (int i = 0; i < node->data_deps_size(); ++i) {
      Add(node->data_deps(i), has_kinds ? (*kinds)[i] : EdgeKind::kData, &data);
    }
    Dependencies control;
    for (const uint64_t id : node->ctrl_deps()) Add(id, EdgeKind::kControl, &control);

    const absl::Status counted = replacements_.Count(data.size() + control.size());
    if (!counted.ok()) return reader->NodeErrorAt(*ids_.Find(node->id()), counted.message());
    node->clear_data_deps();
    std::vector<EdgeKinds> new_kinds;
    for (const auto& [id, set] : data) {
      node->add_data_deps(id);
      new_kinds.push_back(set);
    }
    node->clear_ctrl_deps();
    for (const auto& [id, set] : control) node->add_ctrl_deps(id);
    SetKinds(has_kinds, new_kinds, node);
    return absl::OkStatus();
  }

  static void SetKinds(bool had_kinds, const std::vector<EdgeKinds>& kinds, Node* node) {
    if (had_kinds && !kinds.empty()) {
      SetStringAttribute(kDependencyKindsAttribute, EdgeKindsText(kinds), node->mutable_attr());
      return;
    }
    RemoveAttribute(kDependencyKindsAttribute, node->mutable_attr());
  }

  const EtFilterOptions& options_;
  ChakraRewriteReport* report_;
  NodeIdIndex ids_;
  std::vector<bool> keeps_;
  Replacements replacements_;
};

std::string FormatFiles(const ChakraRewriteReport& report) {
  std::string text;
  if (!report.comm_groups().empty()) absl::StrAppend(&text, "groups: ", report.comm_groups(), "\n");
  for (const std::string& path : report.removed()) {
    absl::StrAppend(&text, "removed: ", path, " of an earlier workload\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<NodeFilter> ParseNodeFilter(absl::string_view types, const std::string& names,
                                           absl::string_view ids) {
  std::optional<std::set<int>> chosen_types;
  if (!types.empty()) {
    ASSIGN_OR_RETURN(chosen_types, ParseTypes(types));
  }
  const std::optional<NumberRange> range =
      absl::StrContains(ids, "..") ? ParseNumberRange(ids) : std::nullopt;
  if (!ids.empty() && !range.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ids=", ids, " is no range of ids; expected e.g. 100..200"));
  }
  const auto expression = std::make_shared<RE2>(names, RE2::Quiet);
  if (!expression->ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--names: ", expression->error()));
  }
  return [=](const Node& node) {
    return (!chosen_types.has_value() || chosen_types->count(node.type()) > 0) &&
           (!range.has_value() || range->Contains(static_cast<int64_t>(node.id()))) &&
           RE2::PartialMatch(node.name(), *expression);
  };
}

absl::StatusOr<ChakraRewriteReport> FilterEtFiles(FileSystem& file_system, const EtFiles& files,
                                                  const EtFilterOptions& options,
                                                  const std::string& output_prefix) {
  ChakraRewriteReport report;
  EtWorkloadWriter writer(file_system, output_prefix);
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    FileFilter filter(options, &report);
    RETURN_IF_ERROR(filter.Prepare(&reader));
    if (!filter.KeepsAny()) report.add_empty_ranks(file.rank);
    RETURN_IF_ERROR(writer.BeginTrace(file.rank, reader.metadata()));
    RETURN_IF_ERROR(filter.Write(&reader, &writer));
  }
  if (report.nodes() == 0) {
    return absl::InvalidArgumentError("nothing matched: no node of the traces is to be kept");
  }
  writer.AddGroups(options.groups);
  ASSIGN_OR_RETURN(const WrittenWorkload written,
                   writer.Commit(files.is_prefix ? std::optional<int64_t>(0) : std::nullopt));
  report.set_comm_groups(written.comm_groups);
  report.mutable_removed()->Add(written.removed.begin(), written.removed.end());
  return report;
}

std::string FormatFilterReport(const ChakraRewriteReport& report) {
  std::string text = absl::StrCat(WithThousands(report.nodes()), " nodes kept, ",
                                  WithThousands(report.removed_nodes()), " removed\n");
  if (!report.empty_ranks().empty()) {
    absl::StrAppend(&text, "ranks that keep no node, on which ASTRA-sim aborts: ",
                    absl::StrJoin(report.empty_ranks(), ", "), "\n");
  }
  return text + FormatFiles(report);
}

std::string FormatObfuscationReport(const ChakraRewriteReport& report) {
  return absl::StrCat(WithThousands(report.nodes()), " nodes written, ",
                      WithThousands(report.removed_attributes()), " attributes left out\n",
                      FormatFiles(report));
}

}  // namespace meridian
