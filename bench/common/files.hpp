// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace reprise::tools {

/// Opens a file that was asked for. Throws InputError: it is a directory (`wanted` says what to give instead), or
/// cannot be opened.
std::ifstream open_input(const std::string& path, const std::string& wanted);

/// Fails early where results cannot be written, before minutes are spent on them; an existing file is left alone.
/// Throws InputError that begins with `name`: the option and what it was given.
void check_writable(const std::string& path, const std::string& name);

/// Likewise for a file that is published as save_file() does it, by a new one taking its place. Writes nothing.
void check_replaceable(const std::string& path, const std::string& name);

/// A file that a program reads, and what messages call it: "the trace".
struct InputFile {
  std::string what;
  std::string path;
};

/// Throws InputError that begins with `name`, the option and its value: to write to `path` would replace one of
/// `inputs`. Devices are nobody's to replace.
void check_not_an_input(const std::string& path, const std::string& name, const std::vector<InputFile>& inputs);

/// What is written to the one is written to the other, whether they exist or not.
bool same_file(const std::string& one, const std::string& other);

}  // namespace reprise::tools
