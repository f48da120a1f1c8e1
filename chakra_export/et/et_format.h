// What reader and writer of Chakra execution traces agree on.
#ifndef CHAKRA_EXPORT_ET_ET_FORMAT_H_
#define CHAKRA_EXPORT_ET_ET_FORMAT_H_

#include <cstdint>

namespace meridian {

// `version` of the metadata in files made here.
inline constexpr char kEtSchemaVersion[] = "1.0.0";

// Longer records are refused: decoded, one can take thirty times its bytes.
inline constexpr uint64_t kMaxEtRecordBytes = uint64_t{64} << 20;

}  // namespace meridian

#endif  // CHAKRA_EXPORT_ET_ET_FORMAT_H_
