#include "astra_bridge/edges/comm_edge_list.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_value.h"
#include "xla_profiler/base/json/jsonl_row.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr char kExample[] =
    R"({"edge_id":"e1","op_kind":"AR","size_bytes":1048576,"participants":[0,1,2,3]})";
constexpr char kMessageExample[] =
    R"({"edge_id":"e1","op_kind":"P2P","size_bytes":1048576,"src_rank":0,"dst_rank":1})";

// Sums of such sizes and their times in nanoseconds stay far from the ends of 64 bits.
constexpr int64_t kMaxEdgeBytes = int64_t{1} << 50;
constexpr size_t kMaxParticipants = size_t{1} << 20;

bool IsPresent(const JsonlRow& row, absl::string_view key) {
  const JsonValue value = row.Find(key);
  return value.exists() && value.text() != "null";
}

// Names may be given as numbers.
absl::StatusOr<std::string> Name(const JsonlRow& row, absl::string_view key) {
  if (!IsPresent(row, key)) return std::string();
  const JsonValue value = row.Find(key);
  if (const std::optional<std::string> text = value.AsString()) return *text;
  if (const std::optional<int64_t> number = value.AsInt64()) return absl::StrCat(*number);
  return row.Error(absl::StrCat(key, " is neither text nor a whole number"));
}

absl::StatusOr<int32_t> Rank(const JsonlRow& row, absl::string_view key) {
  ASSIGN_OR_RETURN(const int64_t rank, row.Int64(key));
  if (rank < 0 || rank > std::numeric_limits<int32_t>::max()) {
    return row.Error(absl::StrCat(key, " is ", rank, ", which is no rank"));
  }
  return static_cast<int32_t>(rank);
}

absl::StatusOr<std::vector<int32_t>> Participants(const JsonlRow& row) {
  std::vector<int32_t> ranks;
  if (!IsPresent(row, "participants")) return ranks;
  const std::optional<std::vector<int64_t>> numbers = row.Find("participants").AsInt64Array();
  if (!numbers.has_value()) return row.Error("participants is no array of ranks");
  if (numbers->size() > kMaxParticipants) {
    return row.Error(absl::StrCat(numbers->size(), " participants are too many"));
  }
  absl::flat_hash_set<int64_t> seen;
  for (int64_t rank : *numbers) {
    if (rank < 0 || rank > std::numeric_limits<int32_t>::max()) {
      return row.Error(absl::StrCat("the participant ", rank, " is no rank"));
    }
    if (!seen.insert(rank).second) {
      return row.Error(absl::StrCat("rank ", rank, " takes part twice"));
    }
    ranks.push_back(static_cast<int32_t>(rank));
  }
  return ranks;
}

absl::StatusOr<std::vector<int32_t>> SourceAndDestination(const JsonlRow& row) {
  ASSIGN_OR_RETURN(const int32_t source, Rank(row, "src_rank"));
  ASSIGN_OR_RETURN(const int32_t destination, Rank(row, "dst_rank"));
  if (source == destination) {
    return row.Error(absl::StrCat("src_rank and dst_rank are both ", source));
  }
  ASSIGN_OR_RETURN(const std::vector<int32_t> named, Participants(row));
  for (int32_t rank : named) {
    if (rank == source || rank == destination) continue;
    return row.Error(absl::StrCat("rank ", rank, " takes part but neither sends nor receives"));
  }
  return std::vector<int32_t>{source, destination};
}

absl::StatusOr<CollectiveKind> Kind(const JsonlRow& row) {
  ASSIGN_OR_RETURN(const std::string code, Name(row, "op_kind"));
  if (code.empty()) return row.Error("op_kind is missing");
  const std::optional<CollectiveKind> kind = TimedKindFromCode(code);
  if (!kind.has_value()) {
    return row.Error(
        absl::StrCat("op_kind is ", Printable(code), ", not one of AR, AG, RS, A2A, P2P"));
  }
  return *kind;
}

absl::StatusOr<AlgorithmHint> Hint(const JsonlRow& row, CollectiveKind kind) {
  ASSIGN_OR_RETURN(const std::string name, Name(row, "collective_algo"));
  for (AlgorithmHint hint : {AlgorithmHint::kNone, AlgorithmHint::kRing, AlgorithmHint::kDirect,
                             AlgorithmHint::kTree, AlgorithmHint::kHierarchical}) {
    if (name != AlgorithmHintName(hint)) continue;
    // There is one way to send.
    if (kind == CollectiveKind::kPointToPoint) return AlgorithmHint::kNone;
    if (hint == AlgorithmHint::kTree && kind != CollectiveKind::kAllReduce) {
      return row.Error("collective_algo is tree, which is for AR only");
    }
    return hint;
  }
  return row.Error(absl::StrCat("collective_algo is ", Printable(name),
                                ", not one of ring, direct, tree, hierarchical"));
}

// Those of the format; the name of the group says nothing about its time.
constexpr absl::string_view kEdgeKeys[] = {"edge_id",      "op_kind",         "size_bytes",
                                           "participants", "src_rank",        "dst_rank",
                                           "group_id",     "collective_algo", "topology_key"};

absl::StatusOr<CommEdge> ParseEdge(const JsonlRow& any_row) {
  const std::optional<std::string> code = any_row.Find("op_kind").AsString();
  const JsonlRow row = any_row.WithExample(
      code == TimedKindCode(CollectiveKind::kPointToPoint) ? kMessageExample : kExample);
  RETURN_IF_ERROR(row.CheckKeys(kEdgeKeys));
  CommEdge edge;
  ASSIGN_OR_RETURN(edge.id, Name(row, "edge_id"));
  if (edge.id.empty()) return row.Error("edge_id is missing");
  ASSIGN_OR_RETURN(edge.kind, Kind(row));
  ASSIGN_OR_RETURN(edge.bytes, row.Int64("size_bytes"));
  if (edge.bytes < 0 || edge.bytes > kMaxEdgeBytes) {
    return row.Error(absl::StrCat("size_bytes is ", edge.bytes, ", not from 0 to 2^50"));
  }
  ASSIGN_OR_RETURN(edge.participants, edge.kind == CollectiveKind::kPointToPoint
                                          ? SourceAndDestination(row)
                                          : Participants(row));
  if (edge.participants.empty()) return row.Error("there are no participants");
  ASSIGN_OR_RETURN(edge.hint, Hint(row, edge.kind));
  ASSIGN_OR_RETURN(edge.topology_key, Name(row, "topology_key"));
  return edge;
}

bool SameEdge(const CommEdge& a, const CommEdge& b) {
  return CanonicalText(a) == CanonicalText(b) && a.topology_key == b.topology_key;
}

}  // namespace

absl::StatusOr<CommEdgeList> ParseCommEdges(absl::string_view jsonl, absl::string_view source) {
  struct Seen {
    size_t position;
    int64_t line;
  };
  CommEdgeList list;
  absl::flat_hash_map<std::string, Seen> by_id;
  RETURN_IF_ERROR(
      ForEachJsonlRow(jsonl, source, kExample, [&](const JsonlRow& row) -> absl::Status {
        ASSIGN_OR_RETURN(CommEdge edge, ParseEdge(row));
        const auto [seen, is_new] = by_id.insert({edge.id, {list.edges.size(), row.line()}});
        if (is_new) {
          list.edges.push_back(std::move(edge));
        } else if (SameEdge(edge, list.edges[seen->second.position])) {
          ++list.duplicates_dropped;
        } else {
          return row.Error(absl::StrCat("edge_id ", Printable(edge.id), " is another edge in line ",
                                        seen->second.line));
        }
        return absl::OkStatus();
      }));
  return list;
}

absl::StatusOr<CommEdgeList> ReadCommEdges(FileSystem& file_system, const std::string& path,
                                           const InputFileOptions& options) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path, options));
  return ParseCommEdges(file.bytes(), path);
}

}  // namespace meridian
