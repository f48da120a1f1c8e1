#include "workload_model/measurements/model_files.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "workload_model/measurements/call_traces.h"
#include "workload_model/models/models.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_writer.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr absl::string_view kTimesHeader = "callsite_source callsite_destination threads_per_rank";
constexpr absl::string_view kMessagesHeader = "callsite threads_per_rank";
constexpr size_t kMaxWord = 40;

// Generated motifs know more than published ones.
bool IsPublishedType(absl::string_view word) {
  return word == kConstant || word == kExponential || word == kBilinear || word == kTrace;
}
bool IsType(absl::string_view word) {
  return IsPublishedType(word) || word == kNormal || word == kPolynomial;
}
bool IsRole(absl::string_view word) { return word == "FIRST" || word == "WHOLE" || word == "LAST"; }

// Returns the model that a typed row says; not yet checked. Nullopt for too many or too few numbers.
std::optional<Model> TypedModel(absl::string_view type, absl::Span<const double> numbers) {
  Model model;
  model.set_type(std::string(type));
  if (type == kNormal) {
    if (numbers.size() != 2 + std::size(kMotifTerms)) return std::nullopt;
    model.set_most_u(numbers[0]);
    model.set_linear_size(numbers[1] != 0);
    for (const absl::string_view term : kMotifTerms) model.add_terms(std::string(term));
    numbers.remove_prefix(2);
  } else if (type == kPolynomial) {
    if (numbers.empty() || numbers.size() % 3 != 0) return std::nullopt;
    for (; !numbers.empty(); numbers.remove_prefix(3)) {
      model.add_terms(absl::StrCat(numbers[0], ",", numbers[1]));
      model.add_coefficients(numbers[2]);
    }
  }
  for (const double number : numbers) model.add_coefficients(number);
  return model;
}

class ModelFileParser {
 public:
  explicit ModelFileParser(const std::string& name) : name_(name) {}

  absl::StatusOr<std::vector<CallModel>> Parse(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      const std::vector<absl::string_view> words = Words(line);
      if (words.empty()) continue;
      if (words[0] == "class") {
        RETURN_IF_ERROR(ParseClass(words));
      } else if (absl::StartsWith(words[0], "callsite")) {
        RETURN_IF_ERROR(ParseHeader(words));
      } else {
        RETURN_IF_ERROR(ParseRow(words));
      }
    }
    if (models_.empty()) return Error("there is no model");
    for (size_t i = 0; i < models_.size(); ++i) RETURN_IF_ERROR(Finish(lines_[i], &models_[i]));
    return std::move(models_);
  }

 private:
  absl::Status Error(absl::string_view what) const { return LineError(name_, line_, what); }

  absl::Status ParseClass(const std::vector<absl::string_view>& words) {
    int64_t number = 0;
    if (words.size() == 2 && absl::SimpleAtoi(words[1], &number) && number >= 0) {
      class_ = absl::StrCat(number);
      return absl::OkStatus();
    }
    return Error("a class of ranks is a number; expected e.g. 'class 0'");
  }

  // Rows may come in any order: what is without the call at its end was kept as computation.
  absl::Status Finish(int64_t line, CallModel* call) const {
    if (!call->has_compute()) {
      return LineError(name_, line,
                       absl::StrCat("callsites ", call->source(), " and ", call->destination(),
                                    " have no model but of the first, whole or last time"));
    }
    if (call->has_value()) return absl::OkStatus();
    call->mutable_value()->Swap(call->mutable_compute());
    call->clear_compute();
    return absl::OkStatus();
  }

  absl::Status ParseHeader(const std::vector<absl::string_view>& words) {
    const std::string header = absl::StrJoin(words, " ");
    if (!models_.empty() || keys_ != 0) return Error("a header behind the first row");
    if (absl::StartsWith(header, absl::StrCat(kTimesHeader, " "))) {
      keys_ = 2;
    } else if (absl::StartsWith(header, absl::StrCat(kMessagesHeader, " "))) {
      keys_ = 1;
    } else {
      return Error(absl::StrCat("this is no header; expected '", kTimesHeader, " 0,0 1,0 ...' or '",
                                kMessagesHeader, " 0,0 1,0 ...'"));
    }
    Model model;
    model.set_type(std::string(kPolynomial));
    for (size_t i = keys_ + 1; i < words.size(); ++i) {
      terms_.push_back(std::string(words[i]));
      model.add_terms(terms_.back());
      model.add_coefficients(0);
    }
    const absl::Status status = CheckModel(model);
    return status.ok() ? status : Error(status.message());
  }

  // Finds out how many callsites the rows have.
  absl::Status ParseKeys(const std::vector<absl::string_view>& words) {
    const size_t keys = words.size() > 2 && IsType(words[2]) ? 1 : 2;
    const size_t type = keys == 2 && words.size() > 4 && IsRole(words[3]) ? 4 : keys + 1;
    if (words.size() <= type || !IsType(words[type])) {
      return Error(absl::StrCat(
          "'", Printable(absl::StrJoin(words, " ").substr(0, kMaxWord)),
          "' is no model; expected e.g. '33 34 1 TRACE 59.0 143.0' or '15 1 CONSTANT 8'"));
    }
    if (keys_ != 0 && keys_ != keys) return Error("models of times and of messages are mixed");
    keys_ = keys;
    return absl::OkStatus();
  }

  // Reads what follows the keys of a row.
  absl::StatusOr<Model> ParseModel(absl::Span<const absl::string_view> words) const {
    const bool is_table = !terms_.empty();
    std::vector<double> numbers;
    for (const absl::string_view word : words.subspan(is_table ? 0 : 1)) {
      if (!absl::SimpleAtod(word, &numbers.emplace_back())) {
        return Error(absl::StrCat("'", Printable(word.substr(0, kMaxWord)), "' is no number"));
      }
    }
    std::optional<Model> model = Model();
    if (is_table) {
      model->set_type(std::string(kPolynomial));
      for (const std::string& term : terms_) model->add_terms(term);
      for (const double number : numbers) model->add_coefficients(number);
    } else {
      model = TypedModel(words[0], numbers);
    }
    if (!model.has_value()) {
      return Error(absl::StrCat("a model of type ", words[0], " has ", numbers.size(),
                                " numbers, too many or too few"));
    }
    const absl::Status status = CheckModel(*model);
    if (!status.ok()) return Error(status.message());
    if (keys_ == 1 && model->type() == kBilinear) {
      return Error("the motif knows no BILINEAR model of messages");
    }
    return *std::move(model);
  }

  absl::Status ParseRow(const std::vector<absl::string_view>& words) {
    if (terms_.empty()) RETURN_IF_ERROR(ParseKeys(words));
    if (words.size() <= keys_ + 1) return Error("a row without values");
    ASSIGN_OR_RETURN(const int64_t source, Key(words[0]));
    ASSIGN_OR_RETURN(const int64_t destination, keys_ == 2 ? Key(words[1]) : 0);
    ASSIGN_OR_RETURN(const int64_t threads, Key(words[keys_]));
    const absl::string_view role =
        terms_.empty() && IsRole(words[keys_ + 1]) ? words[keys_ + 1] : "";
    ASSIGN_OR_RETURN(
        Model model,
        ParseModel(absl::MakeConstSpan(words).subspan(keys_ + (role.empty() ? 1 : 2))));
    CallModel& call = CallOf(source, destination, threads);
    const bool is_there = role == "FIRST"   ? call.has_first()
                          : role == "WHOLE" ? call.has_value()
                          : role == "LAST"  ? !have_last_.insert(&call - models_.data()).second
                                            : call.has_compute();
    if (is_there) return Error("there are two models of these callsites and threads");
    // Means do not depend on how times drift to the LAST.
    if (role.empty()) *call.mutable_compute() = std::move(model);
    if (role == "FIRST") *call.mutable_first() = std::move(model);
    if (role == "WHOLE") *call.mutable_value() = std::move(model);
    return absl::OkStatus();
  }

  // Returns the model of these callsites and threads in the present class of ranks.
  CallModel& CallOf(int64_t source, int64_t destination, int64_t threads) {
    const auto [known, is_new] =
        positions_.insert({{class_, source, destination, threads}, models_.size()});
    if (!is_new) return models_[known->second];
    CallModel& call = models_.emplace_back();
    lines_.push_back(line_);
    call.set_source(source);
    if (keys_ == 2) call.set_destination(destination);
    call.set_threads(threads);
    call.set_rank_class(class_);
    return call;
  }

  absl::StatusOr<int64_t> Key(absl::string_view word) const {
    int64_t key = 0;
    if (absl::SimpleAtoi(word, &key) && key >= 0) return key;
    return Error(absl::StrCat("'", Printable(word.substr(0, kMaxWord)),
                              "' is no callsite or number of threads"));
  }

  const std::string& name_;
  int64_t line_ = 0;
  // How many callsites a row begins with; 0 before it is known.
  size_t keys_ = 0;
  // The terms of a table's columns; empty for typed rows.
  std::vector<std::string> terms_;
  // The class of ranks whose rows are read; empty for those of all.
  std::string class_;
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t>, size_t> positions_;
  std::vector<CallModel> models_;
  // By model, the line of its first row.
  std::vector<int64_t> lines_;
  // Positions of the models that have a LAST row.
  std::set<ptrdiff_t> have_last_;
};

}  // namespace

bool IsModelFile(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.empty()) continue;
    return absl::StartsWith(words[0], "callsite_source") ||
           (words[0] == "class" && words.size() == 2) ||
           (words[0] == "callsite" && words.size() > 1 && words[1] == "threads_per_rank") ||
           (words.size() > 2 && IsType(words[2])) ||
           (words.size() > 3 && (IsType(words[3]) || IsRole(words[3])));
  }
  return false;
}

absl::StatusOr<std::vector<CallModel>> ParseModelFile(absl::string_view text,
                                                      const std::string& name) {
  return ModelFileParser(name).Parse(text);
}

absl::StatusOr<std::string> FormatModelFile(absl::Span<const CallModel> models) {
  if (models.empty()) return InvalidArgument("there is no model to write");
  const bool is_table = models[0].value().type() == kPolynomial;
  const std::string terms = absl::StrJoin(models[0].value().terms(), " ");
  std::string out;
  if (is_table) {
    out = absl::StrCat(models[0].has_destination() ? kTimesHeader : kMessagesHeader, " ", terms,
                       "\n");
  }
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
  for (const CallModel& call : models) {
    if (!seen.insert({call.source(), call.destination(), call.threads()}).second) {
      return InvalidArgument(
          "callsite ", call.source(),
          " has models for several classes of ranks, or ranks per node, which the "
          "motif does not tell apart; write them as JSON");
    }
    const Model& model = call.value();
    if (is_table && absl::StrJoin(model.terms(), " ") != terms) {
      return InvalidArgument("callsite ", call.source(),
                             " has other terms than the first, but a table has the same for all; "
                             "choose a type with --models, or a lower --order, or write them as "
                             "JSON");
    }
    if (!is_table && !IsPublishedType(model.type())) {
      return InvalidArgument("the published Ember motif reads no rows of type ", model.type(),
                             "; choose another with --models, or write a motif that reads them "
                             "with workload_model generate --format=ember");
    }
    absl::StrAppend(&out, call.source(), " ");
    if (call.has_destination()) absl::StrAppend(&out, call.destination(), " ");
    absl::StrAppend(&out, call.threads());
    if (!is_table) absl::StrAppend(&out, " ", model.type());
    for (double value : model.coefficients()) {
      out += ' ';
      AppendJsonNumber(value, &out);
    }
    out += '\n';
  }
  return out;
}

}  // namespace meridian
