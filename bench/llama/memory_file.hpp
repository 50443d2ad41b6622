// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine.hpp"
#include "generate.hpp"

namespace reprise::llama {

/// A number that depends on the text of every token, so that models with different tokenizers have different numbers.
std::uint64_t fingerprint_of(const Engine& engine);

/// Checks that the strategies can use these files; an empty path is no file. Each strategy needs a memory of
/// sequences, and a file can be saved for one strategy only. Throws InputError. Writes nothing.
void check_memory_files(std::span<const Drafting> draftings, const std::string& load, const std::string& save);

/// Adds the history, the calibration and the table of next tokens of a snapshot to the memory of each strategy. A
/// snapshot without some of these leaves the corresponding part empty. Throws InputError if the file cannot be used.
void load_memory(std::span<Drafting> draftings, const std::string& path, std::uint64_t fingerprint);

/// Saves the memory of a strategy as a snapshot with these three parts. An existing file is replaced as a whole or not
/// at all. Throws EngineError.
void save_memory(const Drafting& drafting, const std::string& path, std::uint64_t fingerprint);

}  // namespace reprise::llama
