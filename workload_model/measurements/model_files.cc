#include "workload_model/measurements/model_files.h"

#include <cstdint>
#include <set>
#include <tuple>

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

bool IsType(absl::string_view word) {
  return word == kConstant || word == kExponential || word == kBilinear || word == kTrace;
}

class ModelFileParser {
 public:
  explicit ModelFileParser(const std::string& name) : name_(name) {}

  absl::StatusOr<std::vector<CallModel>> Parse(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      const std::vector<absl::string_view> words = Words(line);
      if (words.empty()) continue;
      if (absl::StartsWith(words[0], "callsite")) {
        RETURN_IF_ERROR(ParseHeader(words));
      } else {
        RETURN_IF_ERROR(ParseRow(words));
      }
    }
    if (models_.empty()) return Error("there is no model");
    return std::move(models_);
  }

 private:
  absl::Status Error(absl::string_view what) const { return LineError(name_, line_, what); }

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

  absl::Status ParseRow(const std::vector<absl::string_view>& words) {
    if (terms_.empty()) {
      const size_t keys = words.size() > 2 && IsType(words[2]) ? 1 : 2;
      if (words.size() <= keys + 1 || !IsType(words[keys + 1])) {
        return Error(absl::StrCat(
            "'", Printable(absl::StrJoin(words, " ").substr(0, kMaxWord)),
            "' is no model; expected e.g. '33 34 1 TRACE 59.0 143.0' or '15 1 CONSTANT 8'"));
      }
      if (keys_ != 0 && keys_ != keys) return Error("models of times and of messages are mixed");
      keys_ = keys;
    }
    const bool is_table = !terms_.empty();
    if (words.size() <= keys_ + 1) return Error("a row without values");
    CallModel call;
    ASSIGN_OR_RETURN(const int64_t source, Key(words[0]));
    call.set_source(source);
    if (keys_ == 2) {
      ASSIGN_OR_RETURN(const int64_t destination, Key(words[1]));
      call.set_destination(destination);
    }
    ASSIGN_OR_RETURN(const int64_t threads, Key(words[keys_]));
    call.set_threads(threads);
    Model& model = *call.mutable_value();
    model.set_type(is_table ? std::string(kPolynomial) : std::string(words[keys_ + 1]));
    for (const std::string& term : terms_) model.add_terms(term);
    for (size_t i = keys_ + (is_table ? 1 : 2); i < words.size(); ++i) {
      double value = 0;
      if (!absl::SimpleAtod(words[i], &value)) {
        return Error(absl::StrCat("'", Printable(words[i].substr(0, kMaxWord)), "' is no number"));
      }
      model.add_coefficients(value);
    }
    const absl::Status status = CheckModel(model);
    if (!status.ok()) return Error(status.message());
    if (keys_ == 1 && model.type() == kBilinear) {
      return Error("the motif knows no BILINEAR model of messages");
    }
    if (!seen_.insert({source, call.destination(), threads}).second) {
      return Error("there are two models of these callsites and threads");
    }
    models_.push_back(std::move(call));
    return absl::OkStatus();
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
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen_;
  std::vector<CallModel> models_;
};

}  // namespace

bool IsModelFile(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.empty()) continue;
    return absl::StartsWith(words[0], "callsite_source") ||
           (words[0] == "callsite" && words.size() > 1 && words[1] == "threads_per_rank") ||
           (words.size() > 2 && IsType(words[2])) || (words.size() > 3 && IsType(words[3]));
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
  for (const CallModel& call : models) {
    const Model& model = call.value();
    if (is_table ? absl::StrJoin(model.terms(), " ") != terms : !IsType(model.type())) {
      return InvalidArgument("the motif knows no model of type ", model.type(),
                             "; choose others with --models");
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
