// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace reprise::traces {

/// A trace file that the generator writes.
struct File {
  std::string name;
  std::string text;
};

/// All bundled traces, the same bytes on every machine. See README.md for what they are, and are not.
std::vector<File> synthetic_traces();

}  // namespace reprise::traces
