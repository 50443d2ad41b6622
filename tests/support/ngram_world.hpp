// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/index/next_tokens.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "support/choices.hpp"
#include "support/lent_context.hpp"
#include "support/naive_index.hpp"
#include "support/random_rows.hpp"
#include "support/streams.hpp"

namespace reprise::testing {

/// An endless text of a random kind, computed in integers: the same on every compiler.
class EndlessText {
 public:
  explicit EndlessText(Choices& choices) {
    constexpr std::size_t size = 6'000;
    constexpr std::array kinds = {Stream::random_small, Stream::period_3, Stream::fibonacci, Stream::de_bruijn,
                                  Stream::all_distinct};
    const bool copies = choices.chance(60);
    const Stream kind = kinds[choices.below(kinds.size())];
    const std::size_t vocabulary = choices.between(5, 80);
    SplitMix random(choices.below(1U << 16));
    if (!copies) tokens_ = make_stream(kind, size, random.next());
    while (tokens_.size() < size) {  // new tokens, and copies of earlier text with a few edits
      const bool copied = !tokens_.empty() && random.one_in(2);
      const std::size_t from = copied ? random.below(tokens_.size()) : 0;
      const std::size_t length = random.between(2, 40);
      for (std::size_t i = 0; i < length; ++i) {
        const std::size_t fresh =
            std::min({random.below(vocabulary), random.below(vocabulary), random.below(vocabulary)});
        tokens_.push_back(copied && !random.one_in(40) ? tokens_[from + i] : static_cast<Token>(fresh));
      }
    }
    if (choices.chance(20)) tokens_ = with_extreme_ids(std::move(tokens_));
  }
  std::vector<Token> next(std::size_t count) {
    std::vector<Token> tokens(count);
    for (Token& token : tokens) token = tokens_[at_++ % tokens_.size()];
    return tokens;
  }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

inline std::string describe(std::span<const DraftNode> nodes) {
  std::string text = "[";
  for (const DraftNode& node : nodes)
    text += ' ' + std::to_string(node.token) + '<' + std::to_string(node.parent) + ':' +
            std::to_string(node.path_probability.raw()) + '/' + std::to_string(node.match_length);
  return text + " ]";
}
inline bool same_nodes(std::span<const DraftNode> a, std::span<const DraftNode> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const DraftNode& x, const DraftNode& y) {
    return x.token == y.token && x.parent == y.parent && x.path_probability == y.path_probability &&
           x.match_length == y.match_length && x.source == y.source && x.auxiliary == y.auxiliary;
  });
}

/// NgramDrafter together with the context that it is lent.
template <LookupIndex Index = RollingHashIndex>
class LentNgram : public Lent<NgramDrafter<Index>> {
 public:
  using Base = Lent<NgramDrafter<Index>>;
  explicit LentNgram(const NgramOptions& options = {}) : Base(NgramDrafter<Index>(options)) {}

  /// Passes on sizes beyond the context as well.
  void truncate(std::size_t size) {
    if (size <= this->context().size()) return Base::truncate(size);
    this->strategy().truncate(this->context(), size);
  }
  void learn_row(TokenSpan context, TokenSpan likeliest) { this->strategy().learn_row(context, likeliest); }
  [[nodiscard]] const NgramOptions& options() const { return this->strategy().options(); }
  [[nodiscard]] const Index& index() const { return this->strategy().index(); }
  [[nodiscard]] const CalibrationState& calibration() const { return this->strategy().calibration(); }
  [[nodiscard]] std::size_t replaced_tokens() const { return this->strategy().replaced_tokens(); }
  [[nodiscard]] bool exhausted() const { return this->strategy().exhausted(); }
  [[nodiscard]] std::size_t memory_bytes() const { return this->strategy().memory_bytes(); }
};

template <class Strategy>
std::vector<DraftNode> draft_of(Lent<Strategy>& lent, const DraftBudget& budget, std::size_t capacity = 128) {
  return lent.propose(budget, capacity).nodes;
}

/// Outcomes as rounds produce them, and others.
class RandomOutcome {
 public:
  RandomOutcome(Choices& choices, std::vector<DraftNode> nodes) : nodes_(std::move(nodes)) {
    std::vector<NodeIndex> children;
    for (NodeIndex at = anchor_parent; choices.below(5) != 0; at = accepted_.back()) {
      children.clear();
      for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i].parent == at) children.push_back(static_cast<NodeIndex>(i));
      if (children.empty()) break;
      accepted_.push_back(children[choices.chance(70) ? 0 : choices.below(children.size())]);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (choices.chance(80)) sent_.push_back(static_cast<NodeIndex>(i));
    if (choices.below(6) != 0) pick_ = static_cast<Token>(choices.below(12));
    if (pick_ && !nodes_.empty() && choices.chance(50)) pick_ = nodes_[choices.below(nodes_.size())].token;
  }
  /// The tokens that the session would commit.
  [[nodiscard]] std::vector<Token> committed() const {
    std::vector<Token> tokens;
    for (std::size_t i = 0; const auto token = committed_token(view(), i); ++i) tokens.push_back(*token);
    return tokens;
  }
  /// Adds rows of the target to the outcome; see random_rows().
  void show_rows(Choices& choices, TokenSpan said) { rows_ = random_rows(choices, nodes_, said); }
  [[nodiscard]] Outcome view() const {
    return {DraftView(nodes_, DraftKind::ordered), sent_, accepted_, pick_, Cut::none, rows_};
  }

 private:
  std::vector<DraftNode> nodes_;
  std::vector<NodeIndex> sent_;
  std::vector<NodeIndex> accepted_;
  std::optional<Token> pick_;
  std::vector<Outcome::RankedToken> rows_;
};

/// The events that worlds have met.
struct NgramCoverage {
  std::size_t drafts = 0;  ///< with at least one node
  std::size_t trees = 0;   ///< that are not chains
  std::size_t past_end = 0;
  std::size_t copied = 0;      ///< nodes whose place in the text was found again
  std::size_t fillers = 0;     ///< nodes that are only frequent
  std::size_t foreign = 0;     ///< nodes of tokens that are not in the text of the index
  std::size_t remembered = 0;  ///< nodes that only stores predict
  std::size_t truncations = 0;
  std::size_t rebases = 0;
  std::size_t most_evidence = 0;
  std::size_t longest = 0;  ///< longest context
};

/// The naive index without latest().
class PlainNaiveIndex : NaiveIndex {
 public:
  using NaiveIndex::append;
  using NaiveIndex::clear;
  using NaiveIndex::exhausted;
  using NaiveIndex::find;
  using NaiveIndex::memory_bytes;
  using NaiveIndex::NaiveIndex;
  using NaiveIndex::reserve;
  using NaiveIndex::tokens;
  using NaiveIndex::truncate;
};
static_assert(LookupIndex<PlainNaiveIndex> && !NgramIndex<PlainNaiveIndex>);

/// One random run of all calls of NgramDrafter. Checks statements that hold for each draft, whatever the policy:
/// * it is well-formed: a Draft refuses nodes out of order or beyond the budget;
/// * the tokens before a copied token are those before its place in the text, as far as it claims;
/// * what was truncated has left no trace, and a copy drafts what the original drafts;
/// * rows of the target stay within their memory, and hold no negative token.
template <LookupIndex Index>
class NgramWorld {
  using Sequence = LentNgram<Index>;

 public:
  NgramWorld(Choices& choices, NgramCoverage& coverage) : choices_(choices), coverage_(coverage), source_(choices) {}

  /// Returns the first difference, or an empty string.
  std::string run() {
    NgramOptions options;
    if (choices_.chance(20)) options.min_path_probability = Probability::ratio(1, choices_.chance(50) ? 20 : 5000);
    if (choices_.chance(20)) {
      CalibrationState prior;
      prior.all = static_cast<std::int32_t>(choices_.below(1 << 22)) - (1 << 21);
      options.prior = prior;
    }
    if (choices_.chance(20)) options.key = choices_.below(1U << 16);
    if (choices_.chance(30)) options.max_replaced = choices_.below(200);
    std::array<HistoryStore, NgramOptions::max_stores> memories;
    std::vector<HistoryStore*> stores;
    const std::size_t wanted = choices_.chance(50) ? 1 + choices_.below(4) * choices_.below(2) : 0;
    for (std::size_t i = 0; i < wanted; ++i) {
      memories[i] = *HistoryStore::make(
          {.max_bytes = HistoryStore::bytes_for(32 * choices_.between(1, 40)), .key = choices_.below(8)});
      stores.push_back(&memories[i]);
      options.stores[wanted == 1 ? 0 : (i + wanted) % memories.size()] = memories[i];
    }
    NextTokens table = table_of();
    if (table.lines() != 0) options.next_tokens = &table;
    shows_rows_ = choices_.chance(50);
    if (choices_.chance(30)) options.top_k = choices_.below(choices_.chance(80) ? 9 : 100);
    // Small tables, in which rows replace each other.
    if (choices_.chance(40)) options.row_bytes = choices_.below(choices_.chance(50) ? 200 : 8000);
    if (choices_.chance(50)) options.row_bytes = std::min<std::size_t>(options.row_bytes, 20'000);  // quick to clear
    std::vector<Sequence> sequences;
    sequences.reserve(most_sequences);  // references to them must stay valid
    sequences.emplace_back(options);
    own_text_only_ = stores.empty();
    if (choices_.chance(90)) sequences[0].begin(source_.next(piece()));
    for (std::size_t steps = choices_.between(1, 60); steps > 0; --steps) {
      Sequence& sequence = sequences[choices_.below(sequences.size())];
      switch (choices_.below(16)) {
        case 0:
        case 1: {
          const std::size_t size = sequence.context().size();
          sequence.truncate(choices_.chance(70) ? size - std::min(size, choices_.below(12)) : choices_.below(size + 2));
          ++coverage_.truncations;
          break;
        }
        case 2:
          if (sequences.size() < most_sequences) {
            sequences.push_back(Sequence(sequence));
          } else {
            sequences[0] = sequences[choices_.below(most_sequences)];
          }
          break;
        case 3:
          if (choices_.chance(20)) sequence.begin(source_.next(piece()));
          break;
        case 4:
          sequence.rebase(changed(sequence.context()));
          ++coverage_.rebases;
          coverage_.most_evidence = std::max(coverage_.most_evidence, sequence.replaced_tokens());
          break;
        default: {
          said_.clear();
          if (std::string fault = round(sequence); !fault.empty()) return fault;
          if (choices_.chance(10) && !leaves_no_trace(sequence)) return "truncated tokens have left a trace";
          // The outcome of the round, or some other text.
          const bool follows = !said_.empty() && choices_.chance(40);
          // A statement for each choice: compilers evaluate arguments in different orders.
          const Origin origin = choices_.chance(70) ? Origin::output : Origin::prompt;
          sequence.observe(follows ? said_ : source_.next(piece()), origin);
          for (HistoryStore* store : stores) remember(*store, sequence.context());
          count(table, sequence.context());
          if (table.options().rankings && choices_.chance(30)) table.add(sequence.strategy().rows());
          if (shows_rows_ && choices_.chance(10)) show_prompt_rows(sequence);
        }
      }
      coverage_.longest = std::max(coverage_.longest, sequence.context().size());
    }
    for (Sequence& sequence : sequences)
      if (std::string fault = round(sequence); !fault.empty()) return fault;
    return {};
  }
  /// One number for all drafts and lessons until the end of each round.
  [[nodiscard]] const std::vector<std::uint16_t>& digests() const { return digests_; }

 private:
  static constexpr std::size_t most_sequences = 3;

  std::size_t piece() {
    const std::size_t kind = choices_.below(20);
    if (kind == 0) return choices_.between(60, 70);
    if (kind == 1) return choices_.between(1, 260);
    if (kind == 2) return 0;
    return choices_.between(1, 12);
  }
  /// Returns a context with another middle: shorter, longer or the same. The middle may be the beginning or the end.
  std::vector<Token> changed(TokenSpan context) {
    const std::size_t begin = choices_.below(context.size() + 1);
    const std::size_t end = choices_.between(begin, context.size());
    std::vector<Token> tokens(context.begin(), context.begin() + static_cast<std::ptrdiff_t>(begin));
    const std::vector<Token> middle = source_.next(choices_.chance(50) ? piece() : 0);
    tokens.insert(tokens.end(), middle.begin(), middle.end());
    tokens.insert(tokens.end(), context.begin() + static_cast<std::ptrdiff_t>(end), context.end());
    return tokens;
  }
  /// Stores another sequence: a part of this one, with or without a change.
  void remember(HistoryStore& memory, TokenSpan context) {
    if (choices_.chance(40)) return;
    const std::size_t begin = choices_.below(context.size() + 1);
    memory.begin_sequence(choices_.below(4));
    const Origin origin = choices_.chance(50) ? Origin::output : Origin::prompt;
    memory.append(context.subspan(begin, choices_.below(context.size() - begin + 1)), origin);
    if (choices_.chance(50)) memory.append(source_.next(piece()), Origin::output);
    if (choices_.chance(5)) memory.remove(choices_.below(4));
  }
  /// Returns a table of any size, or without lines. It has counts, rankings or both of text of the same kind.
  NextTokens table_of() {
    const auto lines = [&] { return choices_.chance(50) ? choices_.between(1, 20) : choices_.between(100, 4000); };
    NextTokenOptions options{.max_bytes = 0};
    std::vector<std::vector<Token>> texts;
    counts_ = choices_.chance(40);
    if (counts_) {
      options.max_bytes = lines() * NextTokens::line_bytes;
      options.key = choices_.below(8);
      if (choices_.chance(10)) options.vocabulary = static_cast<std::uint32_t>(choices_.below(30));
      for (std::size_t left = choices_.below(4); left > 0; --left) texts.push_back(source_.next(choices_.below(300)));
    }
    options.rankings = choices_.chance(40);
    if (options.rankings) {
      const std::size_t max_bytes = lines() * NextTokens::line_bytes;
      const std::uint64_t key = choices_.below(8);
      if (!counts_) options.max_bytes = max_bytes;
      if (!counts_) options.key = key;
      options.max_bytes *= 2;
    }
    if (options.max_bytes == 0) return {};
    NextTokens table = *NextTokens::make(options);
    for (const std::vector<Token>& text : texts) table.add(text);
    if (options.rankings) add_rows(table);
    return table;
  }
  /// Adds rankings of earlier sequences.
  void add_rows(NextTokens& table) {
    const std::vector<Token> said = source_.next(choices_.below(200));
    for (std::size_t i = 2; i < said.size(); ++i) {
      if (choices_.chance(30)) continue;
      const Ranking ranking(random_ranking(choices_, TokenSpan(said).subspan(i - 2)));
      table.add(std::array{NextTokens::RankedRow{Ranking::none, said[i - 1], ranking},
                           NextTokens::RankedRow{said[i - 2], said[i - 1], ranking}});
    }
  }
  /// Counts a part of this sequence, or other text, in a table with counts.
  void count(NextTokens& table, TokenSpan context) {
    if (!counts_ || choices_.chance(40)) return;
    const std::size_t begin = choices_.below(context.size() + 1);
    table.add(context.subspan(begin, choices_.below(context.size() - begin + 1)));
    if (choices_.chance(30)) table.add(context, choices_.below(context.size() + 1));
    if (choices_.chance(30)) table.add(source_.next(piece()));
    if (choices_.chance(5) && !context.empty())  // text that was never said
      for (std::size_t i = choices_.below(200); i > 0; --i) {
        const Token last = context[choices_.below(context.size())];
        table.add(std::array{last, static_cast<Token>(choices_.below(50))});
      }
    if (choices_.chance(2)) table.clear();
  }
  void show_prompt_rows(Sequence& sequence) {
    const std::vector<Token> said(sequence.context().begin(), sequence.context().end());
    for (std::size_t i = choices_.below(20); i > 0; --i) {
      const TokenSpan context = TokenSpan(said).first(choices_.below(said.size() + 1));
      const std::vector<Token> ranking = random_ranking(choices_, said);
      sequence.learn_row(context, ranking);
    }
  }
  DraftBudget budget() {
    DraftBudget budget;
    constexpr std::array<std::size_t, 6> nodes = {0, 1, 4, 16, 32, 100};
    budget.max_nodes = nodes[choices_.below(6)];
    budget.max_depth = choices_.chance(30) ? choices_.below(6) : unlimited;
    budget.max_leaves = choices_.chance(30) ? choices_.below(6) : unlimited;
    budget.shape = choices_.chance(60) ? DraftShape::tree : DraftShape::chain;
    // Shares of counts can be exactly a quarter.
    constexpr std::array<std::uint32_t, 3> least = {4, 10, 100'000};
    if (choices_.chance(20)) budget.min_path_probability = Probability::ratio(1, least[choices_.below(least.size())]);
    return budget;
  }

  /// Drafts once or twice, and sometimes reports an outcome of the last draft.
  std::string round(Sequence& sequence) {
    for (std::size_t again = choices_.chance(15) ? 2 : 1; again > 0; --again) {
      const DraftBudget asked = budget();
      const Drafted drafted = sequence.propose(asked, choices_.chance(10) ? choices_.below(8) : 128);
      last_ = drafted.nodes;
      if (drafted.malformed) return "a malformed draft " + describe(last_);
      if (std::string fault = look(sequence.index().tokens()); !fault.empty()) return fault;
      coverage_.past_end += last_.size() > sequence.context().size() ? 1 : 0;
    }
    if (choices_.chance(70)) {
      RandomOutcome outcome(choices_, last_);
      const TokenSpan said = sequence.context();
      if (shows_rows_ && choices_.chance(80))
        outcome.show_rows(choices_, said.last(std::min<std::size_t>(said.size(), 30)));
      said_ = outcome.committed();
      sequence.feedback(outcome.view());
    }
    return learned(sequence);
  }
  /// Checks where the nodes of the last draft come from, and counts them. `text`: evidence and context.
  std::string look(TokenSpan text) {
    std::vector<std::vector<Token>> paths;
    bool tree = false;
    for (std::size_t i = 0; i < last_.size(); ++i) {
      const DraftNode& node = last_[i];
      paths.push_back(node.parent == anchor_parent ? std::vector<Token>(text.begin(), text.end())
                                                   : paths[static_cast<std::size_t>(node.parent)]);
      const bool copied = follows_a_copy(paths.back(), node.token, node.match_length);
      if (node.match_length > 0 && own_text_only_ && !copied) return "a copy of nothing " + describe(last_);
      paths.back().push_back(node.token);
      tree |= node.parent != static_cast<NodeIndex>(i) - 1;
      const bool foreign = std::find(text.begin(), text.end(), node.token) == text.end();
      coverage_.copied += copied && node.match_length > 0 ? 1 : 0;
      coverage_.fillers += node.match_length == 0 && !foreign ? 1 : 0;
      coverage_.foreign += foreign && node.source == DraftSource::context ? 1 : 0;
      coverage_.remembered += node.source == DraftSource::store ? 1 : 0;
      note(static_cast<std::uint32_t>(node.token));
      note(static_cast<std::uint32_t>(node.parent));
      note(node.path_probability.raw());
      note(node.match_length);
      note(static_cast<std::uint64_t>(node.source));
    }
    coverage_.drafts += last_.empty() ? 0 : 1;
    coverage_.trees += tree ? 1 : 0;
    return {};
  }
  /// Returns true if the last `length` tokens of the text stand before an earlier `token` too.
  static bool follows_a_copy(const std::vector<Token>& text, Token token, std::size_t length) {
    for (std::size_t at = length; at < text.size(); ++at)
      if (text[at] == token && std::equal(text.end() - static_cast<std::ptrdiff_t>(length), text.end(),
                                          text.begin() + static_cast<std::ptrdiff_t>(at - length)))
        return true;
    return false;
  }
  /// Checks what the drafter has learned, and notes it.
  std::string learned(const Sequence& sequence) {
    const NgramDrafter<Index>& drafter = sequence.strategy();
    if (drafter.rows().size_bytes() > drafter.options().row_bytes) return "more rows than their memory";
    for (const NextTokens::RankedRow& row : drafter.rows())
      for (const Token token : row.ranking.tokens)
        if (token < 0 && token != Ranking::none) return "a negative token was kept";
    note(drafter.top_k_wanted());
    note(sequence.replaced_tokens());
    note(drafter.calibration().lessons);
    note(drafter.calibration().recent);
    reprise::detail::for_each_bias([&](auto bias) { note(static_cast<std::uint32_t>(bias)); }, drafter.calibration());
    digests_.push_back(static_cast<std::uint16_t>(digest_));
    return {};
  }
  /// Returns true if a copy of the drafter, which reads more text and truncates it, drafts what the drafter drafts.
  bool leaves_no_trace(const Sequence& sequence) {
    Sequence before = sequence;
    Sequence after = sequence;
    const Origin origin = choices_.chance(70) ? Origin::output : Origin::prompt;
    after.observe(source_.next(piece()), origin);
    after.truncate(sequence.context().size());
    const DraftBudget asked = budget();
    return same_nodes(draft_of(before, asked), draft_of(after, asked));
  }
  void note(std::uint64_t value) { digest_ = mix(digest_ ^ value); }

  Choices& choices_;
  NgramCoverage& coverage_;
  EndlessText source_;
  std::vector<DraftNode> last_;
  std::vector<Token> said_;  // committed by the last outcome
  bool shows_rows_ = false;
  bool counts_ = false;  // the table of next tokens counts text
  bool own_text_only_ = true;
  std::uint64_t digest_ = 1;
  std::vector<std::uint16_t> digests_;
};

/// What one random world has shown.
struct NgramRun {
  std::string fault;  ///< the first one, or empty
  std::vector<std::uint16_t> digests;
};

/// Runs one random world over two indexes of the same abilities, which must lead to the same drafts and lessons: the
/// body of the property test and of the fuzz target.
template <LookupIndex First, LookupIndex Second>
NgramRun run_ngram_world_over(Choices& choices, NgramCoverage& coverage) {
  static_assert(NgramIndex<First> == NgramIndex<Second>);
  Choices same_choices = choices;
  NgramCoverage same_coverage;
  NgramWorld<First> first(choices, coverage);
  NgramWorld<Second> second(same_choices, same_coverage);
  NgramRun run{first.run(), first.digests()};
  if (run.fault.empty()) run.fault = second.run();
  if (run.fault.empty() && second.digests() != run.digests) run.fault = "other drafts or lessons over the second index";
  return run;
}
inline NgramRun run_ngram_world(Choices& choices, NgramCoverage& coverage) {
  if (choices.chance(30)) return run_ngram_world_over<SuffixArrayIndex, PlainNaiveIndex>(choices, coverage);
  return run_ngram_world_over<RollingHashIndex, NaiveIndex>(choices, coverage);
}
inline NgramRun run_ngram_world(Choices& choices) {
  NgramCoverage coverage;
  return run_ngram_world(choices, coverage);
}

}  // namespace reprise::testing
