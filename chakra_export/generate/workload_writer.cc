#include "chakra_export/generate/workload_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chakra_export/et/et_attributes.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_workload_writer.h"
#include "chakra_export/generate/generate_report.pb.h"
#include "chakra_export/graph/et_graph_writer.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/graph/graph_order.h"
#include "third_party/chakra/et_def.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr absl::string_view kMicrobatchAttribute = "microbatch";
// The text for people lists this many ranks, or removed files, at most.
constexpr int kMaxListed = 16;

// How many nodes there are of each kind and number of bytes.
using CommunicationCounts = std::map<std::pair<std::string, int64_t>, int64_t>;

// Describes all but the place of a rank's trace.
void DescribeRank(const ExecutionGraph& graph, const RankProgram& program,
                  CommunicationCounts* communication, GeneratedRank* rank) {
  rank->set_nodes(static_cast<int64_t>(graph.node_count()));
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    rank->set_compute_ns(rank->compute_ns() + graph.duration_ns(node));
    rank->set_operations(rank->operations() + program.notes()[node].cost.operations);
    if (graph.communication(node) == nullptr) continue;
    rank->set_comm_nodes(rank->comm_nodes() + 1);
    ++(*communication)[{graph.CommunicationKind(node), graph.communication(node)->bytes}];
  }
}

void AddNote(const RankProgram::Note& note, ChakraProtoMsg::Node* message) {
  EtAttributes* attributes = message->mutable_attr();
  if (note.microbatch != RankProgram::kNoMicrobatch) {
    SetIntAttribute(kMicrobatchAttribute, note.microbatch, attributes);
  }
  if (message->type() != ChakraProtoMsg::COMP_NODE) return;
  SetRoofline(note.cost.operations, note.cost.bytes, attributes);
}

}  // namespace

absl::StatusOr<ChakraGenerateReport> WriteGeneratedWorkload(
    FileSystem& file_system, const GeneratedWorkload& workload, const std::string& prefix,
    const std::function<void(int64_t rank)>& progress) {
  ChakraGenerateReport report;
  CommunicationCounts communication;
  EtWorkloadWriter traces(file_system, prefix);
  for (int64_t rank = 0; rank < workload.rank_count(); ++rank) {
    if (progress) progress(rank);
    ExecutionGraphBuilder builder;
    RankProgram program(rank, &builder);
    workload.AddRank(rank, &program);
    ExecutionGraph graph = std::move(builder).Build();
    RETURN_IF_ERROR(RemoveTransitiveEdges(&graph).status());
    GeneratedRank* described = report.add_ranks();
    described->set_rank(rank);
    described->set_path(EtPath(prefix, rank));
    DescribeRank(graph, program, &communication, described);
    report.set_nodes(report.nodes() + described->nodes());
    const auto add_note = [&](NodeIndex node, ChakraProtoMsg::Node* message) {
      AddNote(program.notes()[node], message);
    };
    RETURN_IF_ERROR(AddEtGraph(graph, add_note, &traces));
  }
  ASSIGN_OR_RETURN(const WrittenWorkload written, traces.Commit(workload.rank_count()));
  report.set_comm_groups(written.comm_groups);
  report.mutable_removed()->Add(written.removed.begin(), written.removed.end());
  for (const auto& [kind_and_bytes, nodes] : communication) {
    GeneratedCommunication* entry = report.add_communication();
    entry->set_kind(kind_and_bytes.first);
    entry->set_bytes(kind_and_bytes.second);
    entry->set_nodes(nodes);
  }
  return report;
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
