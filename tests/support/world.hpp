// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise_testing/lossless.hpp"
#include "support/choices.hpp"
#include "support/hostile_strategy.hpp"
#include "support/oracle_strategy.hpp"
#include "support/plain_decoding.hpp"
#include "support/random_rows.hpp"
#include "support/scripted_verifier.hpp"
#include "support/world_parts.hpp"

namespace reprise::testing {

/// One small random world: a model, limits, an engine, a strategy, turns, and disturbances. It is decoded plainly and
/// with drafts, and checked against every property.
class World : WorldSettings {
  using Session = reprise::Session<WorldStrategy, WorldControl>;
  using Engine = LyingEngine;

 public:
  explicit World(Choices& choices) : WorldSettings(choices) {}

  Breaches run() {
    WorldStrategy drafter = strategy(truth_);
    Session session(std::move(drafter), control(), 16);
    const std::size_t sequences = choices_.chance(30) ? 2 : 1;
    for (std::size_t i = 0; i < sequences && clean(); ++i) run_sequence(session);
    return breaches_;
  }
  [[nodiscard]] const Coverage& coverage() const { return coverage_; }

 private:
  // --------------------------------------------------------------------------------------------- turns
  void run_sequence(Session& session) {
    truth_ = tokens(choices_.between(1, 12));
    output_begin_ = truth_.size();
    ScriptedOptions sound = options_;
    sound.faults = {};
    sound.capabilities.rollback = Rollback::trim;
    ScriptedVerifier plain(sound);
    constexpr std::array<std::size_t, 3> lies = {0, 30, 100};
    Engine engine(options_, {}, lies[options_.seed % lies.size()]);
    const std::size_t room = std::min(options_.capabilities.max_rows, limits_.max_rows);
    const std::size_t pending = choices_.chance(20) ? choices_.between(1, std::min(truth_.size(), room)) : 1;
    const TokenSpan cached = TokenSpan(truth_).first(truth_.size() - pending);
    plain.prefill(cached);
    engine.prefill(cached);
    if (!session.begin(truth_, options_.capabilities, cached.size())) return breach(Property::calls, "begin() refused");
    round_count_ = 0;
    sequence_passes_ = 0;
    check_step(session, engine);
    const std::size_t turns = choices_.chance(40) ? choices_.between(2, 3) : 1;
    for (std::size_t i = 0; i < turns && clean(); ++i) {
      if (i > 0 && !next_turn(session, plain, engine)) return;
      turn_begin_ = truth_.size();
      const PlainTurn turn = decode_plainly(plain, truth_, output_begin_, limits_, predicate_);
      bool ended_by_caller = false;
      if (mode_ == Mode::generate || mode_ == Mode::generate_with_faults) {
        ended_by_caller = decode_by_generate(session, engine, turn);
      } else {
        decode_by_hand(session, engine, turn);
      }
      check_end(session, turn, ended_by_caller);
      if (ended_by_caller) return;
    }
  }
  /// Cuts and adds some tokens. Returns false if they do not fit.
  bool next_turn(Session& session, ScriptedVerifier& plain, Engine& engine) {
    const bool cut = choices_.chance(50);
    if (cut) {
      const std::size_t size = choices_.between(1, truth_.size());
      truth_.resize(size);
      output_begin_ = std::min(output_begin_, size);
      plain.truncate(std::min(plain.cache().size(), size - 1), size - 1);
      if (!session.truncate(size)) breach(Property::calls, "truncate() refused");
      engine.truncate(session.cached(), size - 1);
      check_step(session, engine);
    }
    if (!cut || choices_.chance(60)) {
      const std::vector<Token> more = tokens(choices_.below(5));
      if (truth_.size() + more.size() > options_.capabilities.max_context) return false;
      truth_.insert(truth_.end(), more.begin(), more.end());
      output_begin_ = truth_.size();
      const TokenSpan all = truth_;
      plain.prefill(all.first(all.size() - 1).subspan(plain.cache().size()));
      engine.prefill(all.first(all.size() - 1).subspan(std::min(engine.cache().size(), all.size() - 1)));
      if (!session.append(more)) breach(Property::calls, "append() refused");
      round_count_ = 0;
      tallied_ = {};
      check_step(session, engine);
    }
    new_limits();
    const std::size_t pending = session.context().size() - session.cached();
    limits_.max_rows = std::max(limits_.max_rows, pending);
    return clean();
  }

  void decode_by_hand(Session& session, Engine& engine, const PlainTurn& turn) {
    if (round_count_ == 0) tallied_ = {};
    for (std::size_t steps = 0;; ++steps) {  // continues after a breach, to see which other properties break
      if (steps > 600) return breach(Property::progress, "the turn does not end");
      if (choices_.chance(trouble_)) disturb(session, engine);
      session.strategy().forget_proposal();
      const DraftView draft = session.propose(limits_);
      proposed_.assign(draft.begin(), draft.end());
      const bool constrained = draft.kind() == DraftKind::ordered && choices_.chance(70);
      if (constrained) session.constrain([&](TokenSpan path) { return engine.allowed(path); });
      if (draft.size() > limits_.draft.max_nodes) breach(Property::bounds, "more nodes than the budget");
      if (session.finished()) return;
      auto pass = session.plan();
      if (pass && choices_.chance(15)) {
        const Ticket old = pass->ticket;
        pass = session.plan(choices_.below(pass->drafted + 1));
        if (session.resolve(old, std::array<Token, 1>{}) || session.commit(pass->ticket))
          breach(Property::calls, "a replaced or unresolved ticket was taken");
      }
      if (!pass) return breach(Property::calls, "plan() refused");
      check_pass(session, *pass, proposed_.size());
      if (constrained) check_constraint(engine, *pass);
      const bool saves = options_.capabilities.rollback == Rollback::snapshot;
      if (saves && (pass->drafted > 0 || options_.may_stop_before || choices_.chance(20))) engine.snapshot();
      const bool tree = options_.capabilities.max_leaves > 1 && (is_tree(*pass) || choices_.chance(50));
      auto picks = tree ? engine.verify_tree(pass->batch, pass->drafted, pass->parents)
                        : engine.verify(pass->batch, pass->drafted);
      if (!picks) return breach(Property::calls, "verify() failed");
      if (choices_.chance(trouble_)) {
        if (choices_.chance(50)) static_cast<void>((*picks)[0]);
        if (!session.cancel(pass->ticket) || session.commit(pass->ticket)) breach(Property::calls, "cancel() refused");
        continue;
      }
      const auto decision = resolve(session, engine, *pass, *picks);
      if (!decision) return breach(Property::calls, "resolve() refused");
      if (choices_.chance(trouble_)) {
        if (!session.cancel(pass->ticket)) breach(Property::calls, "cancel() refused");
        continue;
      }
      check_progress(session, *pass, *decision, turn);
      ++round_count_;
      ++tallied_.passes;
      tallied_.drafted += pass->drafted;
      tallied_.accepted += decision->accepted;
      if (is_tree(*pass)) ++coverage_.trees;
      if (decision->restore) ++coverage_.restores;
      if (saves && pass->drafted > 0 && pass->pending > 1) ++coverage_.replayed;
      for (std::size_t row = 0; row < pass->drafted; ++row) coverage_.auxiliary += is_auxiliary(*pass, row) ? 1 : 0;
      if (decision->restore != (saves && decision->keep < pass->batch.size()))
        breach(Property::calls, "a state is put back where it need not be, or the other way round");
      for (std::size_t i = pass->drafted + 1; i-- > 0;)
        if (choices_.chance(20)) {
          const TokenSpan best = engine.top_k(i);
          if (!session.report_top_k(pass->ticket, i, best.first(std::min<std::size_t>(best.size(), 8))))
            breach(Property::calls, "report_top_k() refused");
        }
      if (choices_.chance(20)) report_prompt_rows(session);
      static_cast<void>(decision->restore ? engine.restore(decision->tokens.size())
                        : tree            ? engine.commit_rows(decision->rows)
                                          : engine.commit(decision->keep));
      std::optional<std::chrono::nanoseconds> time;
      if (choices_.chance(50)) time = engine.pass_time() + std::chrono::nanoseconds(choices_.below(1000));
      if (!session.commit(pass->ticket, time)) return breach(Property::calls, "commit() refused");
      ++sequence_passes_;
      tallied_.padding += session.strategy().padding();
      if (session.control().time() != time) breach(Property::statistics, "control was told another time");
      if (session.control().learned() != sequence_passes_) breach(Property::statistics, "K4: not one report a pass");

      check_stream(session, turn);
      check_step(session, engine);
    }
  }
  /// Reports lies about rows before the anchor.
  void report_prompt_rows(Session& session) {
    const std::size_t size = session.context().size();
    for (std::size_t i = choices_.between(1, 6); i > 0; --i) {
      const std::size_t position = choices_.below(size + 1);
      const std::vector<Token> ranking = random_ranking(choices_, session.context());
      if (session.report_prompt_row(position, ranking).has_value() != (position < size))
        breach(Property::calls, "report_prompt_row() took another row than a committed one");
    }
  }
  Result<Decision> resolve(Session& session, Engine& engine, const Pass& pass, ScriptedVerifier::LazyPicks picks) {
    if (mode_ == Mode::span) return session.resolve(pass.ticket, engine.greedy_picks(), predicate_);
    if (mode_ == Mode::accepted) {
      const TokenSpan walked = engine.greedy_picks();
      std::vector<std::size_t> rows = {pass.pending - 1};
      std::vector<Token> tokens = {walked[0]};
      for (std::size_t row = 0; row < pass.drafted; ++row) {
        if (static_cast<std::size_t>(pass.parents[row]) + pass.pending != rows.back()) continue;
        if (pass.batch[pass.pending + row] != tokens.back()) continue;
        rows.push_back(pass.pending + row);
        tokens.push_back(walked[row + 1]);
      }
      return session.resolve(pass.ticket, Accepted{rows, tokens}, predicate_);
    }

    return session.resolve(pass.ticket, picks, predicate_);
  }

  /// Returns true if the callback ended it.
  bool decode_by_generate(Session& session, Engine& engine, const PlainTurn& turn) {
    std::vector<Token> streamed;
    const std::size_t before = session.taken();
    std::size_t calls = choices_.chance(10) ? choices_.between(1, 6) : unlimited;
    bool said_stop = false;
    const auto on_tokens = [&](TokenSpan fresh) {
      streamed.insert(streamed.end(), fresh.begin(), fresh.end());
      said_stop = said_stop || --calls == 0;
      return !said_stop;
    };
    for (std::size_t attempts = 0;; ++attempts) {
      if (attempts > 1000) return breach(Property::progress, "faults never end"), false;
      try {
        SpanEngine span{engine};
        TreeSpanEngine tree_span{{engine}};
        SelfWalkingEngine walking{{{engine}}};
        const std::size_t kind = mode_ == Mode::generate && !options_.sampled ? options_.seed % 4 : 3;
        const auto generation = kind == 0   ? generate(session, span, limits_, on_tokens, predicate_)
                                : kind == 1 ? generate(session, tree_span, limits_, on_tokens, predicate_)
                                : kind == 2 ? generate(session, walking, limits_, on_tokens, predicate_)
                                            : generate(session, engine, limits_, on_tokens, predicate_);
        if (generation) break;
        if (generation.error().code != ErrorCode::verifier_failed) {
          breach(Property::calls, std::string(generation.error().message));
          return false;
        }
      } catch (const ScriptedFault&) {
      }
      check_step(session, engine);
    }
    const std::size_t done = session.context().size() - output_begin_;
    const TokenSpan output = session.output();
    if (!std::equal(streamed.begin(), streamed.end(),
                    output.begin() + static_cast<std::ptrdiff_t>(std::min(before, output.size())), output.end()))
      if (session.finish_reason() != FinishReason::caller) breach(Property::lossless, "the stream is not the output");
    if (session.finish_reason() == FinishReason::caller &&
        (!said_stop || done > turn.committed.size() ||
         !std::equal(session.context().end() - static_cast<std::ptrdiff_t>(done), session.context().end(),
                     turn.committed.begin())))
      breach(Property::lossless, "what the caller ended is no beginning of the plain output");
    return session.finish_reason() == FinishReason::caller;
  }

  /// Disturbances between rounds that must not change the turn.
  void disturb(Session& session, Engine& engine) {
    const std::size_t size = session.context().size();
    switch (choices_.below(5)) {
      case 0: {
        auto other = session.fork();
        if (!other) return breach(Property::calls, "fork() refused");
        static_cast<void>(session.truncate(1));  // the original session may diverge
        session = std::move(*other);
        break;
      }
      case 1: {
        const std::size_t rows = std::min(limits_.max_rows, options_.capabilities.max_rows);
        const std::size_t least = size > rows ? size - rows : 0;
        if (least < session.cached()) {
          if (!session.set_cached(choices_.between(least, session.cached())))
            return breach(Property::calls, "set_cached() refused");
          engine.lose_cache(session.cached());
        }
        break;
      }
      case 2: {
        // If a limit was lowered below the output, truncated tokens would not be decoded again.
        if (session.finished() || size - output_begin_ > limits_.max_tokens || size > limits_.max_context) break;
        const std::size_t to = choices_.between(turn_begin_, size);
        if (!session.truncate(to)) return breach(Property::calls, "truncate() refused");
        // A refused pick has advanced the sampler, and a truncation that cuts nothing does not rewind it.
        if (to < size) engine.truncate(session.cached(), to - 1);
        break;
      }
      case 3:
        limits_.draft = {.max_nodes = choices_.below(13),
                         .max_depth = choices_.chance(50) ? choices_.below(5) : unlimited};
        break;
      default:
        if (session.commit(Ticket{12345}) || session.cancel(Ticket{12345}) || session.plan() || session.begin({}))
          breach(Property::calls, "a wrong call was taken");
    }
    check_step(session, engine);
  }

  // -------------------------------------------------------------------------------------------- checks
  static bool is_tree(const Pass& pass) {
    for (std::size_t row = 0; row < pass.drafted; ++row)
      if (pass.parents[row] + 1 != static_cast<NodeIndex>(row)) return true;
    return false;
  }
  /// True if a drafted row is an auxiliary node. Pad rows are not.
  [[nodiscard]] bool is_auxiliary(const Pass& pass, std::size_t row) const {
    const auto node = static_cast<std::size_t>(pass.nodes[row]);
    return node < proposed_.size() && proposed_[node].auxiliary;
  }
  /// No refused token may be sent; auxiliary nodes and pad rows are exempt.
  void check_constraint(const Engine& engine, const Pass& pass) {
    for (std::size_t row = 0; row < pass.drafted; ++row) {
      if (is_auxiliary(pass, row) || static_cast<std::size_t>(pass.nodes[row]) >= proposed_.size()) continue;
      std::vector<Token> path;
      for (auto at = static_cast<NodeIndex>(row); at != anchor_parent; at = pass.parents[static_cast<std::size_t>(at)])
        path.insert(path.begin(), pass.batch[pass.pending + static_cast<std::size_t>(at)]);
      if (engine.allowed(path) < path.size()) breach(Property::bounds, "a node was sent that the rule refuses");
    }
  }
  void check_pass(const Session& session, const Pass& pass, std::size_t proposed) {
    const Capabilities& can = options_.capabilities;
    const auto expect = [&](bool holds, const char* what) {
      if (!holds) breach(Property::bounds, std::string("a pass with too many ") + what);
    };
    const std::size_t rows = pass.batch.size();
    const std::size_t size = session.context().size();
    const auto widths = can.allowed_widths.values();
    expect(rows <= std::min(limits_.max_rows, can.max_rows), "rows");
    expect(size + pass.drafted + 1 <= std::min(limits_.max_context, can.max_context), "tokens for the context");
    const std::size_t padding = pass.drafted - std::min(pass.drafted, proposed);
    expect(pass.drafted <= can.max_rollback, "rows to roll back");
    expect(pass.drafted == 0 || can.rollback != Rollback::snapshot || pass.pending <= can.max_replay,
           "tokens to run again");
    expect(padding == 0 || (can.pad_token && !widths.empty() && padding <= 16), "pad rows");
    for (std::size_t row = rows - padding; row < rows; ++row)
      expect(pass.batch[row] == can.pad_token, "pad rows that hold something else");
    std::size_t deepest = 0;
    std::size_t leaves = 0;
    if (pass.parents.size() != pass.drafted || pass.depths.size() != pass.drafted)
      return breach(Property::bounds, "a pass without a parent or a depth for each row");
    for (std::size_t row = 0; row < pass.drafted; ++row) {
      const NodeIndex parent = pass.parents[row];
      if (parent < anchor_parent || parent >= static_cast<NodeIndex>(row) ||
          pass.depths[row] != (parent < 0 ? 1 : pass.depths[static_cast<std::size_t>(parent)] + 1))
        return breach(Property::bounds, "a parent or a depth is wrong");
      deepest = std::max<std::size_t>(deepest, pass.depths[row]);
      leaves += std::count(pass.parents.begin(), pass.parents.end(), static_cast<NodeIndex>(row)) == 0 ? 1 : 0;
    }
    const bool chains = limits_.draft.shape == DraftShape::chain;
    expect(leaves <= std::max<std::size_t>(1, chains ? 1 : std::min(can.max_leaves, limits_.draft.max_leaves)),
           "paths");
    expect(size - output_begin_ + deepest + 1 <= limits_.max_tokens, "tokens for max_tokens");
    expect(deepest <= std::min(can.max_depth, limits_.draft.max_depth), "levels");
    expect(proposed <= limits_.draft.max_nodes, "nodes for the budget");
    expect(pass.drafted == 0 || widths.empty() || std::count(widths.begin(), widths.end(), rows) == 1,
           "rows or too few");
    const TokenSpan pending = session.context().subspan(session.cached());
    expect(pass.pending == pending.size() && rows == pass.pending + pass.drafted, "or too few pending rows");
    expect(pass.shape.sequences == 1 && pass.shape.rows == rows && pass.shape.context == size, "in its shape");
    if (!std::equal(pending.begin(), pending.end(), pass.batch.begin()))
      breach(Property::bounds, "pending tokens are wrong");
  }
  void check_progress(const Session& session, const Pass& pass, const Decision& decision, const PlainTurn& turn) {
    const std::size_t at = session.context().size() - output_begin_;
    std::vector<std::size_t> path = {pass.pending - 1};  // rows that agree with plain decoding, from the anchor's on
    for (std::size_t row = 0; row < pass.drafted && at + path.size() <= turn.committed.size(); ++row)
      if (static_cast<std::size_t>(pass.parents[row]) + pass.pending == path.back() && !is_auxiliary(pass, row) &&
          pass.batch[pass.pending + row] == turn.committed[at + path.size() - 1])
        path.push_back(pass.pending + row);
    const std::size_t agreed = path.size() - 1;
    const std::size_t committed = decision.tokens.size();
    // An engine that walks the draft cannot tell auxiliary rows, and may end at one that holds the pick.
    bool detour = false;
    for (std::size_t row = 0; row < pass.drafted; ++row)
      detour = detour || (mode_ == Mode::accepted && is_auxiliary(pass, row));
    if (decision.finish == FinishReason::none && committed != agreed + 1 && !(detour && committed <= agreed))
      breach(Property::progress, "committed " + std::to_string(committed) + " tokens where " + std::to_string(agreed) +
                                     " drafted ones agree");
    if (decision.accepted > committed || decision.accepted + 1 < committed || decision.accepted > agreed)
      breach(Property::progress, "the number of accepted tokens is wrong");
    for (std::size_t i = 0; i < committed; ++i)
      if (i >= path.size() || decision.tokens[i].row != path[i] ||
          decision.tokens[i].drafted != (i < decision.accepted))
        breach(Property::progress, "a committed token has the wrong row or mark");
    bool kept = decision.rows.size() == decision.keep && decision.keep + 1 == pass.pending + committed;
    for (std::size_t i = 0; kept && i < decision.keep; ++i)
      kept = i + 1 < pass.pending
                 ? decision.rows[i] == i
                 : i + 1 - pass.pending < path.size() && decision.rows[i] == path[i + 1 - pass.pending];
    if (!kept) breach(Property::progress, "the rows to keep are not pending and accepted ones");
  }
  void check_stream(const Session& session, const PlainTurn& turn) {
    const TokenSpan settled = session.settled_output(limits_);
    const std::size_t done = session.context().size() - output_begin_;
    const std::size_t wanted =
        session.finished()
            ? turn.returned
            : done - plain_held_back(limits_, TokenSpan(turn.committed).first(std::min(done, turn.committed.size())));
    if (done > turn.committed.size() || settled.size() != wanted ||
        !std::equal(settled.begin(), settled.end(), turn.committed.begin()))
      breach(Property::lossless, "after " + std::to_string(done) + " tokens, settled " +
                                     std::to_string(settled.size()) + " where plain decoding settles " +
                                     std::to_string(wanted) + ", or other tokens");
  }
  /// The invariants between any two calls.
  void check_step(const Session& session, const Engine& engine) {
    const WorldStrategy& witness = session.strategy();
    const TokenSpan context = session.context();
    if (!std::equal(context.begin(), context.end(), witness.seen().begin(), witness.seen().end()))
      breach(Property::strategy, "the strategy was told " + std::to_string(witness.seen().size()) + " tokens of " +
                                     std::to_string(context.size()) + ", or others");
    if (!witness.breached().empty()) breach(Property::strategy, witness.breached());
    if (!engine.violations().empty()) breach(Property::verifier, engine.violations().front());
    if (session.cached() >= context.size()) breach(Property::bounds, "nothing is pending");
    if (!session.control().breached().empty()) breach(Property::statistics, session.control().breached());
  }
  void check_end(const Session& session, const PlainTurn& turn, bool ended_by_caller) {
    if (!ended_by_caller) {
      const std::size_t at = detail::first_difference(turn.output(), session.output());
      if (at < std::max(turn.returned, session.output().size()))
        breach(Property::lossless,
               "plain " + detail::excerpt(turn.output(), at) + ", drafted " + detail::excerpt(session.output(), at));
      if (session.finish_reason() != turn.finish)
        breach(Property::lossless, "plain ends by " + std::string(to_string(turn.finish)) + ", drafted by " +
                                       std::string(to_string(session.finish_reason())));
      if (!clean()) return;
      if (session.context().size() != truth_.size()) breach(Property::lossless, "the contexts differ in size");
    }
    ++coverage_.finishes[static_cast<std::size_t>(session.finish_reason())];
    coverage_.statistics += session.statistics();
    coverage_.revealed = std::max<std::uint64_t>(coverage_.revealed, session.strategy().revealed());
    const Statistics& counted = session.statistics();
    std::uint64_t cuts = 0;
    for (const std::uint64_t count : counted.cuts) cuts += count;
    const bool by_hand = mode_ == Mode::lazy || mode_ == Mode::span || mode_ == Mode::accepted;
    if (cuts != counted.passes || counted.accepted > counted.drafted ||
        counted.tokens != session.context().size() - output_begin_ ||
        (by_hand && (counted.passes != tallied_.passes || counted.drafted != tallied_.drafted ||
                     counted.accepted != tallied_.accepted || counted.padding != tallied_.padding)))
      breach(Property::statistics, "counts are wrong");
    if (session.strategy().feedbacks() < counted.passes) breach(Property::strategy, "S5: a round had no feedback");
  }

  void breach(Property property, std::string message) {
    std::string& first = breaches_[static_cast<std::size_t>(property)];
    if (first.empty()) first = std::move(message);
    clean_ = false;
  }
  [[nodiscard]] bool clean() const { return clean_; }

  Breaches breaches_{};
  bool clean_ = true;
  std::vector<Token> truth_;  // the context of plain decoding
  std::size_t output_begin_ = 0;
  std::size_t turn_begin_ = 0;
  std::vector<DraftNode> proposed_;  // in this round
  std::size_t round_count_ = 0;
  std::size_t sequence_passes_ = 0;  // since begin(), driven by hand
  Statistics tallied_;
  Coverage coverage_;
};

/// Runs one random world: the body of the property test and of the fuzz target.
inline Breaches run_world(Choices& choices) { return World(choices).run(); }

}  // namespace reprise::testing
