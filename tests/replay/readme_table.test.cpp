// SPDX-License-Identifier: Apache-2.0
/// The table of speedups in README.md holds the numbers that its commands print.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "replay/report.hpp"
#include "replay/run.hpp"

namespace reprise::replay::readme_table_test {
namespace {

using Lines = std::vector<std::string>;

/// The lines of a page; a line that ends with a backslash goes on in the next one.
Lines lines_of(const std::string& name) {
  std::ifstream file(REPRISE_SOURCE_DIR "/" + name, std::ios::binary);
  Lines lines;
  bool continued = false;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    const bool goes_on = line.ends_with('\\');
    if (goes_on) line.pop_back();
    if (continued)
      lines.back() += line;
    else
      lines.push_back(line);
    continued = goes_on;
  }
  return lines;
}

/// The cells of a row of a Markdown table, without blanks and emphasis.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> found;
  std::istringstream row(line.substr(1));
  for (std::string cell; std::getline(row, cell, '|');) {
    std::erase(cell, '*');
    const std::size_t begin = cell.find_first_not_of(' ');
    found.push_back(begin == std::string::npos ? "" : cell.substr(begin, cell.find_last_not_of(' ') - begin + 1));
  }
  return found;
}

/// The values of an option in a command line.
std::vector<std::string> values_of(const std::string& command, const std::string& option) {
  std::vector<std::string> found;
  std::istringstream words(command);
  for (std::string word; words >> word;)
    if (word == option && words >> word) found.push_back(word);
  return found;
}

/// The number after one of the keys in a setting such as "hf:n=3,k=10"; empty if there is none.
std::string value_of(const std::string& setting, const std::vector<std::string>& keys) {
  for (const std::string& key : keys)
    for (const char before : {':', ','})
      if (const std::size_t at = setting.find(before + key + '='); at != std::string::npos) {
        const std::size_t begin = at + key.size() + 2;
        return setting.substr(begin, setting.find(',', begin) - begin);
      }
  return "";
}

/// The rows that have a bundled trace, and its file. The other rows are measured with traces that are not bundled.
const std::map<std::string, std::string> texts = {{"SmolLM2: code edits", "code-edit"},
                                                  {"SmolLM2: JSON", "json"},
                                                  {"SmolLM2: chat", "chat"},
                                                  {"SmolLM2: prose", "prose"}};
const std::map<std::string, std::string> costs = {{"2%", "linear:0.02"}, {"30%", "linear:0.3"}};

using Speedups = std::map<std::string, std::vector<double>>;

/// A command of the page, ready to be replayed.
class Command {
 public:
  explicit Command(const std::string& line) : named_(values_of(line, "--cost")) {
    for (const std::string& strategy : values_of(line, "--strategy")) {
      const auto settings = make_runs(strategy);
      runs_.insert(runs_.end(), settings.begin(), settings.end());
    }
    for (const std::string& curve : named_) curves_.push_back(CostCurve::parse(curve));
    for (const std::string& shape : values_of(line, "--shape")) settings_.trees = shape != "chain";
    for (const std::string& rows : values_of(line, "--top-k")) settings_.top_k = rows != "off";
  }
  [[nodiscard]] const std::vector<StrategyRun>& runs() const { return runs_; }

  /// The speedups under each curve, in the order of runs().
  [[nodiscard]] Speedups speedups(const Trace& trace) const {
    const ControlSpec control;
    tools::Progress progress(nullptr, 0);
    Assignment assignment;
    assignment.traces = {&trace, 1};
    assignment.runs = runs_;
    assignment.controls = {&control, 1};
    assignment.curves = curves_;
    assignment.settings = settings_;
    Speedups found;
    for (const Row& row : replay_all(assignment, progress)) found[named_[row.curve]].push_back(speedup(row));
    return found;
  }

 private:
  std::vector<std::string> named_;  // the curves
  std::vector<CostCurve> curves_;
  std::vector<StrategyRun> runs_;
  ReplaySettings settings_ = two_functions();
};

/// The commands of the first block after a line that begins with `start`.
std::vector<Command> commands_after(const std::string& page, const std::string& start) {
  std::vector<Command> found;
  bool after = false;
  bool block = false;
  for (const std::string& line : lines_of(page)) {
    after = after || line.starts_with(start);
    if (block && line == "```") break;
    block = block || (after && line == "```sh");
    if (block && line.starts_with("reprise-replay ")) found.emplace_back(line);
  }
  return found;
}

constexpr const char* head = "| text | cost |";

std::vector<std::vector<std::string>> table_of_page() {
  std::vector<std::vector<std::string>> table;
  bool inside = false;
  for (const std::string& line : lines_of("README.md")) {
    inside = line.starts_with(head) || (inside && line.starts_with("|"));
    if (inside && !line.starts_with("|---")) table.push_back(cells(line));
  }
  return table;
}

/// The settings of other systems; the best of them is the last column.
std::vector<Command> settings_of_others() {
  return commands_after("docs/performance.md", "## Settings of other systems");
}

TEST(ReadmeTable, HoldsTheNumbersOfItsCommands) {
  const auto table = table_of_page();
  const std::vector<Command> commands = commands_after("README.md", head);
  ASSERT_EQ(commands.size(), 2U) << "two functions and other systems; trees";
  const std::vector<Command> others = settings_of_others();
  ASSERT_EQ(others.size(), 1U);
  ASSERT_GE(table.size(), 5U);
  ASSERT_EQ(table.front().size(), commands[0].runs().size() + 4) << "text, cost, trees, best";
  ASSERT_EQ(commands[0].runs().front().spec, default_strategy);
  ASSERT_EQ(commands[1].runs().size(), 1U);
  ASSERT_EQ(commands[1].runs().front().spec, default_strategy);

  std::map<std::string, std::vector<Speedups>> replayed;  // of each text, by the commands
  std::size_t reproduced = 0;
  for (std::size_t line = 1; line < table.size(); ++line) {
    const std::vector<std::string>& shown = table[line];
    ASSERT_EQ(shown.size(), table.front().size());
    ASSERT_TRUE(costs.contains(shown[1])) << shown[1];
    if (!texts.contains(shown[0])) continue;
    ++reproduced;
    std::vector<Speedups>& found = replayed[shown[0]];
    if (found.empty()) {
      const Trace trace = read_trace(REPRISE_SOURCE_DIR "/bench/traces/" + texts.at(shown[0]) + ".jsonl");
      found = {commands[0].speedups(trace), commands[1].speedups(trace), others[0].speedups(trace)};
    }
    const std::string& curve = costs.at(shown[1]);
    std::vector<double> measured = found[0][curve];
    const std::vector<double>& settings = found[2][curve];
    measured.insert(measured.begin() + 1, found[1][curve].front());
    measured.push_back(*std::max_element(settings.begin(), settings.end()));
    ASSERT_EQ(measured.size() + 2, shown.size());
    for (std::size_t column = 0; column < measured.size(); ++column)
      EXPECT_EQ(shown[column + 2], tools::decimal(measured[column], 2))
          << shown[0] << ", " << shown[1] << ", " << table.front()[column + 2];
  }
  EXPECT_EQ(reproduced, texts.size() * costs.size());
}

TEST(ReadmeTable, NamesTheSettingsOfOtherSystems) {
  const auto table = table_of_page();
  const std::vector<Command> commands = commands_after("README.md", head);
  ASSERT_EQ(commands.size(), 2U);
  ASSERT_EQ(table.front().size(), commands[0].runs().size() + 4);
  for (std::size_t run = 1; run < commands[0].runs().size(); ++run) {
    const std::string& setting = commands[0].runs()[run].spec;
    const std::string shown = " " + value_of(setting, {"n", "max"}) + "/" + value_of(setting, {"k", "m"});
    EXPECT_TRUE(table.front()[run + 3].ends_with(shown)) << setting << " is shown as " << table.front()[run + 3];
  }
  const std::vector<Command> others = settings_of_others();
  ASSERT_EQ(others.size(), 1U);
  const std::string count = "best of " + std::to_string(others[0].runs().size()) + " settings";
  const Lines lines = lines_of("README.md");
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(count) != std::string::npos;
  })) << count;
}

}  // namespace
}  // namespace reprise::replay::readme_table_test
