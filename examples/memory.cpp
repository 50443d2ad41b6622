// SPDX-License-Identifier: Apache-2.0
// The memory of a server, made once. Each request leaves its text, and what was learned, to the later ones of its salt:
// a tenant, a customer, a conversation. A snapshot keeps it over a restart. A corpus is read by all.
#include "player.hpp"

#include <reprise/history.hpp>
#include <reprise/reprise.hpp>
#include <reprise_corpus/corpus_store.hpp>
#include <reprise_corpus/corpus_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr std::uint64_t tokenizer = 7;  // a hash of the tokenizer's file
constexpr reprise::Memory::Salt alice = 1;
constexpr reprise::Memory::Salt bob = 2;
const std::string manual = "to bleed the brakes, open the valve, press the lever twice, and close the valve. ";
const std::string request = "how do I bleed the brakes? ";

// In a server, the key is secret and random.
constexpr reprise::MemoryOptions options = {
    .max_bytes = 1 << 20, .next_token_bytes = 1 << 17, .rankings = true, .key = 0x5eed, .vocabulary = 256};

// Answers the request, and returns the tokens per pass.
double serve(reprise::NgramOptions drafter) {
  reprise::Speculator session(drafter);
  Player engine(request + manual, request.size());
  const auto generated = reprise::generate(session, engine, to_tokens(request), {.eos = {0}});
  session.keep();  // the request has ended
  return generated ? generated->statistics.mean_accepted_tokens() : 0;
}

}  // namespace

int main() {
  auto memory = reprise::Memory::make(options);
  if (!memory) return std::puts(memory.error().message.data()), 1;
  const double cold = serve(memory->options(alice));
  const double warm = serve(memory->options(alice));
  const double other = serve(memory->options(bob));
  std::printf("first request %.2f tokens per pass, second %.2f, of another tenant %.2f\n", cold, warm, other);

  // A restart.
  std::vector<std::byte> snapshot(memory->snapshot_bytes(alice));
  const auto saved = memory->save(snapshot, tokenizer, alice);
  auto restarted = reprise::Memory::make(options);
  if (!saved || !restarted || !restarted->load(*saved, tokenizer, alice)) return std::puts("it does not load"), 1;
  const double after = serve(restarted->options(alice));
  std::printf("after a restart %.2f\n", after);

  // A corpus for all tenants: built once, then read from a file or from memory.
  const std::vector<reprise::Token> text = to_tokens(manual);
  const std::vector<reprise::CorpusDocument> documents = {{text, "manual.txt"}};
  const auto file = reprise::make_corpus(documents, reprise::CorpusOptions{.vocabulary = 256});
  if (!file) return std::puts(file.error().message.data()), 1;
  const auto corpus = reprise::CorpusStore::open({file->data(), file->size()}, {.vocabulary = 256});
  if (!corpus) return std::puts(corpus.error().message.data()), 1;
  reprise::NgramOptions with_corpus = memory->options(3);
  with_corpus.stores[1] = *corpus;
  const double read = serve(with_corpus);
  std::printf("a third tenant, with a corpus %.2f\n", read);
  return warm > cold && after > cold && read > cold ? 0 : 1;
}
