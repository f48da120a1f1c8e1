#include "chakra_export/generate/testing/workload_check.h"

#include "chakra_export/et/comm_groups.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et_tools/chakra_report.pb.h"
#include "chakra_export/et_tools/et_check.h"
#include "chakra_export/graph/et_graph_reader.h"
#include "chakra_export/graph/execution_graph.h"
#include "chakra_export/run/workload_report.pb.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/testing/temporary_directory.h"

namespace meridian {

absl::StatusOr<std::vector<std::string>> ProblemsOf(const GeneratedWorkload& workload) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.PathOf("w");
  FileSystem& file_system = FileSystem::Posix();
  ASSIGN_OR_RETURN(const ChakraWorkloadReport report,
                   WriteGeneratedWorkload(file_system, workload, prefix));
  ASSIGN_OR_RETURN(const EtFiles files, FindEtFiles(file_system, prefix));
  EtGraphReaderOptions check;
  EtGraphReaderOptions reader;
  if (!report.comm_groups().empty()) {
    ASSIGN_OR_RETURN(check.groups, ReadCommGroups(file_system, report.comm_groups()));
    reader.groups = check.groups;
  }
  EtProblems problems;
  RETURN_IF_ERROR(CheckEtFiles(file_system, files, check, &problems));
  ASSIGN_OR_RETURN(const ExecutionGraph graph, ReadEtGraph(file_system, files, reader));
  CheckEtGraph(graph, &problems);
  std::vector<std::string> messages;
  for (const ChakraProblemReport& problem : problems.report().problems()) {
    messages.push_back(problem.message());
  }
  return messages;
}

}  // namespace meridian
