// SPDX-License-Identifier: Apache-2.0
// message: find\(suffix, matches\)'? (is not .noexcept|may throw)
#include "reprise/core/datastore.hpp"
#include "support/archetypes.hpp"

struct Store : reprise::archetype::Store {
  [[nodiscard]] std::size_t find(reprise::TokenSpan, std::span<reprise::StoreMatch>) const { return 0; }
};

void read(const Store& store) { reprise::DatastoreRef{store}; }
