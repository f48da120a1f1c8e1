#include "chakra_export/et_tools/et_obfuscator.h"

#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_reader.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/run/workload_report.pb.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::AttributeProto;
using ::ChakraProtoMsg::Node;

constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();

// Numbers that simulations depend on.
constexpr absl::string_view kKeptNumbers[] = {
    kCommTypeAttribute, kCommSizeAttribute,   kCommPriorityAttribute,
    kCommSrcAttribute,  kCommDstAttribute,    kCommTagAttribute,
    kNumOpsAttribute,   kTensorSizeAttribute, kStreamAttribute};

bool IsGroupNumber(absl::string_view name) {
  uint64_t number = 0;
  return name.empty() || (absl::SimpleAtoi(name, &number) && absl::StrCat(number) == name);
}

class Obfuscator {
 public:
  // Takes down the start of a node; for all nodes before the first Disguise.
  absl::Status Announce(const Node& node) {
    ASSIGN_OR_RETURN(const int64_t start_ns, StartNsOf(node));
    if (start_ns != kNoTimeNs && start_ns < first_start_ns_) first_start_ns_ = start_ns;
    return absl::OkStatus();
  }

  absl::StatusOr<Node> Disguise(const Node& node, int64_t rank) {
    Node disguised;
    disguised.set_id(node.id());
    // What gaps are called gives nothing away, and says that they are none of the computation.
    const bool is_gap = node.name() == kHostGapOpKind;
    disguised.set_name(is_gap ? node.name() : Replace(node.name()));
    disguised.set_type(node.type());
    *disguised.mutable_ctrl_deps() = node.ctrl_deps();
    *disguised.mutable_data_deps() = node.data_deps();
    RETURN_IF_ERROR(CopyAttributes(node, rank, &disguised));
    RETURN_IF_ERROR(CopyTimes(node, &disguised));
    if (node.type() == ChakraProtoMsg::METADATA_NODE) RETURN_IF_ERROR(CopyGroups(node, &disguised));
    return disguised;
  }

  CommGroups Disguise(const CommGroups& groups) {
    CommGroups renamed;
    for (const auto& [name, ranks] : groups) renamed.emplace(GroupName(name), ranks);
    return renamed;
  }

 private:
  absl::Status CopyAttributes(const Node& node, int64_t rank, Node* disguised) {
    EtAttributes* kept = disguised->mutable_attr();
    ASSIGN_OR_RETURN(const std::optional<bool> is_cpu_op,
                     GetBoolAttribute(node.attr(), kIsCpuOpAttribute));
    if (is_cpu_op.has_value()) SetBoolAttribute(kIsCpuOpAttribute, *is_cpu_op, kept);
    for (const absl::string_view name : kKeptNumbers) RETURN_IF_ERROR(CopyNumber(node, name, kept));
    ASSIGN_OR_RETURN(const std::optional<int64_t> thread,
                     GetIntAttribute(node.attr(), kThreadAttribute));
    if (thread.has_value()) SetIntAttribute(kThreadAttribute, ThreadNumber(rank, *thread), kept);
    ASSIGN_OR_RETURN(const std::optional<std::string> group,
                     GetStringAttribute(node.attr(), kPgNameAttribute));
    if (group.has_value()) SetStringAttribute(kPgNameAttribute, GroupName(*group), kept);
    ASSIGN_OR_RETURN(const std::optional<std::vector<bool>> dimensions,
                     GetBoolListAttribute(node.attr(), kInvolvedDimAttribute));
    if (dimensions.has_value()) SetBoolListAttribute(kInvolvedDimAttribute, *dimensions, kept);
    // Simulators ask whether there are lists of tensors, whose names would tell much.
    for (const absl::string_view name : {kInputsAttribute, kOutputsAttribute}) {
      if (FindAttribute(node.attr(), name) != nullptr) AddEmptyList(name, kept);
    }
    ASSIGN_OR_RETURN(const std::optional<std::string> kinds,
                     GetStringAttribute(node.attr(), kDependencyKindsAttribute));
    if (kinds.has_value() && ParseEdgeKinds(*kinds).has_value()) {
      SetStringAttribute(kDependencyKindsAttribute, *kinds, kept);
    }
    return absl::OkStatus();
  }

  // Refuses what the kind of the attribute cannot hold.
  static absl::Status CopyNumber(const Node& node, absl::string_view name, EtAttributes* kept) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> value, GetIntAttribute(node.attr(), name));
    if (!value.has_value()) return absl::OkStatus();
    const EtAttributeKind kind = ExpectedAttributeKind(name);
    const bool is_32_bits = kind == AttributeProto::kInt32Val;
    const int64_t most = is_32_bits ? std::numeric_limits<int32_t>::max() : kMax64;
    const int64_t least = kind == AttributeProto::kUint64Val ? 0 : -most - 1;
    if (*value < least || *value > most) {
      return InvalidArgument("attribute ", name, " is ", *value, "; expected ", least, " to ",
                             most);
    }
    SetIntAttribute(name, *value, kept);
    return absl::OkStatus();
  }

  absl::Status CopyTimes(const Node& node, Node* disguised) {
    ASSIGN_OR_RETURN(const int64_t start_ns, StartNsOf(node));
    ASSIGN_OR_RETURN(const int64_t duration_ns, DurationNsOf(node));
    disguised->set_duration_micros(node.duration_micros());
    if (FindAttribute(node.attr(), kDurationNsAttribute) != nullptr) {
      SetIntAttribute(kDurationNsAttribute, duration_ns, disguised->mutable_attr());
    }
    if (start_ns == kNoTimeNs) return absl::OkStatus();
    const int64_t shifted_ns = start_ns - first_start_ns_ + kFirstStartNs;
    disguised->set_start_time_micros((shifted_ns + kNsPerMicro / 2) / kNsPerMicro);
    if (FindAttribute(node.attr(), kStartNsAttribute) != nullptr) {
      SetIntAttribute(kStartNsAttribute, shifted_ns, disguised->mutable_attr());
    }
    return absl::OkStatus();
  }

  // Copies the table of groups, the one value of inputs that simulators read.
  absl::Status CopyGroups(const Node& node, Node* disguised) {
    ASSIGN_OR_RETURN(const CommGroups groups, ProcessGroupsOf(node));
    if (groups.empty()) return absl::OkStatus();
    disguised->mutable_inputs()->set_values(ProcessGroupTable(Disguise(groups)));
    return absl::OkStatus();
  }

  // Returns the replacement of a text: "op1", "op2", ... in the order of first use. An empty text
  // stays empty.
  std::string Replace(const std::string& text) {
    if (text.empty()) return "";
    const size_t next = replacements_.size() + 1;
    return absl::StrCat("op", replacements_.try_emplace(text, next).first->second);
  }

  std::string GroupName(const std::string& name) {
    const std::string plain = PlainGroupName(name);
    return IsGroupNumber(plain) ? plain : Replace(name);
  }

  int64_t ThreadNumber(int64_t rank, int64_t thread) {
    std::map<int64_t, int64_t>& numbers = threads_[rank];
    const auto next = static_cast<int64_t>(numbers.size()) + 1;
    return numbers.emplace(thread, next).first->second;
  }

  absl::flat_hash_map<std::string, size_t> replacements_;
  int64_t first_start_ns_ = kMax64;
  // Replacements of each rank's threads, by the thread's number.
  std::map<int64_t, std::map<int64_t, int64_t>> threads_;
};

}  // namespace

absl::StatusOr<ChakraWorkloadReport> ObfuscateEtFiles(FileSystem& file_system, const EtFiles& files,
                                                      const EtGraphReaderOptions& options,
                                                      const std::string& output_prefix) {
  Obfuscator obfuscator;
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    RETURN_IF_ERROR(
        reader.ForEachNode([&](const Node& node) { return obfuscator.Announce(node); }));
  }
  EtWorkloadWriter writer(file_system, output_prefix);
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version(kEtSchemaVersion);
  for (const EtFile& file : files.files) {
    ASSIGN_OR_RETURN(EtReader reader, EtReader::Open(file_system, file.path, options));
    ASSIGN_OR_RETURN(EtTrace trace, writer.Begin(file.rank, metadata));
    RETURN_IF_ERROR(reader.ForEachNode([&](const Node& node) -> absl::Status {
      ASSIGN_OR_RETURN(const Node disguised, obfuscator.Disguise(node, file.rank));
      return trace.Add(disguised);
    }));
    RETURN_IF_ERROR(writer.Finish(std::move(trace)));
  }
  writer.AddGroups(obfuscator.Disguise(options.groups));
  return writer.Commit(files.is_prefix ? std::optional<int64_t>(0) : std::nullopt);
}

}  // namespace meridian
