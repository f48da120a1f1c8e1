// Replaces words and numbers by others, the same ones by the same ones, so that a text keeps its
// structure and says nothing: "[[128, 1024]]" becomes "[[7, 12]]", "Tensor(float)" "w3(w4)".
#ifndef CHAKRA_EXPORT_INSPECT_TEXT_DISGUISE_H_
#define CHAKRA_EXPORT_INSPECT_TEXT_DISGUISE_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace meridian {

// Replacements count up in the order of first use and leave out what occurs in the originals, so
// every text must be announced before the first is replaced.
class TextDisguise {
 public:
  // Of texts that Replace, or ReplaceParts, will be given.
  void Announce(absl::string_view text);
  void AnnounceParts(absl::string_view text);

  // Returns the replacement of a whole text: "op1", "op2", ... An empty text stays empty.
  std::string Replace(absl::string_view text);

  // Replaces each word and each number of the text. Brackets, commas, quotes and spaces stay; any
  // other character becomes '?'.
  std::string ReplaceParts(absl::string_view text);

 private:
  std::string NextFree(absl::string_view prefix, uint64_t* count) const;
  const std::string& ReplacePart(absl::string_view part);

  absl::flat_hash_set<std::string> originals_;
  absl::flat_hash_map<std::string, std::string> whole_;
  absl::flat_hash_map<std::string, std::string> parts_;
  uint64_t whole_count_ = 0;
  uint64_t word_count_ = 0;
  uint64_t number_count_ = 0;
};

}  // namespace meridian

#endif  // CHAKRA_EXPORT_INSPECT_TEXT_DISGUISE_H_
