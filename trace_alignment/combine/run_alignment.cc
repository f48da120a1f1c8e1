#include "trace_alignment/combine/run_alignment.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/picoseconds.h"
#include "xla_profiler/base/time_units.h"
#include "xla_profiler/collectives/run_resolution.h"
#include "xla_profiler/xplane/clock_domain.h"
#include "xla_profiler/xplane/xplane_schema.h"

namespace meridian {
namespace {

// In the order of AlignmentMethod.
constexpr absl::string_view kMethodNames[] = {"auto", "offsets", "probes", "collectives", "none"};
constexpr char kUnreachable[] = "unreachable";
// How far apart the tracers' own mappings to one host's clock were seen to leave two GPUs.
constexpr int64_t kTracersApartPs = 120 * kPsPerUs;

// GPU kernels are stamped by the tracer, the thunks of XLA:CPU by the host.
ClockDomain DomainOfCollectives(const ProfileCollectives& profile) {
  for (const LocalDevice& device : profile.devices) {
    if (absl::StartsWith(device.name, kGpuPlanePrefix)) return ClockDomain::kTracer;
  }
  return ClockDomain::kHost;
}

// Whether a GPU's tracer stamped the collectives. Kineto traces have them on the host's clock as the
// tracer's library maps it.
bool AreOfGpu(const ProfileCollectives& profile) {
  return absl::c_any_of(profile.devices, [](const LocalDevice& device) {
    return absl::StartsWith(device.name, kGpuPlanePrefix) || absl::StartsWith(device.name, "GPU");
  });
}

// Returns a polyline of offsets as a map from the node's host clock to the reference, however steep where
// a clock was set. Beyond the knots the offset goes on with the rate for hours, if one is given; else as
// ClockMap does it.
absl::StatusOr<ClockMap> MapThrough(const std::vector<OffsetKnot>& knots,
                                    std::optional<double> rate) {
  constexpr int64_t kFarPs = 10000LL * 1000 * 1000 * 1000 * 1000;
  std::vector<ClockKnot> map_knots;
  const auto add = [&](int64_t from_ps, int64_t offset_ps) {
    const int64_t to_ps = from_ps - offset_ps;
    // Knots a picosecond apart may meet where offsets are rounded.
    if (!map_knots.empty() &&
        (from_ps <= map_knots.back().from_ps || to_ps <= map_knots.back().to_ps)) {
      return;
    }
    map_knots.push_back({from_ps, to_ps});
  };
  const int64_t gained_ps = static_cast<int64_t>(std::llround(rate.value_or(0) * kFarPs));
  if (rate.has_value()) {
    add(knots.front().time_ps - kFarPs, knots.front().offset_ps - gained_ps);
  }
  for (const OffsetKnot& knot : knots) add(knot.time_ps, knot.offset_ps);
  if (rate.has_value()) add(knots.back().time_ps + kFarPs, knots.back().offset_ps + gained_ps);
  return ClockMap::Create(std::move(map_knots));
}

// Returns the rate to go on with beyond what was measured: the drift if it is surely not 0, else 0.
double TrustedRate(const std::optional<double>& drift_ppm,
                   const std::optional<double>& uncertainty_ppm) {
  if (!drift_ppm.has_value() || !uncertainty_ppm.has_value()) return 0;
  return *uncertainty_ppm < std::abs(*drift_ppm) ? *drift_ppm * 1e-6 : 0;
}

class RunAligner {
 public:
  RunAligner(const AlignmentInputs& inputs, const CollectiveRun& run,
             const AlignmentOptions& options)
      : inputs_(inputs),
        run_(run),
        options_(options),
        run_clock_(run.table.base_ns()),
        host_table_(run.table) {}

  absl::StatusOr<RunAlignment> Run() {
    RETURN_IF_ERROR(FindReference());
    RETURN_IF_ERROR(FindStarts());
    result_.nodes.assign(inputs_.nodes.size(), AlignedNode(run_clock_));
    result_.before = CheckHappensBefore(run_.table);
    RETURN_IF_ERROR(CheckOneRun(run_, inputs_.offsets.has_value() || inputs_.probes.has_value()));
    RETURN_IF_ERROR(MapTracersToHosts());
    RETURN_IF_ERROR(ChooseMethod());
    NoteInputs();
    switch (result_.method) {
      case AlignmentMethod::kOffsets:
        RETURN_IF_ERROR(UseMeasured(*inputs_.offsets));
        break;
      case AlignmentMethod::kProbes:
        RETURN_IF_ERROR(UseMeasured(*inputs_.probes));
        break;
      case AlignmentMethod::kCollectives:
        RETURN_IF_ERROR(UseCollectives());
        break;
      case AlignmentMethod::kNone:
      case AlignmentMethod::kAuto:
        RETURN_IF_ERROR(KeepRawClocks());
        break;
    }
    SetTarget();
    result_.table = run_.table;
    MapTimes(&result_.table);
    result_.after = CheckHappensBefore(result_.table);
    result_.table.PlaceByDurations(run_.profiles);
    return std::move(result_);
  }

 private:
  void Note(std::string note) { result_.notes.push_back(std::move(note)); }

  absl::Status FindReference() {
    for (size_t n = 0; n < inputs_.nodes.size(); ++n) {
      if (inputs_.nodes[n].node_id != inputs_.reference_node) continue;
      reference_ = static_cast<uint32_t>(n);
      return absl::OkStatus();
    }
    return InvalidArgument(
        "the reference node, ", inputs_.reference_node, ", is none of ",
        absl::StrJoin(inputs_.nodes, ", ", [](std::string* out, const UnalignedNode& node) {
          absl::StrAppend(out, node.node_id);
        }));
  }

  absl::Status FindStarts() {
    for (size_t n = 0; n < inputs_.nodes.size(); ++n) {
      const absl::StatusOr<int64_t> start_ps =
          run_clock_.ToRunPs(inputs_.nodes[n].clock.start_ns(), 0);
      if (!start_ps.ok() || std::abs(*start_ps) > kMaxRunTimePs) {
        return InvalidArgument(
            run_.profiles[n].trace,
            ": its session began more than 40 hours after another's; are all profiles of one run?");
      }
      starts_ps_.push_back(*start_ps);
    }
    return absl::OkStatus();
  }

  absl::Status MapTracersToHosts() {
    for (size_t n = 0; n < inputs_.nodes.size(); ++n) {
      const UnalignedNode& node = inputs_.nodes[n];
      if (!node.snapshots.has_value()) continue;
      ASSIGN_OR_RETURN(result_.nodes[n].clock.tracer_to_host,
                       TracerToHostMap(*node.snapshots, run_clock_));
    }
    MapTimes(&host_table_);
    return absl::OkStatus();
  }

  // Maps the table's times with the nodes' clocks as far as they are known.
  void MapTimes(CollectiveTable* table) const {
    std::vector<LineClock> clocks;
    for (size_t n = 0; n < result_.nodes.size(); ++n) {
      clocks.emplace_back(result_.nodes[n].clock, DomainOfCollectives(run_.profiles[n]));
    }
    table->MapTimes([&](uint32_t node, int64_t time_ps) { return clocks[node].Map(time_ps); });
  }

  absl::Status ChooseMethod() {
    RETURN_IF_ERROR(ChooseAnyMethod());
    if (!options_.hold_last_offset || result_.method == AlignmentMethod::kOffsets ||
        result_.method == AlignmentMethod::kProbes) {
      return absl::OkStatus();
    }
    return InvalidArgument(
        "--missing_windows=hold means nothing without --offsets or --probes; the method is ",
        AlignmentMethodName(result_.method));
  }

  absl::Status ChooseAnyMethod() {
    const bool has_offsets = inputs_.offsets.has_value(), has_probes = inputs_.probes.has_value();
    if (options_.method != AlignmentMethod::kAuto) {
      result_.method = options_.method;
      if ((options_.method == AlignmentMethod::kOffsets && !has_offsets) ||
          (options_.method == AlignmentMethod::kProbes && !has_probes)) {
        const absl::string_view name = AlignmentMethodName(options_.method);
        return InvalidArgument("--method=", name, " needs --", name);
      }
      return absl::OkStatus();
    }
    if (has_offsets || has_probes) {
      result_.method = has_offsets ? AlignmentMethod::kOffsets : AlignmentMethod::kProbes;
      return absl::OkStatus();
    }
    const HappensBefore raw = CheckHappensBefore(host_table_);
    result_.method =
        raw.violations.empty() ? AlignmentMethod::kNone : AlignmentMethod::kCollectives;
    if (raw.checked == 0) {
      Note("no collective ties the nodes together, so their clocks are taken as they are");
    } else if (raw.violations.empty()) {
      Note(absl::StrCat("the clocks as they are violate none of ", raw.checked,
                        " collectives and are kept; --method=collectives centres them"));
    }
    return absl::OkStatus();
  }

  // Notes what was read but is not used, and for which nodes a model is missing.
  void NoteInputs() {
    if (run_.runs.method == RunMethod::kSubsequence || run_.runs.method == RunMethod::kOrder) {
      Note(
          "executions are matched by their order alone; if a profile begins steps later than "
          "another, all that follows from collectives is wrong");
    }
    std::vector<int64_t> without;
    for (const UnalignedNode& node : inputs_.nodes) {
      if (!node.snapshots.has_value()) {
        without.push_back(node.node_id);
      } else if (node.snapshots->identical_dropped > 0) {
        Note(absl::StrCat("node ", node.node_id, ": ", node.snapshots->identical_dropped,
                          " identical snapshot pair(s) dropped"));
      }
      if (node.snapshots.has_value() && node.snapshots->pairs.size() == 1) {
        Note(absl::StrCat("node ", node.node_id,
                          ": one snapshot pair, so its tracer is taken to run at the host's rate"));
      }
    }
    if (!without.empty() && without.size() < inputs_.nodes.size()) {
      Note(absl::StrCat("node(s) ", absl::StrJoin(without, ", "),
                        " have no snapshot pairs: their tracers' clocks are taken for the hosts'"));
    }
    if (result_.method == AlignmentMethod::kOffsets) NoteOffsets(*inputs_.offsets);
    NoteUnusedPriors();
  }

  void NoteOffsets(const OffsetSamples& offsets) {
    const OffsetRowsNotUsed& rows = offsets.rows_not_used();
    const int64_t unused = rows.unreachable + rows.not_converged + rows.without_reference;
    if (unused > 0) {
      Note(absl::StrCat(unused, " offset row(s) not used: ", rows.unreachable, " unreachable, ",
                        rows.not_converged, " not converged, ", rows.without_reference,
                        " of rounds without the reference"));
    }
    if (rows.identical > 0) Note(absl::StrCat(rows.identical, " identical offset row(s) dropped"));
    for (const UnalignedNode& node : inputs_.nodes) {
      if (offsets.SamplesOf(node.node_id).size() == 1 && node.node_id != inputs_.reference_node) {
        Note(absl::StrCat("node ", node.node_id, ": one offset, so a constant shift or one slope"));
      }
    }
    if (inputs_.probes.has_value()) Note("probes are not used: offsets are given");
  }

  ProbeFreeOptions BoundsOptions() const {
    ProbeFreeOptions options;
    options.reference_node = reference_;
    options.max_drift_ppm = options_.max_drift_ppm;
    options.min_transfer_ps = options_.min_transfer_ps;
    options.end_agreement = options_.end_agreement;
    options.clocks_may_jump =
        run_.runs.method == RunMethod::kRunId || run_.runs.method == RunMethod::kStep;
    for (size_t n = 0; n < inputs_.nodes.size(); ++n) {
      const UnalignedNode& node = inputs_.nodes[n];
      const int64_t start_ns = node.clock.start_ns();
      const int64_t length_ns = std::clamp<int64_t>(node.stop_ns.value_or(start_ns) - start_ns, 0,
                                                    kMaxRunTimePs / kPsPerNs);
      options.spans.push_back({starts_ps_[n], starts_ps_[n] + length_ns * kPsPerNs});
      options.prior_ps.push_back(n == reference_ ? 0 : PriorPs(n));
      options.node_ids.push_back(node.node_id);
    }
    return options;
  }

  // Returns within how much of the reference's the clock of the node's host is by what the hosts
  // know; 0 when they know nothing.
  int64_t HostPriorPs(size_t n) const {
    const std::optional<int64_t> own_ns = inputs_.nodes[n].clock_within_ns;
    const std::optional<int64_t> reference_ns = inputs_.nodes[reference_].clock_within_ns;
    if (!own_ns.has_value() || !reference_ns.has_value()) return options_.clock_prior_ps;
    return (*own_ns + *reference_ns) * kPsPerNs;
  }

  // Returns the same of the clocks that stamped the collectives: hosts know nothing of tracers that
  // no snapshot pairs tie to them.
  int64_t PriorPs(size_t n) const {
    const int64_t host_ps = HostPriorPs(n);
    if (host_ps == 0) return 0;
    const auto has_own_clock = [this](size_t node) {
      return !inputs_.nodes[node].snapshots.has_value() && AreOfGpu(run_.profiles[node]);
    };
    return has_own_clock(n) || has_own_clock(reference_) ? host_ps + kTracersApartPs : host_ps;
  }

  // Notes clocks that are farther off than their hosts say.
  void NotePriors() {
    for (size_t n = 0; n < result_.nodes.size(); ++n) {
      const CombinedNode& node = result_.nodes[n].stated;
      const int64_t prior_ns = PriorPs(n) / kPsPerNs;
      if (n == reference_ || prior_ns == 0 || !node.has_offset_ns()) continue;
      if (std::abs(node.offset_ns()) <= prior_ns + node.uncertainty_ns()) continue;
      Note(absl::StrFormat(
          "node %d: its clock is %.3f ms off, though its host should keep it within %s; only the "
          "collectives are believed",
          inputs_.nodes[n].node_id, static_cast<double>(node.offset_ns()) * kMsPerNs,
          absl::FormatDuration(absl::Nanoseconds(HostPriorPs(n) / kPsPerNs))));
    }
  }

  // Notes what hosts know where it changes nothing.
  void NoteUnusedPriors() {
    const auto has_log = [](const UnalignedNode& node) { return node.clock_within_ns.has_value(); };
    const bool has_logs = absl::c_any_of(inputs_.nodes, has_log);
    if (!has_logs && options_.clock_prior_ps == 0) return;
    const absl::string_view given = options_.clock_prior_ps > 0 ? "--clock_prior" : "--clock_logs";
    if (result_.method == AlignmentMethod::kOffsets || result_.method == AlignmentMethod::kProbes) {
      Note(
          absl::StrCat(given, " is not used: ", AlignmentMethodName(result_.method), " are given"));
    } else if (!options_.end_agreement) {
      Note(absl::StrCat(given, " is not used: --end_agreement=false takes what is certain alone"));
    } else if (has_logs && (!has_log(inputs_.nodes[reference_]) ||
                            absl::c_count_if(inputs_.nodes, has_log) < 2)) {
      Note(absl::StrCat("--clock_logs is not used: it takes a log of the reference, node ",
                        inputs_.reference_node, ", and one of another node"));
    }
  }

  static std::string HowChanged(const ClockJump& jump) {
    if (!jump.may_be_set) return "it ran at another rate, perhaps longer";
    return absl::StrCat("it was set", jump.by_ps() < 0 ? ", over no times that it had shown" : "",
                        jump.may_be_slewed ? ", or ran at another rate, perhaps longer" : "");
  }

  // Names the changes of clocks within the run.
  void NoteJumps(const std::vector<ClockJump>& jumps) {
    const auto time_text = [this](int64_t time_ps) {
      return absl::FormatTime("%H:%M:%E6S", absl::FromUnixNanos(run_clock_.ToUnixNs(time_ps)),
                              absl::UTCTimeZone());
    };
    for (const ClockJump& jump : jumps) {
      const auto host = host_of_.find(jump.node);
      const bool is_device =
          host != host_of_.end() && absl::c_none_of(jumps, [&](const ClockJump& other) {
            return other.node == host->second;
          });
      const auto ms = [](int64_t time_ps) {
        return absl::StrFormat("%+.3f ms", static_cast<double>(time_ps) * kMsPerPs);
      };
      const int64_t by_ps = jump.by_ps();
      const std::string by =
          jump.uncertainty_ps < std::abs(by_ps)
              ? absl::StrCat(ms(by_ps), " (within ", ms(jump.uncertainty_ps).substr(1), ")")
              : absl::StrCat("something from ", ms(by_ps - jump.uncertainty_ps), " to ",
                             ms(by_ps + jump.uncertainty_ps));
      std::string note =
          absl::StrCat("node ", inputs_.nodes[jump.node].node_id, ": ",
                       is_device ? "its devices' clock" : "its clock", " was changed by ", by,
                       " between ", time_text(jump.begin_ps), " and ", time_text(jump.end_ps),
                       " UTC by that clock: ", HowChanged(jump));
      if (!jump.or_nodes.empty()) {
        const auto append_id = [this](std::string* out, uint32_t node) {
          absl::StrAppend(out, inputs_.nodes[node].node_id);
        };
        absl::StrAppend(&note, "; or that of node ",
                        absl::StrJoin(jump.or_nodes, " or ", append_id),
                        " in its place: the collectives do not tell which");
      }
      if (jump.is_by_ends) {
        absl::StrAppend(&note, "; the ends of collectives show that, nothing proves it");
      }
      absl::StrAppend(&note, "; ",
                      jump.node == reference_ ? "all times are on the clock that it had before"
                                              : "the times before and after are mapped apart");
      if (jump.may_be_set) {
        absl::StrAppend(&note, ", those between on a straight line: they may be off by all of it");
      }
      Note(std::move(note));
    }
  }

  absl::Status KeepRawClocks() {
    for (AlignedNode& node : result_.nodes) node.stated.set_method("none");
    const absl::StatusOr<ClockAlignment> kept = KeepClocks(host_table_, BoundsOptions());
    if (absl::IsInvalidArgument(kept.status())) return kept.status();
    if (kept.ok()) {
      StateAll(*kept);
    } else {
      Note(absl::StrCat("no uncertainty can be stated: ", kept.status().message()));
    }
    return absl::OkStatus();
  }

  absl::Status UseCollectives() {
    ASSIGN_OR_RETURN(const ClockAlignment aligned,
                     AlignByCollectives(host_table_, BoundsOptions()));
    for (uint32_t n = 0; n < result_.nodes.size(); ++n) {
      AlignedNode& node = result_.nodes[n];
      const NodeOffset& offset = aligned.nodes[n];
      node.stated.set_method(n == reference_ || offset.reachable ? "collectives" : kUnreachable);
      const bool is_kept = n == reference_ && absl::c_none_of(aligned.jumps, [&](const auto& jump) {
                             return jump.node == reference_;
                           });
      if (is_kept || !offset.reachable || offset.knots.empty()) continue;
      ASSIGN_OR_RETURN(
          node.clock.host_to_reference,
          MapThrough(offset.knots, TrustedRate(offset.drift_ppm, offset.drift_uncertainty_ppm)));
    }
    RETURN_IF_ERROR(KeepHostsTogether(aligned));
    StateAll(aligned);
    NoteJumps(aligned.jumps);
    NoteUnreachable();
    return absl::OkStatus();
  }

  // Processes of one host have one clock: what their collectives are apart is their devices', whose
  // tracers are mapped to the host's clock no better.
  absl::Status KeepHostsTogether(const ClockAlignment& aligned) {
    std::map<std::string, uint32_t> first_of_host;
    first_of_host[inputs_.nodes[reference_].hostname] = reference_;
    for (uint32_t n = 0; n < result_.nodes.size(); ++n) {
      const std::string& host = inputs_.nodes[n].hostname;
      const std::vector<OffsetKnot>& knots = aligned.nodes[n].knots;
      if (host.empty() || knots.empty() ||
          DomainOfCollectives(run_.profiles[n]) != ClockDomain::kTracer) {
        continue;
      }
      const uint32_t first = first_of_host.try_emplace(host, n).first->second;
      if (n != first) RETURN_IF_ERROR(MoveToDevice(n, first, knots));
    }
    return absl::OkStatus();
  }

  // Gives a node the clock of another one of its host, and the rest to its devices, unless that is
  // so much that they hardly are on one host.
  absl::Status MoveToDevice(uint32_t n, uint32_t first, const std::vector<OffsetKnot>& knots) {
    constexpr int64_t kMostPs = 1'000'000'000;
    NodeClock& clock = result_.nodes[n].clock;
    const std::optional<ClockMap>& of_host = result_.nodes[first].clock.host_to_reference;
    if (!clock.host_to_reference.has_value()) return absl::OkStatus();
    const ClockMap from_reference =
        of_host.has_value() ? of_host->Inverted() : ClockMap::Identity();
    const ClockMap to_tracer =
        clock.tracer_to_host.has_value() ? clock.tracer_to_host->Inverted() : ClockMap::Identity();
    const auto on_host_ps = [&](int64_t time_ps) {
      return from_reference.Forward(clock.host_to_reference->Forward(time_ps));
    };
    int64_t most_ps = 0;
    for (const OffsetKnot& knot : knots) {
      most_ps = std::max(most_ps, std::abs(on_host_ps(knot.time_ps) - knot.time_ps));
    }
    if (most_ps > kMostPs) return absl::OkStatus();
    std::vector<ClockKnot> map_knots;
    for (size_t k = 0; k < clock.host_to_reference->num_knots(); ++k) {
      const int64_t time_ps = clock.host_to_reference->knot(k).from_ps;
      map_knots.push_back({to_tracer.Forward(time_ps), on_host_ps(time_ps)});
    }
    ASSIGN_OR_RETURN(clock.tracer_to_host,
                     ClockMap::Create(std::move(map_knots), ClockMap::OnDisorder::kRepair));
    clock.host_to_reference = of_host;
    host_of_[n] = first;
    Note(
        absl::StrFormat("node %d is on the host of node %d: what their collectives are apart, up "
                        "to %.3f ms, is its "
                        "devices', and the host's own times are not moved by it",
                        inputs_.nodes[n].node_id, inputs_.nodes[first].node_id,
                        static_cast<double>(most_ps) * kMsPerPs));
    return absl::OkStatus();
  }

  void NoteUnreachable() {
    for (size_t n = 0; n < result_.nodes.size(); ++n) {
      if (result_.nodes[n].stated.method() != kUnreachable) continue;
      Note(absl::StrCat("node ", inputs_.nodes[n].node_id,
                        ": no chain of collectives ties its clock to the reference from both "
                        "sides; it is left as it is"));
    }
  }

  // States what the collectives say about every node.
  void StateAll(const ClockAlignment& alignment) {
    for (uint32_t n = 0; n < result_.nodes.size(); ++n) State(alignment.nodes[n], n);
    if (alignment.is_estimated) {
      Note(
          "uncertainties are 90 % ranges, by how the ends of collectives scatter; what "
          "happens-before alone proves is certified_uncertainty_ns (--end_agreement=false)");
    }
    NotePriors();
  }

  void State(const NodeOffset& offset, uint32_t n) {
    if (!offset.reachable) return;
    CombinedNode& node = result_.nodes[n].stated;
    node.set_offset_at_ns(run_clock_.ToUnixNs(offset.offset_at_ps));
    node.set_offset_ns(FloorToNs(offset.offset_ps));
    // The uncertainty is that of the offset as it is stated, rounded down.
    const int64_t rounded_ps = offset.offset_ps - node.offset_ns() * kPsPerNs;
    node.set_uncertainty_ns(CeilToNs(offset.uncertainty_ps + rounded_ps));
    node.set_uncertainty_max_ns(CeilToNs(offset.uncertainty_max_ps + rounded_ps));
    node.set_certified_uncertainty_ns(CeilToNs(offset.certified_uncertainty_ps + rounded_ps));
    node.clear_drift_ppm();
    if (offset.drift_ppm.has_value()) node.set_drift_ppm(*offset.drift_ppm);
    if (offset.drift_uncertainty_ppm.has_value()) {
      node.set_drift_uncertainty_ppm(*offset.drift_uncertainty_ppm);
    }
  }

  absl::Status UseMeasured(const OffsetSamples& measured_samples) {
    RETURN_IF_ERROR(CheckReference(measured_samples));
    const OffsetSamples samples =
        options_.hold_last_offset
            ? measured_samples.WithLastHeld(NodeIds(), options_.slope, options_.max_drift_ppm)
            : measured_samples;
    if (options_.hold_last_offset && samples.SamplesOf(inputs_.reference_node).empty()) {
      Note(
          "--missing_windows=hold has no effect: without rows of the reference node rounds are not "
          "known");
    }
    NoteHeld(measured_samples, samples);
    RETURN_IF_ERROR(MapByMeasured(samples));
    const auto estimate_ps = [this](uint32_t n, int64_t time_ps) {
      return MeasuredOffsetPs(n, time_ps);
    };
    const HappensBefore measured = CheckHappensBefore(host_table_, estimate_ps);
    const auto negated_ps = [&](uint32_t n, int64_t time_ps) { return -estimate_ps(n, time_ps); };
    if (!measured.violations.empty() &&
        CheckHappensBefore(host_table_, negated_ps).violations.empty()) {
      return InvalidArgument("the ", AlignmentMethodName(result_.method),
                             " have the wrong sign: they leave ", measured.violations.size(),
                             " of ", measured.checked,
                             " collectives in violation of happens-before, their negatives none. "
                             "offset_ns is node clock - reference clock (positive: the node is "
                             "ahead); negate them, or give --method=collectives");
    }
    for (uint32_t n = 0; n < result_.nodes.size(); ++n) {
      StateMeasured(measured_samples, samples, n);
    }
    const absl::StatusOr<ClockAlignment> near =
        AlignNearEstimate(host_table_, BoundsOptions(), estimate_ps);
    if (!near.ok()) {
      if (absl::IsInvalidArgument(near.status())) return near.status();
      Note(absl::StrCat("the measured offsets are used as they are: ", near.status().message()));
      return absl::OkStatus();
    }
    if (measured.violations.empty()) {
      StateAround(samples, *near);
      return absl::OkStatus();
    }
    if (run_.runs.method != RunMethod::kRunId) {
      Note(absl::StrCat("the measured offsets leave ", measured.violations.size(), " of ",
                        measured.checked,
                        " collectives in violation of happens-before, but are used as they are: "
                        "executions are matched by ",
                        RunMethodName(run_.runs.method), ", which may be wrong"));
      return absl::OkStatus();
    }
    return MoveMeasured(*near, measured);
  }

  // Says where the last offset of a node holds.
  void NoteHeld(const OffsetSamples& measured, const OffsetSamples& samples) {
    for (const int64_t node : NodeIds()) {
      const size_t rounds = samples.SamplesOf(node).size() - measured.SamplesOf(node).size();
      if (rounds == 0) continue;
      Note(absl::StrCat("node ", node, " has no offset in ", rounds, " of ",
                        measured.SamplesOf(inputs_.reference_node).size(),
                        " rounds: its last one before holds there"));
    }
  }

  // Refuses offsets that are relative to some other clock: they would move all nodes but the
  // reference.
  absl::Status CheckReference(const OffsetSamples& samples) const {
    for (const OffsetSample& sample : samples.SamplesOf(inputs_.reference_node)) {
      if (sample.offset_ps == 0) continue;
      return InvalidArgument("node ", inputs_.reference_node,
                             " is the reference, but its measured offset is ",
                             sample.offset_ps / kPsPerNs,
                             " ns, not 0; give the node that the offsets are relative to as "
                             "--reference_node, or subtract its offsets from all");
    }
    return absl::OkStatus();
  }

  absl::Status MapByMeasured(const OffsetSamples& samples) {
    std::vector<int64_t> missing;
    for (uint32_t n = 0; n < result_.nodes.size(); ++n) {
      const UnalignedNode& node = inputs_.nodes[n];
      AlignedNode& aligned = result_.nodes[n];
      aligned.stated.set_method(std::string(AlignmentMethodName(result_.method)));
      if (n == reference_) continue;
      if (samples.SamplesOf(node.node_id).empty() && result_.method == AlignmentMethod::kProbes) {
        missing.push_back(node.node_id);
        aligned.stated.set_method(kUnreachable);
        continue;
      }
      ASSIGN_OR_RETURN(aligned.clock.host_to_reference,
                       samples.OffsetMap(node.node_id, run_clock_, options_.slope));
    }
    if (!missing.empty()) {
      Note(absl::StrCat("no probe reaches node(s) ", absl::StrJoin(missing, ", "),
                        ": their clocks are as they are, or as collectives ask for"));
    }
    return absl::OkStatus();
  }

  // Returns node clock - reference clock by the measurements; 0 for nodes without any.
  int64_t MeasuredOffsetPs(uint32_t n, int64_t time_ps) const {
    const std::optional<ClockMap>& map = result_.nodes[n].clock.host_to_reference;
    return map.has_value() ? time_ps - map->Forward(time_ps) : 0;
  }

  std::vector<int64_t> NodeIds() const {
    std::vector<int64_t> ids;
    for (const auto& node : inputs_.nodes) ids.push_back(node.node_id);
    return ids;
  }

  // States what the measurements alone say of a node: the sample in the middle. Those that hold tell
  // nothing but how much may be unknown.
  void StateMeasured(const OffsetSamples& measured, const OffsetSamples& held, uint32_t n) {
    CombinedNode& node = result_.nodes[n].stated;
    const std::vector<OffsetSample>& own = measured.SamplesOf(inputs_.nodes[n].node_id);
    if (own.empty()) return;
    const OffsetSample& middle = own[own.size() / 2];
    node.set_offset_at_ns(middle.midpoint_ref_ns);
    node.set_offset_ns(FloorToNs(middle.offset_ps));
    const std::optional<double> drift_ppm = MeasuredDriftPpm(own);
    if (drift_ppm.has_value()) node.set_drift_ppm(*drift_ppm);
    int64_t largest_ns = 0;
    for (const OffsetSample& sample : held.SamplesOf(inputs_.nodes[n].node_id)) {
      if (!sample.uncertainty_ns.has_value()) return;
      largest_ns = std::max(largest_ns, static_cast<int64_t>(std::ceil(*sample.uncertainty_ns)));
    }
    node.set_uncertainty_ns(static_cast<int64_t>(std::ceil(*middle.uncertainty_ns)));
    node.set_uncertainty_max_ns(largest_ns);
  }

  // Returns the drift from the first sample to the last; of a single sample, what was measured with
  // it. A 0 there is how solvers say that they do not know.
  static std::optional<double> MeasuredDriftPpm(const std::vector<OffsetSample>& samples) {
    const OffsetSample& first = samples.front();
    const OffsetSample& last = samples.back();
    const int64_t elapsed_ns = last.midpoint_ref_ns - first.midpoint_ref_ns;
    if (elapsed_ns > 0) {
      return static_cast<double>(last.offset_ps - first.offset_ps) / kPsPerNs /
             static_cast<double>(elapsed_ns) * 1e6;
    }
    return first.drift_ppm.value_or(0) == 0 ? std::nullopt : first.drift_ppm;
  }

  // States the nodes' clocks when the measurements hold: the collectives say how far they can be
  // off.
  void StateAround(const OffsetSamples& samples, const ClockAlignment& near) {
    for (uint32_t n = 0; n < result_.nodes.size(); ++n) {
      const NodeOffset& offset = near.nodes[n];
      CombinedNode& node = result_.nodes[n].stated;
      if (!offset.reachable || node.method() == kUnreachable) continue;
      const CombinedNode measured = node;
      State(offset, n);
      const std::vector<OffsetSample>& own = samples.SamplesOf(inputs_.nodes[n].node_id);
      // Beyond the measurements their uncertainty says nothing.
      const bool is_covered = !own.empty() && own.front().midpoint_ref_ns <= node.offset_at_ns() &&
                              node.offset_at_ns() <= own.back().midpoint_ref_ns;
      const int64_t node_time_ps = offset.offset_at_ps + offset.offset_ps;
      const int64_t used_ps = MeasuredOffsetPs(n, node_time_ps);
      node.set_offset_ns(FloorToNs(used_ps));
      const int64_t moved_ns = CeilToNs(std::abs(used_ps - offset.offset_ps)) + 1;
      node.set_uncertainty_ns(node.uncertainty_ns() + moved_ns);
      node.set_uncertainty_max_ns(node.uncertainty_max_ns() + moved_ns);
      node.set_certified_uncertainty_ns(node.uncertainty_ns());
      if (measured.has_uncertainty_ns() && is_covered) {
        // That of an offset that holds depends on when.
        const int64_t measured_ns =
            options_.hold_last_offset ? measured.uncertainty_max_ns() : measured.uncertainty_ns();
        node.set_uncertainty_ns(std::min(node.uncertainty_ns(), measured_ns));
      }
      if (measured.has_drift_ppm()) {
        node.set_drift_ppm(measured.drift_ppm());
        node.clear_drift_uncertainty_ppm();
      }
    }
  }

  // For measurements that leave violations: puts the nearest clocks that leave none in their place,
  // which go on as measured, shifted, before and after the collectives.
  absl::Status MoveMeasured(const ClockAlignment& near, const HappensBefore& measured) {
    int64_t farthest_ps = 0;
    std::vector<std::optional<ClockMap>> maps(result_.nodes.size());
    for (uint32_t n = 0; n < result_.nodes.size(); ++n) {
      const NodeOffset& offset = near.nodes[n];
      if (n == reference_ || !offset.reachable || offset.knots.empty()) continue;
      for (const OffsetKnot& knot : offset.knots) {
        farthest_ps =
            std::max(farthest_ps, std::abs(knot.offset_ps - MeasuredOffsetPs(n, knot.time_ps)));
      }
      ASSIGN_OR_RETURN(maps[n], MapThrough(WithEndsAsMeasured(n, offset.knots),
                                           /*rate=*/std::nullopt));
    }
    for (uint32_t n = 0; n < result_.nodes.size(); ++n) {
      if (maps[n].has_value()) result_.nodes[n].clock.host_to_reference = std::move(maps[n]);
      if (near.nodes[n].reachable) {
        CombinedNode& stated = result_.nodes[n].stated;
        if (stated.method() == kUnreachable) stated.set_method("collectives");
        State(near.nodes[n], n);
      }
    }
    NoteUnreachable();
    Note(absl::StrFormat(
        "the measured offsets left %d of %d collectives in violation of happens-before; clocks "
        "were "
        "moved by up to %.3f us to the nearest that leave none",
        measured.violations.size(), measured.checked, static_cast<double>(farthest_ps) * 1e-6));
    return absl::OkStatus();
  }

  // Returns the knots and, before the first and after the last, those of the measurements, moved as
  // the nearest knot is.
  std::vector<OffsetKnot> WithEndsAsMeasured(uint32_t n,
                                             const std::vector<OffsetKnot>& knots) const {
    std::vector<OffsetKnot> all = knots;
    const std::optional<ClockMap>& map = result_.nodes[n].clock.host_to_reference;
    if (!map.has_value()) return all;
    const OffsetKnot first = knots.front(), last = knots.back();
    const int64_t first_move_ps = first.offset_ps - MeasuredOffsetPs(n, first.time_ps);
    const int64_t last_move_ps = last.offset_ps - MeasuredOffsetPs(n, last.time_ps);
    for (size_t k = 0; k < map->num_knots(); ++k) {
      const int64_t time_ps = map->knot(k).from_ps;
      const int64_t offset_ps = time_ps - map->knot(k).to_ps;
      if (time_ps < first.time_ps) all.push_back({time_ps, offset_ps + first_move_ps});
      if (time_ps > last.time_ps) all.push_back({time_ps, offset_ps + last_move_ps});
    }
    std::sort(all.begin(), all.end(),
              [](const OffsetKnot& a, const OffsetKnot& b) { return a.time_ps < b.time_ps; });
    return all;
  }

  // The common clock is the reference node's tracer clock, where that is not its host's.
  void SetTarget() {
    const std::optional<ClockMap>& map = result_.nodes[reference_].clock.tracer_to_host;
    if (!map.has_value()) return;
    for (AlignedNode& node : result_.nodes) node.clock.reference_to_target = map->Inverted();
  }

  const AlignmentInputs& inputs_;
  const CollectiveRun& run_;
  const AlignmentOptions& options_;
  // What all times in here count from: the earliest start of a session.
  const RunClock run_clock_;
  // Position of the reference among the nodes.
  uint32_t reference_ = 0;
  // The node whose host's clock a node has, where what is left is its devices'.
  std::map<uint32_t, uint32_t> host_of_;
  // When each node's session began, in ps from the run base.
  std::vector<int64_t> starts_ps_;
  // The collectives, each on its own node's host clock.
  CollectiveTable host_table_;
  RunAlignment result_;
};

}  // namespace

absl::string_view AlignmentMethodName(AlignmentMethod method) {
  return kMethodNames[static_cast<size_t>(method)];
}

absl::StatusOr<AlignmentMethod> ParseAlignmentMethod(absl::string_view name) {
  const auto found = std::find(std::begin(kMethodNames), std::end(kMethodNames), name);
  if (found != std::end(kMethodNames)) {
    return static_cast<AlignmentMethod>(found - std::begin(kMethodNames));
  }
  return InvalidArgument("--method=", name, " is none of ", absl::StrJoin(kMethodNames, ", "));
}

absl::StatusOr<RunAlignment> AlignRun(const AlignmentInputs& inputs, const CollectiveRun& run,
                                      const AlignmentOptions& options) {
  if (inputs.nodes.empty() || inputs.nodes.size() != run.profiles.size()) {
    return InvalidArgument("there are no profiles to align");
  }
  return RunAligner(inputs, run, options).Run();
}

}  // namespace meridian
