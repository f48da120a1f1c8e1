#include "xla_profiler/base/testing/run_command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "xla_profiler/base/errors.h"

extern char** environ;

namespace meridian {
namespace {

// A temporary file that takes one output stream of the command.
class Capture {
 public:
  Capture() : file_(std::tmpfile()) { MERIDIAN_CHECK(file_ != nullptr); }
  ~Capture() { std::fclose(file_); }

  int descriptor() const { return fileno(file_); }

  std::string Contents() const {
    std::rewind(file_);
    std::string contents;
    char buffer[4096];
    size_t count;
    while ((count = std::fread(buffer, 1, sizeof(buffer), file_)) > 0)
      contents.append(buffer, count);
    return contents;
  }

 private:
  std::FILE* file_;
};

}  // namespace

CommandResult RunCommandLine(const std::string& command,
                             const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>(command.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const Capture output, error;
  posix_spawn_file_actions_t actions;
  MERIDIAN_CHECK(posix_spawn_file_actions_init(&actions) == 0);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error.descriptor(), STDERR_FILENO);
  pid_t pid = 0;
  MERIDIAN_CHECK(posix_spawn(&pid, command.c_str(), &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);

  int status = 0;
  rusage usage = {};
  MERIDIAN_CHECK(wait4(pid, &status, 0, &usage) == pid);
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  result.peak_bytes = int64_t{usage.ru_maxrss} * 1024;
  result.standard_output = output.Contents();
  result.standard_error = error.Contents();
  return result;
}

}  // namespace meridian
