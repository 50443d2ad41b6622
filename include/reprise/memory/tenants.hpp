// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "reprise/core/result.hpp"
#include "reprise/evidence/token_calibrator.hpp"
#include "reprise/memory/shared_memory.hpp"

namespace reprise {

/// The caller's number for those who may share a memory: a customer, a user, a conversation. Two who get the same
/// number share everything, so numbers that are hashes of names have to be hashes with a secret key.
using TenantId = std::uint64_t;

/// What a tenant has for itself. Nothing in it refers to another tenant's.
struct Tenant {
  SharedMemory memory;
  CalibrationState calibration;  ///< what its sequences have taught: NgramOptions::prior of the next. A plain value:
                                 ///< who writes it is alone with it
};

struct TenantOptions {
  std::size_t tenants = 16;  ///< that can be open at a time
  MemoryOptions memory;      ///< of each of them, max_bytes too; the key is the one that open() is told
};

/// Memories for tenants who must not learn of each other, one each. A memory is shared by those whom the caller gives
/// the same tenant, and by nobody else: without one, a drafter reads only its own context.
///
/// Every tenant has its own tokens, index, hash key, counts and calibration, and a number of bytes that is fixed: there
/// is no common budget, because what one tenant may take of it another can measure. So when all places are taken, no
/// tenant is thrown out for a new one: open() refuses, and the caller says who goes.
///
/// **Threads.** open() and close(): one thread at a time. find(): any number of threads beside it. A tenant stays where
/// it is until it is closed, also when this object is moved, and its memory is used as SharedMemory says. close() needs
/// a caller who knows that nobody uses this tenant, or looks for it, any more: its place is the next one's.
///
/// **Cost.** find: a look at 8 bytes for each place, once for each sequence. open: an allocation of the tenant's bytes,
/// which are written. Memory: TenantOptions::memory.max_bytes for each open tenant, and 8 KB for each place.
class TenantMemories {
 public:
  static constexpr TenantId nobody = std::numeric_limits<TenantId>::max();  ///< a number that no tenant has

  /// No places: opens and finds nobody.
  TenantMemories() noexcept = default;

  /// Errors: out_of_memory. The tenants' own bytes are allocated when they are opened.
  static Result<TenantMemories> make(const TenantOptions& options = {}) noexcept {
    TenantMemories all;
    all.options_ = options;
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(Tenant);
    if (options.tenants <= most) {
      all.ids_.reset(new (std::nothrow) std::atomic<TenantId>[options.tenants]);
      all.tenants_.reset(new (std::nothrow) Tenant[options.tenants]);
    }
    if (all.ids_ == nullptr || all.tenants_ == nullptr)
      return Error{ErrorCode::out_of_memory, "there is no memory for TenantOptions::tenants: give it fewer",
                   options.tenants, 0};
    for (std::size_t i = 0; i < options.tenants; ++i) all.ids_[i].store(nobody, std::memory_order_relaxed);
    all.places_ = options.tenants;
    return all;
  }

  /// A tenant with nothing in its memory. `key`: its hash key, secret and random; see docs/security.md. It is kept in
  /// this process only. Errors: tenant_is_open; too_many_tenants; unsupported (nobody); those of SharedMemory::make().
  Result<Tenant*> open(TenantId id, std::uint64_t key) noexcept {
    if (id == nobody) return Error{ErrorCode::unsupported, "this number stands for no tenant: take another", id, 0};
    if (find(id) != nullptr)
      return Error{ErrorCode::tenant_is_open, "this tenant is open: find() it, or close() it first", id, 0};
    const std::size_t place = place_of(nobody);
    if (place == places_)
      return Error{ErrorCode::too_many_tenants, "every place is taken: close() a tenant first", id, places_};
    MemoryOptions options = options_.memory;
    options.key = key;
    auto memory = SharedMemory::make(options);
    if (!memory) return memory.error();
    tenants_[place].memory = *std::move(memory);
    ids_[place].store(id, std::memory_order_release);  // whoever finds it finds it whole
    return &tenants_[place];
  }

  /// The open tenant of this number, or nullptr.
  [[nodiscard]] Tenant* find(TenantId id) const noexcept {
    const std::size_t place = id == nobody ? places_ : place_of(id);
    return place == places_ ? nullptr : &tenants_[place];
  }

  /// Forgets a tenant and gives its bytes back. No such tenant: nothing happens.
  void close(TenantId id) noexcept {
    Tenant* const gone = find(id);
    if (gone == nullptr) return;
    ids_[place_of(id)].store(nobody, std::memory_order_relaxed);
    *gone = Tenant();
  }

  /// Of the open tenants and of all places. Not beside open() and close().
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    std::size_t bytes = places_ * (sizeof(TenantId) + sizeof(Tenant));
    for (std::size_t i = 0; i < places_; ++i) bytes += tenants_[i].memory.memory_bytes();
    return bytes;
  }

 private:
  [[nodiscard]] std::size_t place_of(TenantId id) const noexcept {
    std::size_t place = 0;
    while (place < places_ && ids_[place].load(std::memory_order_acquire) != id) ++place;
    return place;
  }

  TenantOptions options_;
  std::size_t places_ = 0;
  std::unique_ptr<std::atomic<TenantId>[]> ids_;
  std::unique_ptr<Tenant[]> tenants_;
};

}  // namespace reprise
