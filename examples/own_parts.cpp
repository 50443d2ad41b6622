// SPDX-License-Identifier: Apache-2.0
// Parts of your own in place of the library's: a datastore (text that drafts come from), a control (how much of a draft
// is sent), and an index (where the context occurred before).
#include "player.hpp"

#include <reprise/draft/prompt_lookup_drafter.hpp>
#include <reprise/reprise.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using reprise::StoreMatch;
using reprise::StorePlace;
using reprise::StoreRun;
using reprise::Token;
using reprise::TokenSpan;

// A datastore: the standard answers of a help desk. Use one for text that is neither in the context nor in a history.
class Answers {
 public:
  explicit Answers(TokenSpan text) : text_(text.begin(), text.end()) {}

  // The places after the occurrences of the last tokens of `suffix`. Bit i of a match says that the token i + 1 places
  // before it is known to equal the token i + 1 places before the end of `suffix`.
  std::size_t find(TokenSpan suffix, std::span<StoreMatch> out) const noexcept {
    constexpr std::size_t least = 3;
    std::size_t found = 0;
    if (suffix.size() < least) return 0;
    for (std::size_t at = least; at < text_.size() && found < out.size(); ++at)
      if (std::equal(suffix.end() - least, suffix.end(), text_.begin() + static_cast<std::ptrdiff_t>(at - least)))
        out[found++] = {static_cast<StorePlace>(at), (1U << least) - 1};
    return found;
  }
  StoreRun read(StorePlace place, std::span<Token> out) const noexcept {
    const std::size_t size = std::min(out.size(), text_.size() - static_cast<std::size_t>(place));
    std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(place), size, out.begin());
    return {size, place + size < text_.size() ? place + size : reprise::no_place};
  }
  void touch(StorePlace /*place*/) const noexcept {}  // nothing is evicted

 private:
  std::vector<Token> text_;
};
static_assert(reprise::Datastore<Answers>);

// A control: sends drafts of at most a fixed length, and counts the wasted rows. Use one if your scheduler decides.
class FixedLength {
 public:
  explicit FixedLength(std::size_t nodes) : nodes_(nodes) {}

  void begin() noexcept {}
  [[nodiscard]] reprise::DraftBudget budget(const reprise::DraftBudget& asked,
                                            const reprise::PassLimits&) const noexcept {
    reprise::DraftBudget budget = asked;
    budget.max_nodes = std::min(budget.max_nodes, nodes_);
    return budget;
  }
  [[nodiscard]] reprise::DraftChoice choose(reprise::DraftView, std::span<const reprise::NodeIndex> sendable,
                                            const reprise::PassLimits& room) const noexcept {
    const std::size_t fitting = std::min(sendable.size(), room.nodes);
    const std::size_t most = std::min(nodes_, fitting);
    const std::size_t nodes = reprise::widest(room, most);  // K3: some engines run certain widths only
    return {nodes, 0, nodes < most ? reprise::Cut::width : most < fitting ? reprise::Cut::budget : reprise::Cut::none};
  }
  void learn(const reprise::Outcome& outcome, const reprise::PassReport& report) noexcept {
    wasted_ += outcome.sent.size() - outcome.accepted.size();
    for (const reprise::NodeIndex i : outcome.sent) {
      const reprise::DraftNode& node = outcome.draft[static_cast<std::size_t>(i)];
      from_store_ += node.source == reprise::DraftSource::store ? 1 : 0;
    }
    rows_ += report.sent.rows;
  }
  [[nodiscard]] std::size_t wasted() const noexcept { return wasted_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t from_store() const noexcept { return from_store_; }

 private:
  std::size_t nodes_;
  std::size_t wasted_ = 0;
  std::size_t rows_ = 0;
  std::size_t from_store_ = 0;
};
static_assert(reprise::DraftControl<FixedLength>);

// An index: scans the context. Use one if your engine has an index of its text already.
class Scan {
 public:
  explicit Scan(const reprise::IndexOptions&) {}

  void append(TokenSpan tokens) { tokens_.insert(tokens_.end(), tokens.begin(), tokens.end()); }
  void truncate(std::size_t size) { tokens_.resize(size); }
  void clear() { tokens_.clear(); }
  std::size_t find(const reprise::MatchLimits& limits, std::span<reprise::Match> out) const {
    if (limits.order != reprise::MatchLimits::Order::most_recent)
      return 0;  // I4: an order that this index was not made for
    const std::size_t most = std::min<std::size_t>(limits.candidates, out.size());
    std::size_t found = 0;
    for (std::size_t end = tokens_.size(); end-- > 1 && found < most;) {
      std::uint32_t length = 0;
      while (length < limits.longest && length < end &&
             tokens_[end - 1 - length] == tokens_[tokens_.size() - 1 - length])
        ++length;
      if (length >= limits.shortest) out[found++] = {static_cast<reprise::Position>(end), length};
    }
    return found;
  }
  [[nodiscard]] TokenSpan tokens() const { return tokens_; }
  [[nodiscard]] bool exhausted() const { return false; }
  [[nodiscard]] std::size_t memory_bytes() const { return tokens_.capacity() * sizeof(Token); }
  reprise::Result<void> reserve(std::size_t size) { return tokens_.reserve(size), reprise::Result<void>(); }

 private:
  std::vector<Token> tokens_;
};
static_assert(reprise::LookupIndex<Scan>);
// An index may also have latest(). NgramDrafter then looks up the end of its own draft, too.
static_assert(reprise::NgramIndex<reprise::RollingHashIndex> && !reprise::NgramIndex<Scan>);

const std::string answer = "to reset your password, open the settings, choose account, and press reset. ";

}  // namespace

int main() {
  const Answers answers(to_tokens(answer));
  reprise::NgramOptions options;
  const reprise::DatastoreRef store = answers;  // refers to a datastore of any type, which must outlive it
  options.stores = {store};
  reprise::Session session(reprise::NgramDrafter<>(options), FixedLength(8));
  const std::string text = "hello! " + answer + "hello! " + answer + "\nthis line is not wanted";
  Player engine(text, 12);
  const reprise::Limits limits{.eos = {0}, .draft = {.shape = reprise::DraftShape::chain}};
  const auto until_line_end = [](TokenSpan /*output*/, Token next) {
    return next == '\n' ? reprise::StopDecision::stop_before : reprise::StopDecision::proceed;
  };
  const auto generated = reprise::generate(session, engine, to_tokens(text.substr(0, 12)), limits,
                                           reprise::IgnoreTokens(), until_line_end);
  if (!generated) return std::puts(generated.error().message.data()), 1;
  if (generated->finish != reprise::FinishReason::predicate) return std::puts("the line did not end the text"), 1;
  std::printf(
      "own store and control: %.2f tokens per pass, %zu of %zu rows wasted, %zu drafted tokens from the store\n",
      generated->statistics.mean_accepted_tokens(), session.control().wasted(), session.control().rows(),
      session.control().from_store());

  const auto drafter = reprise::PromptLookupDrafter<Scan>::make({.max_ngram = 4});
  if (!drafter) return std::puts(drafter.error().message.data()), 1;
  reprise::Session scanning(*drafter, reprise::SendAll());  // the drafter's own length, whatever a row costs
  Player again(text, 12);
  const auto scanned = reprise::generate(scanning, again, to_tokens(text.substr(0, 12)), {.eos = {0}});
  if (!scanned) return std::puts(scanned.error().message.data()), 1;
  std::printf("own index: %.2f tokens per pass\n", scanned->statistics.mean_accepted_tokens());
  // The library's indexes can be asked directly, too.
  reprise::RollingHashIndex index(reprise::IndexOptions{.orders = reprise::NgramOrders{2, 4}});
  index.append(to_tokens("red fish, blue fish"));
  std::array<reprise::Match, 4> matches;
  const std::size_t found = index.find({.shortest = 4, .longest = 8, .candidates = 4}, matches);
  std::printf("\" fish\" was found %zu time(s), %u tokens long\n", found, matches[0].length);
  return found == 1 && generated->statistics.mean_accepted_tokens() > 2 &&
                 scanned->statistics.mean_accepted_tokens() > 1.5
             ? 0
             : 1;
}
