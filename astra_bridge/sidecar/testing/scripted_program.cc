// A program that does what a script says, in place of one that would need the right weather: it
// replays recorded output and fails on demand. The script is the file named by
// MERIDIAN_TEST_SCRIPT, a command a line; a file beside it with ".runs" at its end gets a byte per
// run.
//
//   run N              what follows is for the N-th run of the script, up to the next "run"
//   out TEXT           writes TEXT and a line break to standard output
//   err TEXT           the same to standard error
//   log TEXT           the same to the end of log.log in the folder of --logging-folder=, or in log
//   raw HEX            writes bytes to standard output
//   flood BYTES        writes that many bytes to standard output
//   fill FILE          writes to a file without end
//   args               writes its arguments to standard output, one a line
//   save FILE          writes its arguments to a file, one a line
//   limit              writes its limit on open files to standard output
//   read FILE          writes what is in a file
//   group FILE         starts a process that sleeps for a minute, and writes both ids to FILE
//   sleep MILLISECONDS
//   close              closes both streams
//   signal NUMBER      ends itself by a signal
//   signal_parent NUMBER
//   exit CODE
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace {

std::string Argument(int argc, char** argv, const std::string& name) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind(name + "=", 0) == 0) return argument.substr(name.size() + 1);
  }
  return "";
}

void WriteHex(const std::string& hex) {
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    std::cout << static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
}

void Flood(long bytes) {
  const std::string block(1 << 16, 'x');
  for (; bytes > 0; bytes -= static_cast<long>(block.size())) std::cout << block;
}

// Returns how many runs there have been, with this one.
int CountRun(const std::string& script) {
  const std::string file = script + ".runs";
  std::ofstream(file, std::ios::app) << '.';
  return static_cast<int>(std::ifstream(file, std::ios::ate).tellg());
}

void StartSleeper(const std::string& file) {
  const pid_t sleeper = fork();
  if (sleeper == 0) {
    sleep(60);
    _exit(0);
  }
  std::ofstream(file) << getpid() << " " << sleeper << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  const char* script = std::getenv("MERIDIAN_TEST_SCRIPT");
  if (script == nullptr) return 99;
  const int run = CountRun(script);
  bool is_for_this_run = true;
  std::ifstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (command == "run") is_for_this_run = std::stoi(rest) == run;
    if (!is_for_this_run) continue;
    if (command == "out") std::cout << rest << std::endl;
    if (command == "err") std::cerr << rest << std::endl;
    if (command == "log") {
      const std::string folder = Argument(argc, argv, "--logging-folder");
      std::ofstream((folder.empty() ? "log" : folder) + "/log.log", std::ios::app) << rest << "\n";
    }
    if (command == "raw") WriteHex(rest);
    if (command == "flood") Flood(std::stol(rest));
    if (command == "fill") {
      std::ofstream file(rest);
      while (file << std::string(1 << 16, 'x') << std::flush) {
      }
    }
    if (command == "args") {
      for (int i = 1; i < argc; ++i) std::cout << argv[i] << std::endl;
    }
    if (command == "save") {
      std::ofstream file(rest);
      for (int i = 1; i < argc; ++i) file << argv[i] << "\n";
    }
    if (command == "limit") {
      struct rlimit limit;
      getrlimit(RLIMIT_NOFILE, &limit);
      std::cout << limit.rlim_cur << " " << limit.rlim_max << std::endl;
    }
    if (command == "read") std::cout << std::ifstream(rest).rdbuf() << std::flush;
    if (command == "group") StartSleeper(rest);
    if (command == "sleep") usleep(static_cast<useconds_t>(std::stol(rest) * 1000));
    if (command == "close") {
      close(STDOUT_FILENO);
      close(STDERR_FILENO);
    }
    if (command == "signal") {
      std::cout << std::flush;
      // Sanitizers have handlers of their own.
      std::signal(std::stoi(rest), SIG_DFL);
      raise(std::stoi(rest));
    }
    if (command == "signal_parent") kill(getppid(), std::stoi(rest));
    if (command == "exit") {
      std::cout << std::flush;
      _exit(std::stoi(rest));
    }
  }
  return 0;
}
