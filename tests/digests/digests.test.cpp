// SPDX-License-Identifier: Apache-2.0
// The decisions of the library on the bundled traces, as a few numbers for each cell. They show whether a change of the
// code changes a draft, a draft length, a learned cost or a saved byte. Integers decide, so the numbers are the same on
// every machine. No cell has sampled drafts, corpora, tenants, rebased or truncated text, or strategies besides the
// n-gram drafter and one lookup drafter.
//
// The file digests.txt has a line for each cell; Digest::columns names its columns. After an intended change,
// REPRISE_WRITE_DIGESTS=1 writes it anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "digests/digest.hpp"
#include "replay/trace.hpp"
#include "reprise/batch.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/history.hpp"
#include "reprise/reprise.hpp"
#include "reprise_c/reprise.h"

namespace reprise::testing::digests_test {
namespace {

using replay::Trace;
using replay::TraceSession;
using replay::Turn;
using Tokens = std::vector<Token>;
using Drafter = NgramDrafter<>;

constexpr std::array names = {"chat", "code-edit", "json", "prose", "reasoning", "retrieval", "summary", "translation"};
constexpr std::size_t json = 2;
constexpr std::array<Token, 1> eos = {2};
constexpr std::uint64_t tokenizer = 7;

const std::vector<Trace>& traces() {
  static const std::vector<Trace> all = [] {
    std::vector<Trace> read;
    for (const std::string name : names)
      read.push_back(replay::read_trace(REPRISE_SOURCE_DIR "/bench/traces/" + name + ".jsonl"));
    return read;
  }();
  return all;
}
void append(Tokens& text, TokenSpan more) { text.insert(text.end(), more.begin(), more.end()); }

/// Commits a pass with recorded tokens as the target's picks. Returns the number of committed tokens. `coming`: the
/// recorded tokens after the anchor. row(i): the ranking that picked coming[i].
template <class S, class Control, class Row>
std::size_t commit(Session<S, Control>& session, const Pass& pass, TokenSpan coming, SimulatedTimes* times,
                   Digest& digest, const Row& row) {
  Tokens picks = {coming[0]};
  for (const std::uint32_t depth : pass.depths) picks.push_back(depth < coming.size() ? coming[depth] : 0);
  const std::size_t end = session.output().size() + coming.size();
  const auto decision = session.resolve(pass.ticket, picks, [end](TokenSpan output, Token) {
    return output.size() + 1 == end ? StopDecision::stop_after : StopDecision::proceed;
  });
  const std::size_t committed = decision->tokens.size();
  for (std::size_t i = 0; i < committed; ++i)
    EXPECT_TRUE(session.report_top_k(pass.ticket, decision->tokens[i].row + 1 - pass.pending, row(i)));
  digest.count(pass.drafted, decision->accepted);
  EXPECT_TRUE(session.commit(pass.ticket, times == nullptr ? std::nullopt : times->next(pass.shape)));
  return committed;
}

/// The memory that sessions leave to later ones. It is small, so that text is evicted.
struct Past {
  HistoryStore store = HistoryStore::make({.max_bytes = 1 << 16}).value();
  NextTokens next_tokens = NextTokens::make({.max_bytes = 1 << 17, .rankings = true}).value();
  CalibrationState calibration = {};

  [[nodiscard]] NgramOptions options() const {
    NgramOptions made;
    made.stores = {store};
    made.next_tokens = &next_tokens;
    made.prior = calibration;
    return made;
  }
  void add(const TraceSession& session, const Drafter& drafter) {
    Tokens text;
    store.begin_sequence(replay::fnv1a(session.id));
    for (const Turn& turn : session.turns) {
      store.append(turn.prompt, Origin::prompt);
      store.append(turn.output, Origin::output);
      append(text, turn.prompt);
      append(text, turn.output);
    }
    store.end_sequence();
    next_tokens.add(text);
    next_tokens.add(drafter.rows());
    calibration = drafter.calibration();
  }
};

/// Returns a snapshot with sections of every kind.
std::vector<std::byte> save(const Past& past, const CostPrior& costs) {
  std::vector<std::byte> bytes(snapshot_bytes_of(past.store) - snapshot_bytes({}) +
                               snapshot_bytes({next_token_bytes(past.next_tokens), cost_bytes(costs, "engine")}));
  SnapshotWriter writer(bytes, tokenizer);
  write_history(writer, past.store, past.calibration);
  write_next_tokens(writer, past.next_tokens);
  EXPECT_TRUE(save_costs(costs, "engine", writer));
  EXPECT_TRUE(writer.finish());
  return bytes;
}
/// Loads a snapshot into an empty past, and returns its costs.
CostPrior load(const std::vector<std::byte>& bytes, Past& past) {
  const auto reader = SnapshotReader::open(bytes, tokenizer);
  EXPECT_TRUE(load_history(std::span(bytes), tokenizer, past.store, past.calibration));
  EXPECT_TRUE(load_next_tokens(*reader, past.next_tokens));
  return load_costs(*reader, "engine").value();
}

/// A replay of a trace with one session after the other.
struct Replay {
  std::size_t trace = 0;
  bool trees = false;
  bool past = false;               ///< earlier sessions leave their text, tables and calibration
  bool carried = false;            ///< costs are learned and kept from session to session; otherwise they are told
  std::string other = {};          ///< a name for the members below
  Capabilities capabilities = {};  ///< except max_leaves
  bool restarts = false;           ///< in the middle, everything that is kept goes through a snapshot
  bool lookup = false;             ///< the probabilities of the strategy are not calibrated
  Digest digest = {};
  SimulatedTimes times = {};

  template <class S>
  void play(Session<S, CostControl>& session, const TraceSession& recorded) {
    capabilities.max_leaves = trees ? unlimited : 1;
    Limits limits;
    limits.draft.stops.eos = eos;
    for (const Turn& turn : recorded.turns) {
      const bool first = &turn == &recorded.turns.front();
      EXPECT_TRUE(first ? session.begin(turn.prompt, capabilities) : session.append(turn.prompt));
      EXPECT_TRUE(session.append(TokenSpan(turn.output).first(1), Origin::output));
      for (std::size_t done = 1; done < turn.output.size();) {
        digest.note_draft(session.propose(limits));
        const auto pass = session.plan();
        // Engines of chains without a past show no rankings.
        const auto row = [&](std::size_t i) {
          return (trees || past) && turn.top_k ? (*turn.top_k)[done + i] : TokenSpan();
        };
        const TokenSpan coming = TokenSpan(turn.output).subspan(done);
        done += commit(session, *pass, coming, carried ? &times : nullptr, digest, row);
        const CostControl& control = session.control();
        digest.note_curve(control.learned());
        Digest::note(digest.learned, control.cost(pass->shape));
        Digest::note(digest.learned, control.throughput());
        Digest::note(digest.learned, control.loss_budget().debt());
      }
    }
  }
  Digest run() {
    digest.cell = std::string(names[trace]) + (trees ? "/tree" : "/chain") + (past ? "/past" : "/alone") +
                  (carried ? "/carried" : "/told") + other;
    CostOptions costs;
    if (!carried) costs.curve = stepped_curve();
    CostControl control(costs);
    Past kept;
    const std::vector<TraceSession>& sessions = traces()[trace].sessions;
    for (const TraceSession& recorded : sessions) {
      if (!carried) control = CostControl(costs);
      if (lookup) {
        Session session(PromptLookupDrafter<>(), control);
        play(session, recorded);
        control = session.control();
        continue;
      }
      Session session(Drafter(past ? kept.options() : NgramOptions()), control);
      play(session, recorded);
      control = session.control();
      if (past) kept.add(recorded, session.strategy());
      if (!restarts || &recorded != &sessions[sessions.size() / 2]) continue;
      const auto bytes = save(kept, control.learned().prior());
      Digest::note_all(digest.learned, bytes);
      kept = Past();
      costs.prior = load(bytes, kept);
      control = CostControl(costs);
    }
    return digest;
  }
};

/// A text with its answer.
struct Request {
  Tokens text;
  std::size_t prompt = 0;  ///< tokens before the answer
};
using Queue = std::deque<Request>;

/// Returns a queue for each trace, with a request for each turn. Requests of one session continue each other.
std::vector<Queue> queues_of_traces() {
  std::vector<Queue> queues;
  for (const Trace& trace : traces()) {
    queues.emplace_back();
    for (const TraceSession& session : trace.sessions) {
      Request request;
      for (const Turn& turn : session.turns) {
        append(request.text, turn.prompt);
        request.prompt = request.text.size();
        append(request.text, turn.output);
        if (turn.output.size() > 1) queues.back().push_back(request);
      }
    }
  }
  return queues;
}

/// Returns the digest of eight sequences in the passes of a BatchPlanner.
Digest planned(bool told) {
  Digest digest = {told ? "planner/told" : "planner/carried"};
  BatchPlanner planner({.curve = told ? std::optional(stepped_curve()) : std::nullopt, .max_rows = 64});
  struct Member {
    Queue queue;
    Session<Drafter> session{Drafter()};
  };
  std::vector<Member> members;
  for (const Queue& queue : queues_of_traces()) members.push_back({queue});
  for (SimulatedTimes times; !members.empty();) {
    PassShape plain{members.size(), members.size(), 0};
    for (auto& [queue, session] : members) {
      if (session.context().empty() || session.finished()) {
        const TokenSpan text = queue.front().text;
        EXPECT_TRUE(session.begin(text.first(queue.front().prompt + 1), {.max_leaves = unlimited}));
      }
      plain.context += session.context().size() / members.size();
    }
    Limits limits;
    limits.draft = planner.budget({}, plain);
    std::vector<BatchEntry> entries;
    for (Member& member : members) {
      digest.note_draft(member.session.propose(limits));
      entries.push_back({member.session.offer().value(), member.session.context().size()});
    }
    const BatchPlan plan = planner.plan(entries);
    std::vector<std::size_t> committed;
    for (auto& [queue, session] : members) {
      const auto pass = session.plan(plan.nodes_of(committed.size()), plan.cut);
      const TokenSpan coming = TokenSpan(queue.front().text).subspan(session.context().size());
      committed.push_back(commit(session, *pass, coming, nullptr, digest, [](std::size_t) { return TokenSpan(); }));
      if (session.finished()) queue.pop_front();
    }
    planner.learn(committed, times.next({members.size(), plan.width, plain.context}));
    digest.note_curve(planner.learned(members.size()));
    Digest::note(digest.learned, planner.throughput());
    Digest::note(digest.learned, planner.loss_budget().debt());
    std::erase_if(members, [](const Member& member) { return member.queue.empty(); });
  }
  return digest;
}

/// Returns the digest of calls of the C interface: a batch with a slot for each queue, or a follower with one queue.
Digest called(bool batch, bool told) {
  Digest digest = {std::string(batch ? "c_batch" : "c_follower") + (told ? "/told" : "/carried")};
  const auto good = [](reprise_status status) { EXPECT_EQ(status, REPRISE_OK); };
  std::vector<Queue> queues = queues_of_traces();
  if (!batch) queues.resize(1);
  reprise_memory_options small{};
  small.size = sizeof(small);
  small.max_bytes = small.next_token_bytes = 1 << 16;
  reprise_options options{};
  options.size = sizeof(options);
  reprise_memory* memory = nullptr;
  reprise_curve* curve = nullptr;
  reprise_follower* one = nullptr;
  reprise_batch* many = nullptr;
  good(reprise_memory_create(&small, &memory, nullptr));
  if (told) good(reprise_curve_create_linear(0.02, &curve, nullptr));
  options.memory = memory;
  options.curve = curve;
  good(batch ? reprise_batch_create(&options, queues.size(), &many, nullptr)
             : reprise_follower_create(&options, &one, nullptr));

  std::vector<Tokens> ids(queues.size());
  SimulatedTimes times;
  for (std::int64_t now = 1;;) {
    std::vector<reprise_slot> call;
    for (std::size_t i = 0; i < queues.size(); ++i) {
      if (queues[i].empty()) continue;
      const Request& request = queues[i].front();
      if (ids[i].empty()) append(ids[i], TokenSpan(request.text).first(request.prompt + 1));
      call.push_back({i, ids[i].data(), ids[i].size(), 16, 0, nullptr, 0, 0});
    }
    if (call.empty()) break;
    reprise_slot& first = call.front();
    good(batch ? reprise_batch_draft(many, call.data(), call.size(), now)
               : reprise_follower_draft(one, first.ids, first.count, first.most, now, 0, &first.draft, &first.drafted));
    PassShape shape{call.size(), call.size(), 0};
    for (const reprise_slot& slot : call) {
      Queue& queue = queues[slot.slot];
      const TokenSpan draft(slot.draft, slot.drafted);
      const TokenSpan coming = TokenSpan(queue.front().text).subspan(slot.count);
      std::size_t agreed = 0;
      while (agreed < std::min(draft.size(), coming.size()) && draft[agreed] == coming[agreed]) ++agreed;
      Digest::note_all(digest.drafts, draft);
      digest.count(draft.size(), agreed);
      shape.rows += draft.size();
      append(ids[slot.slot], coming.first(std::min(agreed + 1, coming.size())));
      if (agreed + 1 < coming.size()) continue;
      queue.pop_front();
      ids[slot.slot].clear();
    }
    now += times.next(shape).value_or(std::chrono::seconds(1)).count();
  }
  for (std::size_t i = 0; batch && i < queues.size(); ++i) good(reprise_batch_forget(many, i));
  if (!batch) good(reprise_follower_forget(one));
  std::vector<unsigned char> bytes(1 << 20);
  std::size_t size = 0;
  good(batch ? reprise_batch_save_costs(many, queues.size(), "engine", bytes.data(), bytes.size(), &size)
             : reprise_follower_save_costs(one, "engine", bytes.data(), bytes.size(), &size));
  Digest::note_all(digest.learned, std::span(bytes).first(size));
  good(reprise_memory_save(memory, 0, tokenizer, bytes.data(), bytes.size(), &size));
  Digest::note_all(digest.learned, std::span(bytes).first(size));
  reprise_follower_destroy(one);
  reprise_batch_destroy(many);
  reprise_curve_destroy(curve);
  reprise_memory_destroy(memory);
  return digest;
}

std::vector<Digest> digests() {
  std::vector<Digest> all;
  Capabilities widths;
  widths.allowed_widths = {1, 2, 4, 8, 16, 32};
  widths.pad_token = 0;
  for (const bool carried : {false, true}) {
    for (std::size_t trace = 0; trace < names.size(); ++trace)
      for (const bool trees : {false, true})
        for (const bool past : {false, true}) all.push_back(Replay{trace, trees, past, carried}.run());
    all.push_back(Replay{json, true, true, carried, "/widths", widths}.run());
    all.push_back(Replay{json, false, true, carried, "/rollback", {.rollback = Rollback::snapshot}}.run());
    all.push_back(Replay{json, false, false, carried, "/lookup", {}, false, true}.run());
    all.push_back(planned(!carried));
    all.push_back(called(false, !carried));
    all.push_back(called(true, !carried));
  }
  all.push_back(Replay{json, true, true, true, "/snapshot", {}, true}.run());
  return all;
}

TEST(Digests, OfEveryCellAreThoseOfTheFile) {
  const std::string path = REPRISE_SOURCE_DIR "/tests/digests/digests.txt";
  const std::vector<Digest> all = digests();
  if (std::getenv("REPRISE_WRITE_DIGESTS") != nullptr) {
    std::ofstream file(path);
    for (const Digest& digest : all) file << digest.line() << '\n';
  }
  std::ifstream file(path);
  std::string line;
  for (const Digest& digest : all) {
    std::getline(file, line);
    std::istringstream expected(line);
    std::istringstream found(digest.line());
    std::string differences;
    for (const std::string column : Digest::columns) {
      std::string left;
      std::string right;
      expected >> left;
      found >> right;
      if (left != right) differences += ", " + column + ' ' + right + " in place of " + left;
    }
    if (!differences.empty()) ADD_FAILURE() << "cell " << digest.cell << differences;
  }
  EXPECT_FALSE(std::getline(file, line)) << "the file has more cells";
}

}  // namespace
}  // namespace reprise::testing::digests_test
