#include "chakra_export/generate/workload_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/generate/generate_report.pb.h"
#include "chakra_export/graph/et_graph_writer.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/transitive_reduction.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr absl::string_view kMicrobatchAttribute = "microbatch";
// The text for people lists this many ranks, or removed files, at most.
constexpr int kMaxListed = 16;

class Writer {
 public:
  Writer(FileSystem& file_system, const GeneratedWorkload& workload, const std::string& prefix)
      : workload_(workload), traces_(file_system, prefix) {}

  absl::StatusOr<ChakraGenerateReport> Run(const std::function<void(int64_t rank)>& progress) {
    for (int64_t rank = 0; rank < workload_.rank_count(); ++rank) {
      if (progress) progress(rank);
      RETURN_IF_ERROR(AddRank(rank));
    }
    ASSIGN_OR_RETURN(const WrittenWorkload written, traces_.Commit(workload_.rank_count()));
    Describe(written);
    return std::move(report_);
  }

 private:
  absl::Status AddRank(int64_t rank) {
    ExecutionGraphBuilder builder;
    RankProgram program(rank, &builder);
    workload_.AddRank(rank, &program);
    ExecutionGraph graph = std::move(builder).Build();
    RETURN_IF_ERROR(RemoveTransitiveEdges(&graph).status());
    DescribeRank(graph, program);
    return AddEtGraph(
        graph,
        [&](NodeIndex node, ChakraProtoMsg::Node* message) {
          AddNote(program.notes()[node], message);
        },
        &traces_);
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

  void DescribeRank(const ExecutionGraph& graph, const RankProgram& program) {
    for (NodeIndex node = 0; node < graph.node_count(); ++node) {
      const Communication* communication = graph.communication(node);
      if (communication == nullptr) continue;
      ++communication_[{graph.CommunicationKind(node), communication->bytes}];
    }
    GeneratedRank* rank = report_.add_ranks();
    rank->set_nodes(static_cast<int64_t>(graph.node_count()));
    rank->set_comm_nodes(program.communication_count());
    rank->set_compute_ns(program.compute_ns());
    rank->set_operations(program.operations());
    report_.set_nodes(report_.nodes() + rank->nodes());
  }

  void Describe(const WrittenWorkload& written) {
    for (int i = 0; i < report_.ranks_size(); ++i) {
      report_.mutable_ranks(i)->set_rank(written.files[i].rank);
      report_.mutable_ranks(i)->set_path(written.files[i].path);
    }
    report_.set_comm_groups(written.comm_groups);
    for (const std::string& path : written.removed) report_.add_removed(path);
    for (const auto& [kind_and_bytes, nodes] : communication_) {
      GeneratedCommunication* entry = report_.add_communication();
      entry->set_kind(kind_and_bytes.first);
      entry->set_bytes(kind_and_bytes.second);
      entry->set_nodes(nodes);
    }
  }

  const GeneratedWorkload& workload_;
  EtWorkloadWriter traces_;
  // How many nodes there are of each kind and number of bytes.
  std::map<std::pair<std::string, int64_t>, int64_t> communication_;
  ChakraGenerateReport report_;
};

}  // namespace

absl::StatusOr<ChakraGenerateReport> WriteGeneratedWorkload(
    FileSystem& file_system, const GeneratedWorkload& workload, const std::string& prefix,
    const std::function<void(int64_t rank)>& progress) {
  return Writer(file_system, workload, prefix).Run(progress);
}

std::string FormatGenerateReport(const ChakraGenerateReport& report) {
  constexpr TextTable::Align kRight = TextTable::Align::kRight;
  TextTable ranks({{"rank", kRight},
                   {"nodes", kRight},
                   {"comm", kRight},
                   {"compute us", kRight},
                   {"operations", kRight},
                   {"file"}});
  const int listed = std::min(report.ranks_size(), kMaxListed);
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
  for (int i = 0; i < std::min(report.removed_size(), kMaxListed); ++i) {
    absl::StrAppend(&out, "removed: ", report.removed(i), " of an earlier workload\n");
  }
  if (report.removed_size() > kMaxListed) {
    absl::StrAppend(&out, "removed: ", WithThousands(report.removed_size() - kMaxListed),
                    " more (--json lists all)\n");
  }
  return out;
}

}  // namespace meridian
