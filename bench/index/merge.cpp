// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "build.hpp"
#include "common/input_error.hpp"
#include "corpus_input.hpp"
#include "documents.hpp"
#include "place_merge.hpp"

namespace reprise::indexing {
namespace {

using tools::InputError;
using Clock = std::chrono::steady_clock;
using Corpora = std::vector<std::unique_ptr<CorpusInput>>;
using Kept = std::vector<std::vector<KeptText>>;  // of each corpus

/// Throws InputError if the corpora do not belong to one tokenizer.
void check_alike(const Corpora& corpora) {
  const CorpusHeader& first = corpora[0]->header();
  Fingerprint fingerprint(std::nullopt);
  for (const auto& corpus : corpora) {
    const CorpusHeader& header = corpus->header();
    if (header.vocabulary != first.vocabulary)
      throw InputError(corpus->path() + ": has a vocabulary of " + std::to_string(header.vocabulary) +
                       " ids, but that of " + corpora[0]->path() + " has " + std::to_string(first.vocabulary) +
                       "; give corpora of one tokenizer");
    fingerprint.check(header.fingerprint, corpus->path());
    if (header.depth != first.depth)
      throw InputError(corpus->path() + ": is sorted by " + std::to_string(header.depth) + " tokens, but " +
                       corpora[0]->path() + " by " + std::to_string(first.depth) + "; build one of them again");
  }
}

/// Copies the text of one document.
template <class Word>
void copy_document(const CorpusInput& corpus, const CorpusDocumentBounds& bounds, CorpusFile& file) {
  constexpr std::uint64_t at_once = std::uint64_t{1} << 16;
  const SuffixText<Word> text(corpus.section(CorpusSection::tokens));
  const auto field = [&](std::uint64_t place) {
    return "document '" + bounds.name + "', token " + std::to_string(place);
  };
  if (text.word(static_cast<std::size_t>(bounds.end)) != SuffixText<Word>::separator)
    throw InputError(corpus.path() + ": is damaged: no separator follows the document '" + bounds.name +
                     "'; take another copy of the file");
  std::vector<std::uint32_t> tokens;
  for (std::uint64_t first = bounds.begin; first < bounds.end; first += tokens.size()) {
    tokens.clear();
    for (std::uint64_t at = first; at < std::min(first + at_once, bounds.end); ++at)
      tokens.push_back(text.word(static_cast<std::size_t>(at)));
    file.add(tokens, corpus.path(), [&](std::size_t i) { return field(first - bounds.begin + i); });
  }
}

/// Copies the documents of a corpus that are not excluded, and returns the parts of its text that were copied.
std::vector<KeptText> copy_text(const CorpusInput& corpus, Exclusions& exclusions, CorpusFile& file, Built& built,
                                const std::function<void(std::uint64_t)>& report) {
  std::vector<KeptText> kept;
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < corpus.header().documents; ++i) {
    const CorpusDocumentBounds bounds = corpus.document(i);
    if (bounds.begin != end)
      throw InputError(corpus.path() + ": is damaged: document " + std::to_string(i) +
                       " does not begin at the end of the one before it; take another copy of the file");
    end = bounds.end + 1;
    if (exclusions.contains(bounds.name)) {
      ++built.excluded;
      continue;
    }
    if (kept.empty() || kept.back().end != bounds.begin) kept.push_back({bounds.begin, 0, file.header().words});
    kept.back().end = end;
    file.begin_document(bounds.name);
    if (corpus.header().token_bytes == 2)
      copy_document<std::uint16_t>(corpus, bounds, file);
    else
      copy_document<std::uint32_t>(corpus, bounds, file);
    if (!file.end_document()) ++built.empty;
    report(end - bounds.begin);
  }
  return kept;
}

template <class Word>
void merge_index(const Corpora& corpora, Kept kept, CorpusFile& file, const std::function<void(std::size_t)>& report) {
  std::vector<MergeSource<Word>> sources;
  for (std::size_t i = 0; i < corpora.size(); ++i)
    sources.push_back({SuffixText<Word>(corpora[i]->section(CorpusSection::tokens)),
                       corpora[i]->section(CorpusSection::places), corpora[i]->header().place_bytes, std::move(kept[i]),
                       corpora[i]->path()});
  merge_places<Word>(
      sources, file.header().depth, [&](std::span<const std::uint64_t> places) { file.add_places(places); }, report);
}

/// Returns the bytes of a corpus of all documents.
std::uint64_t bytes_of(const Corpora& corpora) {
  CorpusHeader all = corpora[0]->header();
  for (std::size_t i = 1; i < corpora.size(); ++i) {
    const CorpusHeader& header = corpora[i]->header();
    all.words += header.words;
    all.documents += header.documents;
    all.name_bytes += header.name_bytes;
  }
  all.choose_widths();
  return layout_of(all).file_bytes;
}

/// Opens the corpora and compares their checksums.
Corpora open_all(const Options& options, StageProgress& progress) {
  Corpora corpora;
  std::uint64_t bytes = 0;
  for (const std::string& path : options.inputs) {
    corpora.push_back(std::make_unique<CorpusInput>(path));
    bytes += corpora.back()->bytes().size();
  }
  check_alike(corpora);
  progress.start("checking", bytes, "bytes");
  for (const auto& corpus : corpora)
    corpus->check_sections([&](std::uint64_t count) {
      progress.advance(count);
      check_interrupt(options.output);
    });
  return corpora;
}

}  // namespace

Built merge(const Options& options, StageProgress& progress) {
  const Clock::time_point begin = Clock::now();
  check_output(options.output, options.inputs, "the corpus");
  Exclusions exclusions = options.exclude.empty() ? Exclusions() : Exclusions(options.exclude);
  const Corpora corpora = open_all(options, progress);
  std::uint64_t words = 0;
  for (const auto& corpus : corpora) words += corpus->header().words;
  const auto report = [&](std::uint64_t tokens) {
    progress.advance(tokens);
    check_interrupt(options.output);
  };

  Built built;
  CorpusFile file(options.output, corpora[0]->header().vocabulary, corpora[0]->header().depth);
  if (options.exclude.empty()) file.expect_size(bytes_of(corpora));
  progress.start("copying", words, "tokens");
  Kept kept;
  for (const auto& corpus : corpora) kept.push_back(copy_text(*corpus, exclusions, file, built, report));
  if (file.header().documents == 0) {
    throw InputError(built.excluded != 0 ? "no document is left; check --exclude"
                                         : "the corpora have no documents; give others");
  }
  file.end_text(corpora[0]->header().fingerprint);
  built.read_seconds = seconds_since(begin);

  progress.start("merging", file.header().tokens(), "tokens");
  if (file.header().token_bytes == 2)
    merge_index<std::uint16_t>(corpora, std::move(kept), file, report);
  else
    merge_index<std::uint32_t>(corpora, std::move(kept), file, report);
  file.finish();
  built.sort_seconds = seconds_since(begin) - built.read_seconds;
  set_totals(built, options.output, file, exclusions);
  return built;
}

}  // namespace reprise::indexing
