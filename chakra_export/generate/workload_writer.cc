#include "chakra_export/generate/workload_writer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/generate/rank_program.h"
#include "chakra_export/graph/et_graph_writer.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/transitive_reduction.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/util/atomic_file_writer.h"
#include "xla_profiler/util/byte_size.h"
#include "xla_profiler/util/status_macros.h"
#include "xla_profiler/util/text_table.h"

namespace meridian {
namespace {

constexpr absl::string_view kMicrobatchAttribute = "microbatch";
// More ranks are not listed for people.
constexpr int kMaxListedRanks = 16;

class Writer {
 public:
  Writer(FileSystem& files, const GeneratedWorkload& workload, const std::string& prefix)
      : files_(files), workload_(workload), prefix_(prefix) {}

  absl::StatusOr<ChakraGenerateReport> Run(const GeneratedWorkloadWriterOptions& options) {
    for (int64_t rank = 0; rank < workload_.rank_count(); ++rank) {
      if (options.progress) options.progress(rank);
      RETURN_IF_ERROR(WriteRank(rank));
    }
    RETURN_IF_ERROR(WriteGroups());
    NoteLeftovers();
    for (const auto& [kind_and_bytes, nodes] : communication_) {
      GeneratedCommunication* entry = report_.add_communication();
      entry->set_kind(kind_and_bytes.first);
      entry->set_bytes(kind_and_bytes.second);
      entry->set_nodes(nodes);
    }
    return std::move(report_);
  }

 private:
  absl::Status WriteRank(int64_t rank) {
    ExecutionGraphBuilder builder;
    RankProgram program(rank, &builder);
    workload_.AddRank(rank, &program);
    ExecutionGraph graph = std::move(builder).Build();
    RETURN_IF_ERROR(RemoveTransitiveEdges(&graph).status());
    EtGraphWriterOptions options;
    options.decorate = [&](NodeIndex node, ChakraProtoMsg::Node* message) {
      AddNote(program.notes()[node], message);
    };
    ASSIGN_OR_RETURN(const std::vector<EtFile> written,
                     WriteEtGraph(files_, graph, prefix_, options));
    groups_.merge(GroupsOf(graph));
    Describe(graph, program, written.front());
    return absl::OkStatus();
  }

  static void AddNote(const RankProgram::Note& note, ChakraProtoMsg::Node* message) {
    EtAttributes* attributes = message->mutable_attr();
    if (note.microbatch != RankProgram::kNoMicrobatch) {
      SetIntAttribute(kMicrobatchAttribute, note.microbatch, attributes);
    }
    if (message->type() != ChakraProtoMsg::COMP_NODE) return;
    SetIntAttribute(kNumOpsAttribute, note.cost.operations, attributes);
    SetIntAttribute(kTensorSizeAttribute, note.cost.bytes, attributes);
  }

  void Describe(const ExecutionGraph& graph, const RankProgram& program, const EtFile& file) {
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      const Communication* communication = graph.communication(node);
      if (communication == nullptr) continue;
      ++communication_[{graph.CommunicationKind(node), communication->bytes}];
    }
    GeneratedRank* rank = report_.add_ranks();
    rank->set_rank(file.rank);
    rank->set_nodes(static_cast<int64_t>(graph.node_count()));
    rank->set_comm_nodes(program.communication_count());
    rank->set_path(file.path);
    rank->set_compute_ns(program.compute_ns());
    rank->set_operations(program.operations());
    report_.set_nodes(report_.nodes() + rank->nodes());
  }

  std::string GroupsPath() const { return absl::StrCat(prefix_, ".comm_groups.json"); }

  absl::Status WriteGroups() {
    if (groups_.empty()) return absl::OkStatus();
    report_.set_comm_groups(GroupsPath());
    return WriteFileAtomically(files_, GroupsPath(), CommGroupsJson(groups_));
  }

  // Readers of the prefix would take them for part of this workload.
  void NoteLeftovers() {
    const absl::StatusOr<EtFiles> found = FindEtFiles(files_, prefix_);
    if (!found.ok()) {
      report_.add_notes(std::string(found.status().message()));
    } else if (found->files.back().rank >= workload_.rank_count()) {
      report_.add_notes(absl::StrCat(found->files.back().path,
                                     " is of another workload: this one ends with rank ",
                                     workload_.rank_count() - 1));
    }
    if (groups_.empty() && files_.Kind(GroupsPath()).ok()) {
      report_.add_notes(absl::StrCat(GroupsPath(), " is of another workload: this one has none"));
    }
  }

  FileSystem& files_;
  const GeneratedWorkload& workload_;
  const std::string& prefix_;
  CommGroups groups_;
  // Nodes by kind and bytes.
  std::map<std::pair<std::string, int64_t>, int64_t> communication_;
  ChakraGenerateReport report_;
};

}  // namespace

absl::StatusOr<ChakraGenerateReport> WriteGeneratedWorkload(
    FileSystem& file_system, const GeneratedWorkload& workload, const std::string& prefix,
    const GeneratedWorkloadWriterOptions& options) {
  return Writer(file_system, workload, prefix).Run(options);
}

std::string FormatGenerateReport(const ChakraGenerateReport& report) {
  constexpr TextTable::Align kRight = TextTable::Align::kRight;
  TextTable ranks({{"rank", kRight},
                   {"nodes", kRight},
                   {"comm", kRight},
                   {"compute us", kRight},
                   {"operations", kRight},
                   {"file"}});
  const int listed = std::min(report.ranks_size(), kMaxListedRanks);
  for (int i = 0; i < listed; ++i) {
    const GeneratedRank& rank = report.ranks(i);
    ranks.AddRow({absl::StrCat(rank.rank()), WithThousands(rank.nodes()),
                  WithThousands(rank.comm_nodes()), WithThousands(rank.compute_ns() / 1000),
                  WithThousands(rank.operations()), rank.path()});
  }
  std::string out = ranks.ToString();
  if (listed < report.ranks_size()) {
    absl::StrAppend(&out, "... and ", WithThousands(report.ranks_size() - listed),
                    " more ranks (--json lists all)\n");
  }
  if (report.communication_size() > 0) {
    TextTable communication({{"communication"}, {"bytes", kRight}, {"nodes", kRight}});
    for (const GeneratedCommunication& entry : report.communication()) {
      communication.AddRow(
          {entry.kind(), FormatByteSize(entry.bytes()), WithThousands(entry.nodes())});
    }
    absl::StrAppend(&out, "\n", communication.ToString());
  }
  absl::StrAppend(&out, "\n", WithThousands(report.nodes()), " nodes of ",
                  WithThousands(report.ranks_size()), " ranks\n");
  if (!report.comm_groups().empty()) absl::StrAppend(&out, "groups: ", report.comm_groups(), "\n");
  for (const std::string& note : report.notes()) absl::StrAppend(&out, Printable(note), "\n");
  return out;
}

}  // namespace meridian
