#include "tools/report/combine_charts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "tools/report/html_text.h"
#include "tools/report/quantities.h"
#include "xla_profiler/base/tables/text_table.h"

namespace meridian {
namespace {

constexpr double kNanosPerMilli = 1e6;
constexpr double kChartWidth = 900;
constexpr double kRowHeight = 22;
constexpr double kTop = 28;
constexpr double kAxisHeight = 26;
constexpr double kLabelWidth = 170;
constexpr double kGap = 12;
constexpr double kDotRadius = 3.5;
constexpr size_t kLabelCharacters = 22;

std::string Number(double value) { return absl::StrFormat("%.1f", value); }

// Maps values from low to high to the stretch of the picture from left to right.
struct Scale {
  double low;
  double high;
  double left;
  double right;

  double At(double value) const { return left + (value - low) / (high - low) * (right - left); }
};

// Returns 1, 2 or 5 times a power of ten, such that the range has at most so many steps.
double NiceStep(double range, int max_steps) {
  const double step = std::pow(10, std::floor(std::log10(range / max_steps)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (range / (step * factor) <= max_steps) return step * factor;
  }
  return step * 10;
}

struct TextStyle {
  absl::string_view anchor = "start";
  absl::string_view css_class;
};

class Svg {
 public:
  // The description is for those who do not see the picture.
  Svg(absl::string_view id, double height, absl::string_view title, absl::string_view description) {
    absl::StrAppend(&text_, "<svg role=\"img\" aria-labelledby=\"", id, "-title ", id,
                    "-desc\" viewBox=\"0 0 ", Number(kChartWidth), " ", Number(height),
                    "\" xmlns=\"http://www.w3.org/2000/svg\">\n<title id=\"", id, "-title\">",
                    HtmlEscape(title), "</title>\n<desc id=\"", id, "-desc\">",
                    HtmlEscape(description), "</desc>\n");
  }

  void Line(double x1, double y1, double x2, double y2, absl::string_view css_class) {
    absl::StrAppend(&text_, "<line x1=\"", Number(x1), "\" y1=\"", Number(y1), "\" x2=\"",
                    Number(x2), "\" y2=\"", Number(y2), "\" class=\"", css_class, "\"/>\n");
  }
  void Rect(double x, double y, double width, double height, absl::string_view css_class) {
    absl::StrAppend(&text_, "<rect x=\"", Number(x), "\" y=\"", Number(y), "\" width=\"",
                    Number(width), "\" height=\"", Number(height), "\" class=\"", css_class,
                    "\"/>\n");
  }
  void Circle(double x, double y, double radius, absl::string_view css_class) {
    absl::StrAppend(&text_, "<circle cx=\"", Number(x), "\" cy=\"", Number(y), "\" r=\"",
                    Number(radius), "\" class=\"", css_class, "\"/>\n");
  }
  void Text(double x, double y, absl::string_view text, const TextStyle& style) {
    absl::StrAppend(&text_, "<text x=\"", Number(x), "\" y=\"", Number(y), "\" text-anchor=\"",
                    style.anchor, "\"");
    if (!style.css_class.empty()) absl::StrAppend(&text_, " class=\"", style.css_class, "\"");
    absl::StrAppend(&text_, ">", HtmlEscape(text), "</text>\n");
  }

  // Lines and labels for durations along the scale, from the top to the bottom, and the title
  // above.
  void Axis(const Scale& scale, double bottom, int max_steps, bool is_signed,
            absl::string_view title) {
    Text((scale.left + scale.right) / 2, kTop - 8, title, {"middle", "axis"});
    const double step = NiceStep(scale.high - scale.low, max_steps);
    const auto first = static_cast<int64_t>(std::ceil(scale.low / step - 1e-9));
    const auto last = static_cast<int64_t>(std::floor(scale.high / step + 1e-9));
    for (int64_t i = first; i <= last; ++i) {
      const double value = static_cast<double>(i) * step;
      Line(scale.At(value), kTop, scale.At(value), bottom, i == 0 ? "zero" : "grid");
      Text(scale.At(value), bottom + 16,
           absl::StrCat(is_signed && value > 0 ? "+" : "", Tick(value)), {"middle", "axis"});
    }
  }

  std::string Finish() { return absl::StrCat(text_, "</svg>\n"); }

 private:
  // Ticks are round: "20.0 ms" is "20 ms".
  static std::string Tick(double ns) {
    std::string text = DurationText(ns);
    const size_t space = text.find(' ');
    std::string digits = text.substr(0, space);
    if (digits.find('.') != std::string::npos) {
      digits.erase(digits.find_last_not_of('0') + 1);
      if (digits.back() == '.') digits.pop_back();
    }
    return ns == 0 ? "0" : absl::StrCat(digits, text.substr(space));
  }

  std::string text_;
};

// A bar's length; what is no number has none.
double NanosOf(double ms) { return std::isfinite(ms) && ms > 0 ? ms * kNanosPerMilli : 0; }

double RowTop(size_t row) { return kTop + static_cast<double>(row) * kRowHeight; }
double RowMiddle(size_t row) { return RowTop(row) + kRowHeight / 2; }
// Where text stands so that it looks centred in the row.
double RowBaseline(size_t row) { return RowMiddle(row) + 4; }

std::string NodeLabel(const CombineReport& report, const CombinedNode& node) {
  return absl::StrCat("node ", node.node_id(),
                      node.node_id() == report.reference_node() ? " (reference)" : "");
}

// All offsets with their intervals, zero, and some room on both sides.
Scale OffsetScale(const CombineReport& report, double left, double right) {
  double low = 0;
  double high = 0;
  for (const CombinedNode& node : report.nodes()) {
    if (!node.has_offset_ns()) continue;
    const auto offset = static_cast<double>(node.offset_ns());
    const auto uncertainty = static_cast<double>(node.uncertainty_ns());
    low = std::min(low, offset - uncertainty);
    high = std::max(high, offset + uncertainty);
  }
  // One node, or clocks that agree to the nanosecond.
  const double room = low == high ? 1000 : (high - low) * 0.06;
  return {low - room, high + room, left, right};
}

Scale UncertaintyScale(const CombineReport& report, double left, double right) {
  double high = 0;
  for (const CombinedNode& node : report.nodes()) {
    high = std::max({high, static_cast<double>(node.uncertainty_ns()),
                     static_cast<double>(node.certified_uncertainty_ns())});
  }
  return {0, high == 0 ? 1000 : high * 1.05, left, right};
}

void DrawOffset(const CombinedNode& node, const Scale& scale, double middle, Svg* svg) {
  if (!node.has_offset_ns()) {
    svg->Text(scale.left + kGap, middle + 4, "offset not known", {"start", "unknown"});
    return;
  }
  const auto offset = static_cast<double>(node.offset_ns());
  if (node.has_uncertainty_ns()) {
    const auto uncertainty = static_cast<double>(node.uncertainty_ns());
    const double from = scale.At(offset - uncertainty);
    const double to = scale.At(offset + uncertainty);
    // What the dot covers would only blur it.
    if (to - from > 2 * kDotRadius) {
      svg->Line(from, middle, to, middle, "interval");
      for (double x : {from, to}) svg->Line(x, middle - 5, x, middle + 5, "interval");
    }
  }
  svg->Circle(scale.At(offset), middle, kDotRadius, "offset");
}

void DrawUncertainty(const CombinedNode& node, const Scale& scale, double middle, Svg* svg) {
  if (node.has_certified_uncertainty_ns()) {
    const auto certified = static_cast<double>(node.certified_uncertainty_ns());
    svg->Rect(scale.left, middle - 6, scale.At(certified) - scale.left, 12, "certified");
  }
  if (node.has_uncertainty_ns()) {
    const auto uncertainty = static_cast<double>(node.uncertainty_ns());
    svg->Rect(scale.left, middle - 3.5, scale.At(uncertainty) - scale.left, 7, "offset");
  } else {
    svg->Text(scale.left + kGap, middle + 4, "not known", {"start", "unknown"});
  }
}

std::string OffsetsDescription(const CombineReport& report) {
  std::string text;
  for (const CombinedNode& node : report.nodes()) {
    if (text.size() > 2000) return absl::StrCat(text, "and more; the table has all.");
    absl::StrAppend(&text, "Node ", node.node_id(), ": ");
    if (!node.has_offset_ns()) {
      absl::StrAppend(&text, "not known. ");
      continue;
    }
    absl::StrAppend(&text, SignedDurationText(static_cast<double>(node.offset_ns())));
    if (node.has_uncertainty_ns()) {
      absl::StrAppend(&text, " give or take ",
                      DurationText(static_cast<double>(node.uncertainty_ns())));
    }
    absl::StrAppend(&text, ". ");
  }
  return text;
}

}  // namespace

std::string OffsetsChart(const CombineReport& report) {
  const size_t rows = std::min<size_t>(report.nodes_size(), kMaxChartRows);
  const double bottom = RowTop(rows);
  const Scale offsets = OffsetScale(report, kLabelWidth, 560);
  const Scale uncertainties = UncertaintyScale(report, 610, 870);
  Svg svg("offsets", bottom + kAxisHeight, "Clock offsets of the nodes",
          OffsetsDescription(report));
  svg.Axis(offsets, bottom, 6, /*is_signed=*/true, "offset to the reference clock");
  svg.Axis(uncertainties, bottom, 4, /*is_signed=*/false, "uncertainty (plus or minus)");
  for (size_t row = 0; row < rows; ++row) {
    const CombinedNode& node = report.nodes(static_cast<int>(row));
    svg.Text(kLabelWidth - kGap, RowBaseline(row), NodeLabel(report, node), {"end", ""});
    DrawOffset(node, offsets, RowMiddle(row), &svg);
    DrawUncertainty(node, uncertainties, RowMiddle(row), &svg);
  }
  return svg.Finish();
}

std::string KindsChart(const CombineReport& report) {
  const size_t rows = std::min<size_t>(report.kinds_size(), kMaxChartRows);
  const double bottom = RowTop(rows);
  double longest_ns = 0;
  std::string description;
  for (size_t row = 0; row < rows; ++row) {
    const CombinedKind& kind = report.kinds(static_cast<int>(row));
    const double wait_ns = NanosOf(kind.wait_ms());
    const double transfer_ns = NanosOf(kind.transfer_ms());
    longest_ns = std::max(longest_ns, wait_ns + transfer_ns);
    absl::StrAppend(&description, FirstCharacters(kind.kind(), kLabelCharacters), ": wait ",
                    DurationText(wait_ns), ", transfer ", DurationText(transfer_ns), ". ");
  }
  const Scale scale = {0, longest_ns > 0 ? longest_ns * 1.02 : 1000, kLabelWidth, 870};
  Svg svg("kinds", bottom + kAxisHeight, "Waiting and transfer by kind of collective", description);
  svg.Axis(scale, bottom, 8, /*is_signed=*/false, "time, summed over collectives");
  for (size_t row = 0; row < rows; ++row) {
    const CombinedKind& kind = report.kinds(static_cast<int>(row));
    const double wait_end = scale.At(NanosOf(kind.wait_ms()));
    const double end = scale.At(NanosOf(kind.wait_ms()) + NanosOf(kind.transfer_ms()));
    const double top = RowTop(row) + 4;
    svg.Text(kLabelWidth - kGap, RowBaseline(row), FirstCharacters(kind.kind(), kLabelCharacters),
             {"end", ""});
    svg.Rect(scale.left, top, wait_end - scale.left, kRowHeight - 8, "wait");
    svg.Rect(wait_end, top, end - wait_end, kRowHeight - 8, "transfer");
  }
  return svg.Finish();
}

}  // namespace meridian
