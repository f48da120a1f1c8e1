#include "xla_profiler/base/command_line/command_line.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"

namespace meridian {
namespace {

constexpr size_t kHelpColumns = 100;
constexpr size_t kFurthestSuggestion = 3;

absl::CommandLineFlag& FindFlag(absl::string_view name) {
  absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
  MERIDIAN_CHECK(flag != nullptr);
  return *flag;
}

bool Lists(const CommandSpec& spec, absl::string_view name) {
  return std::find(spec.flags.begin(), spec.flags.end(), name) != spec.flags.end();
}

bool IsSwitch(absl::string_view name) { return FindFlag(name).IsOfType<bool>(); }

// Returns how many letters must be inserted, deleted or replaced to make a into b.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

absl::Status UnknownFlag(const CommandSpec& spec, absl::string_view name) {
  std::string message = absl::StrCat("unknown flag --", name);
  // A name replaced altogether is no misspelling.
  size_t nearest_distance = std::min(kFurthestSuggestion + 1, name.size());
  absl::string_view nearest;
  for (const std::string& flag : spec.flags) {
    const size_t distance = EditDistance(name, flag);
    if (distance < nearest_distance) {
      nearest_distance = distance;
      nearest = flag;
    }
  }
  if (nearest.empty()) {
    absl::StrAppend(&message, "; --help lists all flags");
  } else {
    absl::StrAppend(&message, "; did you mean --", nearest, "?");
  }
  return absl::InvalidArgumentError(message);
}

// Goes through the arguments once, setting flags as it finds them.
class Parser {
 public:
  Parser(const CommandSpec& spec, const std::vector<std::string>& argv)
      : spec_(spec), next_(argv.begin() + 1), end_(argv.end()) {}

  absl::StatusOr<ParsedCommandLine> Parse() {
    while (next_ != end_ && !result_.help) {
      const absl::string_view argument = *next_++;
      if (argument == "--") {
        result_.arguments.insert(result_.arguments.end(), next_, end_);
        break;
      }
      if (argument.size() > 1 && argument[0] == '-') {
        RETURN_IF_ERROR(ParseFlag(argument));
      } else {
        result_.arguments.emplace_back(argument);
      }
    }
    return std::move(result_);
  }

 private:
  absl::Status ParseFlag(absl::string_view argument) {
    if (!absl::ConsumePrefix(&argument, "--")) argument.remove_prefix(1);
    if (argument == "help" || argument == "h") {
      result_.help = true;
      return absl::OkStatus();
    }
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    if (equals != absl::string_view::npos) return SetFlag(name, argument.substr(equals + 1));
    return ParseFlagWithoutEquals(name);
  }

  absl::Status ParseFlagWithoutEquals(absl::string_view name) {
    absl::string_view positive_name = name;
    if (!Lists(spec_, name) && absl::ConsumePrefix(&positive_name, "no") &&
        Lists(spec_, positive_name) && IsSwitch(positive_name)) {
      return SetFlag(positive_name, "false");
    }
    if (!Lists(spec_, name)) return UnknownFlag(spec_, name);
    if (IsSwitch(name)) return SetFlag(name, "true");
    // `--trace --json` forgot the value; a single dash may be a negative number.
    if (next_ == end_ || absl::StartsWith(*next_, "--")) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
    }
    return SetFlag(name, *next_++);
  }

  absl::Status SetFlag(absl::string_view name, absl::string_view value) {
    if (!Lists(spec_, name)) return UnknownFlag(spec_, name);
    if (!flags_seen_.insert(std::string(name)).second) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " is given twice"));
    }
    std::string error;
    if (!FindFlag(name).ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, ": ", error));
    }
    return absl::OkStatus();
  }

  const CommandSpec& spec_;
  std::vector<std::string>::const_iterator next_;
  const std::vector<std::string>::const_iterator end_;
  std::set<std::string> flags_seen_;
  ParsedCommandLine result_;
};

// Returns the words in lines that fit the page when indented.
std::vector<std::string> Wrap(absl::string_view text, size_t indent) {
  std::vector<std::string> lines;
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (lines.empty() || indent + lines.back().size() + 1 + word.size() > kHelpColumns) {
      lines.emplace_back(word);
    } else {
      absl::StrAppend(&lines.back(), " ", word);
    }
  }
  return lines;
}

std::string FlagHelp(const absl::CommandLineFlag& flag) {
  const std::string value = flag.DefaultValue();
  if (value.empty()) return flag.Help();
  const absl::string_view quote = flag.IsOfType<std::string>() ? "\"" : "";
  return absl::StrCat(flag.Help(), " (default: ", quote, value, quote, ")");
}

// Appends "  --name   help", the help as a column of its own that starts at `indent`.
void AppendFlag(absl::string_view name, absl::string_view help, size_t indent, std::string* page) {
  std::string line = absl::StrCat("  --", name);
  for (const std::string& help_line : Wrap(help, indent)) {
    line.resize(indent, ' ');
    absl::StrAppend(page, line, help_line, "\n");
    line.clear();
  }
}

}  // namespace

absl::StatusOr<ParsedCommandLine> ParseCommandLine(const CommandSpec& spec,
                                                   const std::vector<std::string>& argv) {
  MERIDIAN_CHECK(!argv.empty());
  return Parser(spec, argv).Parse();
}

std::string HelpText(const CommandSpec& spec) {
  size_t longest_name = absl::string_view("help").size();
  for (const std::string& name : spec.flags) longest_name = std::max(longest_name, name.size());
  const size_t indent = longest_name + 6;

  std::string page;
  for (const std::string& line : Wrap(spec.summary, 0)) absl::StrAppend(&page, line, "\n");
  absl::StrAppend(&page, "\nUsage: ", spec.name, " [flags]\n\nFlags:\n");
  for (const std::string& name : spec.flags) {
    AppendFlag(name, FlagHelp(FindFlag(name)), indent, &page);
  }
  AppendFlag("help", "Show this page.", indent, &page);
  if (!spec.examples.empty()) absl::StrAppend(&page, "\nExamples:\n");
  for (const std::string& example : spec.examples) absl::StrAppend(&page, "  ", example, "\n");
  return page;
}

}  // namespace meridian
