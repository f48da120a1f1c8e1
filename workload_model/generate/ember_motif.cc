#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "workload_model/calls/call_operation.h"
#include "workload_model/calls/rank_patterns.h"
#include "workload_model/generate/call_workload.h"
#include "workload_model/generate/ember_motif_text.h"
#include "workload_model/generate/evaluated_flow.h"
#include "workload_model/measurements/model_files.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/output_files.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

using Kind = CallOperation::Kind;

constexpr int64_t kMaxRanks = 100000;
// The state of a motif that has not come to its first call: no callsite.
constexpr int64_t kBeforeFirst = -1;

// In a comment of code: nothing that could end it, or go on behind it.
std::string NameText(absl::string_view name) {
  std::string text;
  for (char c : name) text += absl::ascii_isalnum(c) || c == '_' || c == '-' ? c : '?';
  return text;
}

// The classes of a rule of ranks (rank_classes.h), each with what tells its ranks from those of the
// classes behind it.
std::vector<std::pair<std::string, std::string>> ClassConditions(absl::string_view rule) {
  if (rule == "first") return {{"first", "rank() == 0"}, {"others", ""}};
  if (rule == "ends") {
    return {{"first", "rank() == 0"}, {"last", "rank() + 1 == size()"}, {"middle", ""}};
  }
  if (rule == "parity") return {{"even", "rank() % 2 == 0"}, {"odd", ""}};
  if (rule == "diagonal") {
    return {{"diagonal", "rank() / Root() == rank() % Root()"}, {"off-diagonal", ""}};
  }
  return {{"all", ""}};
}

// Returns an expression of ranks (rank_patterns.h) in the motif's C++; FailedPrecondition for other texts.
absl::StatusOr<std::string> RanksText(absl::string_view expression) {
  if (expression == "n") return std::string("size()");
  if (expression == "sqrt n") return std::string("Root()");
  const bool is_share = absl::ConsumePrefix(&expression, "n/");
  int64_t number = 0;
  if (!absl::SimpleAtoi(expression, &number) || number < 1) {
    return FailedPrecondition("'", Printable(expression), "' is no number of ranks");
  }
  return is_share ? absl::StrCat("Share(", number, ")") : absl::StrCat(number);
}

std::string NumberText(double number) {
  std::string text;
  AppendJsonNumber(number, &text);
  return text;
}

// Returns a number of visits or iterations in the motif's C++. FailedPrecondition for forms that trips
// of loops do not have.
absl::StatusOr<std::string> TripsText(const Model& model) {
  if (model.type() == kConstant) return NumberText(model.coefficients(0));
  const std::string above = absl::StrCat("(size_ - ", NumberText(model.least_size()), ")");
  const std::map<std::string, std::string> terms = {
      {"1", "1"},
      {"n", "ranks_"},
      {"sqrt n", "std::sqrt(ranks_)"},
      {"lg n", "std::log2(ranks_)"},
      {"s", "size_"},
      {"s - s0", above},
      {"sqrt n - 1", "(std::sqrt(ranks_) - 1)"},
      {"(sqrt n - 1)(s - s0)", absl::StrCat("(std::sqrt(ranks_) - 1) * ", above)}};
  std::string text;
  for (int i = 0; i < model.terms_size() && model.type() == kNormal; ++i) {
    const auto term = terms.find(model.terms(i));
    if (term == terms.end()) return FailedPrecondition("a loop's trips are no number for Ember");
    absl::StrAppend(&text, i > 0 ? " + " : "", NumberText(model.coefficients(i)), " * ",
                    term->second);
  }
  if (text.empty()) return FailedPrecondition("a loop's trips are no number for Ember");
  return text;
}

// Returns "TYPE numbers" as the motif reads them: of the normal form its bound, whether sizes are
// linear, and the coefficients of all terms; of polynomials powers and coefficient of each term.
absl::StatusOr<std::string> ModelText(const Model& model) {
  std::vector<double> numbers(model.coefficients().begin(), model.coefficients().end());
  if (model.type() == kNormal) {
    std::map<std::string, double> by_term;
    for (int i = 0; i < model.terms_size(); ++i) by_term[model.terms(i)] = model.coefficients(i);
    numbers = {model.most_u(), model.linear_size() ? 1.0 : 0.0};
    for (const absl::string_view term : kMotifTerms) {
      numbers.push_back(by_term[std::string(term)]);
      by_term.erase(std::string(term));
    }
    if (!by_term.empty()) {
      return FailedPrecondition("the motif does not know the term '",
                                Printable(by_term.begin()->first), "'");
    }
  }
  std::string text = model.type();
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (model.type() == kPolynomial) {
      absl::StrAppend(&text, " ",
                      absl::StrReplaceAll(model.terms(static_cast<int>(i)), {{",", " "}}));
    }
    absl::StrAppend(&text, " ", NumberText(numbers[i]));
  }
  return text;
}

// FailedPrecondition when rules of groups and peers say nothing for so many ranks.
absl::Status CheckRules(const EvaluatedRanks& ranks) {
  const auto count = static_cast<int64_t>(ranks.class_of.size());
  for (const EvaluatedFlow& flow : ranks.flows) {
    for (const auto& [number, callsite] : flow.callsites) {
      const Kind kind = OperationOf(callsite->operation()).kind;
      if (kind == Kind::kCollective) RETURN_IF_ERROR(GroupOf(*callsite, 0, count).status());
      for (int64_t rank = 0; rank < count && callsite->has_peer(); ++rank) {
        RETURN_IF_ERROR(
            CheckPeers(*callsite, rank, count, /*visits=*/1, kind == Kind::kSendReceive));
      }
    }
  }
  return absl::OkStatus();
}

class MotifWriter {
 public:
  MotifWriter(const WorkloadModel& model, const CellKind& kind)
      : model_(model), kind_(kind), classes_(ClassConditions(model.rank_classes())) {}

  absl::Status Write() {
    for (number_ = 0; number_ < classes_.size(); ++number_) {
      const std::string& name = classes_[number_].first;
      const auto flow =
          std::find_if(model_.flows().begin(), model_.flows().end(),
                       [&](const ControlFlow& other) { return other.rank_class() == name; });
      absl::StrAppend(&dispatch_, "      case ", number_, ":  // ", name, "\n");
      if (flow == model_.flows().end()) {
        absl::StrAppend(&dispatch_, "        fatal(CALL_INFO, -1, \"ranks '", name,
                        "' were never measured\\n\");\n        break;\n");
        continue;
      }
      flow_ = &*flow;
      absl::StrAppend(&dispatch_, "        Flow", number_, "(evQ);\n        break;\n");
      absl::StrAppend(&first_states_, "    if (class_ == ", number_,
                      ") state_ = ", flow_->start() == 0 ? flow_->first() : kBeforeFirst, ";\n");
      if (flow_->head() != 0) {
        ASSIGN_OR_RETURN(const std::string iterations, TripsText(flow_->iterations()));
        absl::StrAppend(&first_states_, "    if (class_ == ", number_, ") iterations_ = Whole(",
                        iterations, ");\n");
      }
      RETURN_IF_ERROR(WriteModels());
      absl::StrAppend(&flows_, "  // Ranks '", name, "'.\n  void Flow", number_,
                      "(std::queue<EmberEvent*>& evQ) {\n    switch (state_) {\n");
      if (flow_->start() != 0) WriteStart();
      for (const FlowBranch& branch : flow_->branches()) RETURN_IF_ERROR(WriteCase(branch));
      absl::StrAppend(&flows_, "    }\n  }\n\n");
    }
    return absl::OkStatus();
  }

  std::string Classes() const {
    std::string text = "    class_ = ";
    for (size_t number = 0; number < classes_.size(); ++number) {
      const std::string& condition = classes_[number].second;
      absl::StrAppend(&text, condition, condition.empty() ? "" : " ? ", number,
                      condition.empty() ? ";\n" : " : ");
    }
    return absl::StrCat(text, first_states_, checks_);
  }

  std::string Groups() const {
    std::string text;
    for (const auto& [stride, length] : rows_) {
      absl::StrAppend(&text, "    AddRow(", stride, ", ", length, ");\n");
    }
    return text;
  }

  const std::string& dispatch() const { return dispatch_; }
  const std::string& flows() const { return flows_; }
  const std::string& exec_model() const { return exec_model_; }
  const std::string& msg_model() const { return msg_model_; }
  bool has_receives() const { return has_receives_; }

 private:
  absl::StatusOr<const CallsiteModel*> CallsiteOf(int64_t number) const {
    for (const CallsiteModel& callsite : flow_->callsites()) {
      if (callsite.callsite() == number) return &callsite;
    }
    return FailedPrecondition("the model does not say what callsite ", number, " does");
  }

  // Writes the models of the class: times without the call at their end where that is known.
  absl::Status WriteModels() {
    CellKind kind = kind_;
    kind.rank_class = classes_[number_].first;
    absl::StrAppend(&exec_model_, "class ", number_, "\n");
    absl::StrAppend(&msg_model_, "class ", number_, "\n");
    for (const CallModel& call : model_.models()) {
      if (!(KindOf(call) == kind)) continue;
      const absl::StatusOr<const CallsiteModel*> callsite = CallsiteOf(call.destination());
      const bool is_local =
          callsite.ok() && OperationOf((*callsite)->operation()).kind == Kind::kLocal;
      const bool is_split = call.has_compute() && !is_local;
      const std::string key =
          absl::StrCat(call.source(), " ", call.destination(), " ", call.threads(), " ");
      ASSIGN_OR_RETURN(const std::string whole, ModelText(call.value()));
      ASSIGN_OR_RETURN(const std::string first, ModelText(call.first()));
      ASSIGN_OR_RETURN(const std::string compute,
                       ModelText(is_split ? call.compute() : call.value()));
      absl::StrAppend(&exec_model_, key, compute, "\n", key, "FIRST ", first, "\n");
      if (is_split) absl::StrAppend(&exec_model_, key, "WHOLE ", whole, "\n");
      // The drift is from the first to the last, in the middle of which the mean is.
      if (call.has_drift()) {
        absl::StrAppend(&exec_model_, key, "LAST CONSTANT ", NumberText(1 + call.drift() / 2),
                        "\n");
      }
    }
    for (const CallModel& call : model_.messages()) {
      if (!(KindOf(call) == kind)) continue;
      ASSIGN_OR_RETURN(const std::string bytes, ModelText(call.value()));
      absl::StrAppend(&msg_model_, call.source(), " ", call.threads(), " ", bytes, "\n");
    }
    return absl::OkStatus();
  }

  // The way to the first call, which is no callsite that others come after.
  void WriteStart() {
    absl::StrAppend(&flows_, "      case ", kBeforeFirst, ":\n        state_ = ", flow_->start(),
                    ";\n        Go(evQ, ", flow_->first(),
                    ");\n        before_[0] = 0;\n        break;\n");
  }

  absl::Status WriteCase(const FlowBranch& branch) {
    const int64_t at = branch.callsite();
    ASSIGN_OR_RETURN(const CallsiteModel* callsite, CallsiteOf(at));
    absl::StrAppend(&flows_, "      case ", at, ":  // ", NameText(callsite->operation()), "\n");
    if (at == flow_->head()) absl::StrAppend(&flows_, "        ++heads_;\n");
    for (const FlowBranch& other : flow_->branches()) {
      if (other.since() == at) {
        absl::StrAppend(&flows_, "        visits_[", other.callsite(), "] = 0;\n");
      }
    }
    for (const CallsiteModel& other : flow_->callsites()) {
      if (other.peer().by_visit() != 0 && other.peer().since() == at) {
        absl::StrAppend(&flows_, "        peer_visits_[", other.callsite(), "] = 0;\n");
      }
    }
    RETURN_IF_ERROR(WriteCall(*callsite));
    RETURN_IF_ERROR(WriteBranch(branch));
    absl::StrAppend(&flows_, "        break;\n");
    return absl::OkStatus();
  }

  absl::Status WriteCall(const CallsiteModel& callsite) {
    const CallOperation operation = OperationOf(callsite.operation());
    const auto refuse = [&](absl::string_view why) {
      return FailedPrecondition("callsite ", callsite.callsite(), " (",
                                Printable(callsite.operation()), ") ", why,
                                "; --format=chakra can say it");
    };
    const bool is_of_all = callsite.length().empty() || callsite.length() == "n";
    if (callsite.measured_ranks() != 0 && (callsite.has_peer() || !is_of_all)) {
      checks_ = absl::StrCat("    if (size() != ", callsite.measured_ranks(),
                             ") fatal(CALL_INFO, -1, \"groups and peers are known for ",
                             callsite.measured_ranks(), " ranks only\\n\");\n");
    }
    const char* const waits = operation.is_asynchronous ? "false" : "true";
    switch (operation.kind) {
      case Kind::kLocal:
        return absl::OkStatus();
      case Kind::kWait:
        absl::StrAppend(&flows_, "        Wait(evQ);\n");
        return absl::OkStatus();
      case Kind::kReceive:
        has_receives_ = true;
        absl::StrAppend(&flows_, "        Receive(evQ, std::max({1", SentBytesText(), "}), ", waits,
                        ");\n");
        return absl::OkStatus();
      case Kind::kUnknown:
        return refuse("is not known");
      case Kind::kSend:
      case Kind::kSendReceive:
        return WriteMessage(callsite, operation.kind == Kind::kSendReceive, waits);
      case Kind::kCollective:
        break;
    }
    if (operation.is_asynchronous)
      return refuse("goes on before it has ended, as no collective of Ember does");
    return WriteCollective(callsite, operation);
  }

  // A receive may get what any callsite of any class sends.
  std::string SentBytesText() const {
    std::string text;
    for (size_t number = 0; number < classes_.size(); ++number) {
      for (const ControlFlow& flow : model_.flows()) {
        if (flow.rank_class() != classes_[number].first) continue;
        for (const CallsiteModel& callsite : flow.callsites()) {
          if (OperationOf(callsite.operation()).kind != Kind::kSend) continue;
          absl::StrAppend(&text, ", Bytes(", number, ", ", callsite.callsite(), ")");
        }
      }
    }
    return text;
  }

  absl::Status WriteCollective(const CallsiteModel& callsite, const CallOperation& operation) {
    std::string group = "GroupWorld", length = "size()";
    if (callsite.length() != "n") {
      ASSIGN_OR_RETURN(const std::string row_stride, RanksText(callsite.stride()));
      ASSIGN_OR_RETURN(const std::string row_length, RanksText(callsite.length()));
      const std::string row = RowText(row_stride, row_length);
      group = absl::StrCat("communicators_[", row, "]");
      length = absl::StrCat("Length(", row, ")");
    }
    // What there is in Ember: gathers, scatters and reductions to one rank go the nearest way.
    std::string call;
    switch (operation.collective) {
      case CollectiveKind::kBarrier:
        call = "enQ_barrier(evQ, $G)";
        break;
      case CollectiveKind::kAllGather:
      case CollectiveKind::kCollectiveGather:
        call = "enQ_allgather(evQ, nullptr, bytes, CHAR, nullptr, bytes, CHAR, $G)";
        break;
      case CollectiveKind::kAllToAll:
        call = "enQ_alltoall(evQ, nullptr, bytes, CHAR, nullptr, bytes, CHAR, $G)";
        break;
      case CollectiveKind::kCollectiveBroadcast:
      case CollectiveKind::kCollectiveScatter:
        call = "enQ_bcast(evQ, nullptr, bytes, CHAR, 0, $G)";
        break;
      case CollectiveKind::kCollectiveReduce:
        call = "enQ_reduce(evQ, nullptr, nullptr, bytes, CHAR, MP::SUM, 0, $G)";
        break;
      default:
        call = "enQ_allreduce(evQ, nullptr, nullptr, bytes, CHAR, MP::SUM, $G)";
    }
    const bool is_divided =
        operation.collective == CollectiveKind::kAllToAll && !operation.is_per_member;
    const std::string bytes = absl::StrCat("Bytes(class_, ", callsite.callsite(), ")");
    // Ember's gathers of one rank are undefined.
    absl::StrAppend(&flows_, "        if (", length, " > 1) {\n");
    if (operation.collective != CollectiveKind::kBarrier) {
      absl::StrAppend(
          &flows_, "          const int bytes = ",
          is_divided ? absl::StrCat("(", bytes, " + ", length, " - 1) / ", length) : bytes, ";\n");
    }
    absl::StrAppend(&flows_, "          ", absl::StrReplaceAll(call, {{"$G", group}}),
                    ";\n        }\n");
    return absl::OkStatus();
  }

  // Returns the number of the rank's row.
  std::string RowText(const std::string& stride, const std::string& length) {
    const auto known = std::find(rows_.begin(), rows_.end(), std::make_pair(stride, length));
    const auto index = known - rows_.begin();
    if (known == rows_.end()) rows_.push_back({stride, length});
    return absl::StrCat(index);
  }

  absl::Status WriteMessage(const CallsiteModel& callsite, bool receives, absl::string_view waits) {
    if (!callsite.has_peer()) return absl::OkStatus();
    const PeerRule& rule = callsite.peer();
    std::string step = absl::StrCat(rule.step());
    if (rule.by_visit() != 0) {
      absl::StrAppend(&flows_, "        ++peer_visits_[", callsite.callsite(), "];\n");
      step = absl::StrCat("(", rule.step(), " + ", rule.by_visit(), " * peer_visits_[",
                          callsite.callsite(), "])");
    }
    std::string to, from;
    if (rule.kind() == "transpose") {
      to = from = "Transposed()";
    } else if (rule.kind() == "xor") {
      to = from = absl::StrCat("Exchanged(", step, ")");
    } else if (rule.kind() == "rank") {
      to = step;
    } else {
      ASSIGN_OR_RETURN(const std::string stride, RanksText(rule.stride()));
      ASSIGN_OR_RETURN(const std::string length, RanksText(rule.length()));
      const std::string row =
          absl::StrCat("Shifted(", stride, ", ", length, ", ", rule.wraps() ? "true" : "false");
      to = absl::StrCat(row, ", ", step, ")");
      from = absl::StrCat(row, ", -(", step, "))");
    }
    const std::string bytes = absl::StrCat("std::max(1, Bytes(class_, ", callsite.callsite(), "))");
    const int64_t tag = callsite.callsite() % (1 << 20);
    if (receives) {
      absl::StrAppend(&flows_, "        Exchange(evQ, ", to, ", ", from, ", ", bytes, ", ", tag,
                      ");\n");
    } else {
      absl::StrAppend(&flows_, "        Send(evQ, ", to, ", ", bytes, ", ", tag, ", ", waits,
                      ");\n");
    }
    return absl::OkStatus();
  }

  // The last iteration does not begin anew.
  absl::StatusOr<std::string> GoText(int64_t from, int64_t to) const {
    const std::string go = absl::StrCat("Go(evQ, ", to, ");");
    if (flow_->head() == 0 || from != flow_->last() || to != flow_->head()) return go;
    ASSIGN_OR_RETURN(const std::string iterations, TripsText(flow_->iterations()));
    return absl::StrCat("if (heads_ >= Whole(", iterations, ")) { Go(evQ, 0); } else { ", go, " }");
  }

  absl::Status WriteBranch(const FlowBranch& branch) {
    const int64_t at = branch.callsite();
    if (branch.segments_size() == 1) return WriteChoices(at, branch.segments(0), "        ");
    const bool counts = branch.segments(0).before_size() == 0;
    if (counts) absl::StrAppend(&flows_, "        ++visits_[", at, "];\n");
    std::string end;
    for (int i = 0; i < branch.segments_size(); ++i) {
      const FlowSegment& segment = branch.segments(i);
      std::string condition;
      if (segment.has_visits()) {
        ASSIGN_OR_RETURN(const std::string trips, TripsText(segment.visits()));
        absl::StrAppend(&end, end.empty() ? "" : " + ", "Whole(", trips, ")");
        condition = absl::StrCat("visits_[", at, "] <= ", end);
      }
      for (int j = 0; j < segment.before_size(); ++j) {
        absl::StrAppend(&condition, j > 0 ? " && " : "", "before_[", j, "] == ", segment.before(j));
      }
      const bool is_last = i + 1 == branch.segments_size();
      absl::StrAppend(&flows_, i == 0 ? "        if (" : is_last ? " else {\n" : " else if (");
      if (!is_last || i == 0) absl::StrAppend(&flows_, condition, ") {\n");
      RETURN_IF_ERROR(WriteChoices(at, segment, "          "));
      absl::StrAppend(&flows_, "        }");
    }
    absl::StrAppend(&flows_, "\n");
    return absl::OkStatus();
  }

  absl::Status WriteChoices(int64_t at, const FlowSegment& segment, const std::string& indent) {
    double below = 0;
    const bool draws = segment.choices_size() > 1;
    if (draws) {
      absl::StrAppend(&flows_, indent, "{ const double draw = random_.nextUniform();\n");
    }
    for (int i = 0; i < segment.choices_size(); ++i) {
      below += segment.choices(i).share();
      absl::StrAppend(&flows_, indent, i == 0 ? "" : "else ");
      if (i + 1 < segment.choices_size()) {
        absl::StrAppend(&flows_, absl::StrFormat("if (draw < %.9g) ", below));
      }
      ASSIGN_OR_RETURN(const std::string go, GoText(at, segment.choices(i).destination()));
      absl::StrAppend(&flows_, draws ? "{ " : "", go, draws ? " }\n" : "\n");
    }
    if (draws) absl::StrAppend(&flows_, indent, "}\n");
    return absl::OkStatus();
  }

  const WorkloadModel& model_;
  const CellKind kind_;
  const std::vector<std::pair<std::string, std::string>> classes_;
  // The class that is written.
  size_t number_ = 0;
  const ControlFlow* flow_ = nullptr;
  // Rows of ranks that communicate, by stride and length, in the order of their communicators.
  std::vector<std::pair<std::string, std::string>> rows_;
  bool has_receives_ = false;
  std::string dispatch_;
  std::string first_states_;
  // What a number of ranks must be.
  std::string checks_;
  std::string flows_;
  std::string exec_model_;
  std::string msg_model_;
};

}  // namespace

absl::StatusOr<EmberMotif> MakeEmberMotif(const WorkloadModel& model, const WorkloadCell& cell,
                                          const std::string& name) {
  // The motif is called as its files, by what C++ and Python can.
  if (name.empty() || !absl::ascii_isalpha(name[0]) ||
      !std::all_of(name.begin(), name.end(), absl::ascii_isalnum)) {
    return InvalidArgument(
        "--output: '", name,
        "' is no name of a motif; expected letters and digits, e.g. --output=motif/Bfs");
  }
  ASSIGN_OR_RETURN(const EvaluatedRanks ranks, EvaluateRanks(model, cell, kMaxRanks));
  RETURN_IF_ERROR(CheckRules(ranks));
  MotifWriter writer(model, cell.kind);
  RETURN_IF_ERROR(writer.Write());
  // Who receives must be sent to, which the motif does not find out.
  if (writer.has_receives()) RETURN_IF_ERROR(CheckArrivals(model, cell));
  const std::vector<std::pair<absl::string_view, std::string>> words = {
      {"$NAME$", name},
      {"$NODES$", absl::StrCat(cell.machines)},
      {"$SIZE$", absl::StrCat(cell.size)},
      {"$THREADS$", absl::StrCat(cell.kind.threads)},
      {"$RANKS_PER_NODE$", absl::StrCat(cell.kind.ranks_per_machine)},
      {"$SEED$", absl::StrCat(kBranchSeed)},
      {"$CLASSES$", writer.Classes()},
      {"$GROUPS$", writer.Groups()},
      {"$DISPATCH$", writer.dispatch()},
      {"$FLOWS$", writer.flows()}};
  return EmberMotif{absl::StrReplaceAll(kEmberMotifSource, words),
                    absl::StrReplaceAll(kEmberMotifSdl, words), writer.exec_model(),
                    writer.msg_model()};
}

absl::StatusOr<CallWorkloadReport> WriteEmberMotif(FileSystem& file_system,
                                                   const WorkloadModel& model,
                                                   const WorkloadCell& cell,
                                                   const std::string& prefix) {
  ASSIGN_OR_RETURN(const EmberMotif motif,
                   MakeEmberMotif(model, cell, prefix.substr(prefix.rfind('/') + 1)));
  CallWorkloadReport report;
  report.set_nodes(cell.machines);
  report.set_size(cell.size);
  report.set_ranks(static_cast<int64_t>(cell.Ranks()));
  report.add_files(absl::StrCat(prefix, ".cc"));
  report.add_files(absl::StrCat(prefix, ".py"));
  report.add_files(absl::StrCat(prefix, ".exec.model"));
  report.add_files(absl::StrCat(prefix, ".msg.model"));
  report.add_notes(
      "put the .cc into ember/mpi/motifs/ of SST's elements and name it in their Makefile");
  const bool has_drift = std::any_of(model.models().begin(), model.models().end(),
                                     [](const CallModel& call) { return call.has_drift(); });
  const bool has_loops = std::all_of(model.flows().begin(), model.flows().end(),
                                     [](const ControlFlow& flow) { return flow.head() != 0; });
  if (has_drift && !has_loops) {
    report.add_notes(
        "times of a motif drift along its main loop, which some ranks lack; --format=chakra has "
        "them "
        "drift");
  }
  OutputFiles outputs(file_system);
  RETURN_IF_ERROR(outputs.WriteText("motif", report.files(0), motif.source));
  RETURN_IF_ERROR(outputs.WriteText("sdl", report.files(1), motif.sdl));
  RETURN_IF_ERROR(outputs.WriteText("models of times", report.files(2), motif.exec_model));
  RETURN_IF_ERROR(outputs.WriteText("models of bytes", report.files(3), motif.msg_model));
  RETURN_IF_ERROR(outputs.Commit());
  return report;
}

}  // namespace meridian
