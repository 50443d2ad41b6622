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
#include <memory>
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
        target(params.draft.ctx_tgt),
        draft_model(params.draft.ctx_dft),
        slots(n_seq),
        most(std::min(longest, static_cast<int32_t>(llama_n_batch(params.draft.ctx_tgt) / n_seq) - 1)) {
    for (const common_speculative_type wanted : params.types)
      if (drafts_with_model(wanted) && draft_model == nullptr)
        throw std::runtime_error("reprise: --spec-type " + common_speculative_type_to_str(wanted) +
                                 " needs a draft model: give its GGUF file with -md, or leave this type out");
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

  // Lets reprise decide when the draft model runs, and for how many tokens, if there is one. `all`: in order of
  // preference.
  static void adopt(std::vector<std::unique_ptr<common_speculative_impl>>& all) {
    const auto is_ours = [](const auto& one) { return one->type == COMMON_SPECULATIVE_TYPE_REPRISE; };
    const auto ours = std::find_if(all.begin(), all.end(), is_ours);
    if (ours == all.end() || ours + 1 == all.end()) return;  // draft models come after it
    auto& mine = static_cast<common_speculative_impl_reprise&>(**ours);
    mine.head = std::move(ours[1]);
    all.erase(ours + 1);
    mine.late = mine.head->type == COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE &&
                common_context_can_seq_rm(mine.draft_model) == COMMON_CONTEXT_SEQ_RM_TYPE_PART;
  }

  // The server says when a request begins, but not when one ends.
  void begin(llama_seq_id seq_id, const llama_tokens& prompt) override {
    const uint32_t begun = static_cast<uint32_t>(seq_id);
    slots[begun].running = false;
    for (uint32_t i = 0; i < n_seq; ++i)
      if (!slots[i].running) keep(i);
    if (head) head->begin(seq_id, prompt);
    if (late) catch_up(begun, prompt);
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
    const auto drafted =
        head ? draft_with_model(dparams) : reprise_batch_draft(batch, asked.data(), asked.size(), now());
    if (drafted != REPRISE_OK) SPC_WRN("reprise: %s\n", reprise_batch_error(batch)->message);
    for (const reprise_slot& one : asked) {
      dparams[one.slot].result->assign(one.draft, one.draft + one.drafted);
      slots[one.slot].draft = *dparams[one.slot].result;
    }
  }
  bool process(const common_batch& rows) override {
    reprise_batch_ran(batch, rows.tokens.size());
    if (!planned)  // no slot decodes
      for (slot& one : slots) one.running = false;
    planned = false;
    return head == nullptr || late || head->process(rows);
  }
  // The next ids show what was accepted. After the last pass of a request there are none, so its text is completed
  // here.
  void accept(llama_seq_id seq_id, uint16_t n_accepted, bool is_other) override {
    slot& mine = slots[static_cast<uint32_t>(seq_id)];
    const size_t accepted = is_other ? 0 : std::min<size_t>(n_accepted, mine.draft.size());
    mine.ids.insert(mine.ids.end(), mine.draft.data(), mine.draft.data() + accepted);
    mine.draft.clear();
    if (head) head->accept(seq_id, n_accepted, is_other);
  }
  bool get_state(llama_seq_id seq_id, std::vector<uint8_t>& data) const override {
    return head != nullptr && head->get_state(seq_id, data);
  }
  void set_state(llama_seq_id seq_id, const std::vector<uint8_t>& data) override {
    if (head) head->set_state(seq_id, data);
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

  // ---- A draft model ----

  static bool drafts_with_model(common_speculative_type type) {
    return type == COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE || type == COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3 ||
           type == COMMON_SPECULATIVE_TYPE_DRAFT_MTP || type == COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH ||
           type == COMMON_SPECULATIVE_TYPE_DRAFT_DSPARK;
  }
  static int64_t now() {
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now().time_since_epoch();
    return time.count();
  }
  // Lets the draft model read the ids that it does not have. So it reads the tokens of several passes at once, and only
  // before it drafts. Returns false if the slot has images: then its ids are not its positions.
  bool catch_up(uint32_t i, const llama_tokens& ids) {
    const auto seq_id = static_cast<llama_seq_id>(i);
    const auto end_of = [&](llama_context* context) {
      return static_cast<size_t>(llama_memory_seq_pos_max(llama_get_memory(context), seq_id) + 1);
    };
    if (end_of(target) != ids.size()) return false;
    common_batch rows(draft_model);
    for (size_t at = end_of(draft_model); at < ids.size();) {
      rows.clear();
      const size_t end = std::min<size_t>(ids.size(), at + llama_n_batch(draft_model));
      for (; at < end; ++at) rows.add(ids[at], static_cast<llama_pos>(at), seq_id, false);
      if (llama_process(draft_model, LLAMA_PROCESS_TYPE_DECODE, rows.get()) != 0) return false;
    }
    return true;
  }
  // Drafts with both. The draft model sees only the slots for which it is to draft.
  reprise_status draft_with_model(const common_speculative_draft_params_vec& dparams) {
    const reprise_status status = reprise_batch_propose_lookup(batch, asked.data(), asked.size(), now());
    if (status != REPRISE_OK) return status;
    const int64_t begun = now();
    common_speculative_draft_params_vec own = dparams;
    bool runs = false;
    for (common_speculative_draft_params& one : own) one.drafting = false;
    for (const reprise_slot& one : asked) {
      common_speculative_draft_params& its = own[one.slot];
      its.drafting = one.drafted > 0 && (!late || catch_up(static_cast<uint32_t>(one.slot), *its.prompt));
      its.n_max = static_cast<int32_t>(one.drafted);
      runs = runs || its.drafting;
    }
    if (runs) head->draft(own);
    for (const reprise_slot& one : asked) {
      if (!own[one.slot].drafting) continue;
      llama_tokens& drafted = *own[one.slot].result;
      reprise_batch_add_head(batch, one.slot, drafted.data(), drafted.size());
      drafted.clear();
    }
    return reprise_batch_draft_proposed(batch, asked.data(), asked.size(), runs ? now() - begun : 0);
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
  llama_context* target;
  llama_context* draft_model;                     // null: none
  std::unique_ptr<common_speculative_impl> head;  // drafts with it
  bool late = false;  // it reads tokens only when it drafts; other types need what the target computes in each pass
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
