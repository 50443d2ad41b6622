// SPDX-License-Identifier: Apache-2.0
// The report of an advice: a table with C++ to paste.
#include <algorithm>
#include <string>
#include <vector>

#include "advice.hpp"
#include "common/table.hpp"
#include "common/text.hpp"

namespace reprise::replay {
namespace {

/// A ratio as a difference in percent: "+1.5%".
std::string percent(double ratio) {
  const std::string text = tools::decimal(100 * (ratio - 1), 1);
  if (text == "-0.0" || text == "0.0") return "0.0%";
  return (text.front() == '-' ? "" : "+") + text + "%";
}

std::string interval_text(const Change& change) {
  if (!change.interval) return "";
  return percent(change.interval->low) + " to " + percent(change.interval->high);
}

std::string times(const Change& against_plain) {
  if (!against_plain.interval) return "";
  return " (99%: " + tools::decimal(against_plain.interval->low, 3) + " to " +
         tools::decimal(against_plain.interval->high, 3) + ")";
}

std::string verdict(const Tried& tried, const Advice& advice) {
  if (!tried.change.interval) return "too few";
  if (tried.settings.graph_widths) return "only if your engine captures graphs";
  if (tried.chosen) return "use it";
  if (!tried.change.pays()) return "leave it";
  if (!tried.change.pays(tried.added_bytes)) return "too little for its memory";
  const bool larger = std::any_of(advice.tried.begin(), advice.tried.end(),
                                  [&](const Tried& other) { return other.question == tried.question && other.chosen; });
  return larger ? "a later one is better" : "leave it";
}

std::string mebibytes_text(std::uint64_t bytes) { return tools::decimal(static_cast<double>(bytes) / (1 << 20), 1); }

std::string bytes_text(std::uint64_t bytes) { return bytes == 0 ? "" : mebibytes_text(bytes) + " MiB"; }

/// A longer verdict has a line of its own.
constexpr std::size_t longest_verdict = 8;

}  // namespace

TriedText text_of(const Tried& tried, const Advice& advice) {
  return {percent(tried.change.ratio), interval_text(tried.change), bytes_text(tried.memory_bytes),
          verdict(tried, advice)};
}

void write_summary(std::ostream& out, const Advice& advice) {
  const auto sentence = [&out](const std::string& text) { out << tools::wrapped(text) << "\n"; };
  if (advice.sessions < fewest_sessions) {
    sentence("Too few sessions for an advice: " + std::to_string(advice.sessions) + " with tokens, and at least " +
             std::to_string(fewest_sessions) + " are needed. Leave the settings as they are, or record more.");
    return;
  }
  if (advice.leave_as_is()) {
    const bool slow = std::any_of(advice.tried.begin(), advice.tried.end(), [](const Tried& tried) {
      return tried.change.pays(tried.added_bytes) && !tried.settings.graph_widths;
    });
    sentence("Leave the settings as they are: " +
             (slow ? "none of them makes drafting faster than plain decoding here."
                   : "no change gave " + percent(1 + Change::least_gain()) +
                         " or more, beyond noise, and enough for the memory that it adds."));
  } else {
    std::string chosen;
    for (const Tried& tried : advice.tried)
      if (tried.chosen)
        chosen += (chosen.empty() ? "" : ", ") + (tried.question == tried.setting ? "" : tried.question + " ") +
                  tried.setting;
    sentence("Use: " + chosen + ".");
    sentence(
        "Together: " + tools::decimal(advice.speedup, 3) + " times as fast as plain decoding, " +
        percent(advice.against_default.ratio) + " against the defaults (99%: " + interval_text(advice.against_default) +
        ")" +
        (advice.memory_bytes != 0 ? ", with " + bytes_text(advice.memory_bytes) + " for all sessions of a trace" : "") +
        ".");
  }
  if (advice.against_plain.interval && advice.against_plain.interval->high < 1)
    sentence("The defaults are slower than plain decoding here. " +
             (advice.toll > 1 ? "The engine is better off without any drafter: having one costs " +
                                    percent(advice.toll) + " of each pass."
                              : "Check the curve; the loss of a drafter is bounded (docs/choosing.md)."));
}

void write_code(std::ostream& out, const AdviceReport& report) {
  const AdvisedSettings& settings = report.advice.settings;
  const bool told = report.settings.cost_known == CostKnown::told;
  if (told && report.curve.linear() != nullptr)
    out << "auto curve = reprise::CostCurve::linear(" << tools::shortest(report.curve.linear()->slope) << ");\n";
  else if (told)
    out << "// `curve` is reprise::CostCurve::from_points() of the points in\n// "
        << tools::printable(report.curve.spec()) << ".\n";
  if (settings.drafter != Drafter::copy) out << "reprise::NgramOptions options;\n";
  if (settings.history_bytes != 0) {
    out << "// docs/serving.md: give both your `.key` and `.vocabulary`, and add each\n// request that has ended.\n"
        << "auto history = reprise::HistoryStore::make({.max_bytes = " << settings.history_bytes << "});\n"
        << "auto next_tokens = reprise::NextTokens::make(" << (report.top_k ? "\n    " : "")
        << "{.max_bytes = " << (report.top_k ? 2 : 1) * report.settings.next_token_bytes
        << (report.top_k ? ", .rankings = true" : "") << "});\n"
        << "if (!history || !next_tokens) return out_of_memory();\n"
        << "options.stores = {*history};\n"
        << "options.next_tokens = &*next_tokens;\n";
  }
  if (!report.settings.corpora.empty() && settings.drafter != Drafter::copy)
    out << "// Add your corpora to options.stores:\n// " << tools::printable(report.settings.corpora) << ".\n";
  if (settings.drafter == Drafter::copy)
    out << "reprise::Session session{\n    reprise::PromptLookupDrafter{},\n    reprise::CostControl({"
        << (told ? ".curve = std::move(curve)" : "") << "})};\n";
  else if (settings.drafter == Drafter::suffix_array)
    out << "using Drafter = reprise::NgramDrafter<reprise::SuffixArrayIndex>;\n"
        << "reprise::Session<Drafter, reprise::CostControl> session(\n"
        << "    Drafter(options),\n    reprise::CostControl({" << (told ? ".curve = std::move(curve), " : "")
        << ".calibrated = true}));\n";
  else
    out << "reprise::Speculator session(options" << (told ? ", {.curve = std::move(curve)}" : "") << ");\n";
  if (settings.trees)
    out << "// Your verifier's capabilities(), with tree attention: V6 to V8 of\n// docs/integration.md.\n"
        << "reprise::Capabilities capabilities;\n"
        << "capabilities.max_leaves = reprise::unlimited;\n";
  if (settings.max_nodes != usual_draft_nodes)
    out << "reprise::Limits limits;\n"
        << "limits.draft.max_nodes = " << settings.max_nodes << ";\n";
}

void write_table(std::ostream& out, const AdviceReport& report) {
  const Advice& advice = report.advice;
  out << "Advice for " << tools::grouped(advice.sessions) << (advice.sessions == 1 ? " session, " : " sessions, ")
      << tools::grouped(advice.tokens) << " tokens, under " << tools::printable(report.curve.spec())
      << (report.part == TracePart::all ? "" : ", part " + std::string(name(report.part))) << "\n\n"
      << tools::wrapped("The defaults (chains, " +
                        std::string(report.top_k ? "rankings of accepted tokens" : "no rankings") +
                        ", no history): " + tools::decimal(advice.default_speedup, 3) +
                        " times as fast as plain decoding" + times(advice.against_plain))
      << "\n\n";
  const tools::Table table(out, {{12, tools::Align::left}, {18, tools::Align::left}, {8}, {8}, {18}, {6}});
  table.line({"question", "setting", "speedup", "change", "99% interval", "MiB"}, "  verdict");
  const std::string* question = nullptr;
  for (const Tried& tried : advice.tried) {
    const bool same = question != nullptr && *question == tried.question;
    const TriedText text = text_of(tried, advice);
    const bool long_verdict = text.verdict.size() > longest_verdict;
    // A blank, because the interval of few sessions can fill its column.
    std::vector<tools::Cell> cells = {same ? "" : tried.question, tried.setting, tools::decimal(tried.speedup, 3),
                                      text.change, " " + text.interval};
    if (tried.memory_bytes != 0 || !long_verdict)
      cells.emplace_back(tried.memory_bytes == 0 ? "" : mebibytes_text(tried.memory_bytes));
    table.line(cells, long_verdict ? "" : "  " + text.verdict);
    if (long_verdict) out << std::string(12, ' ') << "(" << text.verdict << ")\n";
    question = &tried.question;
  }
  out << "\n"
      << tools::wrapped("Each change is relative to the settings chosen above it. A change must gain " +
                        tools::decimal(100 * Change::least_gain(), 1) + "%, and " +
                        tools::decimal(100 * (Change::least_gain(1 << 20) - Change::least_gain()), 2) +
                        "% more for each MiB of memory that it adds.")
      << "\n";
  write_summary(out, advice);
  out << "\n";
  write_code(out, report);
}

}  // namespace reprise::replay
