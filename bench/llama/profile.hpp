// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "common/progress.hpp"
#include "passes.hpp"

namespace reprise::llama {

/// What passes are measured.
struct ProfileSettings {
  /// Drafted tokens of each sequence; a pass has one row more for each. 0, the plain pass, is always measured.
  std::vector<std::size_t> drafted = up_to(32);
  /// Tokens in the cache of each sequence before the pass.
  std::vector<std::size_t> contexts = {128, 1024, 4096};
  /// Sequences of a pass, each with a cache of its own; 1 is always measured.
  std::vector<std::size_t> sequences = {1, 2, 4};
  std::size_t repetitions = 9;  ///< 7 or more; the median of them counts
  std::uint64_t seed = 1;       ///< of the order in which they are measured, and of random tokens
  std::vector<Token> text;      ///< what the passes run on, over and over; none: random tokens

  static std::vector<std::size_t> up_to(std::size_t last);
};

/// The time of passes of one shape.
struct ProfilePoint {
  std::size_t sequences = 1;
  std::size_t context = 0;
  std::size_t rows = 1;  ///< in all sequences together
  double ns = 0;         ///< the median
  double low_ns = 0;     ///< the quartiles on both sides of it: how steady the machine was
  double high_ns = 0;
};

struct Profile {
  std::vector<ProfilePoint> points;   ///< by sequences, context and rows
  std::vector<std::string> left_out;  ///< what did not fit, a sentence each
};

/// What a curve file says of its origin.
struct ProfileFacts {
  std::string hardware;
  std::string model;
  std::string library;
  std::int32_t threads = 0;
  std::string date;
  std::string command;
};

/// Measures the time of a verify pass, with logits for every row, by its shape. Each width is warmed up once; then
/// every repetition measures each of them once, in a new random order, so that a machine that gets slower for a while
/// does not bend the curve. What a pass put into the cache is removed after it. The times are not smoothed: a curve
/// need not rise. What does not fit into the engine's context is left out and said. Throws InputError: settings that
/// mean nothing, no shape that fits, a model whose cache does not roll back.
Profile measure_profile(Passes& passes, const ProfileSettings& settings, tools::Progress& progress);

/// As a curve file of version 1 (docs/formats.md).
void write_profile_json(std::ostream& out, const Profile& profile, const ProfileFacts& facts);
/// As tables of c(k) with a bar for each width.
void write_profile_table(std::ostream& out, const Profile& profile);

/// The processor's name and the number of processors from the text of /proc/cpuinfo; "unknown" when it has no name.
std::string hardware_text(std::istream& cpuinfo);
/// The same of this machine; "unknown" where there is no such file.
std::string hardware_text();
/// Today, as 2026-11-21, in UTC.
std::string date_text();

/// --profile: measures, prints the tables to `out`, and writes the file at `path`: all of it, or what was there stays.
/// Throws InputError before anything is measured when the file cannot be written, and EngineError when it then could
/// not.
void run_profile(Passes& passes, const ProfileSettings& settings, const ProfileFacts& facts, const std::string& path,
                 std::ostream& out, tools::Progress& progress);

}  // namespace reprise::llama
