// SPDX-License-Identifier: Apache-2.0
// The memory of a server: each tenant has a history, and a table of next tokens with their counts and the model's
// rankings. A snapshot keeps them over a restart. A corpus is read by all tenants.
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

using reprise::NextTokens;
using reprise::TenantHistories;

constexpr std::uint64_t tokenizer = 7;  // a hash of the tokenizer's file
const std::string manual = "to bleed the brakes, open the valve, press the lever twice, and close the valve. ";
const std::string request = "how do I bleed the brakes? ";

reprise::TenantOptions settings() {
  reprise::TenantOptions options;
  options.tenants = 4;
  options.history = {.max_bytes = 1 << 20, .vocabulary = 256};
  options.next_tokens = reprise::NextTokenOptions{.max_bytes = 1 << 17, .rankings = true};
  return options;
}

// Answers the request, and stores the answer.
double serve(TenantHistories::Tenant& tenant, const reprise::CorpusStore* corpus) {
  reprise::NgramOptions options;
  options.prior = tenant.calibration;
  options.stores[0] = tenant.history;
  if (corpus != nullptr) options.stores[1] = *corpus;
  options.next_tokens = &tenant.next_tokens;
  reprise::Speculator session(options);
  Player engine(request + manual, request.size());
  const auto generated = reprise::generate(session, engine, to_tokens(request), {.eos = {0}});
  if (!generated) return 0;

  tenant.history.begin_sequence(reprise::SequenceTag{1});
  tenant.history.append(generated->tokens, reprise::Origin::output);
  tenant.history.end_sequence();
  tenant.next_tokens.add(generated->tokens);
  tenant.next_tokens.add(session.strategy().rows());  // the rankings that the engine has shown
  tenant.calibration = session.strategy().calibration();
  return generated->statistics.mean_accepted_tokens();
}

// Prints some contents of the memory.
void describe(const TenantHistories::Tenant& tenant) {
  const reprise::HistoryStore::Counts& counts = tenant.history.counts();
  std::printf("stored %llu tokens, not stored again %llu\n", static_cast<unsigned long long>(counts.stored),
              static_cast<unsigned long long>(counts.duplicates));
  const NextTokens::CountedTokens next = tenant.next_tokens.after('t', 'h').counts();
  for (const NextTokens::CountedToken& token : next.listed())
    std::printf("after \"th\": %c, %u of %u\n", token.token, token.count, next.total());
  const reprise::Ranking ranking = tenant.next_tokens.after('t', 'o').ranking();
  if (!ranking.empty()) std::printf("the model's likeliest token after \"to\": '%c'\n", ranking.tokens[0]);
}

// One file for the history, the calibration and the table.
std::vector<std::byte> save(const TenantHistories::Tenant& tenant) {
  std::vector<std::byte> bytes(reprise::snapshot_bytes_of(tenant.history) +
                               reprise::snapshot_bytes({reprise::next_token_bytes(tenant.next_tokens)}));
  reprise::SnapshotWriter writer(bytes, tokenizer);
  reprise::write_history(writer, tenant.history, tenant.calibration);
  reprise::write_next_tokens(writer, tenant.next_tokens);
  const auto written = writer.finish();
  bytes.resize(written ? written->size() : 0);
  return bytes;
}
bool load(const std::vector<std::byte>& bytes, TenantHistories::Tenant& tenant) {
  const auto reader = reprise::SnapshotReader::open(bytes, tokenizer);
  // A file that was saved without a table has no section for it.
  return reader && reader->section(reprise::SectionKind::next_tokens) &&
         reprise::load_history(bytes, tokenizer, tenant.history, tenant.calibration) &&
         reprise::load_next_tokens(*reader, tenant.next_tokens);
}

}  // namespace

int main() {
  constexpr TenantHistories::Id alice = 1;
  auto tenants = TenantHistories::make(settings());
  if (!tenants) return std::puts(tenants.error().message.data()), 1;
  const auto opened = tenants->open(alice, 0x5eed);  // in a server: a secret and random key for each tenant
  if (!opened) return std::puts(opened.error().message.data()), 1;
  const double cold = serve(**opened, nullptr);
  const double warm = serve(**opened, nullptr);
  std::printf("first request %.2f tokens per pass, second %.2f\n", cold, warm);
  describe(**opened);

  // A restart.
  const std::vector<std::byte> snapshot = save(**opened);
  auto restarted = TenantHistories::make(settings());
  if (!restarted) return std::puts(restarted.error().message.data()), 1;
  const auto again = restarted->open(alice, 0x5eed);
  if (!again || !load(snapshot, **again)) return std::puts("the snapshot does not load"), 1;
  const double after = serve(**again, nullptr);
  std::printf("after a restart %.2f\n", after);

  // A corpus for all tenants: built once, then read from a file or from memory.
  const std::vector<reprise::Token> text = to_tokens(manual);
  const std::vector<reprise::CorpusDocument> documents = {{text, "manual.txt"}};
  const auto file = reprise::make_corpus(documents, reprise::CorpusOptions{.vocabulary = 256});
  if (!file) return std::puts(file.error().message.data()), 1;
  const auto corpus = reprise::CorpusStore::open({file->data(), file->size()}, {.vocabulary = 256});
  if (!corpus) return std::puts(corpus.error().message.data()), 1;
  const auto bob = tenants->open(2, 0xb0b);
  if (!bob) return std::puts(bob.error().message.data()), 1;
  const double read = serve(**bob, &*corpus);
  std::printf("another tenant, with a corpus %.2f\n", read);
  return warm > cold && after > cold && read > cold ? 0 : 1;
}
