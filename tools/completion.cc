#include "tools/completion.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "xla_profiler/base/command_line/flag.h"

namespace meridian {
namespace {

// Appends one line of a case statement for the command, and for those that it consists of: what may
// follow the names so far, which `path` joins by blanks.
void AppendChoices(const Command& command, const std::string& path, std::string* cases) {
  std::vector<std::string> choices;
  for (const Command& part : command.commands) {
    choices.push_back(part.name);
    AppendChoices(part, path.empty() ? part.name : absl::StrCat(path, " ", part.name), cases);
  }
  if (command.commands.empty()) {
    for (const AnyFlag* flag : command.flags) {
      choices.push_back(absl::StrCat("--", flag->name(), flag->is_switch() ? "" : "="));
    }
    choices.push_back("--json");
  } else {
    choices.push_back("help");
  }
  choices.push_back("--help");
  if (path.empty()) choices.push_back("--version");
  absl::StrAppend(cases, "    \"", path, "\") choices=\"", absl::StrJoin(choices, " "), "\" ;;\n");
}

// Fills the template of a script with the program's name and the choices.
std::string Fill(const char* script, const Command& program) {
  std::string cases;
  AppendChoices(program, "", &cases);
  return absl::StrReplaceAll(script, {{"@PROGRAM@", program.name}, {"@CASES@", cases}});
}

// In both scripts names of commands come first, and what begins with a dash ends them. A flag that
// takes a value is listed with its equals sign.

constexpr char kBash[] = R"(# Completion of @PROGRAM@ for bash.
_@PROGRAM@() {
  local command= choices= i current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -* ]] && break
    [[ ${COMP_WORDS[i]} == help ]] || command="${command:+$command }${COMP_WORDS[i]}"
  done
  case $command in
@CASES@  esac
  # Bash takes the equals sign for a word of its own. A value is a file, most of the time.
  if [[ $current == = || $before == = || ($before == --* && " $choices " == *" $before= "*) ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "${current#=}")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -F _@PROGRAM@ @PROGRAM@
)";

constexpr char kZsh[] = R"(#compdef @PROGRAM@
# Completion of @PROGRAM@ for zsh.
_@PROGRAM@() {
  local command= choices= i before=${words[CURRENT - 1]}
  for ((i = 2; i < CURRENT; ++i)); do
    [[ ${words[i]} == -* ]] && break
    [[ ${words[i]} == help ]] || command="${command:+$command }${words[i]}"
  done
  case $command in
@CASES@  esac
  if [[ $PREFIX == --*=* ]]; then
    compset -P '*='
    _files
  elif [[ $before == --* && " $choices " == *" $before= "* ]]; then
    _files
  else
    local -a all=(${=choices})
    compadd -S '' -- ${(M)all:#*=}
    compadd -- ${all:#*=}
  fi
}
if [[ $funcstack[1] == _@PROGRAM@ ]]; then
  _@PROGRAM@ "$@"
else
  compdef _@PROGRAM@ @PROGRAM@
fi
)";

}  // namespace

std::string BashCompletion(const Command& program) { return Fill(kBash, program); }

std::string ZshCompletion(const Command& program) { return Fill(kZsh, program); }

}  // namespace meridian
