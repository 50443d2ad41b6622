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

#include "reprise/stats/statistics_text.hpp"
#include "reprise_c/detail/arguments.hpp"
#include "reprise_c/reprise.h"
#include "support/c_pairs.hpp"
#include "support/choices.hpp"

namespace reprise::testing {

/// The events of runs of random calls.
struct CCallsCoverage {
  std::size_t calls = 0;
  std::array<std::size_t, REPRISE_INTERNAL + 1> statuses{};
  std::size_t drafted = 0;   ///< tokens in drafts of followers and sessions
  std::size_t shared = 0;    ///< tokens in drafts of batches
  std::size_t accepted = 0;  ///< tokens, in sessions
  std::size_t trees = 0;     ///< committed passes with a draft that is not a chain
  std::size_t restored = 0;  ///< commits that restore a state
};

/// Calls the functions of the C interface in any order, with good and bad arguments. Gives the same calls with good
/// arguments to the C++ classes, and compares all results. The body of a test and of a fuzz target. run() returns the
/// first fault, or an empty string.
class CCallsRun {
 public:
  explicit CCallsRun(Choices& choices) : choices_(choices), memory_(choices_) {
    for (auto& session : sessions_) session.emplace(options());
    follower_.emplace(options());
    batch_.emplace(options(), slots_.size());
  }

  std::string run(std::size_t calls, CCallsCoverage& coverage) {
    coverage_ = &coverage;
    for (std::size_t i = 0; i < calls && fault_.empty(); ++i) {
      const std::size_t kind = choices_.below(100);
      if (kind < 50)
        call_session(*sessions_[choices_.below(sessions_.size())]);
      else if (kind < 70)
        call_follower();
      else if (kind < 85)
        call_batch();
      else
        call_memory();
    }
    return fault_;
  }

 private:
  using Tokens = std::vector<Token>;

  /// Compares a status and the error of the handle.
  void expect(const char* what, reprise_status status, reprise_status wanted, const reprise_error* error) {
    ++coverage_->calls;
    ++coverage_->statuses[static_cast<std::size_t>(std::clamp<reprise_status>(status, 0, REPRISE_INTERNAL))];
    if (status != wanted)
      fail(what, "status " + std::to_string(status) + " in place of " + std::to_string(wanted) + ": " + error->message);
    else if (status != REPRISE_OK && (error->status != status || error->message[0] == 0))
      fail(what, "the last error is another one");
  }
  void expect(const char* what, bool good) {
    if (!good) fail(what, "a result differs from that of C++, or is not 0 after an error");
  }
  void fail(const char* what, const std::string& how) {
    if (fault_.empty()) fault_ = std::string(what) + ": " + how;
  }
  template <class T>
  static reprise_status status_of(const Result<T>& result) {
    return result ? REPRISE_OK : c::status_of(result.error().code);
  }

  bool one_in(std::size_t n) { return choices_.below(n) == n - 1; }
  Token token() {
    return static_cast<Token>(one_in(200) ? static_cast<std::int64_t>(choices_.below(1U << 31)) - (1 << 30)
                                          : static_cast<std::int64_t>(choices_.below(5)));
  }
  /// Returns text that often repeats itself, so that there is something to draft.
  Tokens tokens(std::size_t most) {
    Tokens made(choices_.below(most + 1));
    for (Token& one : made) one = token();
    if (const std::size_t period = choices_.below(12); period > 2)
      for (std::size_t i = period; i < made.size(); ++i) made[i] = made[i - period];
    return made;
  }
  std::size_t number(std::size_t around) { return one_in(20) ? REPRISE_UNLIMITED - 1 : choices_.below(around + 2); }
  std::size_t cached(std::size_t size) { return one_in(3) ? number(size) : REPRISE_UNLIMITED; }
  static std::optional<std::size_t> in_cpp(std::size_t cached) {
    return cached == REPRISE_UNLIMITED ? std::nullopt : std::optional(cached);
  }
  CPairOptions options() {
    CPairOptions made;
    made.memory = one_in(3) ? nullptr : &memory_;
    made.salt = choices_.below(3);
    made.max_draft_nodes = choices_.below(most_draft_nodes + 1);
    made.max_bytes = one_in(8) ? choices_.below(100'000) : 0;
    made.key = choices_.below(3);
    made.curve = choices_.below(3);
    if (one_in(3)) made.saved_costs = saved_costs_;
    return made;
  }

  // Followers, batches and sessions.

  template <class Write>
  void compare_statistics(const char* what, const Statistics& statistics, Write write, const reprise_error* error) {
    std::string wanted;
    write_json(statistics, [&](std::string_view piece) { wanted += piece; });
    std::string text(one_in(2) ? wanted.size() + 1 + choices_.below(3) : choices_.below(wanted.size() + 1), 'x');
    const bool fits = text.size() > wanted.size();
    std::size_t needed = 0;
    const auto status = write(text.data(), text.size(), &needed);
    expect(what, status, fits ? REPRISE_OK : REPRISE_OUT_OF_ROOM, error);
    expect(what, needed == wanted.size() + 1);
    expect(what, text.empty() || text.c_str() == (fits ? wanted : std::string()));
  }
  template <class Save>
  void compare_costs(const char* what, const CostPrior& prior, Save save, const reprise_error* error) {
    std::size_t needed = 7;
    std::vector<std::byte> bytes(1000);
    if (one_in(4)) {
      const std::string too_long(101, 'e');
      const auto status = save(one_in(2) ? nullptr : too_long.c_str(), bytes.data(), bytes.size(), &needed);
      expect(what, status, REPRISE_INVALID_ARGUMENT, error);
      return expect(what, needed == 0);
    }
    std::vector<std::byte> wanted(snapshot_bytes({cost_bytes(prior, c_engine)}));
    SnapshotWriter writer(wanted, 0);
    expect(what, save_costs(prior, c_engine, writer).has_value() && writer.finish().has_value());
    bytes.resize(one_in(2) ? choices_.below(wanted.size()) : wanted.size() + choices_.below(3));
    const bool fits = bytes.size() >= wanted.size();
    const auto status = save(c_engine, bytes.data(), bytes.size(), &needed);
    expect(what, status, fits ? REPRISE_OK : REPRISE_OUT_OF_ROOM, error);
    expect(what, needed == wanted.size());
    if (!fits) return;
    bytes.resize(needed);
    expect(what, bytes == wanted);
    saved_costs_ = wanted;
  }

  void call_follower() {
    CFollowerPair& pair = *follower_;
    const reprise_error* const error = reprise_follower_error(pair.handle);
    switch (choices_.below(16)) {
      case 0:
        if (one_in(4)) follower_.emplace(options());
        return;
      case 1:
        if (!one_in(3)) return;
        if (one_in(2)) {
          const Tokens text = tokens(60);
          return expect("follower_predict", reprise_follower_predict(pair.handle, text.data(), text.size()),
                        status_of(pair.cpp.predict(text)), error);
        }
        pair.forget();
        return expect("follower_forget", reprise_follower_forget(pair.handle), REPRISE_OK, error);
      case 2:
        return compare_statistics(
            "follower_statistics", pair.cpp.statistics(),
            [&](char* text, std::size_t room, std::size_t* needed) {
              return reprise_follower_statistics(pair.handle, text, room, needed);
            },
            error);
      case 3:
        return compare_costs(
            "follower_save_costs", pair.cpp.session().control().learned().prior(),
            [&](const char* name, void* bytes, std::size_t room, std::size_t* needed) {
              return reprise_follower_save_costs(pair.handle, name, bytes, room, needed);
            },
            error);
      case 4:
        return draft_badly(pair);
      default:
        return draft(pair);
    }
  }
  void draft_badly(CFollowerPair& pair) {
    const Tokens& text = text_.ids;
    const reprise_token* draft = text.data();
    std::size_t drafted = 7;
    const std::size_t kind = choices_.below(4);
    const auto status =
        reprise_follower_draft(pair.handle, kind == 0 ? nullptr : text.data(), kind == 1 ? SIZE_MAX : text.size() + 1,
                               9, kind == 2 ? -1 : 0, 0, kind == 3 ? nullptr : &draft, &drafted);
    expect("follower_draft", status, REPRISE_INVALID_ARGUMENT, reprise_follower_error(pair.handle));
    expect("follower_draft", (kind == 3 || draft == nullptr) && drafted == 0);
  }
  void draft(CFollowerPair& pair) {
    edit(text_);
    const Tokens& all = text_.ids;
    const std::size_t after = after_of(all, pair.cpp.context());
    const TokenSpan text = TokenSpan(all).subspan(after);
    const reprise_token* draft = all.data();
    std::size_t drafted = 7;
    const std::size_t most = number(20);
    now_ += static_cast<std::int64_t>(choices_.below(3'000'000));
    const std::int64_t now = one_in(4) ? 0 : now_;
    const std::uint64_t conversation = conversations_ ? 1 + choices_.below(12) / 11 : 0;
    const auto wanted =
        pair.cpp.draft(text, most, now == 0 ? std::nullopt : std::optional(std::chrono::nanoseconds(now)),
                       conversation == 0 ? std::nullopt : std::optional(conversation), after);
    const auto status =
        after == 0 && one_in(2)
            ? reprise_follower_draft(pair.handle, text.data(), text.size(), most, now, conversation, &draft, &drafted)
            : reprise_follower_draft_after(pair.handle, text.data(), text.size(), after, most, now, conversation,
                                           &draft, &drafted);
    expect("follower_draft", status, status_of(wanted), reprise_follower_error(pair.handle));
    const TokenSpan tokens = wanted ? *wanted : TokenSpan();
    expect("follower_draft", wanted.has_value() || draft == nullptr);
    expect("follower_draft", std::equal(tokens.begin(), tokens.end(), draft, draft + drafted));
    if (!fault_.empty()) return;
    text_.draft.assign(tokens.begin(), tokens.end());
    coverage_->drafted += drafted;
  }
  /// Returns 0, or how many tokens of `all` are known; rarely a wrong number.
  std::size_t after_of(const Tokens& all, TokenSpan known) {
    if (one_in(40)) return std::min(number(20), all.size());
    if (one_in(2) || known.size() > all.size()) return 0;
    return std::equal(known.begin(), known.end(), all.begin()) ? known.size() : 0;
  }
  /// The text of a follower or of a slot, and its last draft.
  struct Text {
    Tokens ids;
    Tokens draft;
  };
  /// Changes a text as an engine would, or in any other way.
  void edit(Text& text) {
    Tokens& ids = text.ids;
    const std::size_t how = choices_.below(24);
    if (how == 23) ids = tokens(60);
    if (how == 22) ids.resize(choices_.below(ids.size() + 1));
    if (how == 21 && !ids.empty()) ids[choices_.below(ids.size())] = token();
    if (how == 20) conversations_ = !conversations_;
    if (how >= 18 || ids.size() > 400) return;
    const std::size_t accepted = choices_.below(text.draft.size() + 1);
    ids.insert(ids.end(), text.draft.begin(), text.draft.begin() + static_cast<std::ptrdiff_t>(accepted));
    for (std::size_t more = how == 17 ? 3 : 1; more > 0; --more)
      ids.push_back(ids.size() > 4 && !one_in(4) ? ids[ids.size() - 4] : token());
  }

  void call_batch() {
    CBatchPair& pair = *batch_;
    const reprise_error* const error = reprise_batch_error(pair.handle);
    const std::size_t slot = choices_.below(slots_.size() + 1);
    const reprise_status known = slot < slots_.size() ? REPRISE_OK : REPRISE_INVALID_ARGUMENT;
    switch (choices_.below(22)) {
      case 0:
        if (one_in(4)) batch_.emplace(options(), slots_.size());
        return;
      case 1:
        if (one_in(2)) {
          const Tokens text = tokens(60);
          return expect("batch_predict", reprise_batch_predict(pair.handle, slot, text.data(), text.size()),
                        status_of(pair.cpp.predict(slot, text)), error);
        }
        pair.forget(slot);
        return expect("batch_forget", reprise_batch_forget(pair.handle, slot), known, error);
      case 2:
        if (known == REPRISE_OK)
          compare_statistics(
              "batch_statistics", pair.cpp.statistics(slot),
              [&](char* text, std::size_t room, std::size_t* needed) {
                return reprise_batch_statistics(pair.handle, slot, text, room, needed);
              },
              error);
        return;
      case 3:
        return compare_costs(
            "batch_save_costs", pair.cpp.planner().learned(slot).prior(),
            [&](const char* name, void* bytes, std::size_t room, std::size_t* needed) {
              return reprise_batch_save_costs(pair.handle, slot, name, bytes, room, needed);
            },
            error);
      case 4:
      case 5:
        return report_top_k(pair, slot);
      case 6:
        pair.cpp.ran(slot * 3);
        return expect("batch_ran", reprise_batch_ran(pair.handle, slot * 3), REPRISE_OK, error);
      case 7:
        return std::swap(slots_[0], slots_[slot % slots_.size()]);  // a request goes on in another slot
      case 8:
        return assign(pair, slot);
      case 9:
        return load_costs_into(pair, number(9));
      case 10:
        return find(pair, slot);
      default:
        return draft(pair);
    }
  }
  void find(CBatchPair& pair, std::size_t slot) {
    const Tokens& ids = slots_[slot % slots_.size()].ids;
    reprise_slot one = {slot, ids.data(), ids.size(), 0, 0, nullptr, 0, 7};
    const auto status = reprise_batch_known(pair.handle, &one, 1);
    const reprise_status wanted = slot < slots_.size() ? REPRISE_OK : REPRISE_INVALID_ARGUMENT;
    expect("batch_known", status, wanted, reprise_batch_error(pair.handle));
    expect("batch_known", one.after == pair.cpp.known(slot, ids));
  }
  void report_top_k(CBatchPair& pair, std::size_t slot) {
    const Tokens likeliest = tokens(12);
    const std::size_t row = choices_.below(4);
    const auto status = reprise_batch_report_top_k(pair.handle, slot, row, likeliest.data(), likeliest.size());
    const auto wanted = slot < slots_.size() ? status_of(pair.cpp.report_top_k(slot, row, likeliest))
                                             : reprise_status{REPRISE_INVALID_ARGUMENT};
    expect("batch_report_top_k", status, wanted, reprise_batch_error(pair.handle));
  }
  void assign(CBatchPair& pair, std::size_t slot) {
    const CPairOptions chosen = options();
    const auto wanted = pair.cpp.assign(slot, NgramDrafter<>(chosen.drafter()));
    chosen.in_c([&](const reprise_options* in) {
      expect("batch_assign", reprise_batch_assign(pair.handle, slot, in), status_of(wanted),
             reprise_batch_error(pair.handle));
    });
  }
  void load_costs_into(CBatchPair& pair, std::size_t sequences) {
    std::vector<std::byte> bytes = saved_costs_;
    if (!bytes.empty() && one_in(4)) bytes[choices_.below(bytes.size())] ^= std::byte{1};
    const char* const name = one_in(4) ? "another" : c_engine;
    const auto reader = SnapshotReader::open(bytes, 0);
    const auto prior = reader ? load_costs(*reader, name) : Result<CostPrior>(reader.error());
    if (prior) pair.cpp.planner().assume(sequences, *prior);
    const auto status = reprise_batch_load_costs(pair.handle, sequences, name, bytes.data(), bytes.size());
    expect("batch_load_costs", status, status_of(prior), reprise_batch_error(pair.handle));
  }
  void draft(CBatchPair& pair) {
    std::vector<FollowedSlot> in_cpp;
    std::vector<reprise_slot> in_c;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (one_in(4)) continue;
      edit(slots_[i]);
      const std::size_t slot = one_in(40) ? choices_.below(slots_.size() + 1) : i;  // unknown, or perhaps twice
      const std::size_t most = number(20);
      const std::uint64_t conversation = conversations_ ? 1 + choices_.below(12) / 11 : 0;
      const Tokens& all = slots_[i].ids;
      const std::size_t after = after_of(all, pair.cpp.context(slot));
      const TokenSpan ids = TokenSpan(all).subspan(after);
      in_cpp.push_back({slot, ids, most, conversation == 0 ? std::nullopt : std::optional(conversation), after});
      in_c.push_back({slot, ids.data(), ids.size(), most, conversation, all.data(), 7, after});
    }
    now_ += static_cast<std::int64_t>(choices_.below(3'000'000));
    const std::int64_t now = one_in(4) ? 0 : now_;
    const auto wanted = pair.cpp.draft(in_cpp, now == 0 ? std::nullopt : std::optional(std::chrono::nanoseconds(now)));
    const auto status = reprise_batch_draft(pair.handle, in_c.data(), in_c.size(), now);
    expect("batch_draft", status, status_of(wanted), reprise_batch_error(pair.handle));
    for (std::size_t i = 0; i < in_c.size() && fault_.empty(); ++i) {
      const reprise_slot& slot = in_c[i];
      if (!wanted) {
        expect("batch_draft", slot.draft == nullptr && slot.drafted == 0);
        continue;
      }
      const TokenSpan tokens = (*wanted)[i];
      expect("batch_draft", std::equal(tokens.begin(), tokens.end(), slot.draft, slot.draft + slot.drafted));
      slots_[slot.slot].draft.assign(tokens.begin(), tokens.end());
      coverage_->shared += tokens.size();
    }
  }

  void call_session(CSessionPair& pair) {
    const reprise_error* const error = reprise_session_error(pair.handle);
    if (pair.cpp.context().empty() && !one_in(3)) return begin(pair);
    switch (choices_.below(40)) {
      case 0:
        if (one_in(3)) sessions_[0].emplace(options());
        return;
      case 1:
        return fork(pair);
      case 2:
        return begin(pair);
      case 3:
      case 4:
        return append(pair);
      case 5:
        return truncate(pair);
      case 6:
        return rebase(pair);
      case 7:
        return set_cached(pair);
      case 8:
      case 9:
        return report_prompt_row(pair);
      case 10:
        return compare_statistics(
            "session_statistics", pair.cpp.statistics(),
            [&](char* text, std::size_t room, std::size_t* needed) {
              return reprise_session_statistics(pair.handle, text, room, needed);
            },
            error);
      case 11:
        return compare_costs(
            "session_save_costs", pair.cpp.control().learned().prior(),
            [&](const char* name, void* bytes, std::size_t room, std::size_t* needed) {
              return reprise_session_save_costs(pair.handle, name, bytes, room, needed);
            },
            error);
      case 12:
      case 13:
      case 14:
        return report_top_k(pair);
      case 15:
        return call_badly(pair);
      case 16:
        if (one_in(2)) {
          const Tokens text = tokens(60);
          return expect("session_predict", reprise_session_predict(pair.handle, text.data(), text.size()),
                        status_of(pair.cpp.strategy().predict(text)), error);
        }
        pair.keep();
        return compare("session_keep", pair, reprise_session_keep(pair.handle), REPRISE_OK);
      default:
        if (pair.open && !one_in(10)) return commit(pair);
        return one_in(40) ? commit(pair) : plan(pair);
    }
  }
  void compare(const char* what, const CSessionPair& pair, reprise_status status, reprise_status wanted) {
    expect(what, status, wanted, reprise_session_error(pair.handle));
    expect(what, pair.same_state());
  }
  /// Compares a call that gives up the open pass.
  template <class T>
  void compare_end(const char* what, CSessionPair& pair, reprise_status status, const Result<T>& wanted) {
    compare(what, pair, status, status_of(wanted));
    if (wanted) pair.open.reset();
  }

  void fork(CSessionPair& pair) {
    reprise_session* forked = pair.handle;
    auto wanted = pair.cpp.fork();
    const auto status = reprise_session_fork(pair.handle, &forked);
    compare("session_fork", pair, status, status_of(wanted));
    if (status != REPRISE_OK) return expect("session_fork", forked == nullptr);
    if (!wanted) return reprise_session_destroy(forked);
    auto& other = sessions_[&pair == &*sessions_[0] ? 1 : 0];
    other.emplace(forked, *std::move(wanted), pair);
    expect("session_fork", other->same_state());
  }
  void begin(CSessionPair& pair) {
    const Tokens text = tokens(60);
    const std::size_t in_cache = cached(text.size());
    CCapabilities can(choices_);
    const bool none = one_in(5);
    const bool good = none || (can.good && can.in_c.good());
    const auto status =
        reprise_session_begin(pair.handle, text.data(), text.size(), in_cache, none ? nullptr : can.in_c.get());
    if (!good) return compare("session_begin", pair, status, REPRISE_INVALID_ARGUMENT);
    compare_end("session_begin", pair, status,
                pair.cpp.begin(text, none ? Capabilities() : can.in_cpp, in_cpp(in_cache)));
  }
  void append(CSessionPair& pair) {
    const Tokens text = tokens(20);
    const std::size_t in_cache = cached(pair.cpp.context().size() + text.size());
    const auto status = reprise_session_append(pair.handle, text.data(), text.size(), in_cache);
    compare_end("session_append", pair, status, pair.cpp.append(text, Origin::prompt, in_cpp(in_cache)));
  }
  void truncate(CSessionPair& pair) {
    const std::size_t size = number(pair.cpp.context().size());
    const auto status = reprise_session_truncate(pair.handle, size);
    compare_end("session_truncate", pair, status, pair.cpp.truncate(size));
  }
  void rebase(CSessionPair& pair) {
    Tokens text(pair.cpp.context().begin(), pair.cpp.context().end());
    if (text.size() > 3) text.erase(text.begin() + static_cast<std::ptrdiff_t>(choices_.below(text.size())));
    if (one_in(4)) text = tokens(40);
    const std::size_t in_cache = cached(text.size());
    std::size_t shared = 7;
    const auto status = reprise_session_rebase(pair.handle, text.data(), text.size(), in_cache, &shared);
    const auto wanted = pair.cpp.rebase(text, in_cpp(in_cache));
    compare_end("session_rebase", pair, status, wanted);
    expect("session_rebase", shared == (wanted ? *wanted : 0));
  }
  void set_cached(CSessionPair& pair) {
    const std::size_t in_cache = number(pair.cpp.context().size());
    const auto status = reprise_session_set_cached(pair.handle, in_cache);
    compare_end("session_set_cached", pair, status, pair.cpp.set_cached(in_cache));
  }
  void report_prompt_row(CSessionPair& pair) {
    const Tokens likeliest = tokens(12);
    const std::size_t position = number(pair.cpp.context().size());
    const auto status = reprise_session_report_prompt_row(pair.handle, position, likeliest.data(), likeliest.size());
    compare("report_prompt_row", pair, status, status_of(pair.cpp.report_prompt_row(position, likeliest)));
  }
  void report_top_k(CSessionPair& pair) {
    const Tokens likeliest = tokens(12);
    const std::size_t rows = pair.open ? pair.open->drafted + 1 : 1;
    const std::size_t row = choices_.below(rows + (one_in(8) ? 2 : 0));
    const auto status = reprise_session_report_top_k(pair.handle, row, likeliest.data(), likeliest.size());
    if (!pair.open) return compare("report_top_k", pair, status, REPRISE_NOT_PLANNED);
    if (row >= rows) return compare("report_top_k", pair, status, REPRISE_SIZE_OUT_OF_RANGE);
    compare("report_top_k", pair, status, status_of(pair.cpp.report_top_k(pair.open->ticket, row, likeliest)));
  }

  void plan(CSessionPair& pair) {
    const Tokens eos = one_in(3) ? tokens(2) : Tokens();
    Sized<reprise_limits> limits;
    limits->max_tokens = one_in(3) ? pair.cpp.output().size() + choices_.below(20) : 0;
    limits->max_context = one_in(6) ? pair.cpp.context().size() + choices_.below(20) : 0;
    limits->eos = eos.data();
    limits->eos_count = eos.size();
    limits.choose_size(choices_);
    const bool none = one_in(4);
    const std::size_t most = number(40);
    Sized<reprise_pass> pass;
    pass.choose_size(choices_);
    const auto status = reprise_session_plan(pair.handle, none ? nullptr : limits.get(), most, pass.get());
    expect("session_plan", pass.untouched());
    if (!pass.good() || (!none && !limits.good()))
      return compare("session_plan", pair, status, REPRISE_INVALID_ARGUMENT);
    pair.limits = Limits();
    if (!none && limits->max_tokens != 0) pair.limits.max_tokens = limits->max_tokens;
    if (!none && limits->max_context != 0) pair.limits.max_context = limits->max_context;
    if (!none) pair.limits.eos = eos;
    pair.limits.draft.max_nodes = most;
    pair.open.reset();
    static_cast<void>(pair.cpp.propose(pair.limits));
    const auto wanted = pair.cpp.plan();
    compare("session_plan", pair, status, status_of(wanted));
    if (!wanted) return expect("session_plan", pass.zero());
    if (status == REPRISE_OK) compare_pass(*wanted, *pass.get());
    pair.open = *wanted;
    coverage_->drafted += wanted->drafted;
  }
  void compare_pass(const Pass& wanted, const reprise_pass& pass) {
    const auto same = [](auto values, const auto* data, std::size_t size) {
      return std::equal(values.begin(), values.end(), data, data + size);
    };
    expect("session_plan", pass.pending == wanted.pending && same(wanted.batch, pass.batch, pass.rows) &&
                               same(wanted.parents, pass.parents, pass.drafted) &&
                               same(wanted.depths, pass.depths, pass.drafted));
  }
  static bool is_chain(const Pass& pass) {
    for (std::size_t i = 0; i < pass.parents.size(); ++i)
      if (pass.parents[i] != static_cast<NodeIndex>(i) - 1) return false;
    return true;
  }
  /// Returns picks that often agree with a path of the draft.
  Tokens picks_for(const Pass& pass) {
    Tokens picks(pass.drafted + 1);
    for (Token& pick : picks) pick = token();
    for (std::size_t row = 0; row < pass.drafted; ++row)
      if (!one_in(3)) picks[static_cast<std::size_t>(pass.parents[row] + 1)] = pass.batch[pass.pending + row];
    return picks;
  }
  void commit(CSessionPair& pair) {
    const Tokens all = pair.open ? picks_for(*pair.open) : Tokens{1};
    Tokens picks = all;
    if (one_in(8)) picks.resize(choices_.below(picks.size() + 3));
    const std::int64_t time = one_in(2) ? 0 : 1 + static_cast<std::int64_t>(choices_.below(1'000'000));
    Sized<reprise_commit> out;
    out.choose_size(choices_);
    const auto status = reprise_session_commit(pair.handle, picks.data(), picks.size(), time, out.get());
    expect("session_commit", out.untouched());
    if (!out.good()) return compare("session_commit", pair, status, REPRISE_INVALID_ARGUMENT);
    if (!pair.open) return compare("session_commit", pair, status, REPRISE_NOT_PLANNED);
    const bool refused =
        picks.empty() || picks.size() > all.size() || (picks.size() < all.size() && !is_chain(*pair.open));
    if (refused) {
      expect("session_commit", out.zero());
      return compare("session_commit", pair, status, REPRISE_BAD_PICKS);
    }
    const auto wanted = pair.cpp.resolve(pair.open->ticket, TokenSpan(picks));
    if (!wanted) return fail("session_commit", "C++ refuses the picks");
    compare_commit(pair, *wanted, *out.get());
    expect("session_commit",
           pair.cpp.commit(pair.open->ticket, time == 0 ? std::nullopt : std::optional(std::chrono::nanoseconds(time)))
               .has_value());
    coverage_->trees += is_chain(*pair.open) ? 0 : 1;
    pair.open.reset();
    compare("session_commit", pair, status, REPRISE_OK);
  }
  void compare_commit(const CSessionPair&, const Decision& wanted, const reprise_commit& out) {
    const bool tokens = std::equal(wanted.tokens.begin(), wanted.tokens.end(), out.tokens, out.tokens + out.count,
                                   [](const CommittedToken& one, Token token) { return one.token == token; });
    const bool rows = wanted.restore
                          ? out.keep == 0 && out.rows == nullptr
                          : std::equal(wanted.rows.begin(), wanted.rows.end(), out.rows, out.rows + out.keep);
    expect("session_commit", tokens && rows && out.accepted == wanted.accepted &&
                                 out.restore == (wanted.restore ? 1 : 0) &&
                                 out.finish == CSessionPair::finish_in_c(wanted.finish));
    coverage_->accepted += wanted.accepted;
    coverage_->restored += wanted.restore ? 1 : 0;
  }
  /// Calls with null pointers, counts that no array has, and negative times.
  void call_badly(CSessionPair& pair) {
    reprise_session* const handle = pair.handle;
    const Token one = 1;
    std::size_t number = 7;
    Sized<reprise_commit> out;
    const auto bad = [&](reprise_status status) {
      compare("a bad argument", pair, status, REPRISE_INVALID_ARGUMENT);
      expect("a bad argument", out.zero() && (number == 0 || number == 7));
    };
    switch (choices_.below(14)) {
      case 0:
        return bad(reprise_session_begin(handle, nullptr, 3, REPRISE_UNLIMITED, nullptr));
      case 1:
        return bad(reprise_session_begin(handle, &one, SIZE_MAX, REPRISE_UNLIMITED, nullptr));
      case 2:
        return bad(reprise_session_append(handle, nullptr, 3, REPRISE_UNLIMITED));
      case 3:
        return bad(reprise_session_append(handle, &one, SIZE_MAX, REPRISE_UNLIMITED));
      case 4:
        return bad(reprise_session_rebase(handle, nullptr, 3, REPRISE_UNLIMITED, &number));
      case 5:
        return bad(reprise_session_rebase(handle, &one, 1, REPRISE_UNLIMITED, nullptr));
      case 6:
        return bad(reprise_session_commit(handle, nullptr, 1, 0, out.get()));
      case 7:
        return bad(reprise_session_commit(handle, &one, 1, -1, out.get()));
      case 8:
        return bad(reprise_session_commit(handle, &one, 1, 0, nullptr));
      case 9:
        return bad(reprise_session_plan(handle, nullptr, 9, nullptr));
      case 10:
        return bad(reprise_session_report_top_k(handle, 0, nullptr, 1));
      case 11:
        return bad(reprise_session_report_prompt_row(handle, 0, nullptr, 1));
      case 12:
        return bad(reprise_session_statistics(handle, nullptr, 1, &number));
      default:
        return bad(reprise_session_state(handle, nullptr));
    }
  }

  // Memories.

  void call_memory() {
    const std::uint64_t salt = choices_.below(4);
    switch (choices_.below(6)) {
      case 0:
        if (!one_in(4)) return;
        memory_.cpp->forget(salt);
        return expect("memory_forget", reprise_memory_forget(memory_.handle, salt), REPRISE_OK,
                      reprise_memory_error(memory_.handle));
      case 1:
        return save_memory(salt);
      case 2:
        return load_any(salt);
      default:
        return add_to_memory(salt);
    }
  }
  void add_to_memory(std::uint64_t salt) {
    const Tokens text = tokens(100);
    const std::size_t prompt = choices_.below(text.size() + 1);
    const auto add = [&](const Token* data, std::size_t count, std::size_t prompt_count, reprise_status wanted) {
      expect("memory_add", reprise_memory_add(memory_.handle, salt, data, count, prompt_count), wanted,
             reprise_memory_error(memory_.handle));
    };
    if (one_in(8)) add(nullptr, 3, 0, REPRISE_INVALID_ARGUMENT);
    if (one_in(8)) add(text.data(), SIZE_MAX, 0, REPRISE_INVALID_ARGUMENT);
    if (one_in(8)) add(text.data(), text.size(), text.size() + 1, REPRISE_SIZE_OUT_OF_RANGE);
    add(text.data(), text.size(), prompt, REPRISE_OK);
    memory_.cpp->add(text, prompt, salt);
  }
  void save_memory(std::uint64_t salt) {
    const std::vector<std::byte> wanted = memory_.saved(salt);
    if (wanted.empty()) {
      std::size_t none = 1;
      const auto status = reprise_memory_save(memory_.handle, salt, c_tokenizer, nullptr, 0, &none);
      return expect("memory_save", status == REPRISE_INVALID_ARGUMENT && none == 0);
    }
    std::vector<std::byte> bytes(one_in(3) ? choices_.below(wanted.size()) : wanted.size() + choices_.below(3));
    const bool fits = bytes.size() >= wanted.size();
    std::size_t needed = 1;
    const auto status = reprise_memory_save(memory_.handle, salt, c_tokenizer, bytes.data(), bytes.size(), &needed);
    expect("memory_save", status, fits ? REPRISE_OK : REPRISE_OUT_OF_ROOM, reprise_memory_error(memory_.handle));
    expect("memory_save", needed == wanted.size());
    if (!fits || !fault_.empty()) return;
    bytes.resize(needed);
    expect("memory_save", bytes == wanted);
    snapshot_ = bytes;
  }
  /// Returns a snapshot with a token that some memories do not know.
  static std::vector<std::byte> with_other_vocabulary() {
    HistoryStore store = *HistoryStore::make({.max_bytes = 6000});
    store.append(Tokens{1, 2, 1000}, Origin::output);
    store.end_sequence();
    std::vector<std::byte> bytes(snapshot_bytes_of(store));
    SnapshotWriter writer(bytes, c_tokenizer);
    write_history(writer, store, {});
    return writer.finish() ? bytes : std::vector<std::byte>();
  }
  void load_any(std::uint64_t salt) {
    std::vector<std::byte> bytes = snapshot_;
    if (!bytes.empty() && one_in(3)) bytes[choices_.below(bytes.size())] ^= std::byte{1};
    if (one_in(4)) bytes.resize(choices_.below(bytes.size() + 1));
    if (one_in(16)) bytes = with_other_vocabulary();
    const std::uint64_t tokenizer = one_in(8) ? 5 : c_tokenizer;
    const auto status = reprise_memory_load(memory_.handle, salt, tokenizer, bytes.data(), bytes.size());
    expect("memory_load", status, status_of(memory_.cpp->load(bytes, tokenizer, salt)),
           reprise_memory_error(memory_.handle));
  }

  Choices& choices_;
  CMemoryPair memory_;
  std::array<std::optional<CSessionPair>, 2> sessions_;
  std::optional<CFollowerPair> follower_;
  std::optional<CBatchPair> batch_;
  Text text_;                  // of the follower
  std::array<Text, 3> slots_;  // of the batch
  bool conversations_ = false;
  std::int64_t now_ = 1;
  std::vector<std::byte> saved_costs_;
  std::vector<std::byte> snapshot_;
  CCallsCoverage* coverage_ = nullptr;
  std::string fault_;
};

}  // namespace reprise::testing
