#include "tools/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "xla_profiler/base/command_line/flag.h"

namespace meridian {
namespace {

// Appends one line of a case statement for the command, and for those that it consists of: what may
// follow the names so far, which `path` joins by blanks.
void AppendWords(const Command& command, const std::string& path, std::string* cases) {
  std::vector<std::string> words;
  for (const Command& part : command.commands) {
    words.push_back(part.name);
    AppendWords(part, path.empty() ? part.name : absl::StrCat(path, " ", part.name), cases);
  }
  if (command.commands.empty()) {
    for (const AnyFlag* flag : command.flags) {
      words.push_back(absl::StrCat("--", flag->name(), flag->is_switch() ? "" : "="));
    }
    words.push_back("--json");
  } else {
    words.push_back("help");
  }
  words.push_back("--help");
  if (path.empty()) words.push_back("--version");
  absl::StrAppend(cases, "    \"", path, "\") words=\"", absl::StrJoin(words, " "), "\" ;;\n");
}

}  // namespace

std::string BashCompletion(const Command& program) {
  std::string cases;
  AppendWords(program, "", &cases);
  return absl::StrCat("# Completion of ", program.name, " for bash.\n_", program.name, R"(() {
  local path= words= word current=${COMP_WORDS[COMP_CWORD]} i
  # Names of commands come first; what begins with a dash ends them.
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    [[ $word == -* ]] && break
    [[ $word == help ]] || path="${path:+$path }$word"
  done
  # Bash takes the equals sign for a word of its own.
  if [[ $current == = || ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    COMPREPLY=($(compgen -f -- "${current#=}"))
    return
  fi
  case $path in
)",
                      cases, R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o filenames -F _)",
                      program.name, " ", program.name, "\n");
}

std::string ZshCompletion(const Command& program) {
  return absl::StrCat("#compdef ", program.name, "\nautoload -U +X bashcompinit && bashcompinit\n",
                      BashCompletion(program));
}

}  // namespace meridian
