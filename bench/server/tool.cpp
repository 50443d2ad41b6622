// SPDX-License-Identifier: Apache-2.0
#include "tool.hpp"

#include <algorithm>
#include <exception>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/bundled_files.hpp"
#include "common/files.hpp"
#include "common/in_parallel.hpp"
#include "common/input_error.hpp"
#include "common/text.hpp"
#include "options.hpp"
#include "replay/trace.hpp"
#include "report.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"
#include "server.hpp"

namespace reprise::server {
namespace {

using replay::TraceSession;
using tools::in_parallel;
using tools::InputError;

/// All sessions with at least one decoded token, shuffled.
std::vector<const TraceSession*> shuffled(const std::vector<replay::Trace>& traces, std::uint64_t seed) {
  std::vector<const TraceSession*> pool;
  for (const replay::Trace& trace : traces)
    for (const TraceSession& session : trace.sessions)
      if (std::any_of(session.turns.begin(), session.turns.end(),
                      [](const auto& turn) { return turn.output.size() > 1; }))
        pool.push_back(&session);
  testing::Random random(seed);
  for (std::size_t i = pool.size(); i > 1; --i) std::swap(pool[i - 1], pool[random.below(i)]);
  return pool;
}

/// The sessions for `sequences` places: each session once, then repeated until there are two for each place.
std::vector<const TraceSession*> queue_of(const std::vector<const TraceSession*>& pool, std::size_t sequences) {
  std::vector<const TraceSession*> queue;
  while (queue.size() < std::max(pool.size(), sequences * 2)) queue.push_back(pool[queue.size() % pool.size()]);
  return queue;
}

std::vector<Row> simulate(const Options& options, const replay::CostCurve& curve,
                          const std::vector<const TraceSession*>& pool) {
  std::vector<Method> methods = {{Method::Kind::none, 0}};
  for (const std::size_t nodes : options.fixed) methods.push_back({Method::Kind::fixed, nodes});
  methods.push_back({Method::Kind::planner, 0});
  std::vector<Row> rows;
  for (const std::size_t sequences : options.sequences)
    for (const Method& method : methods) rows.push_back({sequences, method, {}, 0});
  in_parallel(rows.size(), options.threads, [&](std::size_t i) {
    // Simulations with many sequences take longest and start first.
    Row& row = rows[rows.size() - 1 - i];
    row.counts = serve(queue_of(pool, row.sequences), {.sequences = row.sequences,
                                                       .method = row.method,
                                                       .curve = &curve,
                                                       .learned = options.learned,
                                                       .noise = options.noise,
                                                       .seed = options.seed,
                                                       .max_nodes = options.max_nodes,
                                                       .trees = options.trees});
  });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].plain = rows[i - i % methods.size()].counts.throughput();
  return rows;
}

int deliver(const Options& options, const Surroundings& surroundings, const std::string& text) {
  if (options.output.empty()) {
    surroundings.out << text;
    surroundings.out.flush();
    if (surroundings.out) return exit_done;
    surroundings.error << "reprise-server: standard output could not be written\n";
    return exit_failed;
  }
  std::ofstream file(options.output, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file) return exit_done;
  surroundings.error << "reprise-server: " << tools::printable(options.output) << ": could not be written\n";
  return exit_failed;
}

int serve_all(const Options& options, const Surroundings& surroundings) {
  const auto curve = replay::CostCurve::parse(options.curve, surroundings.profile_folders, "--curve");
  static_cast<void>(told_curve(curve));  // report a bad curve now, not after minutes
  const auto paths = options.traces.empty() ? tools::find_traces(surroundings.trace_folders) : options.traces;
  std::vector<tools::InputFile> inputs = {
      {"the curve", replay::find_curve(options.curve, surroundings.profile_folders)}};
  for (const std::string& path : paths) inputs.push_back({"the trace", path});
  tools::check_not_an_input(options.output, "--output " + options.output, inputs);
  std::vector<replay::Trace> traces;
  for (const std::string& path : paths) traces.push_back(replay::read_trace(path, unlimited, "--curve"));
  const auto pool = shuffled(traces, options.seed);
  if (pool.empty()) throw InputError("no session of these traces has any output to decode");

  const std::vector<Row> rows = simulate(options, curve, pool);
  std::ostringstream text;
  write_table(text, {rows, curve.spec()}, surroundings.unicode);
  int status = deliver(options, surroundings, text.str());
  for (const Row& row : rows) {
    if (row.counts.fault.empty()) continue;
    surroundings.error << "reprise-server: NOT LOSSLESS: " << row.sequences << " sequences, " << row.method.text()
                       << ": " << tools::printable(row.counts.fault) << "\n";
    status = exit_failed;
  }
  return status;
}

}  // namespace

int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings) {
  try {
    const Options options = parse_options(arguments);
    if (options.help) return deliver(options, surroundings, std::string(help_text()));
    if (options.version) return deliver(options, surroundings, "reprise-server " + std::string(version_string) + "\n");
    return serve_all(options, surroundings);
  } catch (const InputError& error) {
    surroundings.error << "reprise-server: " << tools::printable(error.what()) << "\n";
    return exit_bad_input;
  } catch (const std::exception& error) {
    surroundings.error << "reprise-server: " << tools::printable(error.what()) << "\n";
    return exit_failed;
  }
}

}  // namespace reprise::server
