// SPDX-License-Identifier: Apache-2.0
// A flag of a command: a value with a name, a default and help.
//
//   Flag<int64_t> FLAGS_max_nodes("max_nodes", 200, "How many nodes to show at most.");
//   ... FLAGS_max_nodes.value() ...
//
// Texts are read and written as Abseil's flags do. Unlike those, flags are in no registry of the
// process: one program holds many commands, each with an --output of its own.
#ifndef XLA_PROFILER_BASE_COMMAND_LINE_FLAG_H_
#define XLA_PROFILER_BASE_COMMAND_LINE_FLAG_H_

#include <string>
#include <type_traits>
#include <utility>

#include "absl/flags/marshalling.h"
#include "absl/strings/string_view.h"

namespace meridian {

// A flag of any type.
class AnyFlag {
 public:
  // The texts must outlive the flag.
  AnyFlag(absl::string_view name, absl::string_view help) : name_(name), help_(help) {}
  AnyFlag(const AnyFlag&) = delete;
  AnyFlag& operator=(const AnyFlag&) = delete;
  virtual ~AnyFlag() = default;

  absl::string_view name() const { return name_; }
  absl::string_view help() const { return help_; }
  // Takes the value from a text. False, with the reason if there is one to tell, when the text is
  // none of the flag's values.
  virtual bool Set(absl::string_view text, std::string* error) = 0;
  // True when the flag has another value than its default: an empty text is not given.
  virtual bool given() const = 0;
  virtual std::string DefaultText() const = 0;
  // True for a flag that is on or off, and needs no value.
  virtual bool is_switch() const = 0;
  virtual bool is_text() const = 0;

 private:
  absl::string_view name_;
  absl::string_view help_;
};

template <typename T>
class Flag final : public AnyFlag {
 public:
  Flag(absl::string_view name, T default_value, absl::string_view help)
      : AnyFlag(name, help), default_(std::move(default_value)), value_(default_) {}

  const T& value() const { return value_; }

  bool Set(absl::string_view text, std::string* error) override {
    return absl::ParseFlag(text, &value_, error);
  }
  bool given() const override { return value_ != default_; }
  std::string DefaultText() const override { return absl::UnparseFlag(default_); }
  bool is_switch() const override { return std::is_same<T, bool>::value; }
  bool is_text() const override { return std::is_same<T, std::string>::value; }

 private:
  const T default_;
  T value_;
};

}  // namespace meridian

#endif  // XLA_PROFILER_BASE_COMMAND_LINE_FLAG_H_
