// SPDX-License-Identifier: Apache-2.0
#include "corpora.hpp"

#include <utility>

#include "common/files.hpp"
#include "common/input_error.hpp"

namespace reprise::replay {
Corpora::Corpora(const std::vector<std::string>& paths, std::optional<std::uint64_t> fingerprint) : paths_(paths) {
  for (const std::string& path : paths) {
    const std::string name = "--corpus " + path + ": ";
    if (corpora_.size() == most)
      throw tools::InputError(name + "a drafter reads at most " + std::to_string(most) +
                              " corpora; merge some of them with reprise-index");
    auto opened = MappedCorpus::open(path);
    if (!opened) throw tools::InputError(name + tools::words(opened.error()));
    const CorpusStore::Identity found = opened->store().identity();
    if (fingerprint && found.fingerprint != *fingerprint)
      throw tools::InputError(name + "the corpus belongs to another tokenizer: its fingerprint is " +
                              std::to_string(found.fingerprint) + ", --fingerprint " + std::to_string(*fingerprint) +
                              "; build it with this tokenizer and its fingerprint");
    if (opened->store().tokens() == 0)
      throw tools::InputError(name + "the corpus has no tokens; leave it out, or build it from documents");
    if (!corpora_.empty()) {
      const CorpusStore::Identity first = corpora_.front().store().identity();
      if (found.vocabulary != first.vocabulary)
        throw tools::InputError(name + "the vocabulary has " + std::to_string(found.vocabulary) +
                                " tokens, but that of " + paths.front() + " has " + std::to_string(first.vocabulary) +
                                "; give corpora of one tokenizer");
      if (found.fingerprint != first.fingerprint)
        throw tools::InputError(name + "the fingerprint is " + std::to_string(found.fingerprint) + ", but that of " +
                                paths.front() + " is " + std::to_string(first.fingerprint) +
                                "; give corpora of one tokenizer");
    }
    corpora_.push_back(*std::move(opened));
  }
}

void Corpora::check(std::span<const Trace> traces) const {
  if (corpora_.empty()) return;
  const std::uint32_t vocabulary = corpora_.front().store().identity().vocabulary;
  for (const Trace& trace : traces)
    for (const TraceSession& session : trace.sessions)
      for (const Turn& turn : session.turns)
        for (const TokenSpan tokens : {TokenSpan(turn.prompt), TokenSpan(turn.output)})
          for (const Token token : tokens)
            if (static_cast<std::uint32_t>(token) >= vocabulary)
              throw tools::InputError(trace.path + ": session " + session.id + ": the token " + std::to_string(token) +
                                      " is outside of the vocabulary of --corpus " + paths_.front() + ", which has " +
                                      std::to_string(vocabulary) +
                                      " tokens; give a corpus that was built with the tokenizer of the trace");
}

std::vector<DatastoreRef> Corpora::stores() const {
  std::vector<DatastoreRef> all;
  for (const MappedCorpus& corpus : corpora_) all.emplace_back(corpus.store());
  return all;
}

}  // namespace reprise::replay
