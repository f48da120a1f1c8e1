// SPDX-License-Identifier: Apache-2.0
// The processes that share the work on a run. Each has some of its traces, reads them and writes
// what becomes of them; the first also finds the clocks and the report. This class is the one
// process that has all traces: nothing is to be sent.
//
// All processes call the same functions in the same order, since each waits for the others.
#ifndef TRACE_ALIGNMENT_RUN_RUN_PROCESSES_H_
#define TRACE_ALIGNMENT_RUN_RUN_PROCESSES_H_

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace meridian {

class RunProcesses {
 public:
  virtual ~RunProcesses() = default;

  virtual bool is_alone() const { return true; }
  virtual bool is_first() const { return true; }
  // True when this process has the trace. The first process has the first trace.
  virtual bool Has(size_t /*trace*/) const { return true; }

  // Returns the same everywhere: OK when all are, else the failure of the first process that has
  // one, which it names.
  virtual absl::Status Agree(const absl::Status& status) { return status; }

  // Gives what the first process has to all.
  virtual void Broadcast(std::string* /*bytes*/) {}

  // Carries bytes about each trace that another process than the first has from there to the first,
  // one trace after the other; and back. Returns what they agree on.
  using MakeBytes = absl::FunctionRef<std::string(size_t trace)>;
  using TakeBytes = absl::FunctionRef<absl::Status(size_t trace, absl::string_view bytes)>;
  virtual absl::Status Gather(size_t /*traces*/, MakeBytes /*make*/, TakeBytes /*take*/) {
    return absl::OkStatus();
  }
  virtual absl::Status Scatter(size_t /*traces*/, MakeBytes /*make*/, TakeBytes /*take*/) {
    return absl::OkStatus();
  }
};

}  // namespace meridian

#endif  // TRACE_ALIGNMENT_RUN_RUN_PROCESSES_H_
