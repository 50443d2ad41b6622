// SPDX-License-Identifier: Apache-2.0
#include "common/json_writer.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "flips.hpp"

namespace reprise::llama {
namespace {

using tools::decimal;
using tools::significant;

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
  const tools::Table table(out, {{4}, {7}, {12}, {9}, {9}, {15}, {16}, {20}, {17}});
  out << "How often a pass of several rows has another likeliest token than a pass of one row, at "
      << (widths.empty() ? 0 : widths.front().positions) << " positions\n";
  table.line({"rows",
              "flips",
              "per 10,000",
              {"95% interval", 2},
              "median margin",
              "largest margin",
              "largest difference",
              "repeated unlike"});
  for (const WidthFlips& width : widths) {
    const Rate rate = per_10000(width.flips, width.positions);
    table.line({std::to_string(width.rows), std::to_string(width.flips), decimal(rate.rate, 2), decimal(rate.low, 2),
                decimal(rate.high, 2), decimal(median_margin(width), 6), decimal(largest_margin(width), 6),
                decimal(static_cast<double>(width.largest_difference), 6), std::to_string(width.unlike_before)});
  }
  out << "margin: the lead of the likeliest token in passes of one row, at the flips; difference: of any "
         "logit\n";
  if (!widths.empty() && widths.front().compared < widths.front().positions)
    out << "differences of logits: at the first " << widths.front().compared << " positions of the turns\n";
}

void write_flips_json(std::ostream& out, std::span<const WidthFlips> widths, const std::string& model,
                      const std::string& library, std::int32_t threads) {
  tools::JsonWriter json(out);
  json.begin_object().member("positions", widths.empty() ? 0 : widths.front().positions).member("model", model);
  json.member("library", library).member("threads", threads).key("widths").begin_array();
  for (const WidthFlips& width : widths) {
    const Rate rate = per_10000(width.flips, width.positions);
    json.new_line(2).begin_object().member("rows", width.rows).member("flips", width.flips).key("per_10000");
    json.begin_object().raw_member("rate", decimal(rate.rate, 3)).raw_member("low", decimal(rate.low, 3));
    json.raw_member("high", decimal(rate.high, 3)).end();
    json.raw_member("median_margin", significant(median_margin(width), 6));
    json.raw_member("largest_margin", significant(largest_margin(width), 6));
    json.raw_member("largest_difference", significant(static_cast<double>(width.largest_difference), 6));
    json.member("compared", width.compared).member("repeated_unlike", width.unlike_before).end();
  }
  json.end().end();
  out << "\n";
}

}  // namespace reprise::llama
