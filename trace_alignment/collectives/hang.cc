#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "trace_alignment/collectives/validation.h"
#include "trace_alignment/collectives/validation_report.pb.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

// Returns what must be equal on all ranks: "all_reduce of 4KiB Float". They may give each other
// different amounts, and of some kinds only the root has all.
std::string CallText(const FlightEntry& call) {
  const std::string name = call.peer.has_value() ? "message" : call.name;
  const bool may_differ = absl::StrContains(name, "to_all") || absl::EndsWith(name, "_v") ||
                          name == "gather" || name == "scatter";
  const int64_t in_bytes = call.in_bytes.value_or(0), out_bytes = call.out_bytes.value_or(0);
  if (may_differ || in_bytes + out_bytes == 0) return name;
  const std::string out = in_bytes == out_bytes ? "" : " to " + FormatByteSize(out_bytes);
  return absl::StrCat(name, " of ", FormatByteSize(in_bytes), out, call.dtype.empty() ? "" : " ",
                      call.dtype);
}

template <typename Ranks>
std::string RanksText(const Ranks& ranks) {
  if (ranks.empty()) return "none";
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      RangesText({ranks.begin(), ranks.end()}));
}

// Adds the rank to those with the same call. Of different calls the first 16 are kept.
template <typename HangCalls>
void AddCall(int64_t rank, const std::string& text, HangCalls* calls) {
  auto same = absl::c_find_if(*calls, [&](const HangCall& call) { return call.call() == text; });
  if (same == calls->end() && calls->size() == 16) return;
  HangCall* call = same == calls->end() ? calls->Add() : &*same;
  call->set_call(text);
  call->add_ranks(rank);
}

// The calls of a group, or of two ranks that send each other messages one way.
struct GroupCalls {
  std::string name;
  std::vector<int64_t> ranks;
  // By number, which of messages is their position, and rank.
  std::map<int64_t, std::map<int64_t, const FlightEntry*>> calls;
  // By rank: the last number that its dump has.
  std::map<int64_t, int64_t> last;
};

class HangFinder {
 public:
  explicit HangFinder(const std::vector<FlightDump>& dumps) {
    for (const FlightDump& dump : dumps) dumps_[dump.rank] = &dump;
    for (const FlightDump& dump : dumps) {
      for (const auto& [key, group] : dump.groups) AddGroup(dump, key, group);
      for (const FlightEntry& entry : dump.entries) AddEntry(dump, entry);
      if (dump.entries.empty()) report_.add_notes(absl::StrCat(dump.path, ": it has no calls"));
      ValidatedTrace* trace = report_.add_traces();
      trace->set_trace(dump.path);
      trace->add_ranks(dump.rank);
      trace->set_collectives(static_cast<int64_t>(dump.entries.size()));
    }
  }

  ValidationReport Find() {
    std::set<int64_t> waiting;
    int64_t last_rank = -1;
    for (const auto& [key, group] : groups_) {
      CheckGroup(group);
      last_rank = std::max(last_rank, *absl::c_max_element(group.ranks));
    }
    // Ranks are numbered from 0, also those whose groups nobody's dump has.
    for (int64_t rank = 0; rank <= last_rank; ++rank) {
      if (dumps_.count(rank) == 0) report_.add_ranks_without_dump(rank);
    }
    for (const auto& [called_ns, hang] : hangs_) {
      waiting.insert(hang.waiting_ranks().begin(), hang.waiting_ranks().end());
    }
    // Who waits elsewhere is kept from coming, so what it waits for comes first; then the order in
    // which they were called.
    const auto is_effect = [&](const HangReport& hang) {
      const auto waits = [&](int64_t rank) { return waiting.count(rank) > 0; };
      return hang.calls_size() == 1 && absl::c_all_of(hang.missing_ranks(), waits);
    };
    absl::c_stable_sort(hangs_, [&](const auto& a, const auto& b) {
      return std::make_pair(is_effect(a.second), a.first) <
             std::make_pair(is_effect(b.second), b.first);
    });
    for (auto& [called_ns, hang] : hangs_) *report_.add_hangs() = std::move(hang);
    report_.set_run_method("collective_seq_id");
    return std::move(report_);
  }

 private:
  void AddGroup(const FlightDump& dump, const std::string& key, const FlightGroup& group) {
    GroupCalls& known = groups_[key];
    bool is_same = known.ranks == group.ranks;
    if (known.ranks.empty()) {
      known.name = group.name;
      known.ranks = group.ranks;
      // Groups may share a name, but then no rank.
      std::set<int64_t>& members = members_[group.name];
      const size_t before = members.size();
      members.insert(group.ranks.begin(), group.ranks.end());
      is_same = members.size() == before + group.ranks.size();
    }
    if (is_same) return;
    report_.add_notes(absl::StrCat(dump.path, ": group ", group.name, " has ",
                                   RanksText(group.ranks), ", in other dumps not the same"));
  }

  void AddEntry(const FlightDump& dump, const FlightEntry& entry) {
    std::string key = entry.group;
    if (entry.peer.has_value()) {
      const auto other = dumps_.find(*entry.peer);
      // Which completed message is which is not known without the first ones.
      if (other == dumps_.end() ||
          ((dump.is_overwritten || other->second->is_overwritten) && entry.is_completed())) {
        report_.set_instances(report_.instances() + 1);
        return;
      }
      const bool sends = entry.name == "send";
      const int64_t source = sends ? dump.rank : *entry.peer;
      const int64_t target = sends ? *entry.peer : dump.rank;
      absl::StrAppend(&key, " ", source, "->", target);
      groups_[key].name = absl::StrCat(dump.groups.at(entry.group).name, ", messages from rank ",
                                       source, " to rank ", target);
      groups_[key].ranks = {source, target};
    }
    GroupCalls& group = groups_[key];
    int64_t& last = group.last.insert({dump.rank, -1}).first->second;
    last = entry.peer.has_value() ? last + 1 : entry.number;
    group.calls[last][dump.rank] = &entry;
  }

  // Reports the first call on which the ranks disagree, and notes one that all wait for.
  void CheckGroup(const GroupCalls& group) {
    const auto in_two = [](const auto& call) { return call.second.size() > 1; };
    report_.set_instances(report_.instances() + static_cast<int64_t>(group.calls.size()));
    report_.set_checked(report_.checked() + absl::c_count_if(group.calls, in_two));
    if (group.calls.empty()) return;
    // To this number all have come that have dumps.
    int64_t reached = std::numeric_limits<int64_t>::max();
    for (int64_t rank : group.ranks) reached = std::min(reached, MayHaveReached(rank, group));
    bool is_noted = false;
    for (const auto& [number, by_rank] : group.calls) {
      HangReport hang = CheckCall(number, by_rank, reached, group);
      if (hang.calls_size() > 1 || !hang.missing_ranks().empty()) {
        AddLastCalls(&hang);
        int64_t called_ns = std::numeric_limits<int64_t>::max();
        for (const auto& [rank, call] : by_rank) called_ns = std::min(called_ns, call->start_ns);
        hangs_.emplace_back(called_ns, std::move(hang));
        return;
      }
      if (hang.waiting_ranks().empty() || std::exchange(is_noted, true)) continue;
      std::set<int64_t> scheduled;
      for (const auto& [rank, call] : by_rank) {
        if (call->state == "scheduled") scheduled.insert(rank);
      }
      const bool is_behind = !scheduled.empty() && scheduled.size() < by_rank.size();
      report_.add_notes(
          absl::StrCat("group ", group.name, ", call ", hang.seq(), ", ", hang.calls(0).call(),
                       ": ", RanksText(hang.waiting_ranks()),
                       " had not completed it; of those with dumps all have come",
                       is_behind ? absl::StrCat(", but the device of ", RanksText(scheduled),
                                                " had not begun it, where others' had")
                                 : ""));
    }
  }

  // Returns the last number that the rank may have called. What a ring buffer no longer has may
  // have been called; it has all messages that are open.
  int64_t MayHaveReached(int64_t rank, const GroupCalls& group) const {
    const auto last = group.last.find(rank);
    if (last != group.last.end()) return last->second;
    const auto dump = dumps_.find(rank);
    const bool is_message = group.calls.begin()->second.begin()->second->peer.has_value();
    const bool may_be_any = dump == dumps_.end() || (dump->second->is_overwritten && !is_message);
    return may_be_any ? std::numeric_limits<int64_t>::max() : -1;
  }

  HangReport CheckCall(int64_t number, const std::map<int64_t, const FlightEntry*>& by_rank,
                       int64_t reached, const GroupCalls& group) const {
    HangReport hang;
    hang.set_group(group.name);
    hang.set_seq(by_rank.begin()->second->number);
    for (const auto& [rank, call] : by_rank) {
      AddCall(rank, CallText(*call), hang.mutable_calls());
      if (!call->is_completed()) hang.add_waiting_ranks(rank);
    }
    const bool is_awaited = !hang.waiting_ranks().empty() && number > reached;
    if (!is_awaited && hang.calls_size() == 1) return hang;
    for (int64_t rank : group.ranks) {
      hang.add_ranks(rank);
      if (is_awaited && MayHaveReached(rank, group) < number) hang.add_missing_ranks(rank);
    }
    return hang;
  }

  // Adds what the ranks of the hang called last, in any group.
  void AddLastCalls(HangReport* hang) const {
    for (int64_t rank : hang->ranks()) {
      const auto dump = dumps_.find(rank);
      if (dump == dumps_.end() || dump->second->entries.empty()) continue;
      const FlightEntry& last = dump->second->entries.back();
      const std::string peer =
          absl::StrCat(last.name == "send" ? " to rank " : " from rank ", last.peer.value_or(0));
      AddCall(rank,
              absl::StrCat(last.number, " ", CallText(last), last.peer ? peer : "", " in group ",
                           dump->second->groups.at(last.group).name, " ", last.state,
                           last.where.empty() ? "" : " at ", last.where),
              hang->mutable_last_calls());
    }
  }

  ValidationReport report_;
  // With when they were first called.
  std::vector<std::pair<int64_t, HangReport>> hangs_;
  std::map<int64_t, const FlightDump*> dumps_;
  std::map<std::string, GroupCalls> groups_;
  // The members of all groups of a name.
  std::map<std::string, std::set<int64_t>> members_;
};

}  // namespace

ValidationReport FindHangs(const std::vector<FlightDump>& dumps) {
  return HangFinder(dumps).Find();
}

std::string FormatHangs(const ValidationReport& report) {
  constexpr int kHangsShown = 3;
  std::string out =
      absl::StrCat(report.hangs_size(), " disagreement(s) in ", WithThousands(report.instances()),
                   " calls of ", report.traces_size(), " rank(s), ",
                   WithThousands(report.checked()), " of which could be compared\n");
  for (int i = 0; i < std::min(kHangsShown, report.hangs_size()); ++i) {
    const HangReport& hang = report.hangs(i);
    std::string verdict = absl::StrCat("group ", hang.group(), ", ", RanksText(hang.ranks()),
                                       ", call ", hang.seq(), ": ");
    for (const HangCall& call : hang.calls()) {
      absl::StrAppend(&verdict, call.call(), " by ", RanksText(call.ranks()), "; ");
    }
    absl::StrAppend(&verdict, "missing: ", RanksText(hang.missing_ranks()),
                    "; waiting: ", RanksText(hang.waiting_ranks()));
    absl::StrAppend(&out, "\n", FirstCharacters(Printable(verdict), 1000), "\nLast calls:\n");
    for (const HangCall& last : hang.last_calls()) {
      absl::StrAppend(&out, "  ", RanksText(last.ranks()), ": ", Printable(last.call()), "\n");
    }
  }
  if (report.hangs_size() > kHangsShown) {
    absl::StrAppend(&out, "... and ", report.hangs_size() - kHangsShown, " more (--json)\n");
  }
  for (const std::string& note : report.notes()) absl::StrAppend(&out, Printable(note), "\n");
  if (report.ranks_without_dump().empty()) return out;
  return absl::StrCat(out, "no dump that can be read of ", RanksText(report.ranks_without_dump()),
                      ": what they called is not known\n");
}

}  // namespace meridian
