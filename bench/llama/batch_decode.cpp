// SPDX-License-Identifier: Apache-2.0
#include "batch_decode.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <utility>

#include "batch_engine.hpp"
#include "engine_error.hpp"
#include "reprise/engine/top_k.hpp"

namespace reprise::llama {
namespace {

using Clock = std::chrono::steady_clock;

/// The picks of one sequence, computed when they are read: the sampler advances once per committed token.
struct RowPicks {
  const BatchEngine& engine;
  llama_sampler* sampler;
  std::size_t first;  // row of the anchor
  std::size_t count;

  Token operator[](std::size_t i) const {
    return sampler != nullptr ? engine.sample(sampler, first + i) : argmax(engine.logits(first + i));
  }
  [[nodiscard]] std::size_t size() const { return count; }
};

template <class Value>
Value checked(Result<Value> result) {
  if (!result) throw EngineError(std::string(result.error().message));
  return std::move(*result);
}
void check(const Result<void>& done) {
  if (!done) throw EngineError(std::string(done.error().message));
}

class BatchLoop {
 public:
  BatchLoop(Engine& engine, std::span<const Request> requests, const Drafting& drafting, const BatchRule& rule,
            BatchPlanner& planner, const BatchSettings& settings)
      : engine_(engine),
        passes_(engine.context(), settings.sequences),
        requests_(requests),
        drafting_(drafting),
        rule_(rule),
        planner_(planner),
        settings_(settings) {
    for (std::size_t i = settings.sequences; i > 0; --i) free_slots_.push_back(static_cast<BatchSlot>(i - 1));
    result_.sessions.resize(requests.size());
  }

  BatchRun run() {
    const auto start = Clock::now();
    while (admit() && !stopped()) step();
    result_.all.time = Clock::now() - start;
    for (const auto& sequences : {&running_, &waiting_})
      while (!sequences->empty()) abandon(*sequences, "");
    return std::move(result_);
  }

 private:
  using Sequences = std::deque<std::unique_ptr<BatchSequence>>;

  bool stopped() { return result_.stopped = settings_.stop && settings_.stop(); }

  // Sessions come and go.

  /// Lets waiting sessions begin while there are places and room. Returns false if no session is left.
  bool admit() {
    while (running_.size() < settings_.sequences && (!waiting_.empty() || next_ < requests_.size())) {
      if (waiting_.empty() && !arrive()) continue;
      if (!running_.empty() && (crowded_ || !has_room_for(*waiting_.front()))) break;
      waiting_.front()->slot = free_slots_.back();
      free_slots_.pop_back();
      running_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    result_.most_running = std::max(result_.most_running, running_.size());
    return !running_.empty();
  }
  /// Prepares the next request. Returns false if it has nothing to run.
  bool arrive() {
    Capabilities can{.max_rows = passes_.most_rows(), .max_context = passes_.most_context()};
    auto sequence =
        std::make_unique<BatchSequence>(engine_, requests_[next_], next_, drafting_, settings_.settings, can);
    ++next_;
    const bool begun = sequence->next_turn();
    begun ? waiting_.push_back(std::move(sequence)) : keep_result(*sequence);
    return begun;
  }
  /// True if the cells that the running sessions leave free hold this one and a row for each.
  [[nodiscard]] bool has_room_for(const BatchSequence& sequence) const {
    if (!passes_.shares_cells()) return true;
    std::size_t cells = sequence.context().size() + 1;
    for (const auto& other : running_) cells += other->context().size() + 1;
    return cells <= engine_.context_size();
  }
  void keep_result(const BatchSequence& sequence) { result_.sessions[sequence.number()] = sequence.result(); }
  /// Takes the sequence out of its place. Its cells become free.
  std::unique_ptr<BatchSequence> leave(Sequences& from, std::size_t i) {
    std::unique_ptr<BatchSequence> sequence = std::move(from[i]);
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
    if (&from != &running_) return sequence;
    passes_.truncate(sequence->slot, 0);
    free_slots_.push_back(sequence->slot);
    return sequence;
  }
  void abandon(Sequences& from, const std::string& why) {
    const auto sequence = leave(from, from.size() - 1);
    sequence->abandon(why);
    keep_result(*sequence);
  }
  /// Makes room in a full cache.
  void give_way() {
    if (running_.size() == 1) return abandon(running_, "the KV cache has no room for it; give a larger --context");
    const auto began_later = [](const auto& a, const auto& b) { return a->number() < b->number(); };
    const auto last = std::max_element(running_.begin(), running_.end(), began_later);
    auto sequence = leave(running_, static_cast<std::size_t>(last - running_.begin()));
    sequence->lose_cache();
    crowded_ = true;
    ++result_.preemptions;
    waiting_.push_front(std::move(sequence));
  }

  // One step.

  void step() {
    const auto start = Clock::now();
    const auto model_before = passes_.model_time();
    PassSums sums;
    if (propose() && run_pass(sums)) sums.passes = 1;
    sums.time = Clock::now() - start;
    sums.model = passes_.model_time() - model_before;
    result_.all += sums;
    if (sums.prompt_rows == 0) result_.decoding += sums;
  }

  /// Gets the drafts of all sequences that decode. Sequences whose turn has ended begin the next one, or leave. Returns
  /// false if none is left.
  bool propose() {
    const DraftBudget budget = this->budget();
    for (std::size_t i = 0; i < running_.size();) i += propose(*running_[i], budget) ? 1 : 0;
    return !running_.empty();
  }
  bool propose(BatchSequence& sequence, DraftBudget budget) {
    budget.max_nodes = std::min(budget.max_nodes, sequence.max_nodes());
    while (sequence.decodes()) {
      sequence.limits().draft = budget;
      sequence.session().propose(sequence.limits(), DraftShape::chain);
      if (!sequence.session().finished()) break;
      if (!sequence.next_turn()) return end(sequence), false;
      passes_.truncate(sequence.slot, sequence.cached());
    }
    return true;
  }
  void end(const BatchSequence& sequence) {
    const auto at = std::find_if(running_.begin(), running_.end(), [&](const auto& one) { return &*one == &sequence; });
    keep_result(*leave(running_, static_cast<std::size_t>(at - running_.begin())));
    crowded_ = false;
  }
  /// The limit of a draft. A planner limits it to the tokens that can pay at this load.
  [[nodiscard]] DraftBudget budget() {
    DraftBudget budget;
    budget.max_nodes = rule_.kind == BatchRule::Kind::plain ? 0 : rule_.plans() ? drafting_.max_nodes : rule_.drafted;
    if (!rule_.plans()) return budget;
    PassShape plain{0, 0, 0};
    for (const auto& sequence : running_) {
      if (!sequence->decodes()) continue;
      ++plain.sequences;
      plain.context += sequence->context().size();
    }
    if (plain.sequences == 0) return budget;
    plain.context /= plain.sequences;
    plain.rows = plain.sequences + prompt_rows(plain.sequences, passes_.most_rows());
    return planner_.budget(budget, plain);
  }
  /// The prompt rows of a pass in which `decoding` sequences decode and that has at most `room` rows.
  [[nodiscard]] std::size_t prompt_rows(std::size_t decoding, std::size_t room) const {
    std::size_t missing = 0;
    for (const auto& sequence : running_)
      if (missing == 0 || settings_.chunk != 0) missing += sequence->missing().size();
    return std::min({missing, room - std::min(room, decoding), decoding == 0 ? unlimited : settings_.chunk});
  }
  /// The most rows of the next pass: cells of a shared cache can run out.
  [[nodiscard]] std::size_t room() const {
    std::size_t cached = 0;
    for (const auto& sequence : running_) cached += sequence->cached();
    const std::size_t cells = engine_.context_size();
    return passes_.shares_cells() ? std::min(passes_.most_rows(), cells - std::min(cells, cached))
                                  : passes_.most_rows();
  }

  /// Runs one pass and commits it. Returns false if the cache had no room: then a session has given way.
  bool run_pass(PassSums& sums) {
    decoding_.clear();
    if (settings_.chunk != 0 || prompt_rows(0, passes_.most_rows()) == 0) {
      for (const auto& sequence : running_)
        if (sequence->decodes()) decoding_.push_back(sequence.get());
    }
    const std::size_t room = this->room();
    const std::size_t prompts = prompt_rows(decoding_.size(), room);
    if (decoding_.size() + prompts > room || decoding_.size() + prompts == 0) return give_way(), false;
    std::size_t picked = pack(plan(room, prompts), prompts);
    const auto start = Clock::now();
    bool done = passes_.run(packer_.batch(), picked);
    if (!done && picked > decoding_.size()) {  // without drafts it may fit
      picked = pack(rule_.plans() ? planner_.shrink(0) : BatchPlan{}, prompts);
      done = passes_.run(packer_.batch(), picked);
    }
    if (!done) return give_way(), false;
    commit(sums);
    fill();
    if (rule_.plans() && !decoding_.empty()) planner_.learn(committed_, Clock::now() - start);
    sums.rows = packer_.batch().rows();
    sums.prompt_rows = prompts;
    return true;
  }

  /// The drafted rows of each sequence that decodes, for a pass of at most `room` rows.
  BatchPlan plan(std::size_t room, std::size_t prompts) {
    entries_.clear();
    for (BatchSequence* const sequence : decoding_)
      entries_.push_back({checked(sequence->session().offer()), sequence->context().size()});
    if (rule_.plans()) {
      const BatchPlan plan = planner_.plan(entries_, prompts);
      return plan.rows > room ? planner_.shrink(room) : plan;
    }
    nodes_.clear();
    std::size_t left = room - prompts - entries_.size();
    for (const BatchEntry& entry : entries_) {
      nodes_.push_back(static_cast<std::uint32_t>(std::min(entry.offer.sendable.size(), left)));
      left -= nodes_.back();
    }
    return {.nodes = nodes_, .cut = Cut::budget};
  }

  /// Packs the sequences that decode, then chunks of prompts. Returns the number of rows before those.
  std::size_t pack(const BatchPlan& plan, std::size_t prompts) {
    packer_.clear();
    const auto added = [](bool done) {
      if (!done) throw EngineError("no memory for a pass");
    };
    for (std::size_t i = 0; i < decoding_.size(); ++i) {
      BatchSequence& sequence = *decoding_[i];
      const Pass pass = checked(sequence.session().plan(plan.nodes_of(i), plan.cut));
      sequence.ticket = pass.ticket;
      added(packer_.add(sequence.slot, pass, sequence.context().size()));
    }
    const std::size_t picked = packer_.batch().rows();
    filled_.clear();
    for (const auto& sequence : running_) {
      const TokenSpan chunk = sequence->missing().first(std::min(sequence->missing().size(), prompts));
      if (chunk.empty()) continue;
      added(packer_.add({static_cast<std::size_t>(sequence->slot), chunk, 0, {}, sequence->cached() + chunk.size()}));
      filled_.emplace_back(sequence.get(), chunk.size());
      prompts -= chunk.size();
    }
    return picked;
  }
  /// Records the prompt tokens that the pass has put into the cache.
  void fill() {
    for (const auto& [sequence, tokens] : filled_) sequence->set_cached(sequence->cached() + tokens);
  }

  void commit(PassSums& sums) {
    committed_.clear();
    for (std::size_t i = 0; i < decoding_.size(); ++i) {
      BatchSequence& sequence = *decoding_[i];
      Session<AnyStrategy>& session = sequence.session();
      const std::size_t rows = packer_.batch().offsets[i + 1] - packer_.batch().offsets[i];
      const std::size_t first = packer_.flat_row(i, session.pending().size() - 1);
      const std::size_t drafted = rows - session.pending().size();
      const Decision decision =
          checked(session.resolve(sequence.ticket, RowPicks{passes_, sequence.sampler(), first, drafted + 1}));
      report_top_k(sequence, first, drafted);
      sequence.set_cached(sequence.cached() + decision.keep);
      if (decision.keep < rows) passes_.truncate(sequence.slot, sequence.cached());
      committed_.push_back(decision.tokens.size());
      sums.tokens += decision.tokens.size();
      sums.drafted += drafted;
      sums.accepted += decision.accepted;
      check(session.commit(sequence.ticket));
    }
  }
  /// Shows a strategy that wants them the likeliest tokens after each row, as generate() does.
  void report_top_k(BatchSequence& sequence, std::size_t first, std::size_t drafted) {
    const std::size_t wanted = sequence.session().strategy().top_k_wanted();
    if (wanted == 0) return;
    for (std::size_t i = 0; i <= drafted; ++i) {
      const TokenSpan likeliest =
          top_k(passes_.logits(first + i), std::span(best_).first(std::min(wanted, best_.size())));
      check(sequence.session().report_top_k(sequence.ticket, i, likeliest));
    }
  }

  Engine& engine_;
  BatchEngine passes_;
  std::span<const Request> requests_;
  const Drafting& drafting_;
  const BatchRule& rule_;
  BatchPlanner& planner_;
  const BatchSettings& settings_;

  std::size_t next_ = 0;  // the next request
  Sequences waiting_;     // sessions that have begun a turn and have no place
  Sequences running_;
  std::vector<BatchSlot> free_slots_;
  bool crowded_ = false;  // a session has given way, and none has left since
  BatchRun result_;

  // The current pass.
  BatchPacker packer_;
  std::vector<BatchSequence*> decoding_;
  std::vector<std::pair<BatchSequence*, std::size_t>> filled_;  // prompt tokens of the pass
  std::vector<BatchEntry> entries_;
  std::vector<std::uint32_t> nodes_;
  std::vector<std::size_t> committed_;
  std::array<Token, 8> best_{};  // as many as LlamaVerifier reports
};

}  // namespace

std::string BatchRule::name() const {
  switch (kind) {
    case Kind::plain:
      return "plain";
    case Kind::told:
      return "told";
    case Kind::learned:
      return "learned";
    case Kind::fixed:
      return std::to_string(drafted);
  }
  return {};
}

PassSums& PassSums::operator+=(const PassSums& other) {
  passes += other.passes;
  rows += other.rows;
  prompt_rows += other.prompt_rows;
  tokens += other.tokens;
  drafted += other.drafted;
  accepted += other.accepted;
  time += other.time;
  model += other.model;
  return *this;
}

double PassSums::tokens_per_second() const {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}
double PassSums::rows_per_pass() const {
  return passes == 0 ? 0 : static_cast<double>(rows) / static_cast<double>(passes);
}
double PassSums::share_outside() const {
  return time.count() == 0 ? 0 : 1 - static_cast<double>(model.count()) / static_cast<double>(time.count());
}

BatchRun decode_batch(Engine& engine, std::span<const Request> requests, const Drafting& drafting,
                      const BatchRule& rule, BatchPlanner& planner, const BatchSettings& settings) {
  return BatchLoop(engine, requests, drafting, rule, planner, settings).run();
}

}  // namespace reprise::llama
