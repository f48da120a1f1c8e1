#include "astra_bridge/schedule/iteration_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "astra_bridge/comm_kind.h"
#include "astra_bridge/schedule/snapshot_manifest.h"
#include "xla_profiler/util/int64_range.h"
#include "xla_profiler/util/text_table.h"

namespace meridian {
namespace {

constexpr int kMaxFallbackDetails = 100;
constexpr size_t kSlowestSnapshots = 20;
constexpr int kNamedMembers = 8;
constexpr size_t kShownCharacters = 48;
constexpr int kShownSnapshots = 10;

void AddFallback(const std::string& edge_id, const std::string& reason, PredictionReport* report) {
  report->set_fallbacks(report->fallbacks() + 1);
  if (report->fallback_details_size() == kMaxFallbackDetails) return;
  FallbackReport* detail = report->add_fallback_details();
  detail->set_edge_id(edge_id);
  detail->set_reason(reason);
}

// Fills in the parts of a report one after the other.
class ReportMaker {
 public:
  ReportMaker(const IterationPrediction& prediction, const IterationOptions& options,
              const TimingSetup& setup, const ExecutionGraph& graph,
              const CommunicationMatch& match)
      : prediction_(prediction),
        options_(options),
        setup_(setup),
        graph_(graph),
        match_(match),
        edges_(prediction.edges.edges),
        timer_(*prediction.timer) {}

  PredictionReport Make() {
    AddSummary();
    AddEdges();
    AddKinds();
    if (options_.mode == TimingMode::kSnapshot) AddSnapshots();
    AddCacheAndWarnings();
    return std::move(report_);
  }

 private:
  WorkloadPrediction* workload() { return report_.mutable_workload(); }

  void AddSummary() {
    const TimingEngine engine = setup_.timing->engine();
    report_.set_engine(engine.name);
    report_.set_engine_version(engine.version);
    report_.set_mode(options_.mode == TimingMode::kSnapshot ? "snapshot" : "isolated");
    report_.set_iteration_ns(prediction_.schedule.replay.makespan_ns);
    report_.set_inflation(1);
    workload()->set_ranks(static_cast<int64_t>(graph_.Ranks().size()));
    workload()->set_nodes(static_cast<int64_t>(graph_.node_count()));
    workload()->set_distinct_edges(static_cast<int64_t>(timer_.shape_count()));
    workload()->set_isolated_iteration_ns(prediction_.isolated_makespan_ns);
    workload()->set_critical_communication_ns(CriticalCommunicationNs());
    workload()->set_partition(std::string(SnapshotPartitionName(options_.partition)));
    workload()->set_coalesce_below_bytes(options_.coalesce_below_bytes);
    workload()->set_inflation_over_sum(1);
    workload()->set_max_inflation(1);
    PredictionCost* cost = workload()->mutable_cost();
    cost->set_timing_edges_seconds(absl::ToDoubleSeconds(prediction_.cost.timing_edges));
    cost->set_timing_snapshots_seconds(absl::ToDoubleSeconds(prediction_.cost.timing_snapshots));
    cost->set_replaying_seconds(absl::ToDoubleSeconds(prediction_.cost.replaying));
    cost->set_collecting_seconds(absl::ToDoubleSeconds(prediction_.cost.collecting));
  }

  int64_t CriticalCommunicationNs() const {
    int64_t sum_ns = 0;
    for (const CriticalStep& step :
         ReplayCriticalPath(graph_, match_, prediction_.schedule.replay)) {
      if (graph_.communication(step.node) != nullptr) sum_ns += step.end_ns - step.start_ns;
    }
    return sum_ns;
  }

  void AddEdges() {
    std::vector<bool> in_fallback(edges_.size(), false);
    for (size_t k = 0; k < prediction_.snapshots.size(); ++k) {
      if (!timer_.batch(prediction_.batches[k]).is_fallback()) continue;
      for (const EdgeIndex edge : prediction_.snapshots[k].members) in_fallback[edge] = true;
    }
    for (EdgeIndex edge = 0; edge < edges_.size(); ++edge) {
      const EdgeEstimate& isolated = timer_.isolated(edge);
      EdgePrediction* added = report_.add_edges();
      added->set_id(edges_[edge].id);
      added->set_seconds(prediction_.seconds[edge]);
      added->set_isolated_seconds(isolated.seconds);
      added->set_fallback(isolated.is_fallback() || in_fallback[edge]);
      added->set_name(std::string(graph_.name(prediction_.edges.nodes[edge])));
      added->set_kind(std::string(CommKindName(edges_[edge].kind)));
      added->set_bytes(edges_[edge].bytes);
      added->set_start_ns(prediction_.schedule.intervals[edge].start_ns);
      if (isolated.is_fallback()) {
        AddFallback(edges_[edge].id, isolated.fallback_reason, &report_);
      }
    }
  }

  void AddKinds() {
    std::map<CommKind, std::vector<EdgeIndex>> edges_of_kind;
    for (EdgeIndex edge = 0; edge < edges_.size(); ++edge) {
      edges_of_kind[edges_[edge].kind].push_back(edge);
    }
    for (const auto& [kind, edges] : edges_of_kind) {
      double seconds = 0, isolated_seconds = 0;
      for (const EdgeIndex edge : edges) {
        seconds += prediction_.seconds[edge];
        isolated_seconds += timer_.isolated(edge).seconds;
      }
      KindPrediction* added = workload()->add_kinds();
      added->set_kind(std::string(CommKindName(kind)));
      added->set_edges(static_cast<int64_t>(edges.size()));
      added->set_bytes(TotalBytes(edges_, edges));
      added->set_seconds(seconds);
      added->set_isolated_seconds(isolated_seconds);
    }
  }

  void AddSnapshots() {
    report_.set_snapshots(static_cast<int64_t>(prediction_.snapshots.size()));
    workload()->set_extractions(prediction_.extractions);
    workload()->set_changed_share(prediction_.changed_share);
    workload()->set_distinct_snapshots(static_cast<int64_t>(timer_.batch_count()));
    const std::vector<bool> takes_part = EdgesInSnapshots(edges_, options_.coalesce_below_bytes);
    const std::vector<bool> uses_network = EdgesInSnapshots(edges_, 0);
    workload()->set_coalesced_edges(std::count(uses_network.begin(), uses_network.end(), true) -
                                    std::count(takes_part.begin(), takes_part.end(), true));
    AddBatches();
    AddInflation();
    AddSlowest();
  }

  void AddBatches() {
    std::set<BatchRule> rules;
    for (BatchIndex i = 0; i < timer_.batch_count(); ++i) {
      const BatchEstimate& batch = timer_.batch(i);
      if (batch.seconds.size() > 1) rules.insert(batch.rule);
      if (batch.is_fallback()) AddFallback("", batch.fallback_reason, &report_);
    }
    report_.set_batch_rule(absl::StrJoin(rules, ", ", [](std::string* out, BatchRule rule) {
      absl::StrAppend(out, BatchRuleName(rule));
    }));
  }

  void AddInflation() {
    double total_ns = 0, over_longest = 0, over_sum = 0, most = 1;
    int64_t contended = 0;
    for (size_t k = 0; k < prediction_.snapshots.size(); ++k) {
      const BatchEstimate& batch = timer_.batch(prediction_.batches[k]);
      const auto duration_ns = static_cast<double>(prediction_.snapshots[k].duration_ns());
      total_ns += duration_ns;
      over_longest += duration_ns * batch.inflation;
      over_sum += duration_ns * InflationOverSum(batch);
      most = std::max(most, batch.inflation);
      if (prediction_.snapshots[k].members.size() > 1) ++contended;
    }
    workload()->set_contended_snapshots(contended);
    workload()->set_max_inflation(most);
    if (total_ns == 0) return;
    report_.set_inflation(over_longest / total_ns);
    workload()->set_inflation_over_sum(over_sum / total_ns);
  }

  void AddSlowest() {
    // By batch: the first of its snapshots, how many there are, how long they last.
    struct Use {
      size_t first = 0;
      int64_t occurrences = 0;
      absl::int128 total_ns = 0;
    };
    std::vector<Use> uses(timer_.batch_count());
    for (size_t k = 0; k < prediction_.snapshots.size(); ++k) {
      Use& use = uses[prediction_.batches[k]];
      if (use.occurrences++ == 0) use.first = k;
      use.total_ns += prediction_.snapshots[k].duration_ns();
    }
    std::vector<BatchIndex> order;
    for (BatchIndex i = 0; i < uses.size(); ++i) {
      if (uses[i].occurrences > 0 && timer_.batch(i).seconds.size() > 1) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [this](BatchIndex a, BatchIndex b) {
      return timer_.batch(a).makespan_seconds > timer_.batch(b).makespan_seconds;
    });
    if (order.size() > kSlowestSnapshots) order.resize(kSlowestSnapshots);
    for (const BatchIndex i : order) {
      SnapshotPrediction* added = workload()->add_slowest_snapshots();
      added->set_occurrences(uses[i].occurrences);
      added->set_total_ns(SaturateToInt64(uses[i].total_ns));
      DescribeSnapshot(prediction_.snapshots[uses[i].first], timer_.batch(i), added);
    }
  }

  void DescribeSnapshot(const Snapshot& snapshot, const BatchEstimate& batch,
                        SnapshotPrediction* added) {
    added->set_start_ns(snapshot.start_ns);
    added->set_edges(static_cast<int64_t>(snapshot.members.size()));
    added->set_makespan_seconds(batch.makespan_seconds);
    added->set_inflation(batch.inflation);
    added->set_inflation_over_sum(InflationOverSum(batch));
    added->set_fallback(batch.is_fallback());
    added->set_bytes(TotalBytes(edges_, snapshot.members));
    for (const EdgeIndex edge : snapshot.members) {
      if (added->edge_ids_size() == kNamedMembers) break;
      added->add_edge_ids(edges_[edge].id);
    }
  }

  void AddCacheAndWarnings() {
    for (const std::string& warning : setup_.warnings) report_.add_warnings(warning);
    for (const auto& [type, count] : prediction_.edges.not_priced) {
      report_.add_warnings(absl::StrCat(WithThousands(count), " collectives of type ", type,
                                        " last as long as in the traces: no network timing "
                                        "knows them"));
    }
    if (setup_.cache == nullptr) return;
    report_.set_cache_hits(setup_.cache->stats().hits);
    report_.set_cache_misses(setup_.cache->stats().misses);
    for (const std::string& warning : setup_.cache->warnings()) report_.add_warnings(warning);
  }

  const IterationPrediction& prediction_;
  const IterationOptions& options_;
  const TimingSetup& setup_;
  const ExecutionGraph& graph_;
  const CommunicationMatch& match_;
  const std::vector<CommEdge>& edges_;
  const SnapshotTimer& timer_;
  PredictionReport report_;
};

std::string Micros(double seconds) { return absl::StrFormat("%.3f", seconds * 1e6); }
std::string Millis(double seconds) { return absl::StrFormat("%.3f", seconds * 1e3); }
std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.3f", static_cast<double>(bytes) / (1 << 20));
}
std::string Factor(double factor) { return absl::StrFormat("%.3f", factor); }
std::string Percent(double share) { return absl::StrFormat("%.1f %%", share * 100); }

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 1; }

std::string KindTable(const PredictionReport& report) {
  constexpr TextTable::Align kRight = TextTable::Align::kRight;
  TextTable table({{"communication"},
                   {"edges", kRight},
                   {"MiB", kRight},
                   {"alone ms", kRight},
                   {"predicted ms", kRight},
                   {"x alone", kRight}});
  for (const KindPrediction& kind : report.workload().kinds()) {
    table.AddRow({kind.kind(), WithThousands(kind.edges()), Mebibytes(kind.bytes()),
                  Millis(kind.isolated_seconds()), Millis(kind.seconds()),
                  Factor(Ratio(kind.seconds(), kind.isolated_seconds()))});
  }
  return table.ToString();
}

std::string SnapshotTable(const WorkloadPrediction& workload) {
  constexpr TextTable::Align kRight = TextTable::Align::kRight;
  TextTable table({{"slowest snapshots us", kRight},
                   {"x longest", kRight},
                   {"x sum", kRight},
                   {"times", kRight},
                   {"total ms", kRight},
                   {"first at ms", kRight},
                   {"edges", kRight},
                   {"MiB", kRight},
                   {"members"}});
  const int shown = std::min(workload.slowest_snapshots_size(), kShownSnapshots);
  for (int i = 0; i < shown; ++i) {
    const SnapshotPrediction& snapshot = workload.slowest_snapshots(i);
    table.AddRow({Micros(snapshot.makespan_seconds()), Factor(snapshot.inflation()),
                  Factor(snapshot.inflation_over_sum()), WithThousands(snapshot.occurrences()),
                  Millis(Seconds(snapshot.total_ns())), Millis(Seconds(snapshot.start_ns())),
                  WithThousands(snapshot.edges()), Mebibytes(snapshot.bytes()),
                  absl::StrCat(snapshot.fallback() ? "(fallback) " : "",
                               FirstCharacters(absl::StrJoin(snapshot.edge_ids(), ", "),
                                               kShownCharacters))});
  }
  return table.ToString();
}

std::string SnapshotLines(const PredictionReport& report) {
  const WorkloadPrediction& workload = report.workload();
  std::string text =
      absl::StrCat("snapshots      ", WithThousands(report.snapshots()), ", ",
                   WithThousands(workload.contended_snapshots()), " of several edges, ",
                   WithThousands(workload.distinct_snapshots()), " different");
  absl::StrAppend(&text, "; collected ", workload.extractions() == 1 ? "once" : "twice", ", ",
                  Percent(workload.changed_share()), " of the edges changed neighbours\n");
  if (workload.partition() != "none") {
    absl::StrAppend(&text, "partition      by ", workload.partition(), "\n");
  }
  if (workload.coalesce_below_bytes() > 0) {
    absl::StrAppend(&text, "coalesced      ", WithThousands(workload.coalesced_edges()),
                    " edges of less than ", WithThousands(workload.coalesce_below_bytes()),
                    " bytes take part in no snapshot\n");
  }
  absl::StrAppend(&text, "inflation      ", Factor(report.inflation()), " x longest, ",
                  Factor(workload.inflation_over_sum()), " x sum, at most ",
                  Factor(workload.max_inflation()), " x longest\n");
  return text;
}

std::string CostLine(const PredictionReport& report) {
  const WorkloadPrediction& workload = report.workload();
  const PredictionCost& cost = workload.cost();
  std::string text =
      absl::StrCat("cost           ", Millis(cost.timing_edges_seconds()), " ms for ",
                   WithThousands(workload.distinct_edges()), " different edges, ");
  if (workload.distinct_snapshots() > 0) {
    absl::StrAppend(&text, Millis(cost.timing_snapshots_seconds()), " ms for snapshots (",
                    Micros(cost.timing_snapshots_seconds() /
                           static_cast<double>(workload.distinct_snapshots())),
                    " us each), ");
  }
  absl::StrAppend(&text, Millis(cost.replaying_seconds()), " ms for replays, ",
                  Millis(cost.collecting_seconds()), " ms for the rest\n");
  return text;
}

}  // namespace

PredictionReport MakeIterationReport(const IterationPrediction& prediction,
                                     const IterationOptions& options, const TimingSetup& setup,
                                     const ExecutionGraph& graph, const CommunicationMatch& match) {
  return ReportMaker(prediction, options, setup, graph, match).Make();
}

std::string FormatIteration(const PredictionReport& report) {
  const WorkloadPrediction& workload = report.workload();
  std::string text = KindTable(report);
  if (workload.slowest_snapshots_size() > 0) {
    absl::StrAppend(&text, "\n", SnapshotTable(workload));
  }
  absl::StrAppend(&text, "\nengine         ", report.engine(), ", version ",
                  report.engine_version(), "\nmode           ", report.mode());
  if (!report.batch_rule().empty()) absl::StrAppend(&text, " (", report.batch_rule(), ")");
  absl::StrAppend(&text, "\nworkload       ", WithThousands(workload.ranks()), " ranks, ",
                  WithThousands(workload.nodes()), " nodes, ", WithThousands(report.edges_size()),
                  " edges\n");
  if (report.mode() == "snapshot") absl::StrAppend(&text, SnapshotLines(report));
  if (report.cache_hits() + report.cache_misses() > 0) {
    absl::StrAppend(&text, "cache          ", WithThousands(report.cache_hits()), " hits, ",
                    WithThousands(report.cache_misses()), " misses\n");
  }
  if (report.fallbacks() > 0) {
    absl::StrAppend(&text, "fallbacks      ", WithThousands(report.fallbacks()),
                    ", the first: ", Printable(report.fallback_details(0).reason()), "\n");
  }
  absl::StrAppend(&text, CostLine(report), "critical path  ",
                  Percent(Ratio(static_cast<double>(workload.critical_communication_ns()),
                                static_cast<double>(report.iteration_ns()))),
                  " communication\niteration      ", Millis(Seconds(report.iteration_ns())), " ms");
  if (report.mode() == "snapshot") {
    absl::StrAppend(&text, ", ",
                    Factor(Ratio(static_cast<double>(report.iteration_ns()),
                                 static_cast<double>(workload.isolated_iteration_ns()))),
                    " x isolated (", Millis(Seconds(workload.isolated_iteration_ns())), " ms)");
  }
  absl::StrAppend(&text, "\n");
  return text;
}

}  // namespace meridian
