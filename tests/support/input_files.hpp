// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>

#include "common/input_error.hpp"
#include "replay/cost_curve.hpp"
#include "replay/pass_times.hpp"
#include "replay/trace.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::replay {

/// Reads arbitrary bytes as a trace, as a cost curve and as pass times, which must be valid or be refused with a
/// message. The body of a fuzz target and of a test. Returns a fault, or an empty string.
inline std::string read_as_input_files(const std::string& bytes) {
  try {
    std::istringstream in(bytes);
    const Trace trace = read_trace(in, "bytes", 16);
    if (trace.sessions.empty()) return "a trace without sessions was taken";
    for (const TraceSession& session : trace.sessions)
      for (const Turn& turn : session.turns)
        if (turn.top_k && turn.top_k->size() != turn.output.size())
          return "the number of top-k rows is not the number of output tokens";
  } catch (const tools::InputError& error) {
    if (std::string(error.what()).find("bytes") == std::string::npos) return "a message does not name the file";
  }
  try {
    const CostCurve curve = CostCurve::parse_file("bytes", bytes);
    if (!(curve.cost({1, 1, 100}) == 1) || !(curve.cost({1, 9, 100}) > 0)) return "a curve gives a cost that is none";
    static_cast<void>(curve.for_control());
  } catch (const tools::InputError& error) {
    if (std::string(error.what()).find("bytes") == std::string::npos) return "a message does not name the file";
  }
  try {
    const PassTimes times = PassTimes::parse("bytes", bytes);
    testing::Random random(1);
    if (!(times.sample({1, 9, 100}, random) > 0)) return "a recording gives a time that is none";
  } catch (const tools::InputError& error) {
    if (std::string(error.what()).find("bytes") == std::string::npos) return "a message does not name the file";
  }
  return {};
}

}  // namespace reprise::replay
