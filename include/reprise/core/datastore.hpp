// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

/// The place of a token in a datastore. Only that store can interpret the number.
using StorePlace = std::uint64_t;
inline constexpr StorePlace no_place = ~StorePlace{0};

/// A match in a datastore: a place that directly follows an occurrence of at least the suffix's last token.
struct StoreMatch {
  StorePlace next = no_place;  ///< the place directly after the occurrence
  /// Bit i: the token i + 1 positions before `next` is known to equal the token i + 1 positions before the suffix's
  /// end.
  std::uint32_t agreements = 0;
  friend bool operator==(const StoreMatch&, const StoreMatch&) = default;
};

/// The result of Datastore::read().
struct StoreRun {
  std::size_t size = 0;        ///< tokens written
  StorePlace next = no_place;  ///< the place after them; no_place: the text ends there
  friend bool operator==(const StoreRun&, const StoreRun&) = default;
};

/// Text outside the context that drafters copy from: past sequences, a corpus, the files of a project. A drafter calls
/// find() at most once for each draft, and then reads from the places that it needs. NgramDrafter calls find() less
/// often while the store does not help. The compiler cannot check these clauses:
///
///  D1  find(suffix, out) writes up to out.size() matches, the best ones first, and returns their number. Each follows
///      an occurrence of at least the last token of `suffix`, so bit 0 of `agreements` is set. A set bit means that the
///      tokens themselves were compared, never only their hashes. A clear bit means that the tokens differ or were not
///      compared.
///  D2  read(place, out) writes up to out.size() tokens, beginning with the one at `place`, and returns a StoreRun. It
///      writes at least one, unless the text ends at `place` or `out` is empty. `place` comes from find() or from
///      StoreRun::next.
///  D3  touch(place) reports that a token drafted from the match at `place` (StoreMatch::next) was accepted. A store
///      with eviction may keep such text longer. touch() changes nothing else.
///  D4  None of the three functions allocates, throws or waits for another thread.
///  D5  Results are a pure function of the contents and the settings. They depend on no clock, address or global state.
///  D6  A store may change while it is read, if it documents that. In that case, reading from a place may return other
///      text of the same store, or none. It never returns text that was never in the store.
///  D7  The store outlives its readers and keeps its address.
///
/// The three functions are const, so many drafters may share a store. They may do so on several threads if the store
/// documents that.
template <class S>
concept Datastore = requires(const S& store, TokenSpan suffix, std::span<StoreMatch> matches, StorePlace place,
                             std::span<Token> tokens) {
  { store.find(suffix, matches) }
  noexcept->std::same_as<std::size_t>;
  { store.read(place, tokens) }
  noexcept->std::same_as<StoreRun>;
  { store.touch(place) }
  noexcept;
};

namespace detail {

/// The functions of a Datastore of unknown type.
struct StoreCalls {
  std::size_t (*find)(const void* store, TokenSpan suffix, std::span<StoreMatch> out) noexcept;
  StoreRun (*read)(const void* store, StorePlace place, std::span<Token> out) noexcept;
  void (*touch)(const void* store, StorePlace place) noexcept;
};

template <class S>
inline constexpr StoreCalls store_calls = {
    [](const void* store, TokenSpan suffix, std::span<StoreMatch> out) noexcept {
      return static_cast<const S*>(store)->find(suffix, out);
    },
    [](const void* store, StorePlace place, std::span<Token> out) noexcept {
      return static_cast<const S*>(store)->read(place, out);
    },
    [](const void* store, StorePlace place) noexcept { static_cast<const S*>(store)->touch(place); }};

}  // namespace detail

/// A reference to a Datastore of any type, or to no store. Size: two pointers. The store must outlive the reference
/// (D7).
class DatastoreRef {
 public:
  constexpr DatastoreRef() noexcept = default;
  /// Implicit, so that a list of stores can be written as `{history, corpus}`.
  template <class S>
  requires(!std::same_as<S, DatastoreRef> &&
           Datastore<S>) constexpr DatastoreRef(const S& store) noexcept  // NOLINT(google-explicit-constructor)
      : store_(&store), calls_(&detail::store_calls<S>) {}
  template <class S>
  requires(!std::same_as<S, DatastoreRef> && Datastore<S>) DatastoreRef(const S&& store)
  = delete;  // would dangle

  /// True if the reference refers to no store. In that case, the functions below must not be called.
  [[nodiscard]] constexpr bool empty() const noexcept { return calls_ == nullptr; }
  [[nodiscard]] std::size_t find(TokenSpan suffix, std::span<StoreMatch> out) const noexcept {
    return calls_->find(store_, suffix, out);
  }
  [[nodiscard]] StoreRun read(StorePlace place, std::span<Token> out) const noexcept {
    return calls_->read(store_, place, out);
  }
  void touch(StorePlace place) const noexcept { calls_->touch(store_, place); }

 private:
  const void* store_ = nullptr;
  const detail::StoreCalls* calls_ = nullptr;
};

}}  // namespace reprise
