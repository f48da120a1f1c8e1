// SPDX-License-Identifier: Apache-2.0
// Holds the combiner against the simplest thing that could do its work: all events of both profiles,
// as libprotobuf reads them, put into one list. Used on damaged profiles and by the fuzzer.
#ifndef TRACE_ALIGNMENT_TESTING_NAIVE_MERGE_H_
#define TRACE_ALIGNMENT_TESTING_NAIVE_MERGE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "trace_alignment/combine/combiner.h"

namespace meridian {

// What became of the bytes.
enum class MergeVerdict { kRefused, kMerged };

// Combines the profile with a good one whose clock is some microseconds off. Returns an Internal
// error unless the combined profile is read by libprotobuf and by the streaming reader, and has
// every event of both, at its time on the common clock, with its line's name, its metadata and its
// stats, and no other. Ids of programs are left out: the combiner renumbers them.
absl::Status CompareWithNaiveMerge(absl::string_view bytes, PlaneNaming naming,
                                   MergeVerdict* verdict);

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_TESTING_NAIVE_MERGE_H_
