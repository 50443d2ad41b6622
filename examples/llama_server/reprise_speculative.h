// SPDX-License-Identifier: Apache-2.0
// The speculation type `reprise` of llama-server, in C++17, with the C functions of reprise. build.py includes this
// file in common/speculative.cpp, after the types of llama.cpp.
#pragma once

#include <reprise_c/reprise.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "private_files.h"
#include "siphash.h"

struct common_speculative_impl_reprise : public common_speculative_impl {
  static constexpr int32_t longest = 64;  // drafted tokens of a slot
  static constexpr int32_t usual = 63;    // the same if the server gives no bound: a pass of 64 rows

  common_speculative_impl_reprise(const common_params_speculative& params, uint32_t sequences)
      : common_speculative_impl(COMMON_SPECULATIVE_TYPE_REPRISE, sequences, longest),
        vocab(llama_model_get_vocab(llama_get_model(params.draft.ctx_tgt))),
        path(params.reprise_memory),
        slots(n_seq),
        most(std::min(longest, static_cast<int32_t>(llama_n_batch(params.draft.ctx_tgt) / n_seq) - 1)) {
    reprise_memory_options kept{};
    kept.size = sizeof(kept);
    kept.key = memory_key();
    kept.salts = n_seq + 3;  // those that slots use, two more, and the requests without a salt
    kept.vocabulary = static_cast<uint32_t>(llama_vocab_n_tokens(vocab));
    need(reprise_memory_create(&kept, &memory, &error));
    options.size = sizeof(options);
    options.memory = memory;
    options.key = secret();
    need(reprise_batch_create(&options, n_seq + 1, &batch, &error));  // the last slot keeps what has no salt
    llama_model_desc(llama_get_model(params.draft.ctx_tgt), model, sizeof(model));
    stop_at_ends();
    load();
  }
  ~common_speculative_impl_reprise() override {
    for (uint32_t i = 0; i < n_seq; ++i) keep(i);
    save();
    reprise_batch_destroy(batch);
    reprise_memory_destroy(memory);
  }

  // The server says when a request begins, but not when one ends.
  void begin(llama_seq_id seq_id, const llama_tokens&) override {
    const uint32_t begun = static_cast<uint32_t>(seq_id);
    slots[begun].running = false;
    for (uint32_t i = 0; i < n_seq; ++i)
      if (!slots[i].running) keep(i);
  }
  void draft(common_speculative_draft_params_vec& dparams) override {
    planned = true;
    asked.clear();
    for (uint32_t i = 0; i < n_seq; ++i) {
      const common_speculative_draft_params& one = dparams[i];
      slot& mine = slots[i];
      mine.running = one.drafting && begin_salt(i, one.cache_salt);
      if (!mine.running) continue;
      mine.ids.assign(one.prompt->begin(), one.prompt->end());
      mine.ids.push_back(one.id_last);
      mine.kept = false;
      const int32_t room = std::min(one.n_max < 0 ? usual : one.n_max, most);
      asked.push_back({i, mine.ids.data(), mine.ids.size(), static_cast<size_t>(std::max(room, 0)), 0, nullptr, 0, 0});
    }
    const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
    if (reprise_batch_draft(batch, asked.data(), asked.size(), now.count()) != REPRISE_OK)
      SPC_WRN("reprise: %s\n", reprise_batch_error(batch)->message);
    for (const reprise_slot& one : asked) {
      slots[one.slot].draft.assign(one.draft, one.draft + one.drafted);
      *dparams[one.slot].result = slots[one.slot].draft;
    }
  }
  bool process(const common_batch& rows) override {
    reprise_batch_ran(batch, rows.tokens.size());
    if (!planned)  // no slot decodes
      for (slot& one : slots) one.running = false;
    planned = false;
    return true;
  }
  // The next ids show what was accepted. After the last pass of a request there are none, so its text is completed
  // here.
  void accept(llama_seq_id seq_id, uint16_t n_accepted, bool is_other) override {
    slot& mine = slots[static_cast<uint32_t>(seq_id)];
    const size_t accepted = is_other ? 0 : std::min<size_t>(n_accepted, mine.draft.size());
    mine.ids.insert(mine.ids.end(), mine.draft.data(), mine.draft.data() + accepted);
    mine.draft.clear();
  }
  // The number of a salt differs between processes and cannot be guessed.
  uint64_t salt_number(const std::string& salt) const {
    return salt.empty() ? 0 : reprise_server::siphash(salt_key, salt);
  }

 private:
  struct slot {
    llama_tokens ids;    // of the request that runs or ran last
    llama_tokens draft;  // of the pass that runs
    std::string salt;    // of the request; empty: none
    bool running = false;
    bool kept = true;
  };

  static uint64_t secret() {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
  }
  void need(reprise_status status) const {
    if (status != REPRISE_OK) throw std::runtime_error(std::string("reprise: ") + error.message);
  }
  // Nothing is drafted after a token at which the server ends a request. It does not show the parameters of requests:
  // with `ignore_eos`, drafts are only shorter.
  void stop_at_ends() {
    llama_tokens ends;
    for (llama_token id = 0; id < llama_vocab_n_tokens(vocab); ++id)
      if (llama_vocab_is_eog(vocab, id)) ends.push_back(id);
    for (uint32_t i = 0; i < n_seq; ++i)
      if (reprise_batch_stop_at(batch, i, ends.data(), ends.size()) != REPRISE_OK)
        SPC_WRN("reprise: %s\n", reprise_batch_error(batch)->message);
  }
  // Lets the next text of a slot see that of its salt alone. begin() has ended the request before.
  bool begin_salt(uint32_t begun, const std::string& salt) {
    if (slots[begun].salt == salt) return true;
    reprise_options given = options;
    given.salt = salt_number(salt);
    if (reprise_batch_assign(batch, begun, &given) != REPRISE_OK) {
      SPC_WRN("reprise: %s\n", reprise_batch_error(batch)->message);
      return false;
    }
    slots[begun].salt = salt;
    return true;
  }
  // Ends a request, which the memory has then.
  void keep(uint32_t ended) {
    slot& mine = slots[ended];
    if (mine.kept || mine.ids.empty()) return;
    const auto running = [](const slot& one) { return one.running; };
    if (std::none_of(slots.begin(), slots.end(), running)) {  // the last pass counts as what it was
      reprise_slot last{ended, mine.ids.data(), mine.ids.size(), 0, 0, nullptr, 0, 0};
      reprise_batch_draft(batch, &last, 1, 0);
    }
    reprise_batch_forget(batch, ended);
    mine.kept = true;
  }

  // ---- The file of the memory ----

  // The memory is in the file `path`, its key in `path`.key, and the costs of passes of n sequences in `path`.n.
  std::string costs_of(uint32_t sequences) const { return path + "." + std::to_string(sequences); }
  uint64_t memory_key() {
    uint64_t key = secret();
    if (path.empty()) return key;
    std::string bytes;
    if (is_link() || !read(path + ".key", bytes)) return keep_nothing(), key;
    if (bytes.size() != sizeof(key)) {
      write(path + ".key", std::string(reinterpret_cast<const char*>(&key), sizeof(key)));
    } else {
      std::memcpy(&key, bytes.data(), sizeof(key));
    }
    return key;
  }
  void load() {
    if (path.empty()) return;
    std::string bytes;
    if (!read(path, bytes)) return keep_nothing();
    if (bytes.empty()) return;
    if (reprise_memory_load(memory, 0, tokenizer(), bytes.data(), bytes.size()) != REPRISE_OK) {
      SPC_WRN("reprise: %s: %s\n", path.c_str(), reprise_memory_error(memory)->message);
      return keep_nothing();
    }
    for (uint32_t n = 1; n <= n_seq; n *= 2) {
      std::string costs;
      if (read(costs_of(n), costs) && !costs.empty() &&
          reprise_batch_load_costs(batch, n, model, costs.data(), costs.size()) != REPRISE_OK)
        SPC_WRN("reprise: %s: %s; costs are learned anew\n", costs_of(n).c_str(), reprise_batch_error(batch)->message);
    }
  }
  void save() const {
    if (path.empty()) return;
    const auto saved = [](const auto& save) {
      size_t needed = 0;
      save(nullptr, 0, &needed);
      std::string bytes(needed, 0);
      return save(&bytes[0], bytes.size(), &needed) == REPRISE_OK ? bytes : std::string();
    };
    write(path, saved([&](char* bytes, size_t room, size_t* needed) {
            return reprise_memory_save(memory, 0, tokenizer(), bytes, room, needed);
          }));
    for (uint32_t n = 1; n <= n_seq; n *= 2)
      write(costs_of(n), saved([&](char* bytes, size_t room, size_t* needed) {
              return reprise_batch_save_costs(batch, n, model, bytes, room, needed);
            }));
  }
  // A number that differs between vocabularies: FNV-1a over the texts of all tokens.
  uint64_t tokenizer() const {
    uint64_t hash = 14695981039346656037U;
    for (llama_token id = 0; id < llama_vocab_n_tokens(vocab); ++id)
      for (const char* c = llama_vocab_get_text(vocab, id);; ++c) {
        hash = (hash ^ static_cast<uint8_t>(*c)) * 1099511628211U;
        if (*c == 0) break;
      }
    return hash;
  }
  // The file may be somebody's, so it stays as it is.
  void keep_nothing() {
    SPC_WRN("reprise: nothing is kept in %s\n", path.c_str());
    path.clear();
  }
  // A link is never replaced, so the text would be lost at the end.
  bool is_link() const {
    std::error_code failed;
    if (!std::filesystem::is_symlink(path, failed)) return false;
    SPC_WRN("reprise: %s is a link: give the path of the file itself\n", path.c_str());
    return true;
  }
  static bool read(const std::string& name, std::string& bytes) {
    const std::string fault = reprise_server::load_private_file(name, bytes);
    if (!fault.empty()) SPC_WRN("reprise: %s: %s\n", name.c_str(), fault.c_str());
    return fault.empty();
  }
  static void write(const std::string& name, const std::string& bytes) {
    const std::string fault =
        bytes.empty() ? "there is no memory for its bytes" : reprise_server::save_private_file(name, bytes);
    if (!fault.empty()) SPC_WRN("reprise: %s cannot be written: %s\n", name.c_str(), fault.c_str());
  }

  const llama_vocab* vocab;
  char model[64] = "";  // the name under which costs are saved
  std::string path;
  const std::array<uint64_t, 2> salt_key = {secret(), secret()};  // no other process has these numbers of salts
  std::vector<slot> slots;
  int32_t most;          // drafted tokens of a slot, so that the rows of all slots fit into a batch
  bool planned = false;  // draft() was called since the last pass
  std::vector<reprise_slot> asked;
  reprise_options options{};
  reprise_error error{};
  reprise_memory* memory = nullptr;
  reprise_batch* batch = nullptr;
};
