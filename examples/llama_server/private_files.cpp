// SPDX-License-Identifier: Apache-2.0
#include "private_files.h"

#include <reprise/history/snapshot_file.hpp>

#include <cstddef>
#include <span>

namespace reprise_server {
namespace {

std::string sentence(const reprise::Error& error) { return std::string(error.message); }

}  // namespace

std::string save_private_file(const std::string& name, const std::string& bytes) {
  const auto saved = reprise::save_file(name, std::as_bytes(std::span(bytes)));
  return saved ? std::string() : sentence(saved.error());
}

std::string load_private_file(const std::string& name, std::string& bytes) {
  constexpr std::size_t most = std::size_t{256} << 20;  // four times the memory of a history
  bytes.clear();
  reprise::Bytes read;
  const auto loaded = reprise::load_file(name, read, most);
  if (!loaded) return loaded.error().code == reprise::ErrorCode::no_such_file ? "" : sentence(loaded.error());
  bytes.assign(reinterpret_cast<const char*>(read.data()), read.size());
  return {};
}

}  // namespace reprise_server
