// Makes the page of a report that is given as JSON: make_page REPORT.json PAGE.html. For tests of the page.
#include <cstdio>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "report/run_report.pb.h"
#include "report/run_report_html.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/files/atomic_file_writer.h"
#include "xla_profiler/base/files/file_system.h"
#include "xla_profiler/base/json/report_json.h"

namespace meridian {
namespace {

absl::Status MakePage(const char* json_path, const char* page_path) {
  FileSystem& files = FileSystem::Posix();
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedRegion> json, files.Map(json_path));
  RunReport report;
  RETURN_IF_ERROR(ReportFromJson(json->bytes(), &report));
  ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFileWriter> page,
                   AtomicFileWriter::Create(files, page_path));
  RETURN_IF_ERROR(page->Append(RunReportHtml(report)));
  return page->Commit();
}

}  // namespace
}  // namespace meridian

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "make_page REPORT.json PAGE.html\n");
    return 2;
  }
  const absl::Status status = meridian::MakePage(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "make_page: %s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 2;
}
