#include "chakra_export/graph/et_graph_reader.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/node_id_index.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

// The sum of a start and a duration must fit.
constexpr int64_t kMaxTimeNs = std::numeric_limits<int64_t>::max() / 2;

absl::Status TimeError(absl::string_view field, absl::string_view value) {
  return InvalidArgument(field, " is ", value, "; expected 0 to 146 years");
}

absl::StatusOr<int64_t> MicrosToNs(uint64_t micros, absl::string_view field) {
  if (micros > static_cast<uint64_t>(kMaxTimeNs / kNsPerMicro)) {
    return TimeError(field, absl::StrCat(micros));
  }
  return static_cast<int64_t>(micros) * kNsPerMicro;
}

// Returns the exact time that an attribute gives, if there is one.
absl::StatusOr<std::optional<int64_t>> ExactTime(const Node& node, absl::string_view name) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> exact, GetIntAttribute(node.attr(), name));
  if (exact.has_value() && (*exact < 0 || *exact > kMaxTimeNs)) {
    return TimeError(name, absl::StrCat(*exact));
  }
  return exact;
}

// Returns the value of the attribute, which must lie between the bounds; `absent` without one.
absl::StatusOr<int64_t> BoundedIntOr(const Node& node, absl::string_view name, int64_t absent,
                                     int64_t least, int64_t most) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> value, GetIntAttribute(node.attr(), name));
  if (!value.has_value()) return absent;
  if (*value < least || *value > most) {
    return InvalidArgument("attribute ", name, " is ", *value, "; expected ", least, " to ", most);
  }
  return *value;
}

absl::StatusOr<Resource> ResourceOf(const Node& node, int64_t rank) {
  ASSIGN_OR_RETURN(const std::optional<bool> is_cpu_op,
                   GetBoolAttribute(node.attr(), kIsCpuOpAttribute));
  if (is_cpu_op.value_or(false)) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> thread,
                     GetIntAttribute(node.attr(), kThreadAttribute));
    return Resource{rank, ResourceKind::kHostThread, thread.value_or(0)};
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> stream,
                   GetIntAttribute(node.attr(), kStreamAttribute));
  if (stream.has_value()) return Resource{rank, ResourceKind::kStream, *stream};
  return Resource{
      rank, IsCommunication(node.type()) ? ResourceKind::kCommunication : ResourceKind::kCompute};
}

class GraphReader {
 public:
  GraphReader(FileSystem& file_system, const EtGraphReaderOptions& options)
      : file_system_(file_system), options_(options), groups_(options.groups) {}

  absl::Status ReadFile(const EtFile& file) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system_, file.path, options_));
    return Read(file.rank, reader);
  }

  absl::Status Read(int64_t rank, EtReader& reader) {
    ids_ = NodeIdIndex();
    dependencies_.clear();
    first_node_ = static_cast<NodeIndex>(builder_.node_count());
    rank_ = rank;
    // So that a rank without nodes counts as one.
    builder_.AddResource({rank, ResourceKind::kCompute, 0});
    RETURN_IF_ERROR(reader.ForEachNode([this](const Node& node) { return AddNode(node); }));
    RETURN_IF_ERROR(ids_.CheckAreUnique(&reader));
    return AddDependencies(&reader);
  }

  ExecutionGraph Build(const std::vector<int64_t>& all_ranks) && {
    for (ProcessGroup& group : used_groups_) {
      const auto known = groups_.find(group.name);
      if (group.name.empty()) {
        group.ranks = all_ranks;
      } else if (known != groups_.end()) {
        group.ranks = known->second;
      }
      builder_.AddGroup(group);
    }
    return std::move(builder_).Build();
  }

 private:
  // `node` waits for the node of that id.
  struct Dependency {
    uint64_t id;
    NodeIndex node;
    EdgeKinds kinds;
  };

  absl::Status AddNode(const Node& node) {
    if (builder_.node_count() == ExecutionGraph::kMaxNodes) {
      return InvalidArgument("there are too many nodes");
    }
    if (node.type() == ChakraProtoMsg::METADATA_NODE) RETURN_IF_ERROR(AddGroups(node));
    ExecutionNode added;
    added.id = node.id();
    added.name = node.name();
    added.type =
        ChakraProtoMsg::NodeType_IsValid(node.type()) ? node.type() : ChakraProtoMsg::INVALID_NODE;
    ASSIGN_OR_RETURN(added.start_ns, StartNsOf(node));
    ASSIGN_OR_RETURN(added.duration_ns, DurationNsOf(node));
    ASSIGN_OR_RETURN(const Resource resource, ResourceOf(node, rank_));
    added.resource = builder_.AddResource(resource);
    if (IsCommunication(node.type())) {
      ASSIGN_OR_RETURN(added.communication, CommunicationOf(node));
    }
    const NodeIndex index = builder_.AddNode(added);
    ids_.Add(node.id());
    if (options_.visit) RETURN_IF_ERROR(options_.visit(index, node));
    return ListDependencies(node, index);
  }

  absl::Status AddGroups(const Node& node) {
    ASSIGN_OR_RETURN(const CommGroups listed, ProcessGroupsOf(node));
    for (const auto& [name, ranks] : listed) {
      const auto [it, added] = groups_.emplace(name, ranks);
      // What the caller gave takes precedence.
      if (added || it->second == ranks || options_.groups.count(name) > 0) continue;
      return InvalidArgument("the ranks of group \"", name,
                             "\" are not those that another node lists");
    }
    return absl::OkStatus();
  }

  // Returns the number of the group, of which the rank is a member unless more is known.
  GroupIndex UseGroup(const std::string& pg_name) {
    const std::string name = IsWorldGroup(pg_name) ? "" : PlainGroupName(pg_name);
    const auto [it, added] =
        group_numbers_.emplace(name, static_cast<GroupIndex>(used_groups_.size()));
    if (added) used_groups_.push_back({name, {}});
    // Files come in the order of ranks.
    std::vector<int64_t>& ranks = used_groups_[it->second].ranks;
    if (ranks.empty() || ranks.back() != rank_) ranks.push_back(rank_);
    return it->second;
  }

  absl::StatusOr<Communication> CommunicationOf(const Node& node) {
    constexpr int64_t kMaxBytes = std::numeric_limits<int64_t>::max();
    constexpr int64_t kMaxRank = std::numeric_limits<int32_t>::max();
    constexpr int64_t kMinTag = std::numeric_limits<int32_t>::min();
    constexpr int64_t kMaxTag = std::numeric_limits<int32_t>::max();
    Communication communication;
    ASSIGN_OR_RETURN(communication.bytes, BoundedIntOr(node, kCommSizeAttribute, 0, 0, kMaxBytes));
    if (node.type() == ChakraProtoMsg::COMM_COLL_NODE) {
      ASSIGN_OR_RETURN(const int64_t type,
                       BoundedIntOr(node, kCommTypeAttribute, ChakraProtoMsg::ALL_REDUCE,
                                    ChakraProtoMsg::CollectiveCommType_MIN,
                                    ChakraProtoMsg::CollectiveCommType_MAX));
      communication.type = static_cast<ChakraProtoMsg::CollectiveCommType>(type);
      ASSIGN_OR_RETURN(const std::optional<std::string> pg_name,
                       GetStringAttribute(node.attr(), kPgNameAttribute));
      communication.group = UseGroup(pg_name.value_or(""));
      return communication;
    }
    const bool sends = node.type() == ChakraProtoMsg::COMM_SEND_NODE;
    ASSIGN_OR_RETURN(communication.source,
                     BoundedIntOr(node, kCommSrcAttribute, kNoRank, kNoRank, kMaxRank));
    ASSIGN_OR_RETURN(communication.target,
                     BoundedIntOr(node, kCommDstAttribute, kNoRank, kNoRank, kMaxRank));
    (sends ? communication.source : communication.target) = rank_;
    ASSIGN_OR_RETURN(const int64_t tag, BoundedIntOr(node, kCommTagAttribute, 0, kMinTag, kMaxTag));
    communication.tag = static_cast<int32_t>(tag);
    return communication;
  }

  absl::Status ListDependencies(const Node& node, NodeIndex index) {
    ASSIGN_OR_RETURN(const std::optional<std::string> text,
                     GetStringAttribute(node.attr(), kDependencyKindsAttribute));
    std::optional<std::vector<EdgeKinds>> kinds;
    if (text.has_value()) {
      kinds = ParseEdgeKinds(*text);
      const auto dependencies = static_cast<size_t>(node.data_deps_size());
      if (!kinds.has_value() || kinds->size() != dependencies) {
        return InvalidArgument("dep_kinds is '", *text,
                               "'; expected e.g. 'd,ds' with one entry for each of the node's ",
                               dependencies, " data dependencies");
      }
    }
    for (int i = 0; i < node.data_deps_size(); ++i) {
      dependencies_.push_back(
          {node.data_deps(i), index, kinds.has_value() ? (*kinds)[i] : EdgeKind::kData});
    }
    for (const uint64_t id : node.ctrl_deps()) {
      dependencies_.push_back({id, index, EdgeKind::kControl});
    }
    if (builder_.dependency_count() + dependencies_.size() <= ExecutionGraph::kMaxDependencies) {
      return absl::OkStatus();
    }
    return InvalidArgument("there are too many dependencies");
  }

  // Adds those of the file, when all its ids are known.
  absl::Status AddDependencies(EtReader* reader) {
    for (const Dependency& dependency : dependencies_) {
      const std::optional<size_t> position = ids_.Find(dependency.id);
      if (position.has_value()) {
        builder_.AddDependency(dependency.node, first_node_ + static_cast<NodeIndex>(*position),
                               dependency.kinds);
      } else if (!options_.ignore_dangling) {
        const size_t node = dependency.node - first_node_;
        return reader->NodeErrorAt(node, absl::StrCat("node ", ids_.id(node), " depends on ",
                                                      dependency.id, ", which no node has as id"));
      } else if (options_.dangling != nullptr) {
        ++*options_.dangling;
      }
    }
    return absl::OkStatus();
  }

  FileSystem& file_system_;
  const EtGraphReaderOptions& options_;
  CommGroups groups_;
  // The groups that nodes name, in the order of first use, and their numbers by name.
  std::vector<ProcessGroup> used_groups_;
  std::map<std::string, GroupIndex> group_numbers_;
  ExecutionGraphBuilder builder_;

  // The file being read: its rank, its first node, the ids of its nodes, and what they wait for.
  int64_t rank_ = 0;
  NodeIndex first_node_ = 0;
  NodeIdIndex ids_;
  std::vector<Dependency> dependencies_;
};

}  // namespace

absl::StatusOr<ExecutionGraph> ReadEtGraph(FileSystem& file_system, const EtFiles& files,
                                           const EtGraphReaderOptions& options) {
  GraphReader reader(file_system, options);
  std::vector<int64_t> ranks;
  for (const EtFile& file : files.files) {
    RETURN_IF_ERROR(reader.ReadFile(file));
    ranks.push_back(file.rank);
  }
  return std::move(reader).Build(ranks);
}

absl::StatusOr<ExecutionGraph> ReadEtGraph(const std::vector<std::string>& traces) {
  const EtGraphReaderOptions options;
  GraphReader reader(FileSystem::Posix(), options);
  std::vector<int64_t> ranks;
  for (const std::string& trace : traces) {
    const auto rank = static_cast<int64_t>(ranks.size());
    ranks.push_back(rank);
    ASSIGN_OR_RETURN(EtReader over, EtReader::OverBytes(trace, absl::StrCat("rank ", rank)));
    RETURN_IF_ERROR(reader.Read(rank, over));
  }
  return std::move(reader).Build(ranks);
}

absl::StatusOr<int64_t> StartNsOf(const Node& node) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> exact, ExactTime(node, kStartNsAttribute));
  if (exact.has_value()) return *exact;
  if (node.start_time_micros() == 0) return kNoTimeNs;
  return MicrosToNs(node.start_time_micros(), "start_time_micros");
}

absl::StatusOr<int64_t> DurationNsOf(const Node& node) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> exact, ExactTime(node, kDurationNsAttribute));
  if (exact.has_value()) return *exact;
  return MicrosToNs(node.duration_micros(), "duration_micros");
}

}  // namespace meridian
