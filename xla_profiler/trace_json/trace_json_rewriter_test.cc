#include "xla_profiler/trace_json/trace_json_rewriter.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/testing/status_matchers.h"

namespace meridian {
namespace {

using ::testing::HasSubstr;

// Writes the document with every ts twice, as text.
absl::StatusOr<std::string> Rewritten(absl::string_view text) {
  std::string out;
  StringSink sink(&out);
  RETURN_IF_ERROR(RewriteTraceJson(
      text,
      [](const WrittenEvent& event, EventEdits* edits) {
        if (!event.ts.empty()) edits->emplace_back(event.ts, absl::StrCat(event.ts, event.ts));
        if (event.Is('X') && !event.dur.empty()) edits->emplace_back(event.dur, "0");
      },
      sink));
  return out;
}

TEST(TraceJsonRewriterTest, EveryOtherByteStays) {
  EXPECT_THAT(Rewritten("{ \"a\" : [1, 2],\n \"traceEvents\": [\n {\"ph\": \"X\", \"dur\": 7, "
                        "\"ts\": 1 , \"args\": {\"ts\": 5, \"b\": \"]}\"}},\n\n{\"ph\":\"i\","
                        "\"ts\":3,\"dur\":9} ], \"z\": \"\\u00e4\" }\n"),
              IsOkAndHolds("{ \"a\" : [1, 2],\n \"traceEvents\": [\n {\"ph\": \"X\", \"dur\": 0, "
                           "\"ts\": 11 , \"args\": {\"ts\": 5, \"b\": \"]}\"}},\n\n{\"ph\":\"i\","
                           "\"ts\":33,\"dur\":9} ], \"z\": \"\\u00e4\" }\n"));
  EXPECT_THAT(Rewritten("[{\"ts\":1},{}]"), IsOkAndHolds("[{\"ts\":11},{}]"));
}

TEST(TraceJsonRewriterTest, WhatCanNotBeReadStays) {
  EXPECT_THAT(Rewritten("[7, {\"ts\": 2}]"), IsOkAndHolds("[7, {\"ts\": 22}]"));
  EXPECT_THAT(Rewritten("[7, {\"ts\" 1}, {\"ts\": 2}]"),
              StatusIs(absl::StatusCode::kInvalidArgument, "offset 10: expected ':'"));
}

TEST(TraceJsonRewriterTest, CutOffDocumentsAreRefused) {
  EXPECT_THAT(Rewritten("{\"traceEvents\": [{\"ts\": 1}, {\"ts"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("offset")));
}

// More than what is collected before it is written.
TEST(TraceJsonRewriterTest, LargeDocumentsComeInPieces) {
  std::string text = "{\"traceEvents\":[", expected = text;
  for (int i = 0; i < 50000; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", "{\"ph\":\"i\",\"ts\":", i, "}");
    absl::StrAppend(&expected, i == 0 ? "" : ",", "{\"ph\":\"i\",\"ts\":", i, i, "}");
  }
  EXPECT_THAT(Rewritten(text + "]}"), IsOkAndHolds(expected + "]}"));
}

}  // namespace
}  // namespace meridian
