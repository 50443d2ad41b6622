// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/table.hpp"
#include "common/text.hpp"
#include "common/utf8.hpp"
#include "report.hpp"
#include "thread_clock.hpp"

namespace reprise::replay {
namespace {

constexpr std::size_t widest_name = 36;
constexpr std::size_t narrowest_name = 14;
constexpr std::size_t narrowest_speedup_bar = 8;
constexpr std::size_t widest_speedup_bar = 32;

/// The number of bytes for people, as in 1.4 MB.
std::string bytes(std::uint64_t value) {
  if (value < 1000) return std::to_string(value) + " B";
  constexpr std::string_view units[] = {"kB", "MB", "GB", "TB"};
  double scaled = static_cast<double>(value) / 1000;
  std::size_t unit = 0;
  for (; scaled >= 999.5 && unit + 1 < std::size(units); ++unit) scaled /= 1000;
  return tools::decimal(scaled, scaled < 9.95 ? 1 : 0) + " " + std::string(units[unit]);
}

/// A bar of `width` columns for `value` out of `most`, in eighths of a column if the terminal can draw them. A mark
/// shows the place of plain decoding, 1, if the bar does not reach it.
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

/// The rows of one trace, category, strategy and control; one per curve.
using RowGroup = std::span<const Row* const>;

/// The block of one trace and category. First come the speedups and a bar, one line per strategy. Then come the counts,
/// one line per strategy and curve, or one for all curves if drafts do not depend on the curve.
class Block {
 public:
  Block(std::ostream& out, const Report& report, const TableStyle& style) : out_(out), report_(report), style_(style) {
    std::size_t longest = std::string_view("speedup under").size();
    for (const Row& row : report.rows) {
      longest = std::max(longest, tools::utf8_columns(label(row)));
      most_ = std::max(most_, speedup(row));
    }
    const std::size_t numbers = speedup_width * report.curves.size() + 2;
    const std::size_t room =
        style.columns > numbers + narrowest_speedup_bar ? style.columns - numbers - narrowest_speedup_bar : 0;
    const std::size_t name_width = std::clamp(std::min(longest, room), narrowest_name, widest_name);
    const std::size_t used = name_width + numbers;
    bar_width_ = std::clamp(style.columns > used ? style.columns - used : 0, narrowest_speedup_bar, widest_speedup_bar);
    speedups_ = table(name_width, std::vector<std::size_t>(report.curves.size(), speedup_width));

    std::size_t counts_width = 0;
    for (const std::size_t width : counts_widths) counts_width += width;
    const std::size_t left_over = style.columns > counts_width ? style.columns - counts_width : 0;
    counts_ = table(std::clamp(std::min(longest, left_over), narrowest_name, widest_name),
                    {std::begin(counts_widths), std::end(counts_widths)});
  }

  /// The label of a row: its strategy, and its control if the strategy alone is ambiguous.
  [[nodiscard]] std::string label(const Row& row) const {
    const bool alone = std::all_of(report_.rows.begin(), report_.rows.end(), [&](const Row& other) {
      return other.strategy != row.strategy || other.control == row.control;
    });
    return tools::printable(alone && row.control.kind != ControlKind::best ? row.strategy
                                                                           : row.strategy + " " + row.control.text());
  }

  void draw(const std::vector<const Row*>& rows) const {
    head(rows);
    const std::vector<RowGroup> groups = grouped_by_name(rows);
    remembered(groups);
    shown_top_k(groups);
    out_ << "\n";
    std::vector<tools::Cell> heading = {"speedup under"};
    for (std::size_t i = 0; i < report_.curves.size(); ++i) heading.emplace_back(curve_label(i));
    const std::string named = tools::printable(curve_label(barred()));
    speedups_.line(heading, "  " + (9 + named.size() <= bar_width_ ? "speedup, " + named : named));
    for (const RowGroup& group : groups) speedups(group);
    out_ << "\n";
    counts_.line({"", {"accept", 3}, "sent", "draft", "control", "peak", "worst", "calib."});
    counts_.line({"counted", "under", "MAT", "rate", "/pass", "ns/tok", "ns/tok", "memory", "loss", "error"});
    for (const RowGroup& group : groups) counted(group);
    out_ << "\n";
  }

  void legend() const {
    for (std::size_t i = 0; i < report_.curves.size(); ++i)
      if (report_.curves[i].linear() == nullptr)
        out_ << tools::printable(curve_label(i)) << " = " << tools::printable(report_.curves[i].spec()) << "\n";
    out_ << tools::wrapped(
                "MAT: tokens per pass. s=S: a pass costs 1 + S x drafted tokens; any: drafts do not depend on the "
                "curve. Speedup: against plain decoding, without the time of drafting and control (ns/tok: " +
                std::string(ThreadClock::text) +
                " per output token). Worst loss: of 1,000 passes in a row, in plain passes (any: under the worst of "
                "the curves). Calib. error: mean distance between the claimed and the observed probability of drafted "
                "tokens. Bar: the column that it is named after; plain decoding is at " +
                (style_.unicode ? "┊" : "|") + ".")
         << "\n";
    if (report_.part != TracePart::all)
      out_ << "Part " << reprise::replay::name(report_.part) << " of the sessions only.\n";
    out_ << shape_note(report_.settings, report_.top_k);
  }

 private:
  static constexpr std::size_t speedup_width = 7;
  static constexpr std::size_t counts_widths[] = {7, 7, 7, 7, 7, 8, 7, 7, 8};

  /// A table with a column of names and columns of these widths.
  [[nodiscard]] tools::Table table(std::size_t name_width, const std::vector<std::size_t>& widths) const {
    std::vector<tools::Column> columns = {{name_width, tools::Align::left, true}};
    for (const std::size_t width : widths) columns.push_back({width});
    return tools::Table(out_, std::move(columns));
  }

  static std::vector<RowGroup> grouped_by_name(const std::vector<const Row*>& rows) {
    std::vector<RowGroup> groups;
    for (std::size_t i = 0, from = 0; i < rows.size(); ++i) {
      if (i + 1 < rows.size() && rows[i + 1]->strategy == rows[i]->strategy &&
          rows[i + 1]->control == rows[i]->control && rows[i + 1]->curve > rows[i]->curve)
        continue;
      groups.push_back(RowGroup(rows).subspan(from, i + 1 - from));
      from = i + 1;
    }
    return groups;
  }

  void head(const std::vector<const Row*>& rows) const {
    const Counts& counts = rows.front()->counts;
    out_ << tools::printable(rows.front()->trace);
    if (rows.front()->category != all_categories) out_ << ", category " << tools::printable(rows.front()->category);
    out_ << "\n  " << tools::grouped(counts.sessions) << (counts.sessions == 1 ? " session, " : " sessions, ")
         << tools::grouped(counts.turns) << (counts.turns == 1 ? " turn, " : " turns, ")
         << tools::grouped(counts.tokens) << " tokens\n"
         << "  drafts: " << shape_and_rankings(report_.settings, report_.top_k) << "\n";
  }
  void remembered(const std::vector<RowGroup>& groups) const {
    std::string all;
    for (const RowGroup& group : groups)
      if (const Row& row = *group.front(); row.kept != Kept::session)
        all += (all.empty() ? "" : ", ") + label(row) + " (" + bytes(row.memory_bytes) + ")";
    if (all.empty()) return;
    const bool text = report_.settings.kept == Kept::past;
    out_ << (text ? "  past sessions are remembered: " : "  the calibration of past sessions is kept: ") << all << "\n";
  }
  void shown_top_k(const std::vector<RowGroup>& groups) const {
    std::string all;
    for (const RowGroup& group : groups)
      if (const Row& row = *group.front(); row.counts.top_k_rows != 0)
        all += (all.empty() ? "" : ", ") + label(row) + " (" + tools::grouped(row.counts.top_k_rows) + ")";
    if (!all.empty()) out_ << "  top-k rows of accepted tokens are shown: " << all << "\n";
  }
  void speedups(const RowGroup& group) const {
    std::vector<tools::Cell> cells = {label(*group.front())};
    for (const Row* row : group) cells.emplace_back(tools::decimal(speedup(*row), 3));
    const bool lossless =
        std::all_of(group.begin(), group.end(), [](const Row* row) { return row->counts.lossless(); });
    speedups_.line(cells, "  " + (lossless ? bar(speedup(*group[barred()]), most_, bar_width_, style_.unicode)
                                           : std::string("NOT LOSSLESS")));
  }
  void counted(const RowGroup& group) const {
    for (const Row* row : group) {
      const bool first = row == group.front();
      if (!first && !row->weighed()) return;
      double loss = row->charge().worst_loss;
      if (!row->weighed())
        for (const Row* other : group) loss = std::max(loss, other->charge().worst_loss);
      const auto whole = [](double value) { return tools::grouped(static_cast<std::uint64_t>(std::llround(value))); };
      const Ratios r = ratios(row->counts);
      counts_.line({first ? label(*row) : "", row->weighed() ? curve_label(row->curve) : "any",
                    tools::decimal(r.mat, 3), tools::decimal(r.acceptance_rate, 3),
                    tools::decimal(r.drafted_per_pass, 2), whole(r.ns_per_token), whole(r.control_ns_per_token),
                    bytes(row->counts.peak_bytes), tools::decimal(loss, 1),
                    tools::decimal(row->counts.reliability.expected_calibration_error(), 3)});
    }
  }

  [[nodiscard]] std::string curve_label(std::size_t curve) const {
    std::string text = report_.curves[curve].spec();
    if (report_.curves[curve].linear() != nullptr) {
      text = text.substr(text.find(':') + 1);
      return text.size() <= 4 ? "s=" + text : text.substr(0, 6);
    }
    const std::string stem = std::filesystem::path(text).stem().string();
    return tools::utf8_columns(stem) < speedup_width
               ? stem
               : std::string(1, '[').append(std::to_string(curve + 1)).append(1, ']');
  }
  /// The curve of the bars: the middle one.
  [[nodiscard]] std::size_t barred() const { return (report_.curves.size() - 1) / 2; }

  std::ostream& out_;
  const Report& report_;
  const TableStyle& style_;
  std::size_t bar_width_ = 0;
  tools::Table speedups_{out_, {}};
  tools::Table counts_{out_, {}};
  double most_ = 1;
};

bool same_block(const Row& a, const Row& b) { return a.trace == b.trace && a.category == b.category; }

}  // namespace

void write_table(std::ostream& out, const Report& report, const TableStyle& style) {
  if (report.rows.empty() || report.curves.empty()) return;
  const Block block(out, report, style);
  // Rows are sorted by trace, strategy and control, but readers compare strategies. So the rows of each trace and
  // category are collected here.
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
  if (!report.heads.empty()) write_head_table(out, report.heads, report.curves);
  block.legend();
}

}  // namespace reprise::replay
