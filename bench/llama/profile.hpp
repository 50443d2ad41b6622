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

/// The shapes of the measured passes.
struct ProfileSettings {
  /// Drafted tokens per sequence; each sequence has one row more. 0, the plain pass, is always measured.
  std::vector<std::size_t> drafted = up_to(32);
  /// Tokens in the cache of each sequence before the pass.
  std::vector<std::size_t> contexts = {128, 1024, 4096};
  /// Sequences per pass, each with a cache of its own; 1 is always measured.
  std::vector<std::size_t> sequences = {1, 2, 4};
  std::size_t repetitions = 9;  ///< at least 7; the median counts
  bool keep_times = false;      ///< keep all times of passes of one sequence, not only their quartiles
  std::uint64_t seed = 1;       ///< of the random order and of random tokens
  std::vector<Token> text;      ///< tokens that the passes run on, repeated as needed; empty: random tokens

  static std::vector<std::size_t> up_to(std::size_t last);
};

/// The time of passes of one shape. For a pass with a draft, this includes the time that it adds to the next plain
/// pass.
struct ProfilePoint {
  std::size_t sequences = 1;
  std::size_t context = 0;
  std::size_t rows = 1;  ///< of all sequences together
  double ns = 0;         ///< the median
  double low_ns = 0;     ///< the lower and upper quartile: how steady the machine was
  double high_ns = 0;
  /// Of the passes alone, in ascending order; empty unless ProfileSettings::keep_times.
  std::vector<double> times = {};
};

struct Profile {
  std::vector<ProfilePoint> points;   ///< sorted by sequences, context and rows
  std::vector<std::string> left_out;  ///< the shapes that did not fit, one sentence each
};

/// The origin of a curve, as its file states it.
struct ProfileFacts {
  std::string hardware;
  std::string model;
  std::string library;
  std::int32_t threads = 0;
  std::string date;
  std::string command;
};

/// Measures the time of a verify pass, with logits for every row, by its shape. Each width is warmed up once. Then
/// every repetition measures each width once in a new random order, so that a temporary slowdown of the machine does
/// not bend the curve. The rows of each pass are removed from the cache after it. The times are not smoothed: a curve
/// need not rise. Shapes that do not fit into the engine's context are skipped and listed in `left_out`.
///
/// Engines prepare work for the shape of the last pass (llama.cpp reuses its graph), so a change of shape costs time.
/// In decoding, most passes are plain. Therefore each pass with a draft runs between two plain passes, and the time
/// that the later one loses is added to its point. The plain pass is measured after another plain pass.
///
/// Throws InputError for meaningless settings, if no shape fits, or if the model's cache does not roll back.
Profile measure_profile(Passes& passes, const ProfileSettings& settings, tools::Progress& progress);

/// Writes a curve file of version 1 (docs/formats.md). If times were kept, the file is a recording of pass times too.
void write_profile_json(std::ostream& out, const Profile& profile, const ProfileFacts& facts);
/// Writes tables of c(k) with a bar for each width.
void write_profile_table(std::ostream& out, const Profile& profile);

/// The processor's name and the number of processors, from the text of /proc/cpuinfo. "unknown" if it has no name.
std::string hardware_text(std::istream& cpuinfo);
/// The same for this machine. "unknown" if there is no such file.
std::string hardware_text();
/// The current date in UTC, as 2026-11-21.
std::string date_text();

/// Runs --profile: measures, prints the tables to `out`, and writes the file at `path`. The file is replaced as a whole
/// or not at all. Throws InputError before measuring if the file cannot be written, and EngineError if writing fails
/// afterwards.
void run_profile(Passes& passes, const ProfileSettings& settings, const ProfileFacts& facts, const std::string& path,
                 std::ostream& out, tools::Progress& progress);

}  // namespace reprise::llama
