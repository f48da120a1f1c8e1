#include "trace_alignment/testing/order_check.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace meridian {
namespace {

absl::Status Broken(const ProfileEvent& event, absl::string_view what) {
  return absl::InternalError(absl::StrCat(event.name, " at ", event.start_ps, " ps of ",
                                          event.end_ps - event.start_ps, " ps before: ", what));
}

// By line, then start ascending and end descending, of the times before.
std::vector<size_t> ReadingOrder(const std::vector<ProfileEvent>& before) {
  std::vector<size_t> order(before.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_tuple(before[a].line, before[a].start_ps, -before[a].end_ps) <
           std::make_tuple(before[b].line, before[b].start_ps, -before[b].end_ps);
  });
  return order;
}

}  // namespace

absl::StatusOr<OrderCheck> CheckOrderAndNesting(const std::vector<ProfileEvent>& before,
                                                const std::vector<ProfileEvent>& after) {
  if (before.size() != after.size()) {
    return absl::InternalError(absl::StrCat(before.size(), " events became ", after.size()));
  }
  OrderCheck check;
  // Events of the line at hand that are not over, outer ones first.
  std::vector<size_t> open;
  const std::vector<size_t> order = ReadingOrder(before);
  for (size_t n = 0; n < order.size(); ++n) {
    const size_t i = order[n];
    if (before[i].name != after[i].name || before[i].line != after[i].line) {
      return Broken(before[i], absl::StrCat("became ", after[i].name));
    }
    const bool has_previous = n > 0 && before[order[n - 1]].line == before[i].line;
    if (has_previous) {
      const size_t previous = order[n - 1];
      if (after[i].start_ps < after[previous].start_ps) {
        return Broken(before[i], "starts before its predecessor now");
      }
      if (before[i].start_ps == before[previous].start_ps) {
        ++check.equal_starts;
        if (after[i].start_ps != after[previous].start_ps) {
          return Broken(before[i], "starts no longer with its predecessor");
        }
      }
    } else {
      open.clear();
    }
    while (!open.empty() && before[open.back()].end_ps < before[i].end_ps) open.pop_back();
    if (!open.empty()) {
      ++check.children;
      if (after[i].end_ps > after[open.back()].end_ps) {
        return Broken(before[i], absl::StrCat("ends after its parent ", after[open.back()].name));
      }
    }
    open.push_back(i);
  }
  return check;
}

}  // namespace meridian
