// SPDX-License-Identifier: Apache-2.0
// Files with the text of clients, for C++17. private_files.cpp implements them with save_file() and load_file() of
// reprise, which need C++20.
#pragma once

#include <string>

namespace reprise_server {

// Replaces the file `name`, all or nothing; only its owner can read it. Returns an empty string, or the error as a
// sentence. The old file then stays as it is.
std::string save_private_file(const std::string& name, const std::string& bytes);

// Reads a file of at most 256 MiB. Returns an empty string, or the error as a sentence. A missing file has no bytes.
std::string load_private_file(const std::string& name, std::string& bytes);

}  // namespace reprise_server
