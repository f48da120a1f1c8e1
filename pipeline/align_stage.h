// SPDX-License-Identifier: Apache-2.0
// What alignment says about a run: of how many ranks it is, on which hosts, and what findings about it
// can rest on.
#ifndef PIPELINE_ALIGN_STAGE_H_
#define PIPELINE_ALIGN_STAGE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "report/run_report.pb.h"

namespace meridian {

// Fills in the run, the evidence, slow links, notes and files from report->combine(). Files below
// `folder`, which ends with a slash, are named as seen from there.
void DescribeAlignment(absl::string_view folder, RunReport* report);

// Returns the part of the report that alignment knows, with its findings.
RunReport AlignmentReport(const CombineReport& combined, const std::string& title);

// Adds a file that was written, with what it is good for.
void AddFile(absl::string_view kind, absl::string_view name, int64_t bytes, RunReport* report);

// A time for people: "2026-11-17 06:32:02 UTC".
std::string UtcText(absl::Time time);

}  // namespace meridian

#endif  // PIPELINE_ALIGN_STAGE_H_
