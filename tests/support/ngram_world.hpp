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
#include "support/false_counts.hpp"
#include "support/lent_context.hpp"
#include "support/naive_index.hpp"
#include "support/random_rows.hpp"
#include "support/streams.hpp"

namespace reprise::testing {

/// An endless text of one of several kinds, computed in integers: the same on every compiler.
class TextSource {
 public:
  enum class Kind : std::uint8_t { few_tokens, skewed, periodic, edited_copies, all_distinct, spans };
  static constexpr std::size_t kinds = 6;

  TextSource(Kind kind, std::uint64_t seed) : kind_(kind), random_(seed) {
    period_ = random_.between(1, 12);
    vocabulary_ = kind == Kind::few_tokens ? random_.between(1, 4) : random_.between(5, 80);
    for (std::size_t i = random_.between(10, 60); i > 0; --i) original_.push_back(skewed());
  }
  Token next() {
    const Token token = make();
    made_.push_back(token);
    return token;
  }
  std::vector<Token> next(std::size_t count) {
    std::vector<Token> tokens(count);
    for (Token& token : tokens) token = next();
    return tokens;
  }

 private:
  Token make() {
    switch (kind_) {
      case Kind::few_tokens:
        return static_cast<Token>(random_.below(vocabulary_));
      case Kind::skewed:
        return skewed();
      case Kind::periodic:
        return random_.one_in(100) ? -1 : static_cast<Token>(made_.size() % period_);
      case Kind::all_distinct:
        return static_cast<Token>(made_.size() * 3) - 100;
      case Kind::edited_copies: {
        // Substitutions, insertions, omissions, and repetitions of the original.
        const std::size_t edit = random_.below(60);
        if (edit == 1) return skewed();
        if (edit == 2) at_ += random_.between(1, 9);
        const Token token = original_[at_++ % original_.size()];
        return edit == 0 ? skewed() : token;
      }
      case Kind::spans:
        if (left_ == 0) {
          copying_ = !made_.empty() && random_.one_in(2);
          left_ = random_.between(2, 40);
          at_ = copying_ ? random_.below(made_.size()) : 0;
        }
        --left_;
        return copying_ ? made_[at_++] : skewed();
    }
    return 0;
  }
  Token skewed() {
    return static_cast<Token>(
        std::min({random_.below(vocabulary_), random_.below(vocabulary_), random_.below(vocabulary_)}));
  }

  Kind kind_;
  testing::SplitMix random_;
  std::size_t period_ = 1;
  std::size_t vocabulary_ = 1;
  std::size_t at_ = 0;
  std::size_t left_ = 0;
  bool copying_ = false;
  std::vector<Token> original_;
  std::vector<Token> made_;
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
  [[nodiscard]] std::size_t evidence() const { return this->strategy().evidence(); }
  [[nodiscard]] bool exhausted() const { return this->strategy().exhausted(); }
  [[nodiscard]] std::size_t memory_bytes() const { return this->strategy().memory_bytes(); }
};

template <class Strategy>
std::vector<DraftNode> draft_of(Lent<Strategy>& lent, const DraftBudget& budget, std::size_t capacity = 128) {
  return lent.propose(budget, capacity).nodes;
}

/// Returns a fault of an ordered draft under this budget, or an empty string.
inline std::string fault_of(std::span<const DraftNode> nodes, const DraftBudget& budget, Probability least) {
  if (nodes.size() > budget.max_nodes) return "too many nodes";
  const bool chain = budget.shape == DraftShape::chain;
  std::vector<std::size_t> depths;
  std::vector<bool> leaf(nodes.size(), true);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const DraftNode& node = nodes[i];
    if (node.parent < anchor_parent || node.parent >= static_cast<NodeIndex>(i)) return "a parent comes too late";
    if (i > 0 && node.path_probability > nodes[i - 1].path_probability) return "the probability rises";
    if (node.path_probability < least) return "too unlikely";
    if (chain && node.parent != static_cast<NodeIndex>(i) - 1) return "a chain with a branch";
    depths.push_back(1);
    if (node.parent != anchor_parent) {
      const auto parent = static_cast<std::size_t>(node.parent);
      depths.back() = depths[parent] + 1;
      leaf[parent] = false;
      if (node.path_probability > nodes[parent].path_probability) return "more likely than its parent";
    }
    if (depths.back() > budget.max_depth) return "too deep";
    for (std::size_t j = 0; j < i; ++j)
      if (nodes[j].parent == node.parent && nodes[j].token == node.token) return "two equal siblings";
  }
  if (static_cast<std::size_t>(std::count(leaf.begin(), leaf.end(), true)) > budget.max_leaves)
    return "too many leaves";
  return {};
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
  std::size_t longest = 0;   ///< longest context
  std::size_t unwanted = 0;  ///< rounds in which no rows are wanted any more
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

/// One random run of all calls, with NgramDrafter over two indexes of the same abilities. Checks statements that hold
/// for each draft, whatever the policy:
/// * it is ordered and within its budget, and the same over both indexes;
/// * the tokens before a copied token are those before its place in the text, as far as it claims;
/// * what was truncated has left no trace, and a copy drafts what the original drafts;
/// * rows of the target stay within their memory, and hold no negative token.
template <LookupIndex First, LookupIndex Second>
class NgramWorld {
  static_assert(NgramIndex<First> == NgramIndex<Second>);

 public:
  explicit NgramWorld(Choices& choices) : choices_(choices) {}

  /// Returns the first difference, or an empty string.
  std::string run() {
    const auto kind = static_cast<TextSource::Kind>(choices_.below(TextSource::kinds));
    TextSource source(kind, choices_.below(1U << 16));
    NgramOptions options;
    if (choices_.chance(20)) options.min_path_probability = Probability::ratio(1, choices_.chance(50) ? 20 : 5000);
    if (choices_.chance(20)) {
      CalibrationState prior;
      prior.all = static_cast<std::int32_t>(choices_.below(1 << 22)) - (1 << 21);
      options.prior = prior;
    }
    if (choices_.chance(20)) options.key = choices_.below(1U << 16);
    if (choices_.chance(30)) options.max_evidence = choices_.below(200);
    std::array<HistoryStore, NgramOptions::max_stores> memories;
    std::vector<HistoryStore*> stores;
    const std::size_t wanted = choices_.chance(50) ? 1 + choices_.below(4) * choices_.below(2) : 0;
    for (std::size_t i = 0; i < wanted; ++i) {
      memories[i] = *HistoryStore::make(
          {.max_bytes = HistoryStore::bytes_for(32 * choices_.between(1, 40)), .key = choices_.below(8)});
      stores.push_back(&memories[i]);
      options.stores[wanted == 1 ? 0 : (i + wanted) % memories.size()] = memories[i];
    }
    NextTokenCounts table;
    if (choices_.chance(40)) {
      table = table_of(source);
      options.next_tokens = &table;
    }
    RankedRows carried;
    if (choices_.chance(40)) {
      carried = carried_rows(source);
      options.ranked_rows = &carried;
    }
    shows_rows_ = choices_.chance(50);
    if (choices_.chance(30)) options.top_k = choices_.below(choices_.chance(80) ? 9 : 100);
    // Small tables, in which rows replace each other.
    if (choices_.chance(40)) options.row_bytes = choices_.below(choices_.chance(50) ? 200 : 8000);
    if (choices_.chance(50)) options.row_bytes = std::min<std::size_t>(options.row_bytes, 20'000);  // quick to clear
    std::vector<Sequence> sequences;
    sequences.reserve(most_sequences);  // references to them must stay valid
    sequences.emplace_back(options);
    own_text_only_ = stores.empty();
    if (choices_.chance(90)) sequences[0].begin(source.next(piece()));
    for (std::size_t steps = choices_.between(1, 60); steps > 0; --steps) {
      Sequence& sequence = sequences[choices_.below(sequences.size())];
      switch (choices_.below(16)) {
        case 0:
        case 1: {
          const std::size_t size = sequence.first.context().size();
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
          if (choices_.chance(20)) sequence.begin(source.next(piece()));
          break;
        case 4:
          sequence.rebase(changed(sequence.first.context(), source));
          ++coverage_.rebases;
          coverage_.most_evidence = std::max(coverage_.most_evidence, sequence.first.evidence());
          if (sequence.second.evidence() != sequence.first.evidence()) return "other evidence over the second index";
          break;
        default: {
          said_.clear();
          if (std::string fault = round(sequence); !fault.empty()) return fault;
          if (choices_.chance(10) && !leaves_no_trace(sequence, source)) return "truncated tokens have left a trace";
          // The outcome of the round, or some other text.
          const bool follows = !said_.empty() && choices_.chance(40);
          // A statement for each choice: compilers evaluate arguments in different orders.
          const Origin origin = choices_.chance(70) ? Origin::output : Origin::prompt;
          sequence.observe(follows ? said_ : source.next(piece()), origin);
          for (HistoryStore* store : stores) remember(*store, sequence.first.context(), source);
          count(table, sequence.first.context(), source);
          if (options.ranked_rows != nullptr && choices_.chance(30)) carried.add(sequence.first.strategy().rows());
          if (shows_rows_ && choices_.chance(10)) show_prompt_rows(sequence);
        }
      }
      coverage_.longest = std::max(coverage_.longest, sequence.first.context().size());
    }
    for (Sequence& sequence : sequences)
      if (std::string fault = round(sequence); !fault.empty()) return fault;
    return {};
  }
  [[nodiscard]] const NgramCoverage& coverage() const { return coverage_; }
  /// One number for all drafts and lessons until the end of each round.
  [[nodiscard]] const std::vector<std::uint16_t>& digests() const { return digests_; }

 private:
  static constexpr std::size_t most_sequences = 3;

  /// One sequence in both drafters.
  struct Sequence {
    explicit Sequence(const NgramOptions& options) : first(options), second(options) {}
    void begin(TokenSpan tokens) {
      each([&](auto& drafter) { drafter.begin(tokens); });
    }
    void observe(TokenSpan tokens, Origin origin) {
      each([&](auto& drafter) { drafter.observe(tokens, origin); });
    }
    void truncate(std::size_t size) {
      each([&](auto& drafter) { drafter.truncate(size); });
    }
    void rebase(const std::vector<Token>& tokens) {
      each([&](auto& drafter) { drafter.rebase(tokens); });
    }
    void learn_row(TokenSpan context, TokenSpan likeliest) {
      each([&](auto& drafter) { drafter.learn_row(context, likeliest); });
    }
    void feedback(const Outcome& outcome) {
      each([&](auto& drafter) { drafter.feedback(outcome); });
    }
    template <class Call>
    void each(Call&& call) {
      call(first);
      call(second);
    }
    LentNgram<First> first;
    LentNgram<Second> second;
  };

  std::size_t piece() {
    const std::size_t kind = choices_.below(20);
    if (kind == 0) return choices_.between(60, 70);
    if (kind == 1) return choices_.between(1, 260);
    if (kind == 2) return 0;
    return choices_.between(1, 12);
  }
  /// Returns a context with another middle: shorter, longer or the same. The middle may be the beginning or the end.
  std::vector<Token> changed(TokenSpan context, TextSource& source) {
    const std::size_t begin = choices_.below(context.size() + 1);
    const std::size_t end = choices_.between(begin, context.size());
    std::vector<Token> tokens(context.begin(), context.begin() + static_cast<std::ptrdiff_t>(begin));
    const std::vector<Token> middle = source.next(choices_.chance(50) ? piece() : 0);
    tokens.insert(tokens.end(), middle.begin(), middle.end());
    tokens.insert(tokens.end(), context.begin() + static_cast<std::ptrdiff_t>(end), context.end());
    return tokens;
  }
  /// Stores another sequence: a part of this one, with or without a change.
  void remember(HistoryStore& memory, TokenSpan context, TextSource& source) {
    if (choices_.chance(40)) return;
    const std::size_t begin = choices_.below(context.size() + 1);
    memory.begin_sequence(choices_.below(4));
    const Origin origin = choices_.chance(50) ? Origin::output : Origin::prompt;
    memory.append(context.subspan(begin, choices_.below(context.size() - begin + 1)), origin);
    if (choices_.chance(50)) memory.append(source.next(piece()), Origin::output);
    if (choices_.chance(5)) memory.remove(choices_.below(4));
  }
  /// Returns a table of any size. Most of them have counted text of the same kind.
  NextTokenCounts table_of(TextSource& source) {
    const std::size_t lines = choices_.chance(50) ? choices_.between(1, 20) : choices_.between(100, 4000);
    NextTokenOptions options;
    options.max_bytes = lines * NextTokenCounts::line_bytes;
    options.key = choices_.below(8);
    if (choices_.chance(10)) options.vocabulary = static_cast<std::uint32_t>(choices_.below(30));
    NextTokenCounts table = *NextTokenCounts::make(options);
    for (std::size_t texts = choices_.below(4); texts > 0; --texts) table.add(source.next(choices_.below(300)));
    return table;
  }
  /// Counts a part of this sequence, or other text.
  void count(NextTokenCounts& table, TokenSpan context, TextSource& source) {
    if (table.lines() == 0 || choices_.chance(40)) return;
    const std::size_t begin = choices_.below(context.size() + 1);
    table.add(context.subspan(begin, choices_.below(context.size() - begin + 1)));
    if (choices_.chance(30)) table.add(context, choices_.below(context.size() + 1));
    if (choices_.chance(30)) table.add(source.next(piece()));
    if (choices_.chance(5) && table.lines() < 100) {
      const TokenSpan said = context.last(std::min<std::size_t>(context.size(), 8));
      FalseCounts(choices_, {said.begin(), said.end()})
          .add_to(table, static_cast<FalseCounts::Kind>(choices_.below(FalseCounts::kinds)));
    }
    if (choices_.chance(2)) table.clear();
  }
  /// Returns a table of any size with rows of earlier sequences.
  RankedRows carried_rows(TextSource& source) {
    RankedRowsOptions options;
    options.max_bytes = 64 * (choices_.chance(50) ? choices_.between(1, 20) : choices_.between(100, 4000));
    options.key = choices_.below(8);
    RankedRows made = *RankedRows::make(options);
    const std::vector<Token> said = source.next(choices_.below(200));
    for (std::size_t i = 2; i < said.size(); ++i) {
      if (choices_.chance(30)) continue;
      const Ranking ranking(random_ranking(choices_, TokenSpan(said).subspan(i - 2)));
      const std::array<RankedRows::Row, 2> rows = {RankedRows::Row{Ranking::none, said[i - 1], ranking},
                                                   RankedRows::Row{said[i - 2], said[i - 1], ranking}};
      made.add(rows);
    }
    return made;
  }
  void show_prompt_rows(Sequence& sequence) {
    const std::vector<Token> said(sequence.first.context().begin(), sequence.first.context().end());
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
      const std::size_t capacity = choices_.chance(10) ? choices_.below(8) : 128;
      last_ = draft_of(sequence.first, asked, capacity);
      if (std::string fault = fault_of(last_, asked, asked.min_path_probability); !fault.empty())
        return fault + ' ' + describe(last_);
      if (const auto other = draft_of(sequence.second, asked, capacity); !same_nodes(other, last_))
        return "the second index drafts " + describe(other) + " where the first drafts " + describe(last_);
      if (std::string fault = look(sequence.first.index().tokens()); !fault.empty()) return fault;
      coverage_.past_end += last_.size() > sequence.first.context().size() ? 1 : 0;
    }
    if (choices_.chance(70)) {
      RandomOutcome outcome(choices_, last_);
      const TokenSpan said = sequence.first.context();
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
  /// Checks what both drafters have learned, and notes it.
  std::string learned(const Sequence& sequence) {
    const NgramDrafter<First>& drafter = sequence.first.strategy();
    if (sequence.second.calibration() != drafter.calibration()) return "other lessons over the second index";
    if (sequence.second.strategy().top_k_wanted() != drafter.top_k_wanted()) return "other rows wanted";
    coverage_.unwanted += drafter.top_k_wanted() == 0 ? 1 : 0;
    if (drafter.rows().size_bytes() > drafter.options().row_bytes) return "more rows than their memory";
    for (const RankedRows::Row& row : drafter.rows())
      for (const Token token : row.ranking.tokens)
        if (token < 0 && token != Ranking::none) return "a negative token was kept";
    note(drafter.top_k_wanted());
    note(drafter.calibration().lessons);
    note(drafter.calibration().recent);
    reprise::detail::for_each_bias([&](auto bias) { note(static_cast<std::uint32_t>(bias)); }, drafter.calibration());
    digests_.push_back(static_cast<std::uint16_t>(digest_));
    return {};
  }
  /// Returns true if copies of the drafters, which read more text and truncate it, draft what the drafters draft.
  bool leaves_no_trace(const Sequence& sequence, TextSource& source) {
    Sequence before = sequence;
    Sequence after = sequence;
    const Origin origin = choices_.chance(70) ? Origin::output : Origin::prompt;
    after.observe(source.next(piece()), origin);
    after.truncate(sequence.first.context().size());
    const DraftBudget asked = budget();
    return same_nodes(draft_of(before.first, asked), draft_of(after.first, asked)) &&
           same_nodes(draft_of(before.second, asked), draft_of(after.second, asked));
  }
  void note(std::uint64_t value) { digest_ = mix(digest_ ^ value); }

  Choices& choices_;
  std::vector<DraftNode> last_;
  std::vector<Token> said_;  // committed by the last outcome
  bool shows_rows_ = false;
  bool own_text_only_ = true;
  std::uint64_t digest_ = 1;
  std::vector<std::uint16_t> digests_;
  NgramCoverage coverage_;
};

/// What one random world has shown.
struct NgramRun {
  std::string fault;  ///< the first one, or empty
  NgramCoverage coverage;
  std::vector<std::uint16_t> digests;
};

/// Runs one random world: the body of the property test and of the fuzz target.
inline NgramRun run_ngram_world(Choices& choices) {
  const auto run = [&](auto world) {
    NgramRun result{world.run(), {}, {}};
    result.coverage = world.coverage();
    result.digests = world.digests();
    return result;
  };
  if (choices.chance(30)) return run(NgramWorld<SuffixArrayIndex, PlainNaiveIndex>(choices));
  return run(NgramWorld<RollingHashIndex, NaiveIndex>(choices));
}

}  // namespace reprise::testing
