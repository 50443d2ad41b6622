// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/datastore.hpp"
#include "support/archetypes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace reprise::datastore_test {
namespace {

// --- Models and near misses ---

static_assert(Datastore<archetype::Store>);
static_assert(Datastore<DatastoreRef>, "it stands for the store that it refers to");

struct WithoutFind {
  [[nodiscard]] StoreRun read(StorePlace, std::span<Token>) const noexcept { return {}; }
  void touch(StorePlace) const noexcept {}
};
static_assert(!Datastore<WithoutFind>);

struct WithoutRead {
  [[nodiscard]] std::size_t find(TokenSpan, std::span<StoreMatch>) const noexcept { return 0; }
  void touch(StorePlace) const noexcept {}
};
static_assert(!Datastore<WithoutRead>);

struct WithoutTouch {
  [[nodiscard]] std::size_t find(TokenSpan, std::span<StoreMatch>) const noexcept { return 0; }
  [[nodiscard]] StoreRun read(StorePlace, std::span<Token>) const noexcept { return {}; }
};
static_assert(!Datastore<WithoutTouch>);

struct FindsABool : archetype::Store {
  [[nodiscard]] bool find(TokenSpan, std::span<StoreMatch>) const noexcept { return false; }
};
static_assert(!Datastore<FindsABool>, "true would read as one match");

struct FindsWhenMutable : archetype::Store {
  std::size_t find(TokenSpan, std::span<StoreMatch>) noexcept { return 0; }
};
static_assert(!Datastore<FindsWhenMutable>, "many drafters may share a store");

struct MayThrow : archetype::Store {
  [[nodiscard]] std::size_t find(TokenSpan, std::span<StoreMatch>) const { return 0; }
};
static_assert(!Datastore<MayThrow>, "propose() does not throw");

struct ReadsOneToken : archetype::Store {
  [[nodiscard]] Token read(StorePlace) const noexcept { return 0; }
};
static_assert(!Datastore<ReadsOneToken>, "a call for each token would cost more than the token");

struct ReadsWithoutPlace : archetype::Store {
  [[nodiscard]] std::size_t read(StorePlace, std::span<Token>) const noexcept { return 0; }
};
static_assert(!Datastore<ReadsWithoutPlace>, "it has to say where the text goes on");

static_assert(StoreMatch{}.agreements == 0, "no token is known to agree");
static_assert(no_place == std::numeric_limits<StorePlace>::max(), "no place of a store");

// --- DatastoreRef ---

static_assert(std::copyable<DatastoreRef> && sizeof(DatastoreRef) == 2 * sizeof(void*));
static_assert(std::constructible_from<DatastoreRef, const archetype::Store&>);
static_assert(!std::constructible_from<DatastoreRef, archetype::Store>, "a temporary store would be gone");
static_assert(!std::constructible_from<DatastoreRef, const WithoutRead&>);

/// A store with one text. It counts the calls of touch().
class Text {
 public:
  explicit Text(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  [[nodiscard]] std::size_t find(TokenSpan suffix, std::span<StoreMatch> out) const noexcept {
    std::size_t found = 0;
    for (std::size_t i = tokens_.size(); i-- > 1 && found < out.size();)
      if (tokens_[i - 1] == suffix.back()) out[found++] = {i, 1};
    return found;
  }
  [[nodiscard]] StoreRun read(StorePlace place, std::span<Token> out) const noexcept {
    const TokenSpan rest = TokenSpan(tokens_).subspan(place);
    const std::size_t size = std::min(rest.size(), out.size());
    std::copy_n(rest.begin(), size, out.begin());
    return {size, size == rest.size() ? no_place : place + size};
  }
  void touch(StorePlace place) const noexcept { touched = place; }
  mutable StorePlace touched = no_place;

 private:
  std::vector<Token> tokens_;
};
static_assert(Datastore<Text>);

TEST(StoreMatch, DiffersInItsPlaceOrItsAgreements) {
  EXPECT_NE((StoreMatch{4, 1}), (StoreMatch{5, 1}));
  EXPECT_NE((StoreMatch{4, 1}), (StoreMatch{4, 2}));
}
TEST(StoreRun, DiffersInItsSizeOrItsEnd) {
  EXPECT_NE((StoreRun{2, 3}), (StoreRun{1, 3}));
  EXPECT_NE((StoreRun{2, 3}), (StoreRun{2, no_place}));
}

TEST(DatastoreRef, RefersToNothingAtFirst) {
  EXPECT_TRUE(DatastoreRef().empty());
  constexpr std::array<DatastoreRef, 2> none;
  EXPECT_TRUE(none[1].empty());
}

TEST(DatastoreRef, PassesEverythingOn) {
  const Text text({1, 2, 3, 1, 5});
  const DatastoreRef store = text;
  EXPECT_FALSE(store.empty());
  std::array<StoreMatch, 4> found;
  ASSERT_EQ(store.find(std::vector<Token>{9, 1}, found), 2U);
  EXPECT_EQ(found[0], (StoreMatch{4, 1}));
  EXPECT_EQ(found[1], (StoreMatch{1, 1}));
  std::array<Token, 2> tokens{};
  EXPECT_EQ(store.read(1, tokens), (StoreRun{2, 3}));
  EXPECT_EQ(tokens, (std::array<Token, 2>{2, 3}));
  EXPECT_EQ(store.read(4, tokens), (StoreRun{1, no_place}));
  store.touch(4);
  EXPECT_EQ(text.touched, 4U);
}

TEST(DatastoreRef, IsWrittenInListsOfStoresOfAnyType) {
  const Text text({1, 2});
  const archetype::Store nothing;
  const std::array<DatastoreRef, 3> stores = {text, nothing};
  std::array<StoreMatch, 4> found;
  EXPECT_EQ(stores[0].find(std::vector<Token>{1}, found), 1U);
  EXPECT_EQ(stores[1].find(std::vector<Token>{1}, found), 0U);
  EXPECT_TRUE(stores[2].empty());
  const DatastoreRef copy = stores[0];
  EXPECT_EQ(copy.find(std::vector<Token>{1}, found), 1U);
}

}  // namespace
}  // namespace reprise::datastore_test
