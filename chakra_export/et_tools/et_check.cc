#include "chakra_export/et_tools/et_check.h"

#include <iterator>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/et/node_id_index.h"
#include "chakra_export/graph/communication_match.h"
#include "chakra_export/graph/graph_order.h"
#include "chakra_export/graph/graph_replay.h"
#include "google/protobuf/descriptor.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::Node;
using ::google::protobuf::FieldDescriptor;

// The attributes that ASTRA-sim reads, too.
constexpr absl::string_view kReadBySimulator[] = {
    kIsCpuOpAttribute,     kCommTypeAttribute, kCommSizeAttribute,  kCommPriorityAttribute,
    kCommSrcAttribute,     kCommDstAttribute,  kCommTagAttribute,   kPgNameAttribute,
    kInvolvedDimAttribute, kNumOpsAttribute,   kTensorSizeAttribute};

bool IsIntegerKind(EtAttributeKind kind) {
  const FieldDescriptor* field = AttributeProto::descriptor()->FindFieldByNumber(kind);
  // The integers are the first of the types.
  return field != nullptr && field->cpp_type() <= FieldDescriptor::CPPTYPE_UINT64;
}

std::string CollectiveName(int64_t type) {
  const bool known = type >= ChakraProtoMsg::CollectiveCommType_MIN &&
                     type <= ChakraProtoMsg::CollectiveCommType_MAX;
  return known ? ChakraProtoMsg::CollectiveCommType_Name(
                     static_cast<ChakraProtoMsg::CollectiveCommType>(type))
               : absl::StrCat("comm_type ", type);
}

struct FileContext {
  int64_t rank = 0;
  // How many ranks the workload has; absent when that is not known.
  std::optional<int64_t> rank_count;
  // The groups whose ranks are known.
  CommGroups groups;
};

// Checks what can be checked on one node by itself. Its record begins at `offset`.
class NodeChecker {
 public:
  NodeChecker(const Node& node, uint64_t offset, const FileContext& context, EtProblems* problems)
      : node_(node), offset_(offset), context_(context), problems_(problems) {}

  void Run() {
    CheckAttributeKinds();
    CheckTimes();
    CheckDependencyKinds();
    const std::optional<bool> is_cpu_op = Read(GetBoolAttribute(node_.attr(), kIsCpuOpAttribute));
    CheckType(is_cpu_op.value_or(false));
    switch (node_.type()) {
      case ChakraProtoMsg::COMM_COLL_NODE:
        CheckCollective();
        break;
      case ChakraProtoMsg::COMM_SEND_NODE:
      case ChakraProtoMsg::COMM_RECV_NODE:
        CheckMessage();
        break;
      default:
        break;
    }
  }

 private:
  void Report(absl::string_view rule, absl::string_view message) {
    problems_->Add(
        rule, context_.rank, node_.id(), offset_,
        absl::StrCat("node ", node_.id(), " (", FirstCharacters(node_.name(), 60), "): ", message));
  }

  // Returns the value; nothing when it is absent, or cannot be meant, which is reported.
  template <typename T>
  std::optional<T> Read(const absl::StatusOr<std::optional<T>>& value) {
    if (value.ok()) return *value;
    Report("bad_value", value.status().message());
    return std::nullopt;
  }

  // Returns the value of an attribute that must be there; nothing when it is not, or cannot be
  // meant, which is reported.
  std::optional<int64_t> ReadRequired(absl::string_view name) {
    if (FindAttribute(node_.attr(), name) == nullptr) {
      Report("missing_attribute", absl::StrCat("has no attribute ", name));
      return std::nullopt;
    }
    return Read(GetIntAttribute(node_.attr(), name));
  }

  void CheckAttributeKinds() {
    for (const AttributeProto& attribute : node_.attr()) {
      if (absl::c_linear_search(kReadBySimulator, attribute.name())) CheckAttributeKind(attribute);
    }
  }

  void CheckAttributeKind(const AttributeProto& attribute) {
    const EtAttributeKind expected = ExpectedAttributeKind(attribute.name());
    const EtAttributeKind kind = attribute.value_case();
    if (kind == expected) return;
    const bool takes_integers = IsIntegerKind(expected) || expected == AttributeProto::kBoolVal;
    const std::string message =
        absl::StrCat("attribute ", attribute.name(), " is ", AttributeKindName(kind), "; expected ",
                     AttributeKindName(expected));
    if (takes_integers && IsIntegerKind(kind)) {
      Report("attribute_width", absl::StrCat(message, ", other kinds older readers take for 0"));
    } else {
      Report("attribute_kind", message);
    }
  }

  void CheckTimes() {
    for (const absl::StatusOr<int64_t>& time_ns : {StartNsOf(node_), DurationNsOf(node_)}) {
      if (!time_ns.ok()) Report("bad_value", time_ns.status().message());
    }
  }

  void CheckDependencyKinds() {
    const std::optional<std::string> text =
        Read(GetStringAttribute(node_.attr(), kDependencyKindsAttribute));
    if (!text.has_value()) return;
    const std::optional<std::vector<EdgeKinds>> kinds = ParseEdgeKinds(*text);
    if (kinds.has_value() && kinds->size() == static_cast<size_t>(node_.data_deps_size())) return;
    Report("bad_value", absl::StrCat("dep_kinds is '", FirstCharacters(*text, 60), "', with ",
                                     node_.data_deps_size(), " data dependencies"));
  }

  void CheckType(bool on_host) {
    switch (node_.type()) {
      case ChakraProtoMsg::COMP_NODE:
        if (on_host) {
          Report("host_node",
                 "runs on the host, which makes ASTRA-sim's statistics fail at the end");
        } else {
          CheckRoofline();
        }
        return;
      case ChakraProtoMsg::COMM_COLL_NODE:
      case ChakraProtoMsg::COMM_SEND_NODE:
      case ChakraProtoMsg::COMM_RECV_NODE:
        if (on_host) {
          Report("host_communication",
                 "communicates with is_cpu_op true, which aborts ASTRA-sim; set it to false");
        }
        return;
      case ChakraProtoMsg::MEM_LOAD_NODE:
      case ChakraProtoMsg::MEM_STORE_NODE:
        Report("memory_node", "ASTRA-sim ends here unless it has a memory expansion");
        return;
      case ChakraProtoMsg::INVALID_NODE:
        Report("host_node",
               "has type INVALID_NODE, which ASTRA-sim skips and its statistics "
               "fail on");
        return;
      case ChakraProtoMsg::METADATA_NODE:
        Report("node_type", "has type METADATA_NODE, which ASTRA-sim's statistics abort on");
        return;
      default:
        Report("node_type", absl::StrCat("has the unknown type ", node_.type()));
    }
  }

  // Only of nodes that say what they cost; without, ASTRA-sim says itself what is missing.
  void CheckRoofline() {
    const absl::StatusOr<std::optional<int64_t>> tensor_size =
        GetIntAttribute(node_.attr(), kTensorSizeAttribute);
    const absl::StatusOr<std::optional<int64_t>> num_ops =
        GetIntAttribute(node_.attr(), kNumOpsAttribute);
    if (!tensor_size.ok() || !num_ops.ok()) return;
    const std::optional<int64_t> bytes = *tensor_size, operations = *num_ops;
    if (!bytes.has_value() || !operations.has_value()) return;
    const bool waits = node_.data_deps_size() > 0 || node_.ctrl_deps_size() > 0;
    if (*bytes == 0 || *operations == 0) {
      Report("roofline",
             "tensor_size or num_ops is 0: with roofline-enabled ASTRA-sim skips the node and what "
             "waits for it, or divides by 0; write 1");
    } else if (!waits && *bytes < kMinEarlyTensorBytes) {
      Report("roofline",
             absl::StrCat("moves ", *bytes,
                          " bytes at time 0, which aborts ASTRA-sim with roofline-enabled where "
                          "memory is that fast in a nanosecond; let it move ",
                          kMinEarlyTensorBytes, " or wait for another"));
    }
  }

  void CheckCollective() {
    const std::optional<int64_t> type = ReadRequired(kCommTypeAttribute);
    if (type.has_value() && !IsSimulated(*type)) {
      Report("collective_type",
             absl::StrCat(CollectiveName(*type), " is no collective that ASTRA-sim runs"));
    }
    CheckCollectiveSize(type);
    CheckGroup();
    const std::optional<std::vector<bool>> dimensions =
        Read(GetBoolListAttribute(node_.attr(), kInvolvedDimAttribute));
    if (dimensions.has_value() && !absl::c_linear_search(*dimensions, true)) {
      Report("involved_dim", "involved_dim names no dimension, so it never ends");
    }
  }

  void CheckCollectiveSize(std::optional<int64_t> type) {
    const std::optional<int64_t> bytes = ReadRequired(kCommSizeAttribute);
    if (!bytes.has_value()) return;
    if (*bytes < 0) Report("comm_size", absl::StrCat("comm_size is ", *bytes));
    CheckNotTooLarge(*bytes);
    if (type != ChakraProtoMsg::ALL_GATHER || *bytes < 0) return;
    if (*bytes == 0) {
      Report("comm_size", "an all-gather of 0 bytes never ends");
    } else if (*bytes < kMinAllGatherBytes) {
      Report("small_all_gather",
             absl::StrCat("an all-gather of ", *bytes,
                          " bytes never ends with more preferred-dataset-splits than that"));
    }
  }

  void CheckNotTooLarge(int64_t bytes) {
    if (bytes <= kMaxCommBytes) return;
    Report("comm_size", absl::StrCat("comm_size is ", bytes,
                                     "; simulators count time in 64 bits, "
                                     "in which at most ",
                                     kMaxCommBytes, " bytes fit"));
  }

  void CheckGroup() {
    const std::optional<std::string> written =
        Read(GetStringAttribute(node_.attr(), kPgNameAttribute));
    if (!written.has_value() || IsWorldGroup(*written)) return;
    const std::string name = PlainGroupName(*written);
    int64_t number = 0;
    if (!absl::SimpleAtoi(name, &number) || number < 1 || absl::StrCat(number) != name) {
      Report("group_name", absl::StrCat("pg_name is '", FirstCharacters(name, 60),
                                        "'; ASTRA-sim wants a number from 1 on"));
      return;
    }
    if (number > kMaxGroupNumber) {
      Report("group_number", absl::StrCat("pg_name is ", number, "; from ", kMaxGroupNumber + 1,
                                          " on ASTRA-sim mixes up messages"));
    }
    const auto group = context_.groups.find(name);
    if (context_.groups.empty()) {
      Report("no_groups", absl::StrCat("the ranks of group ", name,
                                       " are not known; ASTRA-sim needs them in a file "
                                       "(--comm_groups here)"));
      return;
    }
    if (group == context_.groups.end()) {
      Report("unknown_group", absl::StrCat("there is no group ", name));
      return;
    }
    CheckRanksOf(name, group->second);
  }

  void CheckRanksOf(absl::string_view name, const std::vector<int64_t>& ranks) {
    if (ranks.size() == 1) {
      Report("group_of_one",
             absl::StrCat("group ", name, " has one rank, so its collectives never end"));
    }
    for (const int64_t rank : ranks) {
      if (!context_.rank_count.has_value() || rank < *context_.rank_count) continue;
      Report("peer", absl::StrCat("group ", name, " has rank ", rank, ", but there are ",
                                  *context_.rank_count, " ranks"));
    }
  }

  void CheckMessage() {
    const bool sends = node_.type() == ChakraProtoMsg::COMM_SEND_NODE;
    const std::optional<int64_t> bytes = ReadRequired(kCommSizeAttribute);
    if (bytes.has_value() && *bytes <= 0) {
      Report("comm_size", absl::StrCat("a message of ", *bytes, " bytes"));
    }
    CheckNotTooLarge(bytes.value_or(0));
    const std::optional<int64_t> peer = ReadRequired(sends ? kCommDstAttribute : kCommSrcAttribute);
    if (peer.has_value()) CheckPeer(*peer);
    const absl::string_view own_name = sends ? kCommSrcAttribute : kCommDstAttribute;
    const std::optional<int64_t> own = Read(GetIntAttribute(node_.attr(), own_name));
    if (own.has_value() && *own != context_.rank) {
      Report("peer", absl::StrCat(own_name, " is ", *own, " in the trace of rank ", context_.rank));
    }
    CheckTag();
  }

  void CheckPeer(int64_t peer) {
    if (peer == context_.rank) {
      Report("peer", absl::StrCat("rank ", peer, " is its own peer"));
    } else if (peer < 0 || (context_.rank_count.has_value() && peer >= *context_.rank_count)) {
      Report("peer", absl::StrCat("its peer is rank ", peer, ", which there is none of"));
    }
  }

  void CheckTag() {
    const std::optional<int64_t> tag = ReadRequired(kCommTagAttribute);
    if (!tag.has_value() || (*tag >= 0 && *tag < kCommTagLimit)) return;
    Report("tag", absl::StrCat("comm_tag is ", *tag, "; expected 0 to ", kCommTagLimit - 1));
  }

  const Node& node_;
  const uint64_t offset_;
  const FileContext& context_;
  EtProblems* problems_;
};

// Checks one file in two passes: ids first, so that the second can look them up.
class FileChecker {
 public:
  FileChecker(const EtFile& file, const EtFiles& files, const EtGraphReaderOptions& options,
              EtProblems* problems)
      : problems_(problems) {
    context_.rank = file.rank;
    context_.groups = options.groups;
    if (files.is_prefix) context_.rank_count = files.files.back().rank + 1;
  }

  absl::Status Run(EtReader* reader) {
    if (reader->was_compressed()) {
      Report("gzip", {}, {}, "the file is gzip, which ASTRA-sim does not read; gunzip it");
    }
    RETURN_IF_ERROR(reader->ForEachNode([this](const Node& node) {
      Collect(node);
      return absl::OkStatus();
    }));
    if (ids_.size() == 0) {
      Report("no_nodes", {}, {}, "there is no node; an idle rank needs one COMP_NODE");
    }
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
      context_.groups.insert(listed->begin(), listed->end());
    } else {
      Report("bad_value", node.id(), {}, listed.status().message());
    }
  }

  void Check(const Node& node, uint64_t position, const EtReader& reader) {
    const uint64_t offset = reader.node_offset();
    if (absl::c_binary_search(ids_.repeated(), position)) {
      Report("duplicate_id", node.id(), offset,
             absl::StrCat("node id ", node.id(), " occurs twice"));
    }
    for (const uint64_t id : node.data_deps()) CheckDependency(node, offset, id);
    for (const uint64_t id : node.ctrl_deps()) CheckDependency(node, offset, id);
    NodeChecker(node, offset, context_, problems_).Run();
  }

  void CheckDependency(const Node& node, uint64_t offset, uint64_t id) {
    if (ids_.Find(id).has_value()) return;
    Report("dangling_dependency", node.id(), offset,
           absl::StrCat("node ", node.id(), " depends on ", id, ", which no node has as id"));
  }

  void Report(absl::string_view rule, std::optional<uint64_t> node, std::optional<uint64_t> offset,
              absl::string_view message) {
    problems_->Add(rule, context_.rank, node, offset, message);
  }

  EtProblems* problems_;
  FileContext context_;
  NodeIdIndex ids_;
};

// In the order of MatchProblem::Kind.
constexpr absl::string_view kMatchRules[] = {"unmatched", "disagreement", "not_a_member"};

}  // namespace

void EtProblems::Add(absl::string_view rule, std::optional<int64_t> rank,
                     std::optional<uint64_t> node, std::optional<uint64_t> offset,
                     absl::string_view message) {
  const std::string name(rule);
  const auto info = absl::c_find_if(kEtRules, [&](const EtRule& r) { return r.name == rule; });
  MERIDIAN_CHECK(info != std::end(kEtRules));
  if (info->severity == "error") {
    report_.set_errors(report_.errors() + 1);
  } else {
    report_.set_warnings(report_.warnings() + 1);
  }
  if (++(*report_.mutable_problem_counts())[name] > kKeptPerRule) return;
  ChakraProblemReport* problem = report_.add_problems();
  problem->set_rule(name);
  problem->set_severity(std::string(info->severity));
  if (rank.has_value()) problem->set_rank(*rank);
  if (node.has_value()) problem->set_node(*node);
  if (offset.has_value()) problem->set_offset(*offset);
  problem->set_message(std::string(message));
}

absl::Status CheckEtFiles(FileSystem& file_system, const EtFiles& files,
                          const EtGraphReaderOptions& options, EtProblems* problems) {
  for (const NumberRange& range : files.missing_ranks) {
    problems->Add("missing_rank", range.first, {}, {},
                  absl::StrCat("there is no file for ranks ", range.first, " to ", range.last));
  }
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    ChakraRankReport* rank = problems->report().add_ranks();
    rank->set_rank(file.rank);
    rank->set_path(file.path);
    RETURN_IF_ERROR(FileChecker(file, files, options, problems).Run(&reader));
  }
  return absl::OkStatus();
}

void CheckEtGraph(const ExecutionGraph& graph, EtProblems* problems) {
  const auto report = [&](absl::string_view rule, NodeIndex node, absl::string_view message) {
    problems->Add(rule, graph.rank(node), graph.id(node), {}, message);
  };
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const bool early = graph.type(node) == ChakraProtoMsg::COMM_SEND_NODE &&
                       graph.dependencies(node).empty() &&
                       graph.communication(node)->bytes < kMinEarlyMessageBytes;
    if (!early) continue;
    report("early_message", node,
           absl::StrCat(graph.Describe(node), " sends ", graph.communication(node)->bytes,
                        " bytes at time 0, which aborts ASTRA-sim on fast links; let it wait for "
                        "a COMP_NODE"));
  }
  const CommunicationMatch match(graph);
  for (const MatchProblem& problem : match.problems()) {
    report(kMatchRules[static_cast<size_t>(problem.kind)], problem.node, problem.text);
  }
  const std::vector<NodeIndex> cycle = FindCycle(graph);
  if (!cycle.empty()) return report("cycle", cycle[0], DescribeCycle(graph, cycle));
  if (!match.problems().empty()) return;
  const absl::Status status = ReplayAsSimulator(graph, match).status();
  if (status.ok()) return;
  problems->Add(absl::IsFailedPrecondition(status) ? "deadlock" : "bad_value", {}, {}, {},
                status.message());
}

}  // namespace meridian
