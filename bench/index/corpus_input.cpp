// SPDX-License-Identifier: Apache-2.0
#include "corpus_input.hpp"

#include <algorithm>

#include "common/input_error.hpp"

namespace reprise::indexing {

using reprise::detail::corpus_sections;
using reprise::detail::load_little;
using tools::InputError;

std::string name_of(CorpusSection section) {
  switch (section) {
    case CorpusSection::tokens:
      return "tokens";
    case CorpusSection::documents:
      return "documents";
    case CorpusSection::names:
      return "names";
    case CorpusSection::places:
      return "places";
    case CorpusSection::starts:
      return "starts";
    case CorpusSection::fences:
      return "fences";
  }
  return {};
}

std::string words_of(const Error& error) {
  std::string text(error.message);
  if (error.code == ErrorCode::corpus_truncated)
    return text + " (it has " + std::to_string(error.value) + " bytes of " + std::to_string(error.limit) + ")";
  if (error.value != 0) text += " (number " + std::to_string(error.value) + ")";
  return text;
}

CorpusInput::CorpusInput(const std::string& path) : path_(path), file_(path) {
  const auto header = reprise::detail::decode(file_.bytes());
  if (!header) throw InputError(path + ": " + words_of(header.error()));
  header_ = *header;
}

std::span<const std::byte> CorpusInput::section(CorpusSection section) const {
  const auto part = layout_of(header_)[section];
  return bytes().subspan(static_cast<std::size_t>(part.offset), static_cast<std::size_t>(part.bytes));
}

void CorpusInput::check_sections(const std::function<void(std::uint64_t)>& report) const {
  constexpr std::size_t at_once = std::size_t{1} << 22;
  for (std::size_t i = 0; i < corpus_sections; ++i) {
    reprise::detail::Xxh64 checksum;
    for (auto rest = section(static_cast<CorpusSection>(i)); !rest.empty();) {
      const auto part = rest.first(std::min(rest.size(), at_once));
      checksum.update(part);
      report(part.size());
      rest = rest.subspan(part.size());
    }
    if (checksum.value() != header_.checksums[i])
      throw InputError(path_ + ": is damaged: the checksum of its section " + name_of(static_cast<CorpusSection>(i)) +
                       " is wrong; take another copy of the file");
  }
}

CorpusDocumentBounds CorpusInput::document(std::uint64_t index) const {
  const auto pair = [index](std::span<const std::byte> numbers) {
    const std::byte* const at = numbers.data() + 8 * index;
    return std::pair(load_little<std::uint64_t>(at), load_little<std::uint64_t>(at + 8));
  };
  const auto names = section(CorpusSection::names);
  const auto [begin, end] = pair(section(CorpusSection::documents));
  const auto [name_begin, name_end] = pair(names);
  if (begin >= end || end > header_.words || name_begin > name_end || name_end > header_.name_bytes)
    throw InputError(path_ + ": is damaged: the bounds of document " + std::to_string(index) +
                     " are not those of a corpus; take another copy of the file");
  const auto text = names.last(static_cast<std::size_t>(header_.name_bytes))
                        .subspan(static_cast<std::size_t>(name_begin), static_cast<std::size_t>(name_end - name_begin));
  CorpusDocumentBounds bounds{begin, end - 1, {}};
  for (const std::byte byte : text) bounds.name += static_cast<char>(byte);
  return bounds;
}

}  // namespace reprise::indexing
