// SPDX-License-Identifier: Apache-2.0
#include "reprise_testing/check_verifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/scripted_verifier.hpp"

namespace reprise::testing::check_refinements_test {
namespace {

using ::testing::HasSubstr;

/// The faults of an engine.
enum class Slip : std::uint8_t {
  none,
  positions_by_row,
  causal_mask,
  rows_not_moved,
  void_tree_stays,
  restore_forgotten,
  restore_only_before_drafts,
  snapshot_too_late,
  first_snapshot_kept,
  snapshot_is_used_up,
  void_pass_after_restore_stays,
  restore_rewinds_sampler,
  walk_takes_first_child,
  walk_rows_from_draft,
  walk_ends_early,
  walk_is_kept_whole,
  void_walk_stays,
  candidates_one_row_off,
  candidates_draw,
  weights_unnormalised,
  weights_one_row_off,
  weights_negative,
  random_number_is_one,
  random_number_is_constant,
  truth_refused,
  asking_moves_state,
  asking_differs,
  forgotten_by_restore,
};

/// A small engine with every refinement and one optional fault. Rows have a token and a position. The token after a row
/// depends on the last three rows that it sees.
class TreeToy {
 public:
  struct Row {
    Token token = 0;
    std::size_t position = 0;
  };
  TreeToy(TokenSpan prompt, Slip slip, const Capabilities& can, bool sampled)
      : slip_(slip), can_(can), sampled_(sampled), text_(prompt.begin(), prompt.end()) {
    for (std::size_t i = 0; i + 1 < prompt.size(); ++i) cache_.push_back({prompt[i], i});
  }

  struct Picks {
    TreeToy* toy;
    Token operator[](std::size_t i) const { return toy->pick(i); }
  };
  Picks verify(TokenSpan batch, std::size_t drafted) {
    std::vector<NodeIndex> parents(drafted);
    for (std::size_t j = 0; j < drafted; ++j) parents[j] = static_cast<NodeIndex>(j) - 1;
    return verify_tree(batch, drafted, parents);
  }
  Picks verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    go_back();
    if (late_ && drafted > 0) cache_.resize(saved_);
    late_ = false;
    base_ = cache_.size();
    pending_ = batch.size() - drafted;
    parents_.assign(parents.begin(), parents.end());
    draws_before_ = draws_;
    reads_ = 0;
    open_ = true;
    for (std::size_t row = 0; row < batch.size(); ++row) {
      std::size_t position = base_ + row;
      if (row >= pending_ && !is(Slip::positions_by_row)) position = base_ + pending_ - 1 + depth(row - pending_);
      cache_.push_back({batch[row], position});
      if (row == 0 && is(Slip::snapshot_too_late)) saved_ = cache_.size();
    }
    tree_ = false;
    for (std::size_t j = 0; j < drafted; ++j) tree_ = tree_ || parents_[j] + 1 != static_cast<NodeIndex>(j);
    batch_.assign(batch.begin(), batch.end());
    return {this};
  }
  void commit(std::size_t keep) {
    std::vector<std::size_t> rows(keep);
    for (std::size_t row = 0; row < keep; ++row) rows[row] = row;
    commit_rows(rows);
  }
  void commit_rows(std::span<const std::size_t> rows) {
    remember(rows.size() + 1 - pending_);
    if (is(Slip::walk_is_kept_whole) && walked_rows_.size() > 1) {
      rows = walked_rows_;
      if (pending_ > 1) rows = rows.first(1);
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!is(Slip::rows_not_moved)) cache_[base_ + i] = cache_[base_ + rows[i]];
    cache_.resize(base_ + rows.size());
    open_ = false;
    walked_rows_.clear();
  }
  void snapshot() {
    go_back();
    if (late_) cache_.resize(saved_);
    late_ = false;
    if (!is(Slip::first_snapshot_kept) || !saved_any_) saved_ = cache_.size();
    saved_any_ = true;
  }
  void restore(std::size_t committed) {
    remember(committed);
    if (is(Slip::forgotten_by_restore)) text_.resize(text_.size() - committed);
    late_ = is(Slip::restore_only_before_drafts);
    const bool used_up = is(Slip::snapshot_is_used_up) && pending_ > 1;
    if (!late_ && !is(Slip::restore_forgotten) && !used_up) cache_.resize(saved_);
    if (is(Slip::restore_rewinds_sampler)) draws_ = draws_before_;
    restored_ = true;
    open_ = false;
  }
  void truncate(std::size_t size) {
    open_ = false;
    cache_.resize(size);
  }

  Accepted verify_and_walk(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    verify_tree(batch, drafted, parents);
    walked_rows_.assign(1, pending_ - 1);
    walked_tokens_.assign(1, pick(0));
    NodeIndex last = anchor_parent;
    for (std::size_t j = 0; j < drafted; ++j) {
      const Token token = batch_[pending_ + j];
      if (parents_[j] != last || (token != walked_tokens_.back() && !is(Slip::walk_takes_first_child))) continue;
      if (is(Slip::walk_ends_early) && j + 1 == drafted) break;
      last = static_cast<NodeIndex>(j);
      walked_tokens_.back() = token;
      walked_tokens_.push_back(pick(j + 1));
      walked_rows_.push_back(is(Slip::walk_rows_from_draft) ? j : pending_ + j);
    }
    return {walked_rows_, walked_tokens_};
  }
  TokenSpan top_k(std::size_t i) {
    if (is(Slip::candidates_draw)) ++draws_before_;
    best_ = {best(is(Slip::candidates_one_row_off) && i > 0 ? i - 1 : i), 0};
    return best_;
  }
  std::span<const float> probabilities(std::size_t i) {
    weights_.assign(8, 0.05F);
    const Token first = best(is(Slip::weights_one_row_off) && i > 0 ? i - 1 : i);
    weights_[static_cast<std::size_t>(first)] = is(Slip::weights_unnormalised) ? 0.8F : 0.65F;
    if (is(Slip::weights_negative)) {
      weights_[0] -= 0.1F;
      weights_[1] += 0.1F;
    }
    return weights_;
  }
  double uniform() {
    if (is(Slip::random_number_is_constant)) return 0.5;
    if (is(Slip::random_number_is_one)) return 1;
    return static_cast<double>(mix(draws_++) >> 11) / 9007199254740992.0;
  }
  /// Acts as a grammar that allows all of this engine's own picks.
  std::size_t allowed(TokenSpan path) {
    if (is(Slip::truth_refused) && path.size() > 2) return 1;
    if (is(Slip::asking_moves_state)) ++draws_;
    if (is(Slip::asking_differs)) return path.size() - (asked_++ % 3 == 2 ? 1 : 0);
    // An engine that lost count refuses any token that does not follow its own text.
    std::vector<Token> text = text_;
    if (text.size() < known_) return 0;
    return path.size();
  }
  [[nodiscard]] Capabilities capabilities() const { return can_; }

 private:
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }
  void go_back() {
    const bool stays = (is(Slip::void_tree_stays) && tree_) || (is(Slip::void_walk_stays) && !walked_rows_.empty()) ||
                       (is(Slip::void_pass_after_restore_stays) && restored_);
    if (open_ && !stays) {
      cache_.resize(base_);
      draws_ = draws_before_;
    }
    walked_rows_.clear();
    open_ = false;
  }
  /// Records the picked and committed tokens.
  void remember(std::size_t committed) {
    for (std::size_t i = 0; i < committed; ++i) text_.push_back(0);
    known_ += committed;
    draws_ = draws_before_ + std::min(reads_, committed);
  }
  [[nodiscard]] std::size_t depth(std::size_t j) const {
    std::size_t depth = 1;
    for (; parents_[j] != anchor_parent; j = static_cast<std::size_t>(parents_[j])) ++depth;
    return depth;
  }
  Token pick(std::size_t i) {
    ++reads_;
    return best(i, sampled_ ? draws_++ : 0);
  }
  [[nodiscard]] Token best(std::size_t i, std::uint64_t draw = 0) const {
    std::uint64_t hash = mix(draw);
    std::size_t seen = 0;
    const auto see = [&](std::size_t row) {
      const Row& r = cache_[row];
      hash = mix(hash ^ (static_cast<std::uint64_t>(r.token) << 20) ^ r.position);
      ++seen;
    };
    std::size_t at = base_ + pending_ + i;  // after the next row that is seen
    if (!is(Slip::causal_mask)) {
      auto j = static_cast<NodeIndex>(i) - 1;
      for (; j != anchor_parent && seen < 3; j = parents_[static_cast<std::size_t>(j)])
        see(base_ + pending_ + static_cast<std::size_t>(j));
      at = base_ + pending_;
    }
    while (seen < 3 && at > 0) see(--at);
    return static_cast<Token>(hash % 8);
  }

  Slip slip_;
  Capabilities can_;
  bool sampled_;
  std::vector<Token> text_;
  std::size_t known_ = 0;
  std::vector<Row> cache_;
  std::vector<Token> batch_;
  std::vector<NodeIndex> parents_;
  std::vector<std::size_t> walked_rows_;
  std::vector<Token> walked_tokens_;
  std::vector<Token> best_;
  std::vector<float> weights_;
  std::size_t base_ = 0;
  std::size_t pending_ = 1;
  std::size_t saved_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t draws_before_ = 0;
  std::size_t reads_ = 0;
  std::size_t asked_ = 0;
  bool saved_any_ = false;
  bool open_ = false;
  bool late_ = false;
  bool tree_ = false;
  bool restored_ = false;
};
static_assert(TreeVerifier<TreeToy> && CheckpointVerifier<TreeToy> && SelfWalkingVerifier<TreeToy> &&
              TopKVerifier<TreeToy> && DistributionVerifier<TreeToy> && ConstrainedVerifier<TreeToy> &&
              TruncatableVerifier<TreeToy>);

const std::vector<Token> prompt = {1, 2, 3, 4, 1};

Report check_toy(Slip slip, bool snapshot, bool sampled) {
  Capabilities can;
  can.max_leaves = 8;
  if (snapshot) can.rollback = Rollback::snapshot;
  VerifierCheck check;
  check.sampled = sampled;
  return check_verifier([&](TokenSpan tokens) { return TreeToy(tokens, slip, can, sampled); }, prompt, check);
}

TEST(CheckRefinements, PassesASoundEngineWithEveryRefinement) {
  for (const bool snapshot : {false, true})
    for (const bool sampled : {false, true}) {
      const Report report = check_toy(Slip::none, snapshot, sampled);
      EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
      for (const Report::Finding& finding : report.findings) {
        if (finding.verdict == Verdict::skipped) continue;
        EXPECT_GT(finding.checks, 20U) << finding.what;
      }
    }
}

struct Planted {
  Slip slip;
  const char* name;
  const char* clause;
  const char* what;       ///< text of the first wrong finding
  bool snapshot = false;  ///< for an engine that restores
  bool sampled = false;
};
struct CheckRefinementsFinds : ::testing::TestWithParam<Planted> {};
TEST_P(CheckRefinementsFinds, APlantedFaultByItsClause) {
  const Planted& planted = GetParam();
  const Report report = check_toy(planted.slip, planted.snapshot, planted.sampled);
  const auto wrong = std::find_if(report.findings.begin(), report.findings.end(),
                                  [](const Report::Finding& finding) { return finding.verdict == Verdict::wrong; });
  ASSERT_NE(wrong, report.findings.end()) << report.to_string();
  EXPECT_EQ(wrong->clause, planted.clause) << report.to_string();
  EXPECT_EQ(wrong->what, planted.what) << report.to_string();
  EXPECT_FALSE(wrong->message.empty());
}
INSTANTIATE_TEST_SUITE_P(
    Faults, CheckRefinementsFinds,
    ::testing::Values(
        Planted{Slip::positions_by_row, "PositionsByRow", "V6", "the right path among wrong siblings"},
        Planted{Slip::causal_mask, "CausalMask", "V6", "the right path among wrong siblings"},
        Planted{Slip::rows_not_moved, "RowsNotMoved", "V8", "a path in the middle of a tree is kept"},
        Planted{Slip::void_tree_stays, "VoidTreeStays", "V6", "the right path among wrong siblings"},
        Planted{Slip::restore_forgotten, "RestoreForgotten", "V10", "wrong drafts are rolled back", true},
        Planted{Slip::restore_only_before_drafts, "RestoreOnlyBeforeDrafts", "V10", "wrong drafts are rolled back",
                true},
        Planted{Slip::snapshot_too_late, "SnapshotTooLate", "V10", "wrong drafts are rolled back", true},
        Planted{Slip::first_snapshot_kept, "FirstSnapshotKept", "V10", "wrong drafts are rolled back", true},
        Planted{Slip::snapshot_is_used_up, "SnapshotIsUsedUp", "V10", "wrong drafts are rolled back", true},
        Planted{Slip::void_pass_after_restore_stays, "VoidPassAfterRestoreStays", "V5",
                "a void pass, then the same again", true},
        Planted{Slip::restore_rewinds_sampler, "RestoreRewindsSampler", "V10", "wrong drafts are rolled back", true,
                true},
        Planted{Slip::walk_takes_first_child, "WalkTakesFirstChild", "V13",
                "walks of right, wrong and half-right chains"},
        Planted{Slip::walk_rows_from_draft, "WalkRowsFromDraft", "V13", "walks of right, wrong and half-right chains"},
        Planted{Slip::walk_ends_early, "WalkEndsEarly", "V13", "walks of right, wrong and half-right chains"},
        Planted{Slip::walk_is_kept_whole, "WalkIsKeptWhole", "V13", "a stop inside the path that was walked"},
        Planted{Slip::void_walk_stays, "VoidWalkStays", "V13", "a void walk, then the same again"},
        Planted{Slip::candidates_one_row_off, "CandidatesOneRowOff", "V11", "candidates are those of their row"},
        Planted{Slip::candidates_draw, "CandidatesDraw", "V11", "asking for candidates changes nothing", false, true},
        Planted{Slip::weights_unnormalised, "WeightsUnnormalised", "V12", "weights add up to one"},
        Planted{Slip::weights_negative, "WeightsNegative", "V12", "weights add up to one"},
        Planted{Slip::weights_one_row_off, "WeightsOneRowOff", "V12", "the same distributions with a draft"},
        Planted{Slip::random_number_is_one, "RandomNumberIsOne", "V12", "random numbers lie in [0, 1)"},
        Planted{Slip::random_number_is_constant, "RandomNumberIsConstant", "V12", "random numbers lie in [0, 1)"},
        Planted{Slip::truth_refused, "TruthRefused", "V14", "tokens that plain decoding picks are allowed"},
        Planted{Slip::asking_moves_state, "AskingMovesState", "V14", "tokens that plain decoding picks are allowed",
                false, true},
        Planted{Slip::asking_differs, "AskingDiffers", "V14", "tokens that plain decoding picks are allowed"},
        Planted{Slip::forgotten_by_restore, "ForgottenByRestore", "V14", "also after passes with rejected tokens",
                true}),
    [](const auto& planted) { return std::string(planted.param.name); });

TEST(CheckRefinements, PrintsTheParentsOfATreeAndTheRowsThatAreKept) {
  const Report report = check_toy(Slip::rows_not_moved, false, false);
  const std::string& message = report.find("a path in the middle of a tree is kept")->message;
  EXPECT_THAT(message, HasSubstr("verify_tree({"));
  EXPECT_THAT(message, HasSubstr("parents {-1"));
  EXPECT_THAT(message, HasSubstr("commit_rows({0"));
}
TEST(CheckRefinements, PrintsSnapshotsAndRestores) {
  const Report report = check_toy(Slip::restore_only_before_drafts, true, false);
  const std::string& message = report.find("a pass without draft just after one that was restored")->message;
  EXPECT_THAT(message, HasSubstr("snapshot(), verify({"));
  EXPECT_THAT(message, HasSubstr("and restore("));
}
TEST(CheckRefinements, SaysHowOftenTheFirstCandidateWasThePick) {
  const Report report = check_toy(Slip::none, false, true);
  EXPECT_THAT(report.find("candidates are those of their row")->message, HasSubstr("times"));
  EXPECT_EQ(report.find("candidates are those of their row")->verdict, Verdict::exact);
}

TEST(CheckRefinements, SaysWhatItCouldNotTry) {
  const Report report =
      check_verifier([](TokenSpan tokens) { return TreeToy(tokens, Slip::none, {}, true); }, prompt, {.sampled = true});
  EXPECT_EQ(report.find("chains by way of the tree functions")->verdict, Verdict::skipped);
  EXPECT_EQ(report.find("restored after a part of a draft was accepted")->verdict, Verdict::skipped);
  EXPECT_EQ(report.find("walks of trees")->verdict, Verdict::skipped);
  EXPECT_EQ(report.find("a stop inside the path that was walked")->verdict, Verdict::skipped);
}
TEST(CheckRefinements, RefusesEnginesThatGiveNothingBack) {
  struct Bare {
    TreeToy inner;
    auto verify(TokenSpan batch, std::size_t drafted) { return inner.verify(batch, drafted); }
    void commit(std::size_t keep) { inner.commit(keep); }
    [[nodiscard]] Capabilities capabilities() const { return inner.capabilities(); }
  };
  for (const Rollback rollback : {Rollback::none, Rollback::snapshot}) {
    Capabilities can;
    can.rollback = rollback;
    const Report report =
        check_verifier([&](TokenSpan tokens) { return Bare{TreeToy(tokens, Slip::none, can, false)}; }, prompt);
    EXPECT_EQ(report.find("rows can be given back")->verdict, Verdict::wrong);
  }
}

/// The scripted engine has every refinement and checks the calls that it gets.
template <class Engine>
void expect_sound(const ScriptedOptions& options) {
  std::vector<std::string> violations;
  struct Watched : Engine {
    std::vector<std::string>* out;
    Watched(const ScriptedOptions& o, TokenSpan tokens, std::vector<std::string>* v) : Engine(o, tokens), out(v) {}
    Watched(const Watched&) = default;
    Watched(Watched&&) noexcept = default;
    Watched& operator=(const Watched&) = default;
    Watched& operator=(Watched&&) noexcept = default;
    ~Watched() { out->insert(out->end(), this->violations().begin(), this->violations().end()); }
  };
  VerifierCheck check;
  check.sampled = options.sampled;
  const Report report =
      check_verifier([&](TokenSpan tokens) { return Watched(options, tokens, &violations); }, prompt, check);
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  EXPECT_TRUE(violations.empty()) << violations.front();
}
TEST(CheckRefinements, KeepsTheContractItselfWithEveryKindOfEngine) {
  for (const Rollback rollback : {Rollback::trim, Rollback::snapshot, Rollback::per_row})
    for (const std::size_t leaves : {1U, 2U, 20U})
      for (const bool sampled : {false, true}) {
        ScriptedOptions options;
        options.vocabulary = 7;
        options.sampled = sampled;
        options.penalty = sampled ? 200 : 0;
        options.rule = [](TokenSpan end, Token next) { return end.empty() || (end.back() + next) % 3 != 0; };
        options.may_stop_before = true;
        options.capabilities.rollback = rollback;
        options.capabilities.max_leaves = leaves;
        options.capabilities.max_rows = 12;
        options.capabilities.max_depth = 5;
        options.capabilities.max_replay = 5;
        expect_sound<ScriptedVerifier>(options);
        expect_sound<SelfWalkingScriptedVerifier>(options);
        options.capabilities.allowed_widths = {2, 5, 6};
        expect_sound<ScriptedVerifier>(options);
      }
}

}  // namespace
}  // namespace reprise::testing::check_refinements_test
