#include "trace_alignment/probes/probe_windows.h"

#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "xla_profiler/base/files/input_file.h"
#include "xla_profiler/base/json/json_cutter.h"
#include "xla_profiler/base/json/jsonl_row.h"
#include "xla_profiler/base/status_macros.h"

namespace meridian {
namespace {

constexpr absl::string_view kExample =
    R"({"window_start_ns":1000,"window_end_ns":2000,"round_id":3,"node_id":0,)"
    R"("edges":[{"dst":1,"alpha":0.0000001,"beta":-123456,"pairs":40,"lost":2}]})";

// Stores 12 for "out/probe_windows_node12.jsonl". False when no number follows "node".
bool NodeInName(absl::string_view path, int64_t* node_id) {
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  const size_t node = name.rfind("node");
  if (node == absl::string_view::npos) return false;
  const absl::string_view rest = name.substr(node + 4);
  size_t digits = 0;
  while (digits < rest.size() && absl::ascii_isdigit(rest[digits])) ++digits;
  return absl::SimpleAtoi(rest.substr(0, digits), node_id);
}

class ProbeWindowsReader {
 public:
  explicit ProbeWindowsReader(const std::string& name) : name_(name) {}

  absl::Status ReadRow(const JsonlRow& row) {
    ASSIGN_OR_RETURN(const bool is_header, row.Bool("meta", false));
    if (is_header && !first_) return row.Error("the header is not the first line");
    first_ = false;
    return is_header ? ReadHeader(row) : ReadWindow(row);
  }

  ProbeWindows Take() { return std::move(windows_); }

 private:
  absl::Status ReadHeader(const JsonlRow& row) {
    if (row.Has("node_id")) {
      ASSIGN_OR_RETURN(windows_.node_id, row.Int64("node_id"));
    }
    ASSIGN_OR_RETURN(windows_.anchors, ReadClockAnchors(row));
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> NodeOf(const JsonlRow& row) const {
    if (row.Has("node_id")) {
      ASSIGN_OR_RETURN(const int64_t node_id, row.Int64("node_id"));
      if (windows_.node_id.value_or(node_id) != node_id) {
        return row.Error(
            absl::StrCat("node_id is ", node_id, ", but the header says ", *windows_.node_id));
      }
      return node_id;
    }
    if (windows_.node_id.has_value()) return *windows_.node_id;
    int64_t node_id = 0;
    if (!NodeInName(name_, &node_id)) return row.Error("node_id is missing");
    return node_id;
  }

  absl::Status ReadWindow(const JsonlRow& row) {
    ProbeWindowEdge window;
    ASSIGN_OR_RETURN(window.src, NodeOf(row));
    ASSIGN_OR_RETURN(window.round_id, row.Int64("round_id"));
    ASSIGN_OR_RETURN(window.window_start_ns, row.Int64("window_start_ns"));
    ASSIGN_OR_RETURN(window.window_end_ns, row.Int64("window_end_ns"));
    if (window.window_end_ns < window.window_start_ns) {
      return row.Error("window_end_ns is before window_start_ns");
    }
    JsonCutter edges(row.Find("edges").text());
    edges.Enter('[');
    while (edges.NextElement()) {
      ASSIGN_OR_RETURN(const ProbeWindowEdge edge, ReadEdge(row.Nested(edges.CutValue()), window));
      RETURN_IF_ERROR(Add(edge, row));
    }
    return edges.status().ok() ? absl::OkStatus() : row.Error("edges is no array");
  }

  static absl::StatusOr<ProbeWindowEdge> ReadEdge(const JsonlRow& row,
                                                  const ProbeWindowEdge& window) {
    ProbeWindowEdge edge = window;
    ASSIGN_OR_RETURN(edge.dst, row.Int64("dst"));
    if (edge.dst == edge.src) return row.Error("dst is the node itself");
    ASSIGN_OR_RETURN(edge.alpha, row.FiniteDouble("alpha"));
    ASSIGN_OR_RETURN(edge.beta_ps, row.NanosAsPicos("beta"));
    ASSIGN_OR_RETURN(edge.pairs, row.Int64("pairs"));
    ASSIGN_OR_RETURN(edge.lost, row.Int64("lost"));
    if (edge.pairs < 0 || edge.lost < 0) return row.Error("pairs or lost is negative");
    return edge;
  }

  absl::Status Add(const ProbeWindowEdge& edge, const JsonlRow& row) {
    const auto [known, inserted] =
        known_.try_emplace({edge.src, edge.dst, edge.round_id}, windows_.edges.size(), row.line());
    if (inserted) {
      windows_.edges.push_back(edge);
      return absl::OkStatus();
    }
    const auto [index, line] = known->second;
    const auto values = [](const ProbeWindowEdge& e) {
      return std::tie(e.window_start_ns, e.window_end_ns, e.alpha, e.beta_ps, e.pairs, e.lost);
    };
    if (values(windows_.edges[index]) != values(edge)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ":", row.line(), ": contradicts line ", line, ": both are for dst ",
                       edge.dst, " in round ", edge.round_id, ", with different values"));
    }
    ++windows_.identical_dropped;
    return absl::OkStatus();
  }

  const std::string& name_;
  bool first_ = true;
  ProbeWindows windows_;
  // (src, dst, round) -> index in edges, line.
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t>, std::pair<size_t, int64_t>> known_;
};

}  // namespace

absl::StatusOr<ProbeWindows> LoadProbeWindows(FileSystem& file_system, const std::string& path) {
  ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(file_system, path));
  return ParseProbeWindows(file.bytes(), path);
}

absl::StatusOr<ProbeWindows> ParseProbeWindows(absl::string_view contents,
                                               const std::string& name) {
  ProbeWindowsReader reader(name);
  RETURN_IF_ERROR(ForEachJsonlRow(contents, name, kExample,
                                  [&](const JsonlRow& row) { return reader.ReadRow(row); }));
  return reader.Take();
}

}  // namespace meridian
