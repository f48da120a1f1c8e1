#include "chakra_export/generate/msccl.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/generate/generated_workload.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using ::ChakraProtoMsg::Node;

constexpr MscclOperation kOperations[] = {
    {"s", false, false, true},   {"r", true, false, false},  {"rcs", true, false, true},
    {"rrc", true, true, false},  {"rrs", true, true, true},  {"rrcs", true, true, true},
    {"cpy", false, true, false}, {"re", false, true, false}, {"nop", false, false, false},
};

struct XmlTag {
  size_t offset = 0;
  absl::string_view name;
  std::vector<std::pair<absl::string_view, absl::string_view>> attributes;
  // <name ...> and </name>; <name .../> is both.
  bool opens = true;
  bool closes = false;
};

// The tags of an XML text one after another, without a meaning. Text between them is refused, as is
// all that would need a definition elsewhere; values are as they stand.
class XmlTags {
 public:
  XmlTags(absl::string_view text, absl::string_view source) : text_(text), source_(source) {}

  absl::Status Error(size_t offset, absl::string_view reason) const {
    return InvalidArgument(source_, ": offset ", offset, ": ", reason);
  }

  // False at the end of the text.
  absl::StatusOr<bool> Next(XmlTag* tag) {
    while (true) {
      SkipSpace();
      if (at_ == text_.size()) return false;
      if (!SkipBetween("<!--", "-->") && !SkipBetween("<?", "?>")) break;
    }
    *tag = XmlTag();
    tag->offset = at_;
    if (!Skip("<")) return Error(at_, "expected a tag, e.g. <step ...>");
    if (Skip("/")) tag->opens = false;
    tag->closes = !tag->opens;
    tag->name = Name();
    if (tag->name.empty()) return Error(at_, "expected the name of a tag");
    while (true) {
      SkipSpace();
      if (tag->opens && Skip("/")) tag->closes = true;
      if (Skip(">")) return true;
      if (tag->closes) return Error(at_, "expected >");
      RETURN_IF_ERROR(Attribute(tag));
    }
  }

 private:
  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }

  bool Skip(absl::string_view expected) {
    if (!absl::StartsWith(text_.substr(at_), expected)) return false;
    at_ += expected.size();
    return true;
  }

  bool SkipBetween(absl::string_view begin, absl::string_view end) {
    if (!absl::StartsWith(text_.substr(at_), begin)) return false;
    const size_t found = text_.find(end, at_ + begin.size());
    if (found == absl::string_view::npos) return false;
    at_ = found + end.size();
    return true;
  }

  absl::string_view Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '_')) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  absl::Status Attribute(XmlTag* tag) {
    const absl::string_view name = Name();
    SkipSpace();
    if (name.empty() || !Skip("=")) return Error(at_, "expected an attribute, e.g. type=\"s\"");
    SkipSpace();
    const absl::string_view quote = text_.substr(at_, 1);
    const bool is_quoted = Skip("\"") || Skip("'");
    const size_t end = is_quoted ? text_.find(quote, at_) : absl::string_view::npos;
    if (end == absl::string_view::npos) return Error(at_, "expected a value in quotes");
    tag->attributes.emplace_back(name, text_.substr(at_, end - at_));
    at_ = end + 1;
    return absl::OkStatus();
  }

  const absl::string_view text_;
  const absl::string_view source_;
  size_t at_ = 0;
};

class MscclParser {
 public:
  MscclParser(absl::string_view xml, absl::string_view source) : tags_(xml, source) {
    algorithm_.source = std::string(source);
  }

  absl::StatusOr<MscclAlgorithm> Parse() {
    size_t depth = 0;
    bool is_over = false;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, tags_.Next(&tag_));
      if (!more) break;
      if (tag_.opens) {
        if (is_over || depth == std::size(kElements) || tag_.name != kElements[depth]) {
          return Error(absl::StrCat("<", Printable(tag_.name), "> is not expected here"));
        }
        RETURN_IF_ERROR(Open(depth++));
      }
      if (!tag_.closes) continue;
      if (depth == 0 || tag_.name != kElements[depth - 1]) {
        return Error(absl::StrCat("</", Printable(tag_.name), "> closes nothing"));
      }
      is_over = --depth == 0;
    }
    if (!is_over) return Error("the text ends before </algo>; expected an algorithm of MSCCL");
    if (seen_gpus_ < algorithm_.gpus.size()) {
      return Error(absl::StrCat("has ", seen_gpus_, " of ", algorithm_.gpus.size(), " <gpu>"));
    }
    return std::move(algorithm_);
  }

 private:
  static constexpr absl::string_view kElements[] = {"algo", "gpu", "tb", "step"};
  // Times of more might not fit into 64 bits; no real algorithm comes near.
  static constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

  absl::Status Error(absl::string_view reason) const { return tags_.Error(tag_.offset, reason); }

  absl::StatusOr<absl::string_view> Text(absl::string_view name) const {
    for (const auto& [known, value] : tag_.attributes) {
      if (known == name) return value;
    }
    return Error(absl::StrCat("<", tag_.name, "> has no ", name));
  }

  absl::StatusOr<int64_t> Number(absl::string_view name, int64_t low, int64_t high) const {
    ASSIGN_OR_RETURN(const absl::string_view text, Text(name));
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number >= low && number <= high) return number;
    return Error(absl::StrCat(name, " is \"", Printable(text), "\"; expected a number from ", low,
                              " to ", high));
  }

  // Numbers count up from 0.
  absl::Status CheckNext(absl::string_view name, size_t next) const {
    return Number(name, static_cast<int64_t>(next), static_cast<int64_t>(next)).status();
  }

  absl::Status Open(size_t depth) {
    switch (depth) {
      case 0:
        return OpenAlgorithm();
      case 1:
        return OpenGpu();
      case 2:
        return OpenBlock();
      default:
        return OpenStep();
    }
  }

  absl::Status OpenAlgorithm() {
    ASSIGN_OR_RETURN(const absl::string_view collective, Text("coll"));
    algorithm_.is_all_gather = collective == "allgather";
    ASSIGN_OR_RETURN(algorithm_.chunks, Number("nchunksperloop", 1, kMost));
    ASSIGN_OR_RETURN(const int64_t gpus, Number("ngpus", 1, kMaxGeneratedRanks));
    algorithm_.gpus.resize(gpus);
    is_seen_.resize(gpus);
    return absl::OkStatus();
  }

  absl::Status OpenGpu() {
    ASSIGN_OR_RETURN(gpu_, Number("id", 0, last_gpu()));
    if (is_seen_[gpu_]) return Error(absl::StrCat("GPU ", gpu_, " is there twice"));
    is_seen_[gpu_] = true;
    ++seen_gpus_;
    return absl::OkStatus();
  }

  absl::Status OpenBlock() {
    RETURN_IF_ERROR(CheckNext("id", algorithm_.gpus[gpu_].size()));
    MscclBlock block;
    ASSIGN_OR_RETURN(block.send, Number("send", -1, last_gpu()));
    ASSIGN_OR_RETURN(block.receive, Number("recv", -1, last_gpu()));
    ASSIGN_OR_RETURN(block.channel, Number("chan", -1, kMost));
    if (block.send == gpu_ || block.receive == gpu_) {
      return Error(absl::StrCat("GPU ", gpu_, " exchanges messages with itself"));
    }
    algorithm_.gpus[gpu_].push_back(std::move(block));
    return absl::OkStatus();
  }

  absl::Status OpenStep() {
    MscclBlock& block = algorithm_.gpus[gpu_].back();
    RETURN_IF_ERROR(CheckNext("s", block.steps.size()));
    ASSIGN_OR_RETURN(const absl::string_view type, Text("type"));
    const auto* const known =
        std::find_if(std::begin(kOperations), std::end(kOperations),
                     [&](const MscclOperation& operation) { return operation.type == type; });
    if (known == std::end(kOperations)) {
      return Error(absl::StrCat(
          "type \"", Printable(type), "\" is unknown; expected one of ",
          absl::StrJoin(kOperations, ", ", [](std::string* out, const MscclOperation& operation) {
            absl::StrAppend(out, operation.type);
          })));
    }
    const bool is_message = known->sends || known->receives;
    if ((known->sends && block.send < 0) || (known->receives && block.receive < 0) ||
        (is_message && block.channel < 0)) {
      return Error(
          absl::StrCat("type ", type, " needs a peer and a channel, but its <tb> has none"));
    }
    MscclStep step;
    step.operation = *known;
    ASSIGN_OR_RETURN(step.count, Number("cnt", is_message ? 1 : 0, kMost));
    ASSIGN_OR_RETURN(step.waits_for_block, Number("depid", -1, kMost));
    ASSIGN_OR_RETURN(step.waits_for_step, Number("deps", -1, kMost));
    block.steps.push_back(step);
    return absl::OkStatus();
  }

  int64_t last_gpu() const { return static_cast<int64_t>(algorithm_.gpus.size()) - 1; }

  XmlTags tags_;
  XmlTag tag_;
  MscclAlgorithm algorithm_;
  // The GPU of the elements that are being read.
  int64_t gpu_ = 0;
  std::vector<bool> is_seen_;
  size_t seen_gpus_ = 0;
};

// Writes down the nodes of one GPU. Ids count up from 0 in the order of blocks and steps.
class NodeMaker {
 public:
  NodeMaker(const MscclAlgorithm& algorithm, int64_t gpu, int64_t chunk_bytes)
      : blocks_(algorithm.gpus[gpu]), gpu_(gpu), chunk_bytes_(chunk_bytes) {}

  absl::StatusOr<std::vector<Node>> Make() {
    int64_t next = 0;
    for (const MscclBlock& block : blocks_) {
      std::vector<int64_t>& last = last_ids_.emplace_back();
      for (const MscclStep& step : block.steps) {
        const int64_t nodes =
            step.operation.receives + step.operation.computes + step.operation.sends;
        next += nodes;
        last.push_back(nodes == 0 ? -1 : next - 1);
      }
    }
    for (size_t block = 0; block < blocks_.size(); ++block) RETURN_IF_ERROR(AddBlock(block));
    // Simulators want a node of every rank.
    if (nodes_.empty()) Add(ChakraProtoMsg::COMP_NODE, "idle", {});
    return std::move(nodes_);
  }

 private:
  absl::Status AddBlock(size_t number) {
    const MscclBlock& block = blocks_[number];
    // What the next step waits for. Steps that do nothing add to that.
    std::vector<int64_t> waits_for;
    for (size_t s = 0; s < block.steps.size(); ++s) {
      const MscclStep& step = block.steps[s];
      const std::string name = absl::StrCat("tb", number, "_step", s);
      if (step.waits_for_block >= 0) {
        ASSIGN_OR_RETURN(const int64_t id, Annotate(LastIdOf(step), name));
        waits_for.push_back(id);
      }
      if (last_ids_[number][s] < 0) continue;
      const auto add = [&](ChakraProtoMsg::NodeType type, absl::string_view what) -> Node& {
        Node& node = Add(type, absl::StrCat(what, "_", name), waits_for);
        waits_for = {static_cast<int64_t>(node.id())};
        return node;
      };
      if (step.operation.receives) {
        SetMessage(block.receive, gpu_, block, step,
                   add(ChakraProtoMsg::COMM_RECV_NODE, "receive"));
      }
      if (step.operation.computes) add(ChakraProtoMsg::COMP_NODE, step.operation.type);
      if (step.operation.sends) {
        SetMessage(gpu_, block.send, block, step, add(ChakraProtoMsg::COMM_SEND_NODE, "send"));
      }
    }
    return absl::OkStatus();
  }

  Node& Add(ChakraProtoMsg::NodeType type, absl::string_view name,
            const std::vector<int64_t>& waits_for) {
    Node& node = nodes_.emplace_back();
    node.set_id(nodes_.size() - 1);
    node.set_name(std::string(name));
    node.set_type(type);
    for (const int64_t id : waits_for) node.add_data_deps(id);
    SetBoolAttribute(kIsCpuOpAttribute, false, node.mutable_attr());
    return node;
  }

  void SetMessage(int64_t source, int64_t destination, const MscclBlock& block,
                  const MscclStep& step, Node& node) const {
    SetIntAttribute(kCommSrcAttribute, source, node.mutable_attr());
    SetIntAttribute(kCommDstAttribute, destination, node.mutable_attr());
    SetIntAttribute(kCommSizeAttribute, step.count * chunk_bytes_, node.mutable_attr());
    SetIntAttribute(kCommTagAttribute, block.channel, node.mutable_attr());
  }

  absl::StatusOr<int64_t> LastIdOf(const MscclStep& step) const {
    const size_t block = static_cast<size_t>(step.waits_for_block);
    const bool exists = block < last_ids_.size() && step.waits_for_step >= 0 &&
                        static_cast<size_t>(step.waits_for_step) < last_ids_[block].size();
    if (exists && last_ids_[block][step.waits_for_step] >= 0) {
      return last_ids_[block][step.waits_for_step];
    }
    return InvalidArgument("waits for step ", step.waits_for_step, " of thread block ",
                           step.waits_for_block, ", which ",
                           exists ? "is a nop" : "does not exist");
  }

  const std::vector<MscclBlock>& blocks_;
  const int64_t gpu_;
  const int64_t chunk_bytes_;
  // Id of the last node of each step, by block; -1 for a step without nodes.
  std::vector<std::vector<int64_t>> last_ids_;
  std::vector<Node> nodes_;
};

}  // namespace

absl::StatusOr<MscclAlgorithm> ParseMsccl(absl::string_view xml, absl::string_view source) {
  return MscclParser(xml, source).Parse();
}

absl::StatusOr<std::vector<Node>> MscclNodes(const MscclAlgorithm& algorithm, int64_t gpu,
                                             int64_t bytes) {
  RETURN_IF_ERROR(CheckRange("--bytes", bytes, 1, kMaxCommBytes));
  // At most 2^14 GPUs: no overflow.
  const int64_t buffer =
      algorithm.is_all_gather ? bytes * static_cast<int64_t>(algorithm.gpus.size()) : bytes;
  RETURN_IF_ERROR(CheckDivides(algorithm.is_all_gather ? "--bytes x ngpus" : "--bytes", buffer,
                               absl::StrCat("nchunksperloop=", algorithm.chunks),
                               algorithm.chunks));
  const int64_t chunk_bytes = buffer / algorithm.chunks;
  for (const MscclBlock& block : algorithm.gpus[gpu]) {
    for (const MscclStep& step : block.steps) {
      if (step.count > kMaxCommBytes / chunk_bytes) {
        return InvalidArgument(algorithm.source, ": GPU ", gpu, ": a message of ", step.count,
                               " chunks has more than ", kMaxCommBytes, " bytes");
      }
    }
  }
  return Annotate(NodeMaker(algorithm, gpu, chunk_bytes).Make(),
                  absl::StrCat(algorithm.source, ": GPU ", gpu));
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
  const int64_t gpus = static_cast<int64_t>(algorithm.gpus.size());
  for (int64_t gpu = 0; gpu < gpus; ++gpu) {
    ASSIGN_OR_RETURN(const std::vector<Node> nodes, MscclNodes(algorithm, gpu, bytes));
    ASSIGN_OR_RETURN(EtTrace trace, traces.Begin(gpu, metadata));
    for (const Node& node : nodes) RETURN_IF_ERROR(trace.Add(node));
    RETURN_IF_ERROR(traces.Finish(std::move(trace)));
  }
  return traces.Commit(gpus);
}

}  // namespace meridian
