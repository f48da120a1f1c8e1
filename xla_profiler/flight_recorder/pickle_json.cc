#include "xla_profiler/flight_recorder/pickle_json.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/base/casts.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "xla_profiler/base/errors.h"
#include "xla_profiler/base/json/json_writer.h"

namespace meridian {
namespace {

// clang-format off
enum PickleAct { kSkip, kCall, kStop, kMark, kConstant, kUnsigned, kSigned, kLong, kFloat, kText,
                 kGet, kPut, kMemoize, kList, kDict, kInto };
// clang-format on
constexpr int kToMark = -1;

struct PickleOpcode {
  uint8_t code;
  const char* name;
  PickleAct act;
  // The bytes of the number that follows; of the last three acts the count of values that are taken
  // from the stack, or kToMark.
  int size;
};

// clang-format off
constexpr PickleOpcode kPickleOpcodes[] = {
    {0x80, "PROTO", kSkip, 1}, {0x95, "FRAME", kSkip, 8}, {'.', "STOP", kStop, 0},
    {'(', "MARK", kMark, 0}, {'N', "null", kConstant, 0}, {0x88, "true", kConstant, 0},
    {0x89, "false", kConstant, 0}, {'K', "BININT1", kUnsigned, 1}, {'M', "BININT2", kUnsigned, 2},
    {'J', "BININT", kSigned, 4}, {0x8a, "LONG1", kLong, 1}, {'G', "BINFLOAT", kFloat, 8},
    {'X', "BINUNICODE", kText, 4}, {0x8c, "SHORT_BINUNICODE", kText, 1}, {'h', "BINGET", kGet, 1},
    {'j', "LONG_BINGET", kGet, 4}, {'q', "BINPUT", kPut, 1}, {'r', "LONG_BINPUT", kPut, 4},
    {0x94, "MEMOIZE", kMemoize, 0}, {']', "EMPTY_LIST", kList, 0}, {')', "EMPTY_TUPLE", kList, 0},
    {0x85, "TUPLE1", kList, 1}, {0x86, "TUPLE2", kList, 2}, {0x87, "TUPLE3", kList, 3},
    {'t', "TUPLE", kList, kToMark}, {'}', "EMPTY_DICT", kDict, 0}, {'a', "APPEND", kInto, 1},
    {'e', "APPENDS", kInto, kToMark}, {'s', "SETITEM", kInto, 2}, {'u', "SETITEMS", kInto, kToMark},
    {'c', "GLOBAL", kCall, 0}, {0x93, "STACK_GLOBAL", kCall, 0}, {'R', "REDUCE", kCall, 0},
    {'b', "BUILD", kCall, 0}, {'i', "INST", kCall, 0}, {'o', "OBJ", kCall, 0},
    {0x81, "NEWOBJ", kCall, 0}, {0x92, "NEWOBJ_EX", kCall, 0}, {0x82, "EXT1", kCall, 0},
    {0x83, "EXT2", kCall, 0}, {0x84, "EXT4", kCall, 0}, {'P', "PERSID", kCall, 0},
    {'Q', "BINPERSID", kCall, 0}};
// clang-format on

// A value as JSON. A list or dict lacks its closing bracket, and can grow.
struct PickledValue {
  std::string json;
  std::string bracket;
};

class PickleMachine {
 public:
  explicit PickleMachine(absl::string_view pickle) : pickle_(pickle) {}

  absl::StatusOr<std::string> Run() {
    if (pickle_.size() > kMaxPickleJsonBytes) Fail("it is too long");
    if (absl::StartsWith(pickle_, "(") || absl::StartsWith(pickle_, "}"))
      Fail("a pickle of protocol 0 or 1; expected one of 2 to 5");
    uint64_t code = 0;
    while (status_.ok() && code != '.') {
      op_at_ = at_;
      code = TakeNumber(1);
      const auto* op = absl::c_find_if(
          kPickleOpcodes, [&](const PickleOpcode& opcode) { return opcode.code == code; });
      if (op != std::end(kPickleOpcodes)) {
        Do(*op);
      } else {
        Fail(absl::StrFormat("0x%02x is no opcode of plain values; is the file damaged?", code));
      }
      if (stack_.size() + memo_.size() > kMaxPickleValues) Fail("too many values");
    }
    RETURN_IF_ERROR(status_);
    return stack_[0]->json + stack_[0]->bracket;
  }

 private:
  using Values = std::vector<std::shared_ptr<PickledValue>>;

  void Do(const PickleOpcode& op) {
    switch (op.act) {
      case kCall:
        return Fail("the opcode ", op.name, " imports or calls something: refused");
      case kStop:
        if (stack_.size() != 1 || !HasTop()) Fail("it ends without one value");
        return;
      case kSkip:
        Take(op.size);
        return;
      case kMark:
        return stack_.push_back(nullptr);
      case kConstant:
        return Push(op.name);
      case kUnsigned:
        return Push(absl::StrCat(TakeNumber(op.size)));
      case kSigned:
        return PushSigned(op.size);
      case kLong:
        return PushSigned(TakeNumber(1));
      case kFloat:
        Push("");
        return AppendJsonNumber(absl::bit_cast<double>(__builtin_bswap64(TakeNumber(8))),
                                &stack_.back()->json);
      case kText:
        Push("");
        return AppendJsonString(Take(TakeNumber(op.size)), &stack_.back()->json);
      case kGet:
        if (auto& value = memo_[TakeNumber(op.size)]) return stack_.push_back(value);
        return Fail("nothing is remembered under this number");
      case kPut:
      case kMemoize:
        if (!HasTop()) return Fail("there is nothing to remember");
        memo_[op.act == kPut ? TakeNumber(op.size) : memo_.size()] = stack_.back();
        return;
      case kList:
      case kDict:
      case kInto:
        return Collect(op);
    }
  }

  void Push(absl::string_view json, absl::string_view bracket = "") {
    stack_.push_back(
        std::make_shared<PickledValue>(PickledValue{std::string(json), std::string(bracket)}));
  }

  void PushSigned(uint64_t bytes) {
    if (bytes > 8) return Fail("an integer of more than 64 bits");
    // Moved to the top and back, so that its sign is that of the 64 bits.
    const uint64_t unused = bytes == 0 ? 0 : 64 - 8 * bytes;
    Push(absl::StrCat(static_cast<int64_t>(TakeNumber(bytes) << unused) >> unused));
  }

  // Takes values off the stack, and the mark before them, and puts them into a new container, or
  // into the one below them.
  void Collect(const PickleOpcode& op) {
    const auto top = stack_.rbegin();
    const bool to_mark = op.size == kToMark;
    const ptrdiff_t count = to_mark ? std::find(top, stack_.rend(), nullptr) - top : op.size;
    const size_t taken = static_cast<size_t>(count) + (to_mark ? 1 : 0);
    if (taken > stack_.size()) return Fail("a value is missing");
    const Values values(stack_.end() - count, stack_.end());
    if (absl::c_linear_search(values, nullptr)) return Fail("a value is missing");
    stack_.resize(stack_.size() - taken);
    if (op.act == kList) Push("[", "]");
    if (op.act == kDict) Push("{", "}");
    if (!HasTop() || stack_.back()->bracket.empty()) return Fail("there is no container");
    PickledValue& into = *stack_.back();
    const bool is_dict = into.bracket == "}";
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string json = values[i]->json + values[i]->bracket;
      const bool is_key = is_dict && i % 2 == 0;
      const bool is_pair = json[0] == '"' && i + 1 < values.size();
      if (is_key && !is_pair) return Fail("a key is no text, or has no value");
      written_ += json.size();
      if (written_ > kMaxPickleJsonBytes) return Fail("it stands for too long a text");
      const bool is_first = into.json.size() == 1;
      absl::StrAppend(&into.json, is_dict && !is_key ? ":" : is_first ? "" : ",", json);
    }
  }

  bool HasTop() const { return !stack_.empty() && stack_.back() != nullptr; }

  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (status_.ok()) status_ = InvalidArgument("offset ", op_at_, ": ", parts...);
  }

  absl::string_view Take(uint64_t size) {
    if (size > pickle_.size() - at_) Fail("the pickle is cut off");
    if (!status_.ok()) return "";
    at_ += size;
    return pickle_.substr(at_ - size, size);
  }

  uint64_t TakeNumber(uint64_t bytes) {
    const absl::string_view taken = Take(bytes);
    uint64_t number = 0;
    for (size_t i = taken.size(); i > 0; --i)
      number = number << 8 | static_cast<uint8_t>(taken[i - 1]);
    return number;
  }

  absl::string_view pickle_;
  size_t at_ = 0;
  size_t op_at_ = 0;
  size_t written_ = 0;
  absl::Status status_;
  // Null pointers are marks; what lies below one is out of reach.
  Values stack_;
  std::map<uint64_t, std::shared_ptr<PickledValue>> memo_;
};

}  // namespace

bool IsPickle(absl::string_view bytes) {
  return absl::StartsWith(bytes, "(d") || absl::StartsWith(bytes, "}q") ||
         (bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5);
}

absl::StatusOr<std::string> PickleToJson(absl::string_view pickle) {
  return PickleMachine(pickle).Run();
}

}  // namespace meridian
