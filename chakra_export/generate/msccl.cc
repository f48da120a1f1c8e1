#include "chakra_export/generate/msccl.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/collective_type.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/et_tools/et_check.h"
#include "chakra_export/generate/generated_workload.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

// No count, channel or number of a step comes near.
constexpr int64_t kMaxNumber = std::numeric_limits<int32_t>::max();

// MSCCL's elements have up to 15.
constexpr size_t kMaxAttributes = 64;

// What `coll` may be, as in MSCCL's own reader.
struct MscclCollective {
  absl::string_view name;
  std::optional<CollectiveKind> kind;
};
constexpr MscclCollective kCollectives[] = {{"allreduce", CollectiveKind::kAllReduce},
                                            {"allgather", CollectiveKind::kAllGather},
                                            {"reduce", CollectiveKind::kCollectiveReduce},
                                            {"broadcast", CollectiveKind::kCollectiveBroadcast},
                                            {"alltoall", CollectiveKind::kAllToAll},
                                            {"reduce_scatter", CollectiveKind::kReduceScatter},
                                            {"custom", std::nullopt}};

// What a type of step does, in this order, and whether its source and its destination are chunks of
// its own GPU, as in MSCCL's own reader.
struct StepType {
  absl::string_view name;
  bool receives, computes, sends;
  bool reads_here, writes_here;
};
constexpr StepType kStepTypes[] = {
    {"s", false, false, true, true, false},     {"r", true, false, false, false, true},
    {"rcs", true, false, true, false, true},    {"rrc", true, true, false, false, false},
    {"rrs", true, true, true, true, false},     {"rrcs", true, true, true, true, true},
    {"cpy", false, true, false, true, true},    {"re", false, true, false, true, true},
    {"nop", false, false, false, false, false},
};

absl::Status XmlError(absl::string_view source, size_t offset, absl::string_view reason) {
  return InvalidArgument(source, ": offset ", offset, ": ", reason);
}

// Elements with attributes, whose values are as they stand; comments and <?...?> between them are
// skipped.
class XmlReader {
 public:
  XmlReader(absl::string_view text, absl::string_view source) : text_(text), source_(source) {}

  absl::StatusOr<XmlElement> Read() {
    if (absl::StartsWith(text_, "\xFF\xFE") || absl::StartsWith(text_, "\xFE\xFF")) {
      return Error("is UTF-16; expected UTF-8");
    }
    // A byte order mark.
    Skip("\xEF\xBB\xBF");
    RETURN_IF_ERROR(SkipBetweenElements());
    if (absl::StartsWith(text_.substr(at_), "{")) {
      return Error("is JSON; plans of MSCCL++ are not read, only MSCCL's XML");
    }
    ASSIGN_OR_RETURN(XmlElement root, Element(0));
    RETURN_IF_ERROR(SkipBetweenElements());
    if (at_ < text_.size()) return Error("the document has ended before");
    return root;
  }

 private:
  static constexpr int kMaxDepth = 4;

  absl::Status Error(absl::string_view reason) const { return XmlError(source_, at_, reason); }

  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }

  bool Skip(absl::string_view expected) {
    if (!absl::StartsWith(text_.substr(at_), expected)) return false;
    at_ += expected.size();
    return true;
  }

  absl::Status SkipBetweenElements() {
    for (SkipSpace(); true; SkipSpace()) {
      const absl::string_view end = Skip("<!--") ? "-->" : Skip("<?") ? "?>" : "";
      if (end.empty() && absl::StartsWith(text_.substr(at_), "<!DOCTYPE")) {
        return Error("<!DOCTYPE> is not read; remove it");
      }
      if (end.empty()) return absl::OkStatus();
      const size_t found = text_.find(end, at_);
      if (found == absl::string_view::npos) return Error(absl::StrCat("there is no ", end));
      at_ = found + end.size();
    }
  }

  absl::string_view Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_')) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  absl::StatusOr<XmlElement> Element(int depth) {
    XmlElement element;
    element.offset = at_;
    if (depth == kMaxDepth) return Error("is nested too deeply");
    if (!Skip("<") || (element.name = Name()).empty()) {
      return Error("expected an element, e.g. <step ...>");
    }
    for (SkipSpace(); !Skip(">"); SkipSpace()) {
      if (Skip("/>")) return element;
      RETURN_IF_ERROR(Attribute(&element));
    }
    while (true) {
      RETURN_IF_ERROR(SkipBetweenElements());
      if (Skip("</")) break;
      ASSIGN_OR_RETURN(XmlElement child, Element(depth + 1));
      element.children.push_back(std::move(child));
    }
    const bool is_closed = Name() == element.name;
    SkipSpace();
    if (is_closed && Skip(">")) return element;
    return Error(absl::StrCat("expected </", element.name, ">"));
  }

  absl::Status Attribute(XmlElement* element) {
    const absl::string_view name = Name();
    SkipSpace();
    if (name.empty() || !Skip("=")) return Error("expected an attribute, e.g. type=\"s\"");
    SkipSpace();
    const absl::string_view quote = text_.substr(at_, 1);
    const bool is_quoted = Skip("\"") || Skip("'");
    const size_t end = is_quoted ? text_.find(quote, at_) : absl::string_view::npos;
    if (end == absl::string_view::npos) return Error("expected a value in quotes");
    if (element->attributes.size() == kMaxAttributes) {
      return Error(absl::StrCat("<", element->name, "> has over ", kMaxAttributes, " attributes"));
    }
    for (const auto& [known, value] : element->attributes) {
      if (known == name) {
        return Error(absl::StrCat("<", element->name, "> has two values of ", name));
      }
    }
    element->attributes.emplace_back(name, text_.substr(at_, end - at_));
    at_ = end + 1;
    return absl::OkStatus();
  }

  const absl::string_view text_;
  const absl::string_view source_;
  size_t at_ = 0;
};

// Reads what elements say.
class MscclReader {
 public:
  explicit MscclReader(absl::string_view source) : source_(source) {}

  absl::Status Error(const XmlElement& element, absl::string_view reason) const {
    return XmlError(source_, element.offset, reason);
  }

  static std::optional<absl::string_view> Find(const XmlElement& element, absl::string_view name) {
    for (const auto& [known, value] : element.attributes) {
      if (known == name) return value;
    }
    return std::nullopt;
  }

  absl::StatusOr<absl::string_view> Text(const XmlElement& element, absl::string_view name) const {
    if (const std::optional<absl::string_view> text = Find(element, name)) return *text;
    return Error(element, absl::StrCat("<", element.name, "> has no ", name));
  }

  absl::StatusOr<int64_t> Number(const XmlElement& element, absl::string_view name, int64_t low,
                                 int64_t high) const {
    ASSIGN_OR_RETURN(const absl::string_view text, Text(element, name));
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number >= low && number <= high) return number;
    return Error(element,
                 absl::StrCat(name, " is \"", Printable(text), "\"; expected ",
                              low == high ? absl::StrCat(low)
                                          : absl::StrCat("a number from ", low, " to ", high)));
  }

  absl::StatusOr<StepType> Type(const XmlElement& step) const {
    ASSIGN_OR_RETURN(const absl::string_view name, Text(step, "type"));
    for (const StepType& type : kStepTypes) {
      if (type.name == name) return type;
    }
    return Error(step, absl::StrCat("type \"", Printable(name), "\" is unknown"));
  }

  // Fails unless the children are such elements, numbered from 0 on.
  absl::Status CheckChildren(const XmlElement& element, absl::string_view name,
                             absl::string_view number) const {
    int64_t next = 0;
    for (const XmlElement& child : element.children) {
      if (child.name != name) {
        return Error(child, absl::StrCat("expected <", name, ">, not <", child.name, ">"));
      }
      RETURN_IF_ERROR(Number(child, number, next, next).status());
      ++next;
    }
    return absl::OkStatus();
  }

 private:
  const absl::string_view source_;
};

// Writes down the nodes of one GPU. Ids count up from 0 in the order of thread blocks and steps.
class NodeMaker {
 public:
  NodeMaker(const MscclAlgorithm& algorithm, int64_t gpu, int64_t chunk_bytes)
      : reader_(algorithm.source),
        element_(algorithm.gpus[gpu]),
        gpu_(gpu),
        gpus_(static_cast<int64_t>(algorithm.gpus.size())),
        chunk_bytes_(chunk_bytes) {}

  absl::StatusOr<std::vector<Node>> Make() {
    RETURN_IF_ERROR(reader_.CheckChildren(element_, "tb", "id"));
    int64_t next = 0;
    for (const XmlElement& block : element_.children) {
      RETURN_IF_ERROR(reader_.CheckChildren(block, "step", "s"));
      std::vector<int64_t>& last = last_ids_.emplace_back();
      for (const XmlElement& step : block.children) {
        ASSIGN_OR_RETURN(const StepType type, reader_.Type(step));
        const int64_t nodes = type.receives + type.computes + type.sends;
        next += nodes;
        last.push_back(nodes == 0 ? -1 : next - 1);
      }
    }
    for (const XmlElement& block : element_.children) RETURN_IF_ERROR(AddBlock(block));
    // Simulators want a node of every rank.
    if (nodes_.empty()) Add(ChakraProtoMsg::COMP_NODE);
    return std::move(nodes_);
  }

 private:
  absl::Status AddBlock(const XmlElement& block) {
    waits_for_.clear();
    ASSIGN_OR_RETURN(const int64_t target, reader_.Number(block, "send", -1, gpus_ - 1));
    ASSIGN_OR_RETURN(const int64_t source, reader_.Number(block, "recv", -1, gpus_ - 1));
    ASSIGN_OR_RETURN(const int64_t channel, reader_.Number(block, "chan", -1, kCommTagLimit - 1));
    for (const XmlElement& step : block.children) {
      ASSIGN_OR_RETURN(const StepType type, reader_.Type(step));
      name_ = absl::StrCat(type.name, "_tb", *reader_.Text(block, "id"), "_step",
                           *reader_.Text(step, "s"));
      RETURN_IF_ERROR(AddWait(step));
      if (type.reads_here) RETURN_IF_ERROR(CheckChunks(step, "srcbuf", "srcoff"));
      if (type.writes_here) RETURN_IF_ERROR(CheckChunks(step, "dstbuf", "dstoff"));
      if (type.receives) {
        RETURN_IF_ERROR(
            SetMessage(source, gpu_, channel, step, Add(ChakraProtoMsg::COMM_RECV_NODE)));
      }
      if (type.computes) Add(ChakraProtoMsg::COMP_NODE);
      if (type.sends) {
        RETURN_IF_ERROR(
            SetMessage(gpu_, target, channel, step, Add(ChakraProtoMsg::COMM_SEND_NODE)));
      }
    }
    return absl::OkStatus();
  }

  // Fails when the step is at chunks that the buffer does not have, as far as the file says both.
  absl::Status CheckChunks(const XmlElement& step, absl::string_view buffer_name,
                           absl::string_view offset_name) const {
    const std::optional<absl::string_view> buffer = MscclReader::Find(step, buffer_name);
    if (!buffer.has_value()) return absl::OkStatus();
    if (*buffer != "i" && *buffer != "o" && *buffer != "s") {
      return reader_.Error(
          step, absl::StrCat(buffer_name, " is \"", Printable(*buffer), "\"; expected i, o or s"));
    }
    const std::string chunks_name = absl::StrCat(std::string(*buffer), "_chunks");
    if (!MscclReader::Find(element_, chunks_name).has_value()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const int64_t chunks, reader_.Number(element_, chunks_name, 0, kMaxNumber));
    ASSIGN_OR_RETURN(const int64_t offset, reader_.Number(step, offset_name, 0, kMaxNumber));
    ASSIGN_OR_RETURN(const int64_t count, reader_.Number(step, "cnt", 1, kMaxNumber));
    if (offset + count <= chunks) return absl::OkStatus();
    return reader_.Error(
        step, absl::StrCat(offset_name, " ", offset, " and cnt ", count, " are beyond the ", chunks,
                           " chunks of its GPU (", chunks_name, ")"));
  }

  // Adds what the step waits for in another thread block. A nop hands it on to the step after it.
  absl::Status AddWait(const XmlElement& step) {
    ASSIGN_OR_RETURN(const int64_t block, reader_.Number(step, "depid", -1, kMaxNumber));
    ASSIGN_OR_RETURN(const int64_t number, reader_.Number(step, "deps", -1, kMaxNumber));
    if (block < 0) return absl::OkStatus();
    const bool exists = block < static_cast<int64_t>(last_ids_.size()) && number >= 0 &&
                        number < static_cast<int64_t>(last_ids_[block].size());
    if (!exists || last_ids_[block][number] < 0) {
      return reader_.Error(step, absl::StrCat("waits for step ", number, " of thread block ", block,
                                              ", which ", exists ? "is a nop" : "does not exist"));
    }
    waits_for_.push_back(last_ids_[block][number]);
    return absl::OkStatus();
  }

  // Adds a node that those after it in its thread block wait for.
  Node& Add(ChakraProtoMsg::NodeType type) {
    Node& node = nodes_.emplace_back();
    node.set_id(nodes_.size() - 1);
    node.set_name(name_);
    node.set_type(type);
    for (const int64_t id : waits_for_) node.add_data_deps(id);
    SetBoolAttribute(kIsCpuOpAttribute, false, node.mutable_attr());
    waits_for_ = {static_cast<int64_t>(node.id())};
    return node;
  }

  absl::Status SetMessage(int64_t source, int64_t target, int64_t channel, const XmlElement& step,
                          Node& node) const {
    if (source < 0 || target < 0 || source == target || channel < 0) {
      return reader_.Error(step, "its <tb> has no other GPU or no channel for a message");
    }
    ASSIGN_OR_RETURN(
        const int64_t count,
        reader_.Number(step, "cnt", 1, std::min(kMaxNumber, kMaxCommBytes / chunk_bytes_)));
    SetIntAttribute(kCommSrcAttribute, source, node.mutable_attr());
    SetIntAttribute(kCommDstAttribute, target, node.mutable_attr());
    SetIntAttribute(kCommSizeAttribute, count * chunk_bytes_, node.mutable_attr());
    SetIntAttribute(kCommTagAttribute, channel, node.mutable_attr());
    return absl::OkStatus();
  }

  const MscclReader reader_;
  const XmlElement& element_;
  const int64_t gpu_;
  const int64_t gpus_;
  const int64_t chunk_bytes_;
  // Id of the last node of each step, by thread block; -1 for a step without nodes.
  std::vector<std::vector<int64_t>> last_ids_;
  // Name of the next node, and what it waits for.
  std::string name_ = "idle";
  std::vector<int64_t> waits_for_;
  std::vector<Node> nodes_;
};

// Refuses what chakra_inspect --check calls an error: circles, messages without a counterpart, GPUs that
// wait for each other for ever.
absl::Status CheckRunsToItsEnd(const std::vector<std::string>& traces) {
  ASSIGN_OR_RETURN(const ExecutionGraph graph, ReadEtGraph(traces));
  EtProblems problems;
  CheckEtGraph(graph, &problems);
  for (const ChakraProblemReport& problem : problems.report().problems()) {
    if (problem.severity() == "error") return InvalidArgument(problem.message());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MscclAlgorithm> ParseMsccl(absl::string_view xml, absl::string_view source) {
  ASSIGN_OR_RETURN(XmlElement root, XmlReader(xml, source).Read());
  const MscclReader reader(source);
  if (root.name != "algo") return reader.Error(root, "expected an algorithm of MSCCL, <algo ...>");
  MscclAlgorithm algorithm;
  algorithm.source = std::string(source);
  ASSIGN_OR_RETURN(const absl::string_view collective, reader.Text(root, "coll"));
  const auto* known =
      absl::c_find_if(kCollectives, [&](const auto& entry) { return entry.name == collective; });
  if (known == std::end(kCollectives)) {
    const auto append_name = [](std::string* out, const MscclCollective& entry) {
      absl::StrAppend(out, entry.name);
    };
    return reader.Error(root,
                        absl::StrCat("coll is \"", Printable(collective), "\"; expected one of ",
                                     absl::StrJoin(kCollectives, ", ", append_name)));
  }
  algorithm.kind = known->kind;
  ASSIGN_OR_RETURN(algorithm.chunks, reader.Number(root, "nchunksperloop", 1, kMaxNumber));
  RETURN_IF_ERROR(reader.CheckChildren(root, "gpu", "id"));
  const int64_t gpus = static_cast<int64_t>(root.children.size());
  if (gpus < 1 || gpus > kMaxGeneratedRanks) {
    return reader.Error(root,
                        absl::StrCat("has ", gpus, " <gpu>; expected 1 to ", kMaxGeneratedRanks));
  }
  ASSIGN_OR_RETURN(const int64_t stated_gpus, reader.Number(root, "ngpus", 1, kMaxGeneratedRanks));
  if (stated_gpus != gpus) {
    return reader.Error(root,
                        absl::StrCat("ngpus is ", stated_gpus, ", but it has ", gpus, " <gpu>"));
  }
  algorithm.gpus = std::move(root.children);
  return algorithm;
}

absl::StatusOr<std::vector<Node>> MscclNodes(const MscclAlgorithm& algorithm, int64_t gpu,
                                             int64_t bytes) {
  RETURN_IF_ERROR(CheckRange("--bytes", bytes, 1, kMaxCommBytes));
  const int64_t shards = algorithm.kind == CollectiveKind::kAllGather
                             ? static_cast<int64_t>(algorithm.gpus.size())
                             : 1;
  RETURN_IF_ERROR(CheckDivides(shards > 1 ? "--bytes x ngpus" : "--bytes", bytes * shards,
                               absl::StrCat("nchunksperloop=", algorithm.chunks),
                               algorithm.chunks));
  return NodeMaker(algorithm, gpu, bytes * shards / algorithm.chunks).Make();
}

absl::StatusOr<ChakraWorkloadReport> WriteMscclTraces(FileSystem& file_system,
                                                      const std::string& path,
                                                      const InputFileOptions& input, int64_t bytes,
                                                      const std::string& prefix) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path, input));
  ASSIGN_OR_RETURN(const MscclAlgorithm algorithm, ParseMsccl(file.bytes(), path));
  EtWorkloadWriter traces(file_system, prefix);
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version(kEtSchemaVersion);
  // So that readers know what collective the traces are for.
  SetIntAttribute(kCommSizeAttribute, bytes, metadata.mutable_attr());
  if (algorithm.kind.has_value()) {
    SetIntAttribute(kCommTypeAttribute, *CommTypeOf(*algorithm.kind), metadata.mutable_attr());
  }
  const int64_t gpus = static_cast<int64_t>(algorithm.gpus.size());
  // By GPU: its trace, to be checked before any file has its name.
  std::vector<std::string> written(gpus);
  for (int64_t gpu = 0; gpu < gpus; ++gpu) {
    ASSIGN_OR_RETURN(const std::vector<Node> nodes, MscclNodes(algorithm, gpu, bytes));
    ASSIGN_OR_RETURN(EtTrace trace, traces.Begin(gpu, metadata));
    AppendEtRecord(metadata, &written[gpu]);
    for (const Node& node : nodes) {
      RETURN_IF_ERROR(trace.Add(node));
      AppendEtRecord(node, &written[gpu]);
    }
    RETURN_IF_ERROR(traces.Finish(std::move(trace)));
  }
  RETURN_IF_ERROR(Annotate(CheckRunsToItsEnd(written), path));
  return traces.Commit(gpus);
}

}  // namespace meridian
