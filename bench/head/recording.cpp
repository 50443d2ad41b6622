// SPDX-License-Identifier: Apache-2.0
#include "recording.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <utility>

#include "common/files.hpp"
#include "common/session_lines.hpp"

namespace reprise::head {
namespace {

/// The whole numbers from `least` to `most` in an array.
template <class Integer>
std::vector<Integer> integers(const tools::SessionLine& line, const tools::Json& json, const std::string& field,
                              std::int64_t least, std::int64_t most) {
  std::vector<Integer> numbers;
  for (const tools::Json& item : line.array(json, field)) {
    const tools::Json::Number* number = item.number();
    if (number == nullptr || !number->integer || *number->integer < least || *number->integer > most)
      line.fail(field + "[" + std::to_string(numbers.size()) + "]: expected a whole number from " +
                std::to_string(least) + " to " + std::to_string(most));
    numbers.push_back(static_cast<Integer>(*number->integer));
  }
  return numbers;
}

Request request_of(const tools::SessionLine& line) {
  const auto tokens = [&](const std::string& field) {
    using Range = std::numeric_limits<Token>;
    return integers<Token>(line, line.member(line.json(), field), field, 0, Range::max());
  };
  Request request{tokens("prompt_token_ids"), tokens("generated_token_ids"), {}};
  const std::string field = "acc_eagle.acc_len";
  const tools::Json& lengths = line.member(line.member(line.json(), "acc_eagle"), "acc_len", "acc_eagle.");
  request.head = integers<std::size_t>(line, lengths, field, 1, 1000);
  for (std::size_t& length : request.head) --length;
  if (request.prompt.empty()) line.fail("prompt_token_ids: is empty");
  request.same_length = request.head.size() == request.output.size();
  const std::size_t size = std::min(request.head.size(), request.output.size());
  request.head.resize(size);
  request.output.resize(size);
  return request;
}

}  // namespace

std::vector<Request> read_requests(const std::string& path, std::size_t limit) {
  std::ifstream in = tools::open_input(path, "files of SpecDecode-Bench/simulator");
  std::vector<Request> requests;
  tools::read_session_lines(in, path, limit,
                            [&](const tools::SessionLine& line) { requests.push_back(request_of(line)); });
  return requests;
}

}  // namespace reprise::head
