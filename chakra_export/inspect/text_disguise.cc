#include "chakra_export/inspect/text_disguise.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace meridian {
namespace {

constexpr absl::string_view kWholePrefix = "op";
constexpr absl::string_view kWordPrefix = "w";
constexpr absl::string_view kKeptCharacters = "[](){},'\" ";

bool IsWordCharacter(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

// Removes the first word or number, or one other character, and returns it.
absl::string_view ConsumePart(absl::string_view* text) {
  size_t length = 1;
  if (IsWordCharacter(text->front())) {
    while (length < text->size() && IsWordCharacter((*text)[length])) ++length;
  }
  const absl::string_view part = text->substr(0, length);
  text->remove_prefix(length);
  return part;
}

bool IsNumber(absl::string_view part) { return absl::ascii_isdigit(part.front()); }

}  // namespace

void TextDisguise::Announce(absl::string_view text) { originals_.emplace(text); }

void TextDisguise::AnnounceParts(absl::string_view text) {
  while (!text.empty()) {
    const absl::string_view part = ConsumePart(&text);
    if (IsWordCharacter(part.front())) originals_.emplace(part);
  }
}

std::string TextDisguise::Replace(absl::string_view text) {
  if (text.empty()) return "";
  std::string& replacement = whole_[std::string(text)];
  if (replacement.empty()) replacement = NextFree(kWholePrefix, &whole_count_);
  return replacement;
}

std::string TextDisguise::ReplaceParts(absl::string_view text) {
  std::string replaced;
  while (!text.empty()) {
    const absl::string_view part = ConsumePart(&text);
    if (IsWordCharacter(part.front())) {
      replaced += ReplacePart(part);
    } else {
      replaced +=
          kKeptCharacters.find(part.front()) == absl::string_view::npos ? '?' : part.front();
    }
  }
  return replaced;
}

const std::string& TextDisguise::ReplacePart(absl::string_view part) {
  std::string& replacement = parts_[std::string(part)];
  if (replacement.empty()) {
    replacement =
        IsNumber(part) ? NextFree("", &number_count_) : NextFree(kWordPrefix, &word_count_);
  }
  return replacement;
}

std::string TextDisguise::NextFree(absl::string_view prefix, uint64_t* count) const {
  std::string candidate;
  do {
    candidate = absl::StrCat(prefix, ++*count);
  } while (originals_.contains(candidate));
  return candidate;
}

}  // namespace meridian
