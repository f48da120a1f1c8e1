// SPDX-License-Identifier: Apache-2.0
// gMock matchers and assertions for absl::Status and absl::StatusOr:
//
//   EXPECT_THAT(Parse("x"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 1")));
//   ASSERT_OK_AND_ASSIGN(const Plane plane, ReadPlane(bytes));
#ifndef XLA_PROFILER_BASE_TESTING_STATUS_MATCHERS_H_
#define XLA_PROFILER_BASE_TESTING_STATUS_MATCHERS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xla_profiler/base/errors.h"

namespace meridian {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }

template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// Matches a status by its code.
MATCHER_P(StatusIs, code,
          std::string(negation ? "has not" : "has") + " the code " +
              absl::StatusCodeToString(code)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

// Matches a status by its code and a matcher (or exact text) for its message.
MATCHER_P2(StatusIs, code, message_matcher,
           std::string(negation ? "has not" : "has") + " the code " +
               absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message_matcher)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         ::testing::Matches(message_matcher)(std::string(StatusOf(arg).message()));
}

// Matches a StatusOr that is OK and whose value matches.
MATCHER_P(IsOkAndHolds, value_matcher,
          negation ? "is an error or another value" : "holds a value") {
  *result_listener << StatusOf(arg).ToString();
  return arg.ok() && ::testing::ExplainMatchResult(value_matcher, *arg, result_listener);
}

}  // namespace meridian

#define EXPECT_OK(expression) EXPECT_THAT(expression, ::meridian::IsOk())
#define ASSERT_OK(expression) ASSERT_THAT(expression, ::meridian::IsOk())

// Declares or assigns the value, or ends the test.
#define ASSERT_OK_AND_ASSIGN(lhs, expression) \
  MERIDIAN_ASSERT_OK_AND_ASSIGN_(MERIDIAN_CONCAT_(meridian_statusor_, __LINE__), lhs, expression)

#define MERIDIAN_ASSERT_OK_AND_ASSIGN_(statusor, lhs, expression) \
  auto statusor = (expression);                                   \
  ASSERT_OK(statusor);                                            \
  lhs = *std::move(statusor)

#endif  // XLA_PROFILER_BASE_TESTING_STATUS_MATCHERS_H_
