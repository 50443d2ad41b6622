// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "compare_page.hpp"
#include "replay/loss_window.hpp"
#include "replay/page_html.hpp"
#include "replay/page_parts.hpp"

namespace reprise::llama {
namespace {

using replay::counted;
using replay::html;
using replay::html_name;
using replay::HtmlTable;
using replay::svg_label;
using replay::svg_line;
using tools::decimal;
using tools::grouped;

// Why not more?

double microseconds_per_token(std::chrono::nanoseconds time, std::size_t tokens) {
  return tokens == 0 ? 0 : static_cast<double>(time.count()) / 1000 / static_cast<double>(tokens);
}

std::string engine_time(const Summary& all) {
  HtmlTable table{"Decoding time per output token, in microseconds",
                  {"", "In llama_decode", "Outside", "Together", "Share outside"},
                  {}};
  const auto line = [&](const std::string& name, const Sums& sums) {
    const double model = microseconds_per_token(sums.model, sums.tokens);
    const double together = microseconds_per_token(sums.decoding, sums.tokens);
    table.rows.push_back({name, decimal(model, 1), decimal(together - model, 1), decimal(together, 1),
                          decimal(100 * sums.share_outside(), 2) + "%"});
  };
  line("Without drafting", all.plain);
  line("With drafting", all.drafted);
  return table.text() +
         "<p class=\"note\">Outside llama_decode are the strategy, control, the loop, the adapter and the "
         "sampler.</p>\n";
}

std::string bounds(const ComparePage& page, const Summary& all) {
  std::vector<replay::Bound> bounds = {{"Measured", "the answer above", speedup(all.plain, all.drafted)}};
  const double plain = microseconds_per_token(all.plain.model, all.plain.tokens);
  const double drafted = microseconds_per_token(all.drafted.model, all.drafted.tokens);
  if (drafted > 0)
    bounds.push_back({"Engine alone", "the same passes, if nothing outside llama_decode took time", plain / drafted});
  if (const auto under = all.drafted.speedup_under_cost())
    bounds.push_back({"Under --cost", "the same passes, if each took the time that the given curve states", *under});
  if (all.prediction)
    bounds.push_back({"Predicted",
                      "a replay of the same tokens under " + html(page.report.cost_model) +
                          ", without the time outside llama_decode",
                      all.prediction->speedup()});
  bounds.push_back({"Tokens per pass", "the same passes, if drafted tokens cost no time",
                    all.drafted.statistics.mean_accepted_tokens()});
  return replay::bound_bars("The measured speedup beside others", bounds);
}

// Can I trust it?

std::string token_text(const std::optional<Token>& token, const Engine& engine) {
  if (!token) return "the end of the text";
  return "<code>" + html_name(engine.text({&*token, 1})) + "</code> (" + std::to_string(*token) + ")";
}

std::string texts_part(const ComparePage& page) {
  std::size_t runs = 0;
  std::size_t identical = 0;
  std::size_t early = 0;
  HtmlTable table{"First difference of each text",
                  {"Session", "Strategy", "Verdict", "Turn", "Token", "Without", "With", "Margin"},
                  {}};
  std::size_t differences = 0;
  for (const StrategyPairs& strategy : page.report.strategies)
    for (const Pair& pair : strategy.pairs) {
      ++runs;
      early += pair.context_full ? 1 : 0;
      if (!pair.difference) {
        ++identical;
        continue;
      }
      if (differences++ >= replay::most_groups) continue;
      const Difference& d = *pair.difference;
      table.rows.push_back({html_name(pair.id), "<code>" + html(strategy.spec) + "</code>",
                            std::string(name(d.verdict)), grouped(d.turn + 1), grouped(d.position + 1),
                            token_text(d.plain, page.report.engine), token_text(d.drafted, page.report.engine),
                            decimal(d.margin, 5)});
    }
  std::string text = "<h3>Are the texts the same?</h3>\n<p>Verdict: <strong id=\"verdict\">" +
                     std::string(name(page.report.verdict())) + "</strong>. " + grouped(identical) + " of " +
                     counted(runs, "text") + " of all strategies " + (identical == 1 ? "is" : "are") +
                     " identical to the text of plain decoding. Compared " + html(page.report.checked()) + ".</p>\n";
  if (early != 0)
    text += "<p class=\"note\">The context was full before the last turn of " + counted(early, "text") + ".</p>\n";
  if (differences == 0) return text;
  text += table.text();
  if (differences > table.rows.size())
    text += "<p class=\"note\">The first " + grouped(table.rows.size()) + " of " + grouped(differences) +
            " differences.</p>\n";
  return text +
         "<p class=\"note\">After a difference, the rest of a session is another text, so its time is not "
         "comparable.</p>\n";
}

std::string repetitions_part(const ComparePage& page) {
  std::string text = "<h3>Do the times repeat?</h3>\n";
  if (page.report.repeat == 1)
    return text +
           "<p>Every session ran once, so the noise of the times is unknown. Give <code>--repeat 3</code>, or more, "
           "to see it.</p>\n";
  HtmlTable table{
      "Each repetition of all sessions", {"Repetition", "Speedup", "Tokens/s without", "Tokens/s with"}, {}};
  const auto& repetitions = page.notes.repetitions();
  std::vector<double> spreads;
  for (std::size_t time = 0; time < page.report.repeat; ++time) {
    TimedSession all;
    for (std::size_t i = 0; i < repetitions.size(); ++i)
      if (!page.main().pairs[i].repeated) all += repetitions[i][time];
    table.rows.push_back({grouped(time + 1), decimal(all.speedup(), 3), decimal(all.plain_tokens_per_second(), 1),
                          decimal(all.tokens_per_second(), 1)});
  }
  for (const auto& session : repetitions) {
    const auto [fastest, slowest] = std::minmax_element(
        session.begin(), session.end(),
        [](const TimedSession& a, const TimedSession& b) { return a.plain_decoding < b.plain_decoding; });
    if (fastest->plain_decoding.count() > 0)
      spreads.push_back(seconds(slowest->plain_decoding) / seconds(fastest->plain_decoding) - 1);
  }
  text += table.text();
  if (spreads.empty()) return text;
  std::sort(spreads.begin(), spreads.end());
  return text + "<p>In the median session, the slowest run of plain decoding took <strong>" +
         decimal(100 * spreads[spreads.size() / 2], 1) +
         "%</strong> longer than the fastest one. Differences of this "
         "size are noise.</p>\n";
}

/// The cost of passes of some width, relative to a plain pass.
struct WidthCost {
  std::size_t rows = 1;
  std::size_t passes = 0;
  double milliseconds = 0;
  double measured = 1;
  std::optional<double> believed = {};
};

std::vector<WidthCost> width_costs(const ComparePage& page) {
  const double plain = page.notes.plain().median();
  std::vector<WidthCost> costs;
  if (plain <= 0) return costs;
  for (const auto& [rows, width] : page.notes.drafted().widths()) {
    WidthCost& cost = costs.emplace_back();
    cost.rows = rows;
    cost.passes = width.ns.size();
    cost.milliseconds = width.median() / 1e6;
    cost.measured = width.median() / plain;
    if (page.told != nullptr)
      cost.believed = page.told->cost({1, rows, width.mean_context()});
    else if (page.learned != nullptr)
      cost.believed = static_cast<double>(page.learned->cost(rows, width.mean_context())) / cost_one;
  }
  return costs;
}

/// Points: measured medians. Line: the curve of control.
std::string cost_drawing(const std::vector<WidthCost>& costs, const std::string& believed) {
  constexpr double left = 50;
  constexpr double right = 570;
  constexpr double top = 16;
  constexpr double bottom = 230;
  double highest = 1;
  std::size_t widest = 2;
  std::size_t most = 1;
  for (const WidthCost& cost : costs) {
    highest = std::max({highest, cost.measured, cost.believed.value_or(0)});
    widest = std::max(widest, cost.rows);
    most = std::max(most, cost.passes);
  }
  double step = 0.5;  // then 1, 2, 5, 10, 20, 50, ...
  for (double power = 1; highest / step > 6; power *= 10)
    for (const double digit : {1.0, 2.0, 5.0})
      if (highest / step > 6) step = digit * power;
  highest = std::ceil(highest / step) * step;
  const auto x = [&](std::size_t rows) {
    return left + (right - left) * static_cast<double>(rows - 1) / static_cast<double>(widest - 1);
  };
  const auto y = [&](double cost) { return bottom - (bottom - top) * cost / highest; };
  std::string svg =
      "<figure><svg class=\"chart\" id=\"costs\" viewBox=\"-16 -4 616 300\" role=\"img\" aria-label=\"Cost of a pass "
      "by "
      "its rows; the table after it has the numbers\">";
  for (double at = 0; at <= highest + step / 2; at += step)
    svg += svg_line("grid", left, y(at), right, y(at)) +
           svg_label(left - 8, y(at) + 5, "end", decimal(at, step < 1 ? 1 : 0));
  const std::size_t stride = std::max<std::size_t>(1, (widest - 1 + 3) / 4);
  for (std::size_t rows = 1; rows <= widest; rows += stride)
    svg += svg_label(x(rows), bottom + 24, "middle", std::to_string(rows));
  svg += svg_label((left + right) / 2, bottom + 54, "middle", "rows of a pass");
  std::string path;
  for (const WidthCost& cost : costs)
    if (cost.believed)
      path += (path.empty() ? "M" : "L") + decimal(x(cost.rows), 1) + "," + decimal(y(*cost.believed), 1);
  if (!path.empty()) svg += "<path class=\"line\" style=\"stroke:var(--c1)\" d=\"" + path + "\"/>";
  for (const WidthCost& cost : costs) {
    const double radius = 3 + 5 * std::sqrt(static_cast<double>(cost.passes) / static_cast<double>(most));
    svg += "<circle class=\"point\" data-rows=\"" + std::to_string(cost.rows) + "\" cx=\"" + decimal(x(cost.rows), 1) +
           "\" cy=\"" + decimal(y(cost.measured), 1) + "\" r=\"" + decimal(radius, 1) + "\"><title>" +
           counted(cost.rows, "row") + ": " + decimal(cost.measured, 3) + ", " + grouped(cost.passes) +
           (cost.passes == 1 ? " pass" : " passes") + "</title></circle>";
  }
  return svg +
         "</svg><figcaption>Points: the median times of passes, relative to plain decoding; larger points have "
         "more passes." +
         (path.empty() ? "" : " Line: " + believed + ".") + "</figcaption></figure>\n";
}

std::string cost_part(const ComparePage& page) {
  std::string text = "<h3>Does it know what a pass costs?</h3>\n";
  const std::vector<WidthCost> costs = width_costs(page);
  if (costs.empty()) return text + "<p>No pass was timed.</p>\n";
  const std::string word = page.told != nullptr ? "Told" : "Learned";
  const std::string believed =
      page.told != nullptr ? "the curve that control was told" : "the curve that control learned";
  const bool uses = costs.front().believed.has_value();
  text += uses ? "<p>Control sized the drafts by " + believed + ".</p>\n"
               : "<p>The control of this strategy does not use costs.</p>\n";
  text += cost_drawing(costs, believed);
  HtmlTable table{
      "Cost of a pass by its rows, relative to plain decoding", {"Rows", "Passes", "Median ms", "Measured"}, {}};
  if (uses) {
    table.heading.push_back(word);
    table.heading.emplace_back("Error");
  }
  for (const WidthCost& cost : costs) {
    table.rows.push_back(
        {grouped(cost.rows), grouped(cost.passes), decimal(cost.milliseconds, 3), decimal(cost.measured, 3)});
    if (!cost.believed) continue;
    table.rows.back().push_back(decimal(*cost.believed, 3));
    table.rows.back().push_back(replay::signed_percent(*cost.believed / cost.measured - 1));
  }
  return text + "<details><summary>The numbers</summary>" + table.text() +
         "<p class=\"note\">Medians are over contexts of all lengths. The curve is read at the "
         "mean context of the passes.</p></details>\n";
}

std::string window_part(const ComparePage& page) {
  std::string text = "<h3>How bad did it get?</h3>\n";
  const auto& losses = page.notes.worst_losses();
  const auto at = std::max_element(losses.begin(), losses.end());
  if (at == losses.end() || *at == 0)
    return text + "<p>No run of passes of any session took longer than plain decoding.</p>\n";
  const auto session = static_cast<std::size_t>(at - losses.begin());
  return text + "<p>Worst window: the time of <strong id=\"worst-window\">" + decimal(*at, 1) +
         "</strong> plain passes lost, in session " + html_name(page.main().pairs[session].id) +
         ". This is the largest loss of any run of at most " + grouped(replay::LossWindow::passes) +
         " consecutive passes, compared with the mean time per token of plain decoding in that session.</p>\n";
}

}  // namespace

std::string why_section(const ComparePage& page) {
  const Summary all = page.main().total();
  const replay::PassSums& sums = page.notes.drafted().sums();
  return "<section aria-labelledby=\"why\"><h2 id=\"why\">Why not more?</h2>\n<h3>Drafted tokens</h3>\n" +
         replay::drafted_tokens(sums) + "<h3>Reasons</h3>\n" + replay::cut_reasons(sums) + "<h3>Time</h3>\n" +
         engine_time(all) + "<h3>What limits the speedup</h3>\n" + bounds(page, all) + "</section>\n";
}

std::string trust_section(const ComparePage& page) {
  return "<section aria-labelledby=\"trust\"><h2 id=\"trust\">Can I trust it?</h2>\n" + texts_part(page) +
         repetitions_part(page) + replay::reliability_part(page.notes.drafted().reliability()) + cost_part(page) +
         window_part(page) + "</section>\n";
}

}  // namespace reprise::llama
