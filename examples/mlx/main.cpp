// SPDX-License-Identifier: Apache-2.0
// MLX with reprise: decodes the prompts of a trace one token a pass, then again with a Speculator, and compares the
// texts. Prompts are token ids, so no tokenizer is needed.
#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/input_error.hpp"
#include "common/json_writer.hpp"
#include "common/options.hpp"
#include "common/progress.hpp"
#include "common/table.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "llama_model.hpp"
#include "mlx_verifier.hpp"
#include "model_folder.hpp"
#include "replay/trace.hpp"
#include "reprise/reprise.hpp"

namespace {

using reprise::Token;
using reprise::TokenSpan;
using reprise::tools::InputError;
using Verifier = reprise::mlx::MlxVerifier<const reprise::mlx::LlamaModel>;

constexpr int exit_near_tie = 3, exit_different = 4;

struct Options {
  bool help = false, json = false;
  std::vector<std::string> operands;
  std::size_t sessions = 4, max_tokens = 64, longest = 512, leaves = 4;
  std::optional<double> cost = {};  // of a drafted row, in passes; nullopt: learned from pass times
  double epsilon = 1e-3;
};

reprise::tools::OptionTable table_of(Options& o) {
  using namespace reprise::tools;
  OptionTable table;
  table.operand = [&o](const auto&, const std::string& operand) { o.operands.push_back(operand); };
  const auto cost = [&o](const std::string& name, const std::string& value) {
    real(o.cost.emplace(0), 0, 1000, "0 to 1000")(name, value);
  };
  table.rows = {
      {"", "",
       "usage: mlx [OPTION]... FOLDER TRACE\n\n"
       "Decodes the first prompt of each session in TRACE with the model in FOLDER, always choosing the likeliest\n"
       "token: one token a pass, then with drafts. Prints whether both texts are the same.\n\n"
       "FOLDER has config.json and model.safetensors of a Llama model. TRACE is a file as in bench/traces.\n\n"},
      {"--sessions", "N", "sessions of the trace, from the first on (default 4)",
       whole(o.sessions, 1, 1'000'000, "a whole number")},
      {"--max-tokens", "N", "of each text, past tokens that end a turn (default 64)",
       whole(o.max_tokens, 1, 1'000'000, "a whole number")},
      {"--longest", "N", "leave out prompts of more than N tokens (default 512)",
       whole(o.longest, 1, 1'000'000'000, "a whole number")},
      {"--leaves", "N", "paths of a draft tree; 1: chains only (default 4)", whole(o.leaves, 1, 64, "a whole number")},
      {"--cost", "S", "time of a drafted row, in passes without draft (default: learned from pass times)", cost},
      {"--epsilon", "E", "a difference is a near tie if the two best logits are at most E apart (default 0.001)",
       real(o.epsilon, 0, 1000, "0 to 1000")},
      {"--format", "FORMAT", "table or json (default table)", word<bool>(o.json, {{"table", false}, {"json", true}})},
      {"--help", "", "this text", flag(o.help), false, false, "-h"},
      {"", "",
       "\nExit status: 0 the texts are the same, 1 MLX failed, 2 an argument or a file cannot be used, 3 texts differ\n"
       "after a near tie, 4 texts differ otherwise.\n"},
  };
  return table;
}

/// The result for one prompt.
struct Row {
  std::string session;
  std::size_t prompt = 0, tokens = 0, plain_passes = 0, passes = 0, drafted = 0, accepted = 0;
  std::size_t recorded = 0, agrees = 0;     // tokens of the recording, and how many agree before the first difference
  std::optional<std::size_t> differs = {};  // the first token that drafting has changed
  double margin = 0;                        // of plain decoding at that token

  [[nodiscard]] double tokens_per_pass() const { return static_cast<double>(tokens) / static_cast<double>(passes); }
};

struct PlainText {
  std::vector<Token> tokens;
  std::vector<double> margins;
};

/// The value, or an exception with the error's sentence: the program ends at its first failure.
template <class T>
T expect(reprise::Result<T> result) {
  if (!result) throw std::runtime_error(std::string(result.error().message));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

Verifier verifier_of(const reprise::mlx::LlamaModel& model, TokenSpan prompt, std::size_t leaves) {
  Verifier verifier = expect(Verifier::make(model, {.leaves = leaves}));
  expect(verifier.prefill(prompt.first(prompt.size() - 1)));
  return verifier;
}

/// One token a pass, without reprise.
PlainText decode_plainly(Verifier verifier, Token anchor, std::size_t count) {
  PlainText text;
  while (text.tokens.size() < count) {
    anchor = expect(verifier.verify(std::array{anchor}, 0))[0];
    text.margins.push_back(verifier.margin(0));
    expect(verifier.commit(1));
    text.tokens.push_back(anchor);
  }
  return text;
}

std::size_t common_length(TokenSpan a, TokenSpan b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

Row compare(const reprise::mlx::LlamaModel& model, const Options& options,
            const reprise::replay::TraceSession& session) {
  const reprise::replay::Turn& turn = session.turns.front();
  const std::size_t count = options.max_tokens;
  const PlainText plain = decode_plainly(verifier_of(model, turn.prompt, 1), turn.prompt.back(), count);

  Verifier verifier = verifier_of(model, turn.prompt, options.leaves);
  reprise::CostOptions cost;
  if (options.cost) cost.curve = reprise::CostCurve::linear(*options.cost);
  reprise::Speculator speculator({}, std::move(cost));
  const auto drafted = expect(reprise::generate(speculator, verifier, turn.prompt, {.max_tokens = count}));

  Row row{session.id, turn.prompt.size(), drafted.tokens.size(), plain.tokens.size()};
  row.passes = drafted.statistics.passes;
  row.drafted = drafted.statistics.drafted;
  row.accepted = drafted.statistics.accepted;
  row.recorded = std::min(turn.output.size(), count);
  row.agrees = common_length(TokenSpan(turn.output).first(row.recorded), plain.tokens);
  if (const std::size_t same = common_length(plain.tokens, drafted.tokens); same < count) {
    row.differs = same;
    row.margin = plain.margins[same];
  }
  return row;
}

void print_table(const std::vector<Row>& rows) {
  using namespace reprise::tools;
  const Table table(std::cout, {{20, Align::left}, {7}, {8}, {8}, {10}, {9}, {10}, {13}});
  table.line({"session", "prompt", "tokens", "passes", "tok/pass", "drafted", "accepted", "as recorded"}, "  text");
  for (const Row& row : rows)
    table.line({row.session, std::to_string(row.prompt), std::to_string(row.tokens), std::to_string(row.passes),
                decimal(row.tokens_per_pass(), 2), std::to_string(row.drafted), std::to_string(row.accepted),
                std::to_string(row.agrees) + " of " + std::to_string(row.recorded)},
               row.differs
                   ? "  differs at token " + std::to_string(*row.differs) + ", margin " + significant(row.margin, 3)
                   : "  same");
}

void print_json(const std::vector<Row>& rows) {
  reprise::tools::JsonWriter json(std::cout);
  json.begin_array();
  for (const Row& row : rows) {
    json.new_line(2).begin_object().member("session", row.session).member("prompt", row.prompt);
    json.member("tokens", row.tokens).member("plain_passes", row.plain_passes).member("passes", row.passes);
    json.raw_member("tokens_per_pass", reprise::tools::decimal(row.tokens_per_pass(), 4));
    json.member("drafted", row.drafted).member("accepted", row.accepted);
    json.member("recorded", row.recorded).member("as_recorded", row.agrees).member("same", !row.differs);
    if (row.differs) json.member("differs_at", *row.differs).raw_member("margin", reprise::tools::shortest(row.margin));
    json.end();
  }
  json.new_line().end();
  std::cout << '\n';
}

int run(const Options& options) {
  if (options.operands.size() != 2) throw InputError("give the folder of a model and a trace; see --help");
  const auto trace = reprise::replay::read_trace(options.operands[1], options.sessions);
  const reprise::mlx::LlamaModel model = reprise::mlx::read_model(options.operands[0]);
  std::vector<const reprise::replay::TraceSession*> chosen;
  for (const auto& session : trace.sessions) {
    const auto& prompt = session.turns.front().prompt;
    if (prompt.empty() || prompt.size() > options.longest) continue;
    const auto known = [&](Token t) { return t >= 0 && static_cast<std::size_t>(t) < model.vocabulary(); };
    if (!std::all_of(prompt.begin(), prompt.end(), known))
      throw InputError(session.where +
                       ": turns[0].prompt: a token is not in the model's vocabulary; record the trace "
                       "with this model");
    if (prompt.size() + options.max_tokens > model.max_context())
      throw InputError(session.where + ": turns[0].prompt: has " + std::to_string(prompt.size()) +
                       " tokens, which with --max-tokens is more than the model's context of " +
                       std::to_string(model.max_context()) + "; give a smaller --max-tokens or --longest");
    chosen.push_back(&session);
  }
  if (chosen.empty())
    throw InputError(options.operands[1] + ": no session has a prompt of 1 to " + std::to_string(options.longest) +
                     " tokens; give a larger --longest or --sessions");

  reprise::tools::Progress progress(reprise::tools::is_terminal(reprise::tools::Stream::error) ? &std::cerr : nullptr,
                                    reprise::tools::terminal_columns(reprise::tools::Stream::error, 80));
  progress.start("mlx", chosen.size());
  std::vector<Row> rows;
  for (const auto* session : chosen) rows.push_back(compare(model, options, *session)), progress.step();
  progress.clear();
  options.json ? print_json(rows) : print_table(rows);
  const auto is = [&](bool near_tie) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Row& row) { return row.differs && (row.margin <= options.epsilon) == near_tie; });
  };
  return is(false) ? exit_different : is(true) ? exit_near_tie : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    const auto table = table_of(options);
    static_cast<void>(parse(table, std::vector<std::string>(argv + std::min(argc, 1), argv + argc)));
    if (options.help) return std::cout << table.help(), 0;
    return run(options);
  } catch (const InputError& error) {
    std::cerr << "mlx: " << reprise::tools::printable(error.what()) << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "mlx: " << reprise::tools::printable(error.what()) << '\n';
    return 1;
  }
}
