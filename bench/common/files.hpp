// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/core/result.hpp"

namespace reprise::tools {

/// Opens an input file. Throws InputError if it is a directory or cannot be opened; `wanted` names the kind of file to
/// give instead.
std::ifstream open_input(const std::string& path, const std::string& wanted);

/// Throws InputError if `path` cannot be written, so that the program fails before minutes of work. An existing file
/// keeps its contents. The message begins with `name`: the option and its value.
void check_writable(const std::string& path, const std::string& name);

/// The same check for a file that save_file() replaces by a new one. Writes nothing.
void check_replaceable(const std::string& path, const std::string& name);

/// Replaces a file by save_file(): if that fails, the old file is unchanged. Only its owner can read a new file,
/// because it can have text of users; a file that is replaced keeps its permissions. A link leads to its file. Devices,
/// and files in folders that accept no new file, are written directly. Returns false if the text could not be written.
bool replace_text(const std::string& path, std::string_view text);

/// A file that a program reads. `what` is its name in messages, such as "the trace".
struct InputFile {
  std::string what;
  std::string path;
};

/// Throws InputError if writing to `path` would replace one of `inputs`. The message begins with `name`: the option and
/// its value. Devices pass the check, because writing does not replace them.
void check_not_an_input(const std::string& path, const std::string& name, const std::vector<InputFile>& inputs);

/// The message of an error, with its numbers or with the system's own words.
std::string words(const Error& error);

/// True if both paths lead to the same file, whether it exists or not.
bool same_file(const std::string& one, const std::string& other);

}  // namespace reprise::tools
