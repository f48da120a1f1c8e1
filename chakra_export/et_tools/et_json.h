// SPDX-License-Identifier: Apache-2.0
// Chakra traces as one JSON document, written node by node:
//
//   {"ranks":[
//   {"rank":0,"path":"w.0.et","metadata":{"version":"1.0.0","attr":[]},"nodes":[
//   {"id":1,"name":"matmul","type":"COMP_NODE","ctrl_deps":[],"data_deps":[],
//    "start_time_micros":0,"duration_micros":5,
//    "attr":[{"name":"is_cpu_op","doc_string":"","bool_val":false}]}
//   ]}
//   ]}
//
// Numbers are numbers, also beyond 2^53; bytes are base64; fields that the schema does not know are
// left out.
#ifndef CHAKRA_EXPORT_ET_TOOLS_ET_JSON_H_
#define CHAKRA_EXPORT_ET_TOOLS_ET_JSON_H_

#include "absl/status/status.h"
#include "chakra_export/et/et_files.h"
#include "chakra_export/et/et_reader.h"
#include "xla_profiler/base/files/byte_sink.h"
#include "xla_profiler/base/files/file_system.h"

namespace meridian {

// Every file is read once before anything is written: a bad one leaves no half document.
absl::Status WriteEtJson(FileSystem& file_system, const EtFiles& files,
                         const EtReaderOptions& options, ByteSink* sink);

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_TOOLS_ET_JSON_H_
