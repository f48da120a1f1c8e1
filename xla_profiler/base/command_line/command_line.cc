#include "xla_profiler/base/command_line/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/input_paths.h"

namespace meridian {
namespace {

constexpr size_t kHelpColumns = 100;
constexpr size_t kFurthestSuggestion = 3;

AnyFlag* FindFlag(const Command& command, absl::string_view name) {
  const auto found = absl::c_find_if(command.flags, [&](AnyFlag* f) { return f->name() == name; });
  return found == command.flags.end() ? nullptr : *found;
}

// Returns how many letters must be inserted, deleted or replaced to make a into b.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  absl::c_iota(row, size_t{0});
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

// Returns "; did you mean --trace?" for what is a misspelling of one of the names, else where these
// are listed.
std::string Suggestion(absl::string_view name, const std::vector<absl::string_view>& names,
                       absl::string_view dashes) {
  // A name replaced altogether is no misspelling.
  size_t nearest_distance = std::min(kFurthestSuggestion + 1, name.size());
  absl::string_view nearest;
  for (const absl::string_view candidate : names) {
    const size_t distance = EditDistance(name, candidate);
    if (distance < nearest_distance) {
      nearest_distance = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "; --help lists all"
                         : absl::StrCat("; did you mean ", dashes, nearest, "?");
}

absl::Status UnknownFlag(const Command& command, absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const AnyFlag* flag : command.flags) names.push_back(flag->name());
  return InvalidArgument("unknown flag --", name, Suggestion(name, names, "--"));
}

// Goes through the arguments once, setting flags as it finds them.
class Parser {
 public:
  Parser(const Command& command, const std::vector<std::string>& argv)
      : command_(command), next_(argv.begin() + 1), end_(argv.end()) {}

  absl::StatusOr<ParsedCommandLine> Parse() {
    while (next_ != end_ && !result_.help && !result_.version) {
      const absl::string_view argument = *next_++;
      if (argument == "--") {
        result_.arguments.insert(result_.arguments.end(), next_, end_);
        break;
      }
      if (argument.size() > 1 && argument[0] == '-') {
        RETURN_IF_ERROR(ParseFlag(argument));
      } else if (unnamed_ < command_.unnamed) {
        RETURN_IF_ERROR(SetFlag(command_.flags[unnamed_++]->name(), argument));
      } else {
        result_.arguments.emplace_back(argument);
      }
    }
    return std::move(result_);
  }

 private:
  absl::Status ParseFlag(absl::string_view argument) {
    result_.help = IsHelpFlag(argument);
    result_.version = IsVersionFlag(argument);
    if (result_.help || result_.version) return absl::OkStatus();
    if (!absl::ConsumePrefix(&argument, "--")) argument.remove_prefix(1);
    const size_t equals = argument.find('=');
    const absl::string_view name = argument.substr(0, equals);
    if (equals != absl::string_view::npos) return SetFlag(name, argument.substr(equals + 1));
    return ParseFlagWithoutEquals(name);
  }

  absl::Status ParseFlagWithoutEquals(absl::string_view name) {
    const AnyFlag* flag = FindFlag(command_, name);
    if (flag == nullptr) {
      absl::string_view positive_name = name;
      const bool negated = absl::ConsumePrefix(&positive_name, "no");
      const AnyFlag* positive = negated ? FindFlag(command_, positive_name) : nullptr;
      if (positive == nullptr || !positive->is_switch()) return UnknownFlag(command_, name);
      return SetFlag(positive_name, "false");
    }
    if (flag->is_switch()) return SetFlag(name, "true");
    // `--trace --json` forgot the value; a single dash may be a negative number.
    if (next_ == end_ || absl::StartsWith(*next_, "--")) {
      return InvalidArgument("--", name, " needs a value");
    }
    return SetFlag(name, *next_++);
  }

  absl::Status SetFlag(absl::string_view name, absl::string_view value) {
    AnyFlag* flag = FindFlag(command_, name);
    if (flag == nullptr) return UnknownFlag(command_, name);
    if (!flags_seen_.insert(flag).second) return InvalidArgument("--", name, " is given twice");
    std::string error;
    if (flag->Set(value, &error)) return absl::OkStatus();
    return InvalidArgument("--", name, ": '", value, "' is no value of this flag",
                           error.empty() ? "" : "; ", error);
  }

  const Command& command_;
  std::vector<std::string>::const_iterator next_;
  const std::vector<std::string>::const_iterator end_;
  std::set<const AnyFlag*> flags_seen_;
  // How many arguments without names there were.
  size_t unnamed_ = 0;
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

std::string FlagHelp(const AnyFlag& flag) {
  const std::string value = flag.DefaultText();
  if (value.empty()) return std::string(flag.help());
  const absl::string_view quote = flag.is_text() ? "\"" : "";
  return absl::StrCat(flag.help(), " (default: ", quote, value, quote, ")");
}

// Appends "  name   help" for each, the help as a column of its own.
void AppendList(const std::vector<std::pair<std::string, std::string>>& items, std::string* page) {
  size_t indent = 0;
  for (const auto& [name, help] : items) indent = std::max(indent, name.size() + 4);
  for (const auto& [name, help] : items) {
    std::string line = absl::StrCat("  ", name);
    for (const std::string& help_line : Wrap(help, indent)) {
      line.resize(indent, ' ');
      absl::StrAppend(page, line, help_line, "\n");
      line.clear();
    }
  }
}

}  // namespace

bool IsHelpFlag(absl::string_view argument) {
  return argument == "--help" || argument == "-help" || argument == "-h";
}

bool IsVersionFlag(absl::string_view argument) {
  return argument == "--version" || argument == "-version";
}

absl::StatusOr<ParsedCommandLine> ParseCommandLine(const Command& command,
                                                   const std::vector<std::string>& argv) {
  MERIDIAN_CHECK(!argv.empty());
  return Parser(command, argv).Parse();
}

absl::StatusOr<const Command*> FindCommand(const std::vector<Command>& commands,
                                           absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Command& command : commands) {
    if (command.name == name) return &command;
    names.push_back(command.name);
  }
  return InvalidArgument("'", name, "' is none of its commands", Suggestion(name, names, ""));
}

std::string HelpText(const Command& command, absl::string_view prefix) {
  const bool has_commands = !command.commands.empty();
  std::string page;
  for (const std::string& line : Wrap(command.summary, 0)) absl::StrAppend(&page, line, "\n");
  absl::StrAppend(&page, "\nUsage: ", prefix, command.name,
                  has_commands ? " COMMAND [flags]\n\nCommands:\n" : "");
  for (size_t i = 0; i < command.unnamed; ++i) {
    absl::StrAppend(&page, " ", absl::AsciiStrToUpper(command.flags[i]->name()));
  }
  if (!has_commands) absl::StrAppend(&page, " [flags]\n\nFlags:\n");
  std::vector<std::pair<std::string, std::string>> items;
  for (const Command& part : command.commands) items.emplace_back(part.name, part.summary);
  if (has_commands) {
    items.emplace_back("help", "Show this page, or that of a command.");
    items.emplace_back("--version", "Show the version.");
  } else {
    for (const AnyFlag* flag : command.flags) {
      items.emplace_back(absl::StrCat("--", flag->name()), FlagHelp(*flag));
    }
    items.emplace_back("--help", "Show this page.");
  }
  AppendList(items, &page);
  if (!command.examples.empty()) absl::StrAppend(&page, "\nExamples:\n");
  for (const std::string& example : command.examples) {
    absl::StrAppend(&page, "  ", prefix, example, "\n");
  }
  return page;
}

std::string EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string UserDirectory() { return EnvironmentVariable("BUILD_WORKING_DIRECTORY"); }

std::string UserPath(const std::string& path) { return ResolvePath(path, UserDirectory()); }

InputFileOptions UserInputOptions() {
  InputFileOptions options;
  const std::string directory = EnvironmentVariable("TMPDIR");
  if (!directory.empty()) options.temporary_directory = directory;
  return options;
}

}  // namespace meridian
