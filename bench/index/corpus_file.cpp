// SPDX-License-Identifier: Apache-2.0
#include "corpus_file.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "common/input_error.hpp"
#include "reprise_corpus/detail/suffix_sort.hpp"

namespace reprise::indexing {

using reprise::detail::CorpusFormat;
using reprise::detail::layout_of;
using reprise::detail::load_place;
using reprise::detail::store_little;
using reprise::detail::store_place;
using reprise::detail::SuffixText;
using tools::InputError;

CorpusFile::CorpusFile(const std::string& path, std::size_t vocabulary, std::uint32_t depth)
    : path_(path), file_(path), starts_(vocabulary + 1, 0) {
  header_.vocabulary = static_cast<std::uint32_t>(vocabulary);
  header_.depth = depth;
  header_.choose_widths();
  // The header is not complete before the end.
  const std::array<std::byte, CorpusFormat::header_bytes> blank{};
  file_.append(blank);
  begin_section(CorpusSection::tokens);
}

void CorpusFile::begin_document(std::string_view name) {
  begins_.push_back(header_.words);
  names_ += name;
  name_ends_.push_back(names_.size());
}

void CorpusFile::add(std::span<const std::uint32_t> tokens, const std::string& where, const FieldName& field) {
  const std::size_t width = header_.token_bytes;
  bytes_.resize(tokens.size() * width);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint32_t token = tokens[i];
    if (token >= header_.vocabulary)
      throw InputError(where + ": " + field(i) + ": the id " + std::to_string(token) +
                       " is outside the vocabulary of " + std::to_string(header_.vocabulary) +
                       " ids; check --vocabulary and the tokenizer of the file");
    ++starts_[token + std::size_t{1}];
    if (width == 2)
      store_little(static_cast<std::uint16_t>(token), &bytes_[2 * i]);
    else
      store_little(token, &bytes_[4 * i]);
  }
  put(bytes_);
  header_.words += tokens.size();
}

bool CorpusFile::end_document() {
  if (begins_.back() == header_.words) {
    begins_.pop_back();
    name_ends_.pop_back();
    names_.resize(static_cast<std::size_t>(name_ends_.back()));
    return false;
  }
  constexpr std::array<std::byte, 4> separator = {std::byte{255}, std::byte{255}, std::byte{255}, std::byte{255}};
  put(std::span(separator).first(header_.token_bytes));
  ++header_.words;
  ++header_.documents;
  if (header_.words > CorpusFormat::most_words)
    throw InputError("the documents have more than " + std::to_string(CorpusFormat::most_words) +
                     " tokens; build several corpora");
  return true;
}

void CorpusFile::end_text(std::uint64_t fingerprint) {
  end_section();
  header_.fingerprint = fingerprint;
  header_.name_bytes = names_.size();
  header_.choose_widths();
  file_.expect_size(layout_of(header_).file_bytes);
  begin_section(CorpusSection::documents);
  begins_.push_back(header_.words);
  put_numbers(begins_);
  end_section();
  begin_section(CorpusSection::names);
  put_numbers(name_ends_);
  put(std::as_bytes(std::span(names_)));
  end_section();
  file_.flush();
  mapped_ = MappedFile(file_.temporary());
  begin_section(CorpusSection::places);
}

std::span<const std::byte> CorpusFile::text() const {
  const auto part = layout_of(header_)[CorpusSection::tokens];
  return mapped_.bytes().subspan(static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.bytes));
}

void CorpusFile::begin_section(CorpusSection section) {
  constexpr std::array<std::byte, CorpusFormat::alignment> zeros{};
  file_.append(std::span(zeros).first((CorpusFormat::alignment - file_.size() % CorpusFormat::alignment) %
                                      CorpusFormat::alignment));
  section_ = section;
  checksum_ = {};
}

void CorpusFile::put(std::span<const std::byte> bytes) {
  checksum_.update(bytes);
  file_.append(bytes);
}

void CorpusFile::put_numbers(std::span<const std::uint64_t> numbers) {
  constexpr std::size_t at_once = 4096;
  std::array<std::byte, 8 * at_once> bytes{};
  while (!numbers.empty()) {
    const std::size_t count = std::min(numbers.size(), at_once);
    for (std::size_t i = 0; i < count; ++i) store_little(numbers[i], &bytes[8 * i]);
    put(std::span(bytes).first(8 * count));
    numbers = numbers.subspan(count);
  }
}

void CorpusFile::end_section() { header_.checksums[static_cast<std::size_t>(section_)] = checksum_.value(); }

template <class Place>
void CorpusFile::add_any_places(std::span<const Place> places) {
  constexpr std::size_t at_once = std::size_t{1} << 16;
  const std::size_t width = header_.place_bytes;
  while (!places.empty()) {
    const auto part = places.first(std::min(places.size(), at_once));
    bytes_.resize(part.size() * width);
    for (std::size_t i = 0; i < part.size(); ++i) store_place(part[i], &bytes_[i * width], width);
    put(bytes_);
    places_ += part.size();
    places = places.subspan(part.size());
  }
}

void CorpusFile::add_places(std::span<const std::uint32_t> places) { add_any_places(places); }
void CorpusFile::add_places(std::span<const std::uint64_t> places) { add_any_places(places); }

/// Writes the fences: the key of the tokens after the first token of every 64th suffix. The places are read back from
/// the file, because the fences of a large corpus would not fit into memory.
template <class Word>
void CorpusFile::put_fences() {
  constexpr std::uint64_t at_once = 1024;
  file_.flush();
  mapped_ = MappedFile(file_.temporary());
  const SuffixText<Word> words(text());
  const std::byte* const places = mapped_.bytes().data() + layout_of(header_)[CorpusSection::places].offset;
  std::vector<std::uint64_t> fences;
  for (std::uint64_t first = 0; first < header_.fences(); first += at_once) {
    fences.clear();
    for (std::uint64_t i = first; i < std::min(first + at_once, header_.fences()); ++i) {
      fences.push_back(load_place(places + i * CorpusFormat::fence_stride * header_.place_bytes, header_.place_bytes));
      words.prefetch(static_cast<std::size_t>(fences.back()) + 1);
    }
    for (std::uint64_t& fence : fences) fence = words.key(static_cast<std::size_t>(fence) + 1);
    put_numbers(fences);
  }
}

void CorpusFile::finish() {
  end_section();
  if (places_ != header_.tokens())
    throw BuildError(path_ + ": the index has " + std::to_string(places_) + " places for " +
                     std::to_string(header_.tokens()) + " tokens; check the corpora with reprise-index verify");
  for (std::size_t token = 1; token < starts_.size(); ++token) starts_[token] += starts_[token - 1];
  begin_section(CorpusSection::starts);
  put_numbers(starts_);
  end_section();
  begin_section(CorpusSection::fences);
  if (header_.token_bytes == 2)
    put_fences<std::uint16_t>();
  else
    put_fences<std::uint32_t>();
  end_section();
  file_.rewrite(0, reprise::detail::encode(header_));
  file_.publish();
}

}  // namespace reprise::indexing
