// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report.hpp"
#include "utf8.hpp"

namespace reprise::replay {
namespace {

constexpr std::size_t widest_name = 36;
constexpr std::size_t narrowest_bar = 8;
constexpr std::size_t widest_bar = 32;

std::string left(std::string_view text, std::size_t width) {
  const std::size_t columns = utf8_columns(text);
  return std::string(text) + std::string(columns < width ? width - columns : 0, ' ');
}
std::string right(std::string_view text, std::size_t width) {
  const std::size_t columns = utf8_columns(text);
  return std::string(columns < width ? width - columns : 0, ' ') + std::string(text);
}

std::string grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

/// 1.4 MB: for people.
std::string bytes(std::uint64_t value) {
  if (value < 1000) return std::to_string(value) + " B";
  constexpr std::string_view units[] = {"kB", "MB", "GB", "TB"};
  double scaled = static_cast<double>(value) / 1000;
  std::size_t unit = 0;
  for (; scaled >= 999.5 && unit + 1 < std::size(units); ++unit) scaled /= 1000;
  return decimal(scaled, scaled < 9.95 ? 1 : 0) + " " + std::string(units[unit]);
}

/// A bar of `width` columns for `value` out of `most`, in eighths where the terminal can draw them; the place of
/// plain decoding, 1, is marked where the bar does not reach it.
std::string bar(double value, double most, std::size_t width, bool unicode) {
  constexpr std::string_view eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto columns = static_cast<double>(width);
  const double filled = std::clamp(value / most, 0.0, 1.0) * columns;
  const auto one = std::min(static_cast<std::size_t>(std::floor(columns / most)), width - 1);
  const auto whole = static_cast<std::size_t>(unicode ? filled : std::round(filled));
  std::string text;
  std::size_t drawn = 0;
  for (; drawn < whole; ++drawn) text += unicode ? "█" : "#";
  const auto eighth = unicode ? static_cast<std::size_t>((filled - std::floor(filled)) * 8) : 0;
  if (eighth != 0 && drawn < width) {
    text += eighths[eighth];
    ++drawn;
  }
  if (drawn <= one) text += std::string(one - drawn, ' ') + (unicode ? "┊" : "|");
  return text;
}

/// Draws the block of one trace and category: the counts, the speedups and a bar in one line for each strategy, or,
/// where that is too wide, counts and bar first and the speedups below.
class Block {
 public:
  Block(std::ostream& out, const Report& report, const TableStyle& style) : out_(out), report_(report), style_(style) {
    for (const Row& row : report.rows) {
      name_width_ = std::max(name_width_, utf8_columns(row.strategy));
      for (std::size_t i = 0; i < report.curves.size(); ++i) most_ = std::max(most_, speedup(row.counts, i));
    }
    name_width_ = std::min(name_width_, widest_name);
    std::size_t used = name_width_ + counts_width + speedup_width * report.curves.size() + 2;
    stacked_ = used + narrowest_bar > style.columns;
    if (stacked_) used = name_width_ + counts_width + 2;
    bar_width_ = std::clamp(style.columns > used ? style.columns - used : 0, narrowest_bar, widest_bar);
  }

  void draw(const std::vector<const Row*>& rows) const {
    const Counts& counts = rows.front()->counts;
    out_ << rows.front()->trace;
    if (rows.front()->category != all_categories) out_ << ", category " << rows.front()->category;
    out_ << "\n  " << grouped(counts.sessions) << (counts.sessions == 1 ? " session, " : " sessions, ")
         << grouped(counts.turns) << (counts.turns == 1 ? " turn, " : " turns, ") << grouped(counts.tokens)
         << " tokens\n\n";
    name_counts_and_bar();
    for (const Row* row : rows) {
      name(row->strategy);
      this->counts(row->counts);
      if (!stacked_) speedups(row->counts);
      out_ << "  "
           << (row->counts.lossless() ? bar(speedup(row->counts, barred()), most_, bar_width_, style_.unicode)
                                      : "NOT LOSSLESS")
           << "\n";
    }
    out_ << "\n";
    if (!stacked_) return;
    name("speedup under");
    labels();
    out_ << "\n";
    for (const Row* row : rows) {
      name(row->strategy);
      speedups(row->counts);
      out_ << "\n";
    }
    out_ << "\n";
  }

  void legend() const {
    for (std::size_t i = 0; i < report_.curves.size(); ++i)
      if (report_.curves[i].linear() == nullptr) out_ << label(i) << " = " << report_.curves[i].spec() << "\n";
    out_ << "MAT: tokens per pass. s=S: a pass costs 1 + S x drafted tokens. Speedup: against plain\n"
            "decoding, without the drafting time (draft ns/tok: per output token). Bar: the column that\n"
            "it is named after; plain decoding is at "
         << (style_.unicode ? "┊" : "|") << ".\n";
  }

 private:
  static constexpr std::size_t counts_width = 39;
  static constexpr std::size_t speedup_width = 7;

  void name_counts_and_bar() const {
    out_ << left("", name_width_) << right("accept", 15) << right("sent", 7) << right("draft", 9) << right("peak", 8);
    if (!stacked_) out_ << "  speedup under";
    out_ << "\n"
         << left("strategy", name_width_) << right("MAT", 7) << right("rate", 8) << right("/pass", 7)
         << right("ns/tok", 9) << right("memory", 8);
    if (!stacked_) labels();
    out_ << "  speedup, " << label(barred()) << "\n";
  }
  void labels() const {
    for (std::size_t i = 0; i < report_.curves.size(); ++i) out_ << right(label(i), speedup_width);
  }
  void name(const std::string& text) const {
    out_ << left(text, name_width_);
    // Too long for its column: a line of its own.
    if (utf8_columns(text) > name_width_) out_ << "\n" << std::string(name_width_, ' ');
  }
  void counts(const Counts& counts) const {
    const Ratios r = ratios(counts);
    out_ << right(decimal(r.mat, 3), 7) << right(decimal(r.acceptance_rate, 3), 8)
         << right(decimal(r.drafted_per_pass, 2), 7)
         << right(grouped(static_cast<std::uint64_t>(std::llround(r.ns_per_token))), 9)
         << right(bytes(counts.peak_bytes), 8);
  }
  void speedups(const Counts& counts) const {
    for (std::size_t i = 0; i < report_.curves.size(); ++i)
      out_ << right(decimal(speedup(counts, i), 3), speedup_width);
  }

  [[nodiscard]] std::string label(std::size_t curve) const {
    const LinearCost* linear = report_.curves[curve].linear();
    if (linear == nullptr) return std::string(1, '[').append(std::to_string(curve + 1)).append(1, ']');
    std::string text = report_.curves[curve].spec();
    text = text.substr(text.find(':') + 1);
    return text.size() <= 4 ? "s=" + text : text.substr(0, 6);
  }
  /// The curve that the bars show: the one in the middle.
  [[nodiscard]] std::size_t barred() const { return (report_.curves.size() - 1) / 2; }

  std::ostream& out_;
  const Report& report_;
  const TableStyle& style_;
  std::size_t name_width_ = std::string_view("speedup under").size();
  std::size_t bar_width_ = 0;
  double most_ = 1;
  bool stacked_ = false;
};

bool same_block(const Row& a, const Row& b) { return a.trace == b.trace && a.category == b.category; }

}  // namespace

void write_table(std::ostream& out, const Report& report, const TableStyle& style) {
  if (report.rows.empty() || report.curves.empty()) return;
  const Block block(out, report, style);
  // Rows come by trace and strategy; people compare strategies, so they are gathered here by trace and category.
  std::vector<bool> written(report.rows.size());
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    if (written[i]) continue;
    std::vector<const Row*> rows;
    for (std::size_t j = i; j < report.rows.size(); ++j) {
      if (!same_block(report.rows[i], report.rows[j]) || written[j]) continue;
      rows.push_back(&report.rows[j]);
      written[j] = true;
    }
    block.draw(rows);
  }
  block.legend();
}

}  // namespace reprise::replay
