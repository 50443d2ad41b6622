// SPDX-License-Identifier: Apache-2.0
#include "common/json.hpp"
#include "flips.hpp"
#include "format.hpp"

namespace reprise::llama {
namespace {

double median_margin(const WidthFlips& width) {
  const std::size_t size = width.margins.size();
  if (size == 0) return 0;
  return (static_cast<double>(width.margins[(size - 1) / 2]) + static_cast<double>(width.margins[size / 2])) / 2;
}
double largest_margin(const WidthFlips& width) {
  return width.margins.empty() ? 0 : static_cast<double>(width.margins.back());
}

}  // namespace

void write_flips_table(std::ostream& out, std::span<const WidthFlips> widths) {
  out << "How often passes of so many rows have another likeliest token than passes of one row, at "
      << (widths.empty() ? 0 : widths.front().positions) << " positions\n"
      << "rows  flips  per 10,000      95% interval  median margin  largest margin  largest difference  repeated "
         "unlike\n";
  for (const WidthFlips& width : widths) {
    const Rate rate = per_10000(width.flips, width.positions);
    out << format("%4zu  %5zu  %10.2f  %7.2f %8.2f  %13.6f  %14.6f  %18.6f  %15zu\n", width.rows, width.flips,
                  rate.rate, rate.low, rate.high, median_margin(width), largest_margin(width),
                  static_cast<double>(width.largest_difference), width.unlike_before);
  }
  out << "margin: by how much the likeliest token was ahead with one row, where the answers differ; difference: of any "
         "logit\n";
  if (!widths.empty() && widths.front().compared < widths.front().positions)
    out << "differences of logits: at the first " << widths.front().compared << " positions of the turns\n";
}

void write_flips_json(std::ostream& out, std::span<const WidthFlips> widths, const std::string& model,
                      const std::string& library, std::int32_t threads) {
  out << "{\"positions\": " << (widths.empty() ? 0 : widths.front().positions)
      << ", \"model\": " << tools::quote_json(model) << ", \"library\": " << tools::quote_json(library)
      << ", \"threads\": " << threads << ", \"widths\": [";
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const WidthFlips& width = widths[i];
    const Rate rate = per_10000(width.flips, width.positions);
    out << (i == 0 ? "\n" : ",\n")
        << format(R"(  {"rows": %zu, "flips": %zu, "per_10000": {"rate": %.3f, "low": %.3f, "high": %.3f}, )",
                  width.rows, width.flips, rate.rate, rate.low, rate.high)
        << format(R"("median_margin": %.6g, "largest_margin": %.6g, )", median_margin(width), largest_margin(width))
        << format(R"("largest_difference": %.6g, "compared": %zu, "repeated_unlike": %zu})",
                  static_cast<double>(width.largest_difference), width.compared, width.unlike_before);
  }
  out << "]}\n";
}

}  // namespace reprise::llama
