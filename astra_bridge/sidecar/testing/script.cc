#include "astra_bridge/sidecar/testing/script.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace meridian {
namespace {

constexpr char kScript[] = "script";

}  // namespace

std::string ScriptedProgram() {
  char* folder = getcwd(nullptr, 0);
  const std::string path = absl::StrCat(folder, "/astra_bridge/sidecar/testing/scripted_program");
  std::free(folder);
  return path;
}

void UseScript(const TemporaryDirectory& directory, const std::string& script) {
  unlink(directory.PathOf(absl::StrCat(kScript, ".runs")).c_str());
  setenv("MERIDIAN_TEST_SCRIPT", directory.Write(kScript, script).c_str(), 1);
}

int ScriptRuns(const TemporaryDirectory& directory) {
  std::ifstream runs(directory.PathOf(absl::StrCat(kScript, ".runs")), std::ios::ate);
  return runs ? static_cast<int>(runs.tellg()) : 0;
}

std::string FinishScript(const std::vector<int64_t>& finish_ns) {
  std::string script;
  for (size_t rank = 0; rank < finish_ns.size(); ++rank) {
    absl::StrAppend(&script, "out [2026-11-15 05:00:00.123] [workload] [info] sys[", rank,
                    "] finished, ", finish_ns[rank], " cycles, exposed communication ",
                    finish_ns[rank], " cycles.\n");
  }
  return script;
}

}  // namespace meridian
