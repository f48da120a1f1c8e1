// SPDX-License-Identifier: Apache-2.0
#ifndef REPORT_HTML_TEXT_H_
#define REPORT_HTML_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace meridian {

// Returns the text as it may stand between tags and in quoted attributes, whoever wrote it: markup
// is escaped; what is not UTF-8, controls the terminal of who prints the page, or turns the
// direction of the text around it is shown as U+FFFD. Line breaks and tabs become spaces.
std::string HtmlEscape(absl::string_view text);

}  // namespace meridian

#endif  // REPORT_HTML_TEXT_H_
