#include "workload_model/calls/rank_patterns.h"

#include <cmath>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "workload_model/calls/call_operation.h"
#include "workload_model/measurements/rank_classes.h"
#include "workload_model/models/rank_mesh.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr absl::string_view kSquareRoot = "sqrt n";
constexpr int64_t kMaxXorBits = 40;
// Rules of messages are looked for among so many calls of a callsite, and the first of them.
constexpr size_t kMaxCalls = 200000;

// Returns the rows that two expressions mean; nullopt when so many ranks are no such rows.
std::optional<RankRow> RowOf(absl::string_view stride, absl::string_view length, int64_t ranks) {
  const RankRow row = {RanksOf(stride, ranks).value_or(0), RanksOf(length, ranks).value_or(0)};
  return row.Tiles(ranks) ? std::optional<RankRow>(row) : std::nullopt;
}

// One message of a callsite: who sent, to whom, and where in the run.
struct SentMessage {
  const RunMeasurements* run = nullptr;
  size_t position = 0;
  int64_t ranks = 0;
  std::optional<int64_t> target;
};

int64_t Modulo(int64_t number, int64_t length) { return (number % length + length) % length; }

std::optional<int64_t> Transposed(int64_t rank, int64_t ranks) {
  const std::optional<int64_t> root = SquareRoot(ranks);
  if (!root.has_value()) return std::nullopt;
  return rank % *root * *root + rank / *root;
}

int64_t StepOf(const PeerRule& rule, int64_t visits) {
  return rule.step() + rule.by_visit() * visits;
}

Peer AtStep(const PeerRule& rule, int64_t rank, int64_t ranks, int64_t step) {
  if (rule.kind() == "transpose") {
    const std::optional<int64_t> peer = Transposed(rank, ranks);
    return {peer.has_value(), peer};
  }
  if (rule.kind() == "xor") {
    if (step < 0 || step > kMaxXorBits) return {};
    const int64_t peer = rank ^ (int64_t{1} << step);
    return peer < ranks ? Peer{true, peer} : Peer{true, std::nullopt};
  }
  if (rule.kind() != "shift") return {};
  const std::optional<RankRow> row = RowOf(rule.stride(), rule.length(), ranks);
  if (!row.has_value()) return {};
  const int64_t place = row->Position(rank) + step;
  if (!rule.wraps() && (place < 0 || place >= row->length)) return {true, std::nullopt};
  return {true, row->First(rank) + Modulo(place, row->length) * row->stride};
}

// Rules that messages may follow, but for their steps: to the transposed rank; along all ranks, rows
// and columns of a square, and rows of a constant number; to rank xor a power of two; to one rank.
std::vector<PeerRule> RulesWithoutSteps() {
  std::vector<PeerRule> rules;
  const auto add = [&](const char* kind, const std::string& stride = "",
                       const std::string& length = "", bool wraps = false) {
    PeerRule& rule = rules.emplace_back();
    rule.set_kind(kind);
    rule.set_stride(stride);
    rule.set_length(length);
    rule.set_wraps(wraps);
  };
  const auto add_rows = [&](const std::string& stride, const std::string& length) {
    for (const bool wraps : {true, false}) add("shift", stride, length, wraps);
  };
  add("transpose");
  add_rows("1", "n");
  add_rows("1", "sqrt n");
  add_rows("sqrt n", "sqrt n");
  for (const char* number : {"2", "4", "8", "16", "32"}) {
    add_rows("1", number);
    add_rows(number, absl::StrCat("n/", number));
  }
  add("xor");
  add("rank");
  return rules;
}

class PeerFinder {
 public:
  PeerFinder(absl::Span<const RunMeasurements* const> runs, int64_t callsite)
      : runs_(runs), callsite_(callsite) {
    for (const RunMeasurements* run : runs) {
      for (size_t i = 0; i < run->calls.size() && messages_.size() < kMaxCalls; ++i) {
        const TracedCall& call = run->calls[i];
        if (call.destination != callsite || !call.sends_message) continue;
        messages_.push_back({run, i, std::llround(run->cell.Ranks()), call.peer});
      }
    }
    // What a row of the most ranks tells is the least ambiguous.
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (!messages_[i].target.has_value()) continue;
      if (!clearest_.has_value() || messages_[i].ranks > messages_[*clearest_].ranks) clearest_ = i;
    }
  }

  bool has_messages() const { return !messages_.empty(); }

  std::optional<PeerRule> Find() const {
    if (!clearest_.has_value()) return std::nullopt;
    const std::vector<PeerRule> rules = RulesWithoutSteps();
    // Constant steps before those that change.
    for (const PeerRule& rule : rules) {
      if (const auto found = WithSteps(rule, 0, {}); found.has_value()) return found;
    }
    std::set<int64_t> callsites = {0};
    for (const TracedCall& call : runs_[0]->calls) callsites.insert(call.destination);
    callsites.erase(callsite_);
    for (int64_t since : callsites) {
      const std::vector<int64_t> visits = VisitsOfMessages(since);
      for (const PeerRule& rule : rules) {
        if (rule.kind() == "transpose" || rule.kind() == "rank") continue;
        if (const auto found = WithSteps(rule, since, visits); found.has_value()) return found;
      }
    }
    return std::nullopt;
  }

 private:
  // Returns the steps by which a rule may lead to the target of the clearest message, the likelier
  // first.
  std::vector<int64_t> StepsOf(const PeerRule& rule) const {
    const SentMessage& message = messages_[*clearest_];
    const int64_t rank = message.run->rank, target = *message.target;
    if (rule.kind() == "transpose") return {0};
    if (rule.kind() == "rank") return {target};
    if (rule.kind() == "xor") {
      const int64_t bits = rank ^ target;
      if (bits == 0 || (bits & (bits - 1)) != 0) return {};
      return {static_cast<int64_t>(std::llround(std::log2(static_cast<double>(bits))))};
    }
    const std::optional<RankRow> row = RowOf(rule.stride(), rule.length(), message.ranks);
    if (!row.has_value() || row->First(rank) != row->First(target)) return {};
    const int64_t step = row->Position(target) - row->Position(rank);
    if (!rule.wraps()) return {step};
    // One back, or as many forward; the shorter way first.
    const int64_t around = step > 0 ? step - row->length : step + row->length;
    if (std::abs(around) < std::abs(step)) return {around, step};
    return {step, around};
  }

  // Returns the rule with steps that explain all messages: constant ones, or by visit where `visits`
  // are given, the number of its visit for each message.
  std::optional<PeerRule> WithSteps(PeerRule rule, int64_t since,
                                    const std::vector<int64_t>& visits) const {
    rule.set_since(since);
    for (int64_t step : StepsOf(rule)) {
      const auto by_visits = visits.empty() ? std::vector<int64_t>{0} : std::vector<int64_t>{1, -1};
      for (int64_t by_visit : by_visits) {
        rule.set_by_visit(by_visit);
        rule.set_step(step - by_visit * (visits.empty() ? 0 : visits[*clearest_]));
        if (Explains(rule, visits)) return rule;
      }
    }
    return std::nullopt;
  }

  bool Explains(const PeerRule& rule, const std::vector<int64_t>& visits) const {
    for (size_t i = 0; i < messages_.size(); ++i) {
      const Peer peer = TargetOf(rule, messages_[i].run->rank, messages_[i].ranks,
                                 visits.empty() ? 0 : visits[i]);
      if (!peer.is_known || peer.rank != messages_[i].target) return false;
    }
    return true;
  }

  std::vector<int64_t> VisitsOfMessages(int64_t since) const {
    std::map<const RunMeasurements*, std::vector<int64_t>> by_run;
    std::vector<int64_t> visits;
    for (const SentMessage& message : messages_) {
      std::vector<int64_t>& of_run = by_run[message.run];
      if (of_run.empty()) {
        std::vector<int64_t> callsites;
        for (const TracedCall& call : message.run->calls) callsites.push_back(call.destination);
        of_run = VisitsSince(callsites, callsite_, since);
      }
      visits.push_back(of_run[message.position]);
    }
    return visits;
  }

  const absl::Span<const RunMeasurements* const> runs_;
  const int64_t callsite_;
  std::vector<SentMessage> messages_;
  // The message that tells steps; nullopt where all go to nobody.
  std::optional<size_t> clearest_;
};

void LearnGroup(absl::Span<const RunMeasurements* const> runs, CallsiteModel* callsite) {
  std::set<std::pair<int64_t, int64_t>> strides, lengths;
  for (const RunMeasurements* run : runs) {
    const int64_t ranks = std::llround(run->cell.Ranks());
    for (const TracedCall& call : run->calls) {
      if (call.destination != callsite->callsite() || call.members.empty()) continue;
      const std::optional<RankRow> row = RowOfMembers(call.members, ranks);
      const bool is_member = absl::c_count(call.members, run->rank) > 0;
      if (!row.has_value() || !is_member) {
        callsite->set_unexplained(
            absl::StrCat("the group of rank ", run->rank, " of ", ranks, " is no row of a mesh"));
        return;
      }
      // A rank alone has no stride.
      if (row->length > 1) strides.insert({ranks, row->stride});
      lengths.insert({ranks, row->length});
    }
  }
  if (lengths.empty()) return;
  const std::optional<std::string> stride =
      strides.empty() ? std::optional<std::string>("1") : FindRanksExpression(strides);
  const std::optional<std::string> length = FindRanksExpression(lengths);
  if (!stride.has_value() || !length.has_value()) {
    callsite->set_unexplained("its groups do not grow with the ranks by any rule that is known");
    return;
  }
  callsite->set_stride(*stride);
  callsite->set_length(*length);
}

}  // namespace

std::optional<int64_t> RanksOf(absl::string_view expression, int64_t ranks) {
  int64_t number = 0;
  if (expression == "n") return ranks;
  if (expression == kSquareRoot) return SquareRoot(ranks);
  const bool is_share = absl::ConsumePrefix(&expression, "n/");
  if (!absl::SimpleAtoi(expression, &number) || number < 1) return std::nullopt;
  if (!is_share) return number;
  if (ranks % number != 0) return std::nullopt;
  return ranks / number;
}

std::optional<std::string> FindRanksExpression(const std::set<std::pair<int64_t, int64_t>>& pairs) {
  const auto [ranks, value] = *pairs.begin();
  std::vector<std::string> expressions = {"n", std::string(kSquareRoot), absl::StrCat(value)};
  // The number 1 is the number 1.
  if (value == 1) std::swap(expressions[0], expressions[2]);
  if (value > 0 && ranks % value == 0) expressions.push_back(absl::StrCat("n/", ranks / value));
  for (const std::string& expression : expressions) {
    const bool says_all = absl::c_all_of(
        pairs, [&](const auto& pair) { return RanksOf(expression, pair.first) == pair.second; });
    if (says_all) return expression;
  }
  return std::nullopt;
}

std::vector<CallsiteModel> LearnCallsites(absl::Span<const RunMeasurements* const> runs,
                                          bool all_traced) {
  std::map<int64_t, CallsiteModel> callsites;
  for (const RunMeasurements* run : runs) {
    for (const TracedCall& call : run->calls) {
      CallsiteModel& callsite = callsites[call.destination];
      callsite.set_callsite(call.destination);
      if (callsite.operation().empty()) callsite.set_operation(call.operation);
      if (callsite.operation() == call.operation) continue;
      callsite.set_unexplained(absl::StrCat("it is ", callsite.operation(), " in one run and ",
                                            call.operation, " in another"));
    }
  }
  std::set<int64_t> numbers;
  for (const RunMeasurements* run : runs) numbers.insert(std::llround(run->cell.Ranks()));
  std::vector<CallsiteModel> result;
  for (auto& [id, callsite] : callsites) {
    if (numbers.size() == 1) callsite.set_measured_ranks(*numbers.begin());
    const CallOperation::Kind kind = OperationOf(callsite.operation()).kind;
    LearnGroup(runs, &callsite);
    const PeerFinder finder(runs, id);
    if (kind == CallOperation::Kind::kUnknown) {
      callsite.set_unexplained("what it does is not known here");
    } else if (kind == CallOperation::Kind::kCollective && callsite.length().empty() &&
               callsite.unexplained().empty()) {
      callsite.set_unexplained("the trace does not say which ranks take part");
    } else if (finder.has_messages() && !all_traced) {
      callsite.set_unexplained("its messages go from rank to rank, and not all ranks were traced");
    } else if (finder.has_messages()) {
      const std::optional<PeerRule> rule = finder.Find();
      if (rule.has_value()) {
        *callsite.mutable_peer() = *rule;
      } else {
        callsite.set_unexplained("no rule tells which rank its messages go to");
      }
    }
    result.push_back(std::move(callsite));
  }
  return result;
}

absl::StatusOr<std::vector<int64_t>> GroupOf(const CallsiteModel& callsite, int64_t rank,
                                             int64_t ranks) {
  const std::optional<RankRow> row = RowOf(callsite.stride(), callsite.length(), ranks);
  if (row.has_value()) return row->Members(rank);
  return FailedPrecondition("callsite ", callsite.callsite(), " communicates in groups of ",
                            callsite.length(), " ranks, every ", callsite.stride(),
                            ": there are none of ", ranks, " ranks (n)");
}

Peer TargetOf(const PeerRule& rule, int64_t rank, int64_t ranks, int64_t visits) {
  if (rule.kind() == "rank") {
    const bool is_rank = rule.step() >= 0 && rule.step() < ranks;
    return {is_rank, is_rank ? std::optional<int64_t>(rule.step()) : std::nullopt};
  }
  return AtStep(rule, rank, ranks, StepOf(rule, visits));
}

Peer SourceOf(const PeerRule& rule, int64_t rank, int64_t ranks, int64_t visits) {
  // All send to one: it has no single source.
  if (rule.kind() == "rank") return {};
  const int64_t step = StepOf(rule, visits);
  return AtStep(rule, rank, ranks, rule.kind() == "shift" ? -step : step);
}

absl::Status CheckPeers(const CallsiteModel& callsite, int64_t rank, int64_t ranks, int64_t visits,
                        bool receives) {
  if (TargetOf(callsite.peer(), rank, ranks, visits).is_known &&
      (!receives || SourceOf(callsite.peer(), rank, ranks, visits).is_known)) {
    return absl::OkStatus();
  }
  return FailedPrecondition("the rule of callsite ", callsite.callsite(),
                            " does not tell whom rank ", rank, " of ", ranks,
                            " exchanges messages with");
}

std::vector<int64_t> VisitsSince(absl::Span<const int64_t> callsites, int64_t callsite,
                                 int64_t since) {
  std::vector<int64_t> visits(callsites.size());
  int64_t number = 0;
  for (size_t i = 0; i < callsites.size(); ++i) {
    if (callsites[i] == since) number = 0;
    if (callsites[i] == callsite) visits[i] = ++number;
  }
  return visits;
}

}  // namespace meridian
