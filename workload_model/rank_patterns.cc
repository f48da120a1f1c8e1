#include "workload_model/rank_patterns.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "workload_model/call_operation.h"
#include "workload_model/rank_classes.h"

namespace meridian {
namespace {

constexpr absl::string_view kSquareRoot = "sqrt n";
constexpr int64_t kMaxXorBits = 40;
// Rules of messages are looked for among so many calls of a callsite, and the first of them.
constexpr size_t kMaxCalls = 200000;

// A row of the mesh of ranks.
struct Row {
  int64_t stride = 1;
  int64_t length = 1;

  int64_t Position(int64_t rank) const { return rank / stride % length; }
  int64_t Base(int64_t rank) const { return rank - Position(rank) * stride; }
};

// Rows must tile the ranks.
std::optional<Row> RowOf(absl::string_view stride, absl::string_view length, int64_t ranks) {
  const std::optional<int64_t> s = RanksOf(stride, ranks), l = RanksOf(length, ranks);
  if (!s.has_value() || !l.has_value() || *s > ranks || *l > ranks || ranks % (*s * *l) != 0) {
    return std::nullopt;
  }
  return Row{*s, *l};
}

// Returns the row that these members are; nullopt when they are none, or the rank is not at its place
// in it.
std::optional<Row> RowOfMembers(std::vector<int64_t> members, int64_t rank, int64_t ranks) {
  std::sort(members.begin(), members.end());
  Row row;
  row.length = static_cast<int64_t>(members.size());
  if (members.size() > 1) row.stride = members[1] - members[0];
  if (members.back() >= ranks) return std::nullopt;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] != members[0] + static_cast<int64_t>(i) * row.stride) return std::nullopt;
  }
  const bool tiles = row.stride > 0 && ranks % (row.stride * row.length) == 0;
  if (!tiles || row.Base(rank) != members[0]) return std::nullopt;
  return row;
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
  const std::optional<Row> row = RowOf(rule.stride(), rule.length(), ranks);
  if (!row.has_value()) return {};
  const int64_t place = row->Position(rank) + step;
  if (!rule.wraps() && (place < 0 || place >= row->length)) return {true, std::nullopt};
  return {true, row->Base(rank) + Modulo(place, row->length) * row->stride};
}

bool Explains(const PeerRule& rule, const std::vector<SentMessage>& messages,
              const std::vector<int64_t>& visits) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const Peer peer =
        TargetOf(rule, messages[i].run->rank, messages[i].ranks, visits.empty() ? 0 : visits[i]);
    if (!peer.is_known || peer.rank != messages[i].target) return false;
  }
  return true;
}

// Looks for a rule of one callsite's messages.
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
  }

  bool has_messages() const { return !messages_.empty(); }

  std::optional<PeerRule> Find() const {
    PeerRule transpose;
    transpose.set_kind("transpose");
    std::vector<PeerRule> rules = {transpose};
    for (const auto& [stride, length] : Rows()) {
      PeerRule rule;
      rule.set_kind("shift");
      rule.set_stride(stride);
      rule.set_length(length);
      rule.set_wraps(true);
      rules.push_back(rule);
      rule.set_wraps(false);
      rules.push_back(rule);
    }
    PeerRule exchange;
    exchange.set_kind("xor");
    rules.push_back(exchange);
    PeerRule root;
    root.set_kind("rank");
    rules.push_back(root);
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
  // All ranks, rows and columns of a square, and rows of a constant number.
  static std::vector<std::pair<std::string, std::string>> Rows() {
    std::vector<std::pair<std::string, std::string>> rows = {
        {"1", "n"}, {"1", "sqrt n"}, {"sqrt n", "sqrt n"}};
    for (const char* number : {"2", "4", "8", "16", "32"}) {
      rows.push_back({"1", number});
      rows.push_back({number, absl::StrCat("n/", number)});
    }
    return rows;
  }

  // Tries the steps that a message far from the ends tells, constant or by visit.
  std::optional<PeerRule> WithSteps(PeerRule rule, int64_t since,
                                    const std::vector<int64_t>& visits) const {
    rule.set_since(since);
    const auto told = std::find_if(messages_.begin(), messages_.end(),
                                   [](const SentMessage& m) { return m.target.has_value(); });
    if (told == messages_.end()) return std::nullopt;
    if (rule.kind() == "transpose") {
      return Explains(rule, messages_, {}) ? std::optional<PeerRule>(rule) : std::nullopt;
    }
    // What a row of the most ranks tells is the least ambiguous.
    const SentMessage* clearest = nullptr;
    size_t at = 0;
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (!messages_[i].target.has_value()) continue;
      if (clearest == nullptr || messages_[i].ranks > clearest->ranks) {
        clearest = &messages_[i];
        at = i;
      }
    }
    const int64_t rank = clearest->run->rank, target = *clearest->target;
    std::vector<int64_t> steps;
    if (rule.kind() == "rank") {
      steps = {target};
    } else if (rule.kind() == "xor") {
      const int64_t bits = rank ^ target;
      if (bits == 0 || (bits & (bits - 1)) != 0) return std::nullopt;
      steps = {static_cast<int64_t>(std::llround(std::log2(static_cast<double>(bits))))};
    } else {
      const std::optional<Row> row = RowOf(rule.stride(), rule.length(), clearest->ranks);
      if (!row.has_value() || row->Base(rank) != row->Base(target)) return std::nullopt;
      const int64_t step = row->Position(target) - row->Position(rank);
      steps = {step};
      // One back, or as many forward; the shorter way first.
      if (rule.wraps()) {
        steps.push_back(step > 0 ? step - row->length : step + row->length);
        if (std::abs(steps[1]) < std::abs(steps[0])) std::swap(steps[0], steps[1]);
      }
    }
    for (int64_t step : steps) {
      if (visits.empty()) {
        rule.set_step(step);
        if (Explains(rule, messages_, {})) return rule;
        continue;
      }
      for (int64_t by_visit : {1, -1}) {
        rule.set_by_visit(by_visit);
        rule.set_step(step - by_visit * visits[at]);
        if (Explains(rule, messages_, visits)) return rule;
      }
    }
    return std::nullopt;
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
};

// Fills in the group of a collective's callsite.
void LearnGroup(absl::Span<const RunMeasurements* const> runs, CallsiteModel* callsite) {
  std::set<std::pair<int64_t, int64_t>> strides, lengths;
  for (const RunMeasurements* run : runs) {
    const int64_t ranks = std::llround(run->cell.Ranks());
    for (const TracedCall& call : run->calls) {
      if (call.destination != callsite->callsite() || call.members.empty()) continue;
      const std::optional<Row> row = RowOfMembers(call.members, run->rank, ranks);
      if (!row.has_value()) {
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
  const std::vector<std::pair<int64_t, int64_t>> of_stride(strides.begin(), strides.end());
  const std::vector<std::pair<int64_t, int64_t>> of_length(lengths.begin(), lengths.end());
  const std::optional<std::string> stride =
      of_stride.empty() ? std::optional<std::string>("1") : FindRanksExpression(of_stride);
  const std::optional<std::string> length = FindRanksExpression(of_length);
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

std::optional<std::string> FindRanksExpression(
    absl::Span<const std::pair<int64_t, int64_t>> pairs) {
  const auto [ranks, value] = pairs[0];
  std::vector<std::string> expressions = {"n", std::string(kSquareRoot), absl::StrCat(value)};
  // The number 1 is the number 1.
  if (value == 1) std::swap(expressions[0], expressions[2]);
  if (value > 0 && ranks % value == 0) expressions.push_back(absl::StrCat("n/", ranks / value));
  for (const std::string& expression : expressions) {
    const bool says_all = std::all_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
      return RanksOf(expression, pair.first) == pair.second;
    });
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

std::optional<std::vector<int64_t>> GroupOf(const CallsiteModel& callsite, int64_t rank,
                                            int64_t ranks) {
  const std::optional<Row> row = RowOf(callsite.stride(), callsite.length(), ranks);
  if (!row.has_value()) return std::nullopt;
  std::vector<int64_t> members;
  for (int64_t i = 0; i < row->length; ++i) {
    members.push_back(row->Base(rank) + i * row->stride);
  }
  return members;
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
