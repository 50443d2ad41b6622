// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>

#include "build.hpp"
#include "options.hpp"

namespace reprise::indexing {

// Results on standard output, as text or as one JSON object.

void write_built(std::ostream& out, const Built& built, bool json);

/// The numbers of a corpus, or its documents. Throws InputError if it cannot be opened.
void write_info(std::ostream& out, const Options& options);

/// Checks a corpus. Returns false if it has a fault. Throws InputError if it cannot be read.
bool write_verified(std::ostream& out, const Options& options, StageProgress& progress);

/// The tokens that follow a context. Throws InputError.
void write_query(std::ostream& out, const Options& options);

}  // namespace reprise::indexing
