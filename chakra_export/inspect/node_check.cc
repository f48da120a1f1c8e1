#include "chakra_export/inspect/node_check.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::Node;

// True for attributes that ASTRA-sim reads, too.
bool IsReadBySimulator(absl::string_view name) {
  for (const absl::string_view known :
       {kIsCpuOpAttribute, kCommTypeAttribute, kCommSizeAttribute, kCommPriorityAttribute,
        kCommSrcAttribute, kCommDstAttribute, kCommTagAttribute, kPgNameAttribute,
        kInvolvedDimAttribute, kNumOpsAttribute, kTensorSizeAttribute}) {
    if (name == known) return true;
  }
  return false;
}

bool IsIntegerKind(EtAttributeKind kind) {
  switch (kind) {
    case AttributeProto::kInt32Val:
    case AttributeProto::kInt64Val:
    case AttributeProto::kUint32Val:
    case AttributeProto::kUint64Val:
    case AttributeProto::kSint32Val:
    case AttributeProto::kSint64Val:
    case AttributeProto::kFixed32Val:
    case AttributeProto::kFixed64Val:
    case AttributeProto::kSfixed32Val:
    case AttributeProto::kSfixed64Val:
      return true;
    default:
      return false;
  }
}

std::string CollectiveName(int64_t type) {
  const bool known = type >= ChakraProtoMsg::CollectiveCommType_MIN &&
                     type <= ChakraProtoMsg::CollectiveCommType_MAX;
  return known ? ChakraProtoMsg::CollectiveCommType_Name(
                     static_cast<ChakraProtoMsg::CollectiveCommType>(type))
               : absl::StrCat("comm_type ", type);
}

class NodeChecker {
 public:
  NodeChecker(const Node& node, uint64_t offset, const NodeCheckContext& context,
              EtProblems* problems)
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
  void Report(EtRule rule, absl::string_view message) {
    problems_->Add({rule, context_.rank, node_.id(), offset_,
                    absl::StrCat("node ", node_.id(), " (", FirstCharacters(node_.name(), 60),
                                 "): ", message)});
  }

  // Returns the value; nothing when it is absent, or cannot be meant, which is reported.
  template <typename T>
  std::optional<T> Read(const absl::StatusOr<std::optional<T>>& value) {
    if (value.ok()) return *value;
    Report(EtRule::kBadValue, value.status().message());
    return std::nullopt;
  }

  // Returns the value of an attribute that must be there; nothing when it is not, or cannot be
  // meant, which is reported.
  std::optional<int64_t> ReadRequired(absl::string_view name) {
    if (FindAttribute(node_.attr(), name) == nullptr) {
      Report(EtRule::kMissingAttribute, absl::StrCat("has no attribute ", name));
      return std::nullopt;
    }
    return Read(GetIntAttribute(node_.attr(), name));
  }

  void CheckAttributeKinds() {
    std::set<absl::string_view> names;
    for (const AttributeProto& attribute : node_.attr()) {
      if (!names.insert(attribute.name()).second) {
        Report(EtRule::kDuplicateAttribute, absl::StrCat("has attribute ", attribute.name(),
                                                         " twice; readers take one of them"));
      }
      if (IsReadBySimulator(attribute.name())) CheckAttributeKind(attribute);
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
      Report(EtRule::kAttributeWidth,
             absl::StrCat(message, ", other kinds older readers take for 0"));
    } else {
      Report(EtRule::kAttributeKind, message);
    }
  }

  void CheckTimes() {
    const absl::StatusOr<int64_t> start_ns = StartNsOf(node_);
    if (!start_ns.ok()) Report(EtRule::kBadValue, start_ns.status().message());
    const absl::StatusOr<int64_t> duration_ns = DurationNsOf(node_);
    if (!duration_ns.ok()) Report(EtRule::kBadValue, duration_ns.status().message());
  }

  void CheckDependencyKinds() {
    const std::optional<std::string> text =
        Read(GetStringAttribute(node_.attr(), kDependencyKindsAttribute));
    if (!text.has_value()) return;
    const std::optional<std::vector<EdgeKinds>> kinds = ParseEdgeKinds(*text);
    if (kinds.has_value() && kinds->size() == static_cast<size_t>(node_.data_deps_size())) return;
    Report(EtRule::kBadValue, absl::StrCat("dep_kinds is '", FirstCharacters(*text, 60), "', with ",
                                           node_.data_deps_size(), " data dependencies"));
  }

  void CheckType(bool on_host) {
    switch (node_.type()) {
      case ChakraProtoMsg::COMP_NODE:
        if (on_host) {
          Report(EtRule::kHostNode,
                 "runs on the host, which makes ASTRA-sim's statistics fail at the end");
        }
        return;
      case ChakraProtoMsg::COMM_COLL_NODE:
      case ChakraProtoMsg::COMM_SEND_NODE:
      case ChakraProtoMsg::COMM_RECV_NODE:
        if (on_host) {
          Report(EtRule::kHostCommunication,
                 "communicates with is_cpu_op true, which aborts ASTRA-sim; set it to false");
        }
        return;
      case ChakraProtoMsg::MEM_LOAD_NODE:
      case ChakraProtoMsg::MEM_STORE_NODE:
        Report(EtRule::kMemoryNode, "ASTRA-sim ends here unless it has a memory expansion");
        return;
      case ChakraProtoMsg::INVALID_NODE:
        Report(EtRule::kHostNode,
               "has type INVALID_NODE, which ASTRA-sim skips and its statistics "
               "fail on");
        return;
      case ChakraProtoMsg::METADATA_NODE:
        Report(EtRule::kNodeType, "has type METADATA_NODE, which ASTRA-sim's statistics abort on");
        return;
      default:
        Report(EtRule::kNodeType, absl::StrCat("has the unknown type ", node_.type()));
    }
  }

  void CheckCollective() {
    const std::optional<int64_t> type = ReadRequired(kCommTypeAttribute);
    if (type.has_value() && !IsSimulated(*type)) {
      Report(EtRule::kCollectiveType,
             absl::StrCat(CollectiveName(*type), " is no collective that ASTRA-sim runs"));
    }
    CheckCollectiveSize(type);
    CheckGroup();
    const std::optional<std::vector<bool>> dimensions =
        Read(GetBoolListAttribute(node_.attr(), kInvolvedDimAttribute));
    if (dimensions.has_value() &&
        std::find(dimensions->begin(), dimensions->end(), true) == dimensions->end()) {
      Report(EtRule::kInvolvedDim, "involved_dim names no dimension, so it never ends");
    }
  }

  void CheckCollectiveSize(std::optional<int64_t> type) {
    const std::optional<int64_t> bytes = ReadRequired(kCommSizeAttribute);
    if (!bytes.has_value()) return;
    if (*bytes < 0) Report(EtRule::kCommSize, absl::StrCat("comm_size is ", *bytes));
    if (type != ChakraProtoMsg::ALL_GATHER || *bytes < 0) return;
    if (*bytes == 0) {
      Report(EtRule::kCommSize, "an all-gather of 0 bytes never ends");
    } else if (*bytes < kMinAllGatherBytes) {
      Report(EtRule::kSmallAllGather,
             absl::StrCat("an all-gather of ", *bytes,
                          " bytes never ends with more preferred-dataset-splits than that"));
    }
  }

  void CheckGroup() {
    const std::optional<std::string> name =
        Read(GetStringAttribute(node_.attr(), kPgNameAttribute));
    if (!name.has_value() || IsWorldGroup(*name)) return;
    int64_t number = 0;
    if (!absl::SimpleAtoi(*name, &number) || number < 1 || absl::StrCat(number) != *name) {
      Report(EtRule::kGroupName, absl::StrCat("pg_name is '", FirstCharacters(*name, 60),
                                              "'; ASTRA-sim wants a number from 1 on"));
      return;
    }
    if (number > kMaxGroupNumber) {
      Report(EtRule::kGroupNumber,
             absl::StrCat("pg_name is ", number, "; from ", kMaxGroupNumber + 1,
                          " on ASTRA-sim mixes up messages"));
    }
    const auto group = context_.groups->find(*name);
    if (context_.groups->empty()) {
      Report(EtRule::kNoGroups, absl::StrCat("the ranks of group ", *name,
                                             " are not known; ASTRA-sim needs them in a file "
                                             "(--comm_groups here)"));
      return;
    }
    if (group == context_.groups->end()) {
      Report(EtRule::kUnknownGroup, absl::StrCat("there is no group ", *name));
      return;
    }
    CheckRanksOf(*name, group->second);
  }

  void CheckRanksOf(absl::string_view name, const std::vector<int64_t>& ranks) {
    if (ranks.size() == 1) {
      Report(EtRule::kGroupOfOne,
             absl::StrCat("group ", name, " has one rank, so its collectives never end"));
    }
    for (const int64_t rank : ranks) {
      if (!context_.rank_count.has_value() || rank < *context_.rank_count) continue;
      Report(EtRule::kPeer, absl::StrCat("group ", name, " has rank ", rank, ", but there are ",
                                         *context_.rank_count, " ranks"));
    }
  }

  void CheckMessage() {
    const bool sends = node_.type() == ChakraProtoMsg::COMM_SEND_NODE;
    const std::optional<int64_t> bytes = ReadRequired(kCommSizeAttribute);
    if (bytes.has_value() && *bytes <= 0) {
      Report(EtRule::kCommSize, absl::StrCat("a message of ", *bytes, " bytes"));
    }
    const std::optional<int64_t> peer = ReadRequired(sends ? kCommDstAttribute : kCommSrcAttribute);
    if (peer.has_value()) CheckPeer(*peer);
    const absl::string_view own_name = sends ? kCommSrcAttribute : kCommDstAttribute;
    const std::optional<int64_t> own = Read(GetIntAttribute(node_.attr(), own_name));
    if (own.has_value() && *own != context_.rank) {
      Report(EtRule::kPeer,
             absl::StrCat(own_name, " is ", *own, " in the trace of rank ", context_.rank));
    }
    CheckTag();
  }

  void CheckPeer(int64_t peer) {
    if (peer == context_.rank) {
      Report(EtRule::kPeer, absl::StrCat("rank ", peer, " is its own peer"));
    } else if (peer < 0 || (context_.rank_count.has_value() && peer >= *context_.rank_count)) {
      Report(EtRule::kPeer, absl::StrCat("its peer is rank ", peer, ", which there is none of"));
    }
  }

  void CheckTag() {
    const std::optional<int64_t> tag = ReadRequired(kCommTagAttribute);
    if (!tag.has_value() || (*tag >= 0 && *tag < kCommTagLimit)) return;
    Report(EtRule::kTag, absl::StrCat("comm_tag is ", *tag, "; expected 0 to ", kCommTagLimit - 1));
  }

  const Node& node_;
  const uint64_t offset_;
  const NodeCheckContext& context_;
  EtProblems* problems_;
};

}  // namespace

void CheckNode(const Node& node, uint64_t offset, const NodeCheckContext& context,
               EtProblems* problems) {
  NodeChecker(node, offset, context, problems).Run();
}

}  // namespace meridian
