// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "corpus_file.hpp"
#include "exclusions.hpp"
#include "options.hpp"
#include "stage_progress.hpp"

namespace reprise::indexing {

/// The numbers of a corpus that was written.
struct Built {
  std::string path;
  std::size_t vocabulary = 0;
  bool vocabulary_given = true;  ///< false: the largest id decided
  std::uint64_t documents = 0;
  std::uint64_t empty = 0;     ///< documents without tokens, which were left out
  std::uint64_t excluded = 0;  ///< documents that --exclude left out
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;
  std::uint64_t ranges = 0;              ///< of the sort, that were in memory at once; 0 after a merge
  double read_seconds = 0;               ///< until the text was written
  double sort_seconds = 0;               ///< of the index
  std::vector<std::string> unused = {};  ///< lines of --exclude that named no document
};

/// Builds a corpus from documents. Throws InputError and BuildError; then no file is written or replaced.
Built build(const Options& options, StageProgress& progress);

/// Merges corpora. Throws as build() does.
Built merge(const Options& options, StageProgress& progress);

// Parts of both.

/// Throws BuildError after an interrupt (tools::InterruptFlag).
void check_interrupt(const std::string& output);
/// Throws InputError if `output` cannot be written or is one of `inputs`, which messages call `kind`.
void check_output(const std::string& output, const std::vector<std::string>& inputs, const std::string& kind);
/// The seconds since `begin`.
double seconds_since(std::chrono::steady_clock::time_point begin);
/// Sets the numbers that a finished file has.
void set_totals(Built& built, const std::string& output, const CorpusFile& file, const Exclusions& exclusions);

}  // namespace reprise::indexing
