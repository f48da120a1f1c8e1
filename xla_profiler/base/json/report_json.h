// SPDX-License-Identifier: Apache-2.0
// JSON of the report messages that commands print with --json, and read back.
#ifndef XLA_PROFILER_BASE_JSON_REPORT_JSON_H_
#define XLA_PROFILER_BASE_JSON_REPORT_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}

namespace meridian {

// One object, indented, newline at the end: fields in snake_case, zeros and empty lists printed,
// unset `optional` fields absent, maps sorted by key. Integers are numbers, also
// beyond 2^53, where a reader that holds numbers as doubles rounds them. Strings that are not UTF-8 have the bad bytes replaced, so that a report about a broken file can still be printed.
std::string ReportToJson(const google::protobuf::Message& report);

// The same as ReportToJson without blanks between: for programs.
std::string ReportToCompactJson(const google::protobuf::Message& report);

// Reads what ReportToJson wrote into *report; integers may be numbers or strings. InvalidArgument
// with the reason, a printable piece of a line, for anything else.
absl::Status ReportFromJson(absl::string_view json, google::protobuf::Message* report);

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_JSON_REPORT_JSON_H_
