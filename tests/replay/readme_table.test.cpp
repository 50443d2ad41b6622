// SPDX-License-Identifier: Apache-2.0
/// The table of speedups in README.md holds the numbers that its command prints.
#include <gtest/gtest.h>

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

/// The lines of README.md; a line that ends with a backslash goes on in the next one.
Lines page() {
  std::ifstream file(REPRISE_SOURCE_DIR "/README.md", std::ios::binary);
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

/// What the table calls a bundled trace, and its file.
const std::map<std::string, std::string> texts = {
    {"code edits", "code-edit"}, {"JSON", "json"}, {"chat", "chat"}, {"prose", "prose"}};
const std::map<std::string, std::string> costs = {{"2%", "linear:0.02"}, {"30%", "linear:0.3"}};

TEST(ReadmeTable, HoldsTheNumbersOfItsCommand) {
  const Lines lines = page();
  std::string command;
  std::vector<std::vector<std::string>> table;
  bool inside = false;
  for (const std::string& line : lines) {
    if (line.starts_with("reprise-replay ")) command = line;
    if (line.starts_with("| text | cost |")) inside = true;
    if (!line.starts_with("|")) inside = false;
    if (inside && !line.starts_with("|---")) table.push_back(cells(line));
  }
  const auto strategies = values_of(command, "--strategy");
  const auto curves_named = values_of(command, "--cost");
  ASSERT_GE(table.size(), 5U);
  ASSERT_EQ(table.front().size(), strategies.size() + 2) << "a column for each --strategy of " << command;
  ASSERT_EQ(strategies.front(), default_strategy);

  std::vector<StrategyRun> runs;
  for (const std::string& strategy : strategies) runs.push_back(make_runs(strategy).front());
  std::vector<CostCurve> curves;
  for (const std::string& curve : curves_named) curves.push_back(CostCurve::parse(curve));
  std::map<std::string, std::vector<Row>> rows;  // of each text
  for (std::size_t line = 1; line < table.size(); ++line) {
    const std::vector<std::string>& shown = table[line];
    ASSERT_EQ(shown.size(), table.front().size());
    ASSERT_TRUE(texts.contains(shown[0])) << shown[0];
    ASSERT_TRUE(costs.contains(shown[1])) << shown[1];
    if (!rows.contains(shown[0])) {
      const Trace trace = read_trace(REPRISE_SOURCE_DIR "/bench/traces/" + texts.at(shown[0]) + ".jsonl");
      const ControlSpec control;
      tools::Progress progress(nullptr, 0);
      Assignment assignment;
      assignment.traces = {&trace, 1};
      assignment.runs = runs;
      assignment.controls = {&control, 1};
      assignment.curves = curves;
      rows[shown[0]] = replay_all(assignment, progress);
    }
    for (std::size_t column = 2; column < shown.size(); ++column) {
      std::string measured = "no such row";
      for (const Row& row : rows[shown[0]])
        if (row.strategy == runs[column - 2].spec && curves_named[row.curve] == costs.at(shown[1]))
          measured = tools::decimal(speedup(row), 2);
      EXPECT_EQ(shown[column], measured) << shown[0] << ", " << shown[1] << ", " << runs[column - 2].spec;
    }
  }
}

}  // namespace
}  // namespace reprise::replay::readme_table_test
