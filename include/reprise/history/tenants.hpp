// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/result.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "reprise/index/next_tokens.hpp"

namespace reprise { inline namespace v0 {

struct TenantOptions {
  std::size_t tenants = 16;  ///< maximum number of tenants open at the same time
  HistoryOptions history;    ///< settings of each tenant, including max_bytes; open() overrides the key
  /// Settings of each tenant's table of next tokens; open() overrides the key. nullopt: tenants have no table.
  std::optional<NextTokenOptions> next_tokens;
};

/// Keeps one history for each tenant, so that tenants learn nothing about each other. Parties share a history only if
/// the caller gives them the same number. Without a tenant, a drafter reads only its own context.
///
/// Each tenant has its own tokens, index, hash keys, counts and calibration, and a fixed number of bytes. There is no
/// common budget, because a tenant could measure how much of it the others use. open() therefore refuses a new tenant
/// when all slots are in use, and the caller decides which tenant to close.
///
/// **Threads.** open() and close(): one thread at a time. find(): any number of threads at the same time. A tenant
/// keeps its address until it is closed, even if this object is moved. The thread rules of HistoryStore apply to the
/// tenant's history, and those of NextTokens to its table. Before close(), the caller must make sure that no thread
/// uses this tenant or calls find() for it, because the next tenant reuses the slot.
///
/// **Cost.** find: reads up to 8 bytes for each slot; one call per sequence is enough. open: allocates the tenant's
/// bytes and writes all of them. Memory: up to TenantOptions::history.max_bytes and the max_bytes of the table for
/// each open tenant, and 11 KB for each slot.
class TenantHistories {
 public:
  /// The caller's number for a tenant: a customer, a user, a conversation. Parties with the same number share all data.
  /// A number that is derived from a name must be a hash with a secret key.
  using Id = std::uint64_t;

  /// The data of one tenant. Nothing in it refers to the data of a different tenant.
  struct Tenant {
    HistoryStore history;
    /// The calibration learned from the tenant's sequences. Pass it to the next sequence as NgramOptions::prior. A
    /// plain value: while one thread writes it, no other thread may read or write it.
    CalibrationState calibration;
    NextTokens next_tokens;  ///< without lines unless TenantOptions::next_tokens is set
  };

  static constexpr Id nobody = std::numeric_limits<Id>::max();  ///< a number that no tenant may have

  /// Creates an object without slots: open() always fails and find() returns nullptr.
  TenantHistories() noexcept = default;

  /// Creates the object and allocates its slots; open() allocates the bytes of a tenant. Error: out_of_memory.
  static Result<TenantHistories> make(const TenantOptions& options = {}) noexcept {
    TenantHistories all;
    all.options_ = options;
    all.ids_ = detail::new_array<std::atomic<Id>>(options.tenants);
    all.tenants_ = detail::new_array<Tenant>(options.tenants);
    if (all.ids_ == nullptr || all.tenants_ == nullptr)
      return Error{ErrorCode::out_of_memory, "there is no memory for TenantOptions::tenants: decrease it",
                   options.tenants, 0};
    for (std::size_t i = 0; i < options.tenants; ++i) all.ids_[i].store(nobody, std::memory_order_relaxed);
    all.slots_ = options.tenants;
    return all;
  }

  /// Opens a tenant with an empty history and an empty table, and returns it. `key`: the tenant's hash key, which must
  /// be secret and random (see docs/security.md). Snapshots do not contain the key. The table has the key
  /// next_token_key(key). A snapshot of a table can therefore be loaded only if the tenant is opened with the same key
  /// again. Errors: tenant_is_open; too_many_tenants; invalid_argument if `id` is `nobody`; those of
  /// HistoryStore::make() and NextTokens::make().
  Result<Tenant*> open(Id id, std::uint64_t key) noexcept {
    if (id == nobody)
      return Error{ErrorCode::invalid_argument, "TenantHistories::nobody is not a tenant: use another number", id, 0};
    if (find(id) != nullptr)
      return Error{ErrorCode::tenant_is_open, "this tenant is open: find() it, or close() it first", id, 0};
    const std::size_t slot = slot_of(nobody);
    if (slot == slots_)
      return Error{ErrorCode::too_many_tenants, "every slot is taken: close() a tenant first", id, slots_};
    HistoryOptions options = options_.history;
    options.key = key;
    auto memory = HistoryStore::make(options);
    if (!memory) return memory.error();
    NextTokens table;
    if (std::optional<NextTokenOptions> settings = options_.next_tokens) {
      settings->key = next_token_key(key);
      auto made = NextTokens::make(*settings);
      if (!made) return made.error();
      table = *std::move(made);
    }
    tenants_[slot].history = *std::move(memory);
    tenants_[slot].next_tokens = std::move(table);
    ids_[slot].store(id, std::memory_order_release);  // published last, so that find() returns only complete tenants
    return &tenants_[slot];
  }

  /// Returns the open tenant with this number, or nullptr if there is none.
  [[nodiscard]] Tenant* find(Id id) const noexcept REPRISE_LIFETIMEBOUND {
    const std::size_t slot = id == nobody ? slots_ : slot_of(id);
    return slot == slots_ ? nullptr : &tenants_[slot];
  }

  /// Deletes a tenant's data and frees its bytes. Does nothing if there is no such tenant.
  void close(Id id) noexcept {
    Tenant* const gone = find(id);
    if (gone == nullptr) return;
    ids_[slot_of(id)].store(nobody, std::memory_order_relaxed);
    *gone = Tenant();
  }

  /// Returns the number of bytes of all open tenants and all slots. Do not call it at the same time as open() or
  /// close().
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    std::size_t bytes = slots_ * (sizeof(Id) + sizeof(Tenant));
    for (const Tenant& tenant : std::span(tenants_.get(), slots_))
      bytes += tenant.history.memory_bytes() + tenant.next_tokens.memory_bytes();
    return bytes;
  }

 private:
  [[nodiscard]] std::size_t slot_of(Id id) const noexcept {
    std::size_t slot = 0;
    while (slot < slots_ && ids_[slot].load(std::memory_order_acquire) != id) ++slot;
    return slot;
  }

  TenantOptions options_;
  std::size_t slots_ = 0;
  detail::OwnedArray<std::atomic<Id>> ids_;
  detail::OwnedArray<Tenant> tenants_;
};

}}  // namespace reprise
