// SPDX-License-Identifier: Apache-2.0
// The recorded runs, whose ranks share one clock: those of examples/ and, where they are, those beside
// the checkout (shared_data.h).
#ifndef TRACE_ALIGNMENT_TESTING_RECORDED_FILES_H_
#define TRACE_ALIGNMENT_TESTING_RECORDED_FILES_H_

#include <map>
#include <string>
#include <vector>

namespace meridian {

// Returns runs by their names, each with its files. Those with "_skewed" are put off already and left
// out.
std::map<std::string, std::vector<std::string>> RecordedFiles();

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_RECORDED_FILES_H_
