// SPDX-License-Identifier: Apache-2.0
#include "memory_file.hpp"

#include <cstddef>
#include <vector>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "engine_error.hpp"
#include "replay/trace.hpp"
#include "reprise/history/memory.hpp"
#include "reprise/history/snapshot_file.hpp"

namespace reprise::llama {
namespace {

using tools::InputError;

/// Throws InputError with the message of `done` if that is an error.
void check(const Result<void>& done, const std::string& name) {
  if (done) return;
  const Error& error = done.error();
  std::string text = name + ": " + std::string(error.message);
  if (error.code == ErrorCode::other_tokenizer)
    text += " (its fingerprint is " + std::to_string(error.value) + ", that of this model " +
            std::to_string(error.limit) + "; --fingerprint sets another number)";
  throw InputError(text);
}

/// The largest file that is read. Memories of the default sizes are far smaller when saved.
std::size_t most_bytes() {
  const replay::ReplaySettings settings;
  return 2 * settings.memory_bytes + 4 * settings.next_token_bytes + (std::size_t{1} << 20);
}

}  // namespace

std::uint64_t fingerprint_of(const Engine& engine) {
  std::string texts;
  for (std::size_t token = 0; token < engine.vocabulary(); ++token) {
    const Token id = static_cast<Token>(token);
    texts += engine.text({&id, 1});
    texts += '\xff';  // a separator that UTF-8 never has
  }
  return replay::fnv1a(texts);
}

void check_memory_files(std::span<const Drafting> draftings, const std::string& load, const std::string& save) {
  for (const auto& [option, path] : {std::pair("--snapshot-in ", &load), std::pair("--snapshot-out ", &save)}) {
    if (path->empty()) continue;
    for (const Drafting& drafting : draftings)
      if (drafting.remembers != replay::Remembers::sequences)
        throw InputError(option + *path + ": " + drafting.spec +
                         " has no memory that can be saved; see --list of reprise-replay for strategies that do");
  }
  if (save.empty()) return;
  if (draftings.size() != 1)
    throw InputError("--snapshot-out " + save + ": a snapshot holds the memory of one strategy, but there are " +
                     std::to_string(draftings.size()) + "; give one --strategy");
  tools::check_replaceable(save, "--snapshot-out " + save);
}

void load_memory(std::span<Drafting> draftings, const std::string& path, std::uint64_t fingerprint) {
  const std::string name = "--snapshot-in " + path;
  Bytes bytes;
  check(load_file(path, bytes, most_bytes()), name);
  if (bytes.size() == 0) throw InputError(name + ": the file is empty; give a saved snapshot");
  for (Drafting& drafting : draftings)
    check(drafting.past->memory->load({bytes.data(), bytes.size()}, fingerprint), name);
}

void save_memory(const Drafting& drafting, const std::string& path, std::uint64_t fingerprint) {
  const Memory& memory = *drafting.past->memory;
  std::vector<std::byte> room(memory.snapshot_bytes());
  const auto bytes = memory.save(room, fingerprint);
  if (!bytes) throw EngineError("--snapshot-out " + path + ": " + std::string(bytes.error().message));
  if (const auto saved = save_file(path, *bytes); !saved)
    throw EngineError("--snapshot-out " + path + ": " + std::string(saved.error().message));
}

}  // namespace reprise::llama
