// SPDX-License-Identifier: Apache-2.0
#include "pass_notes.hpp"

#include <algorithm>

#include "replay/loss_window.hpp"

namespace reprise::llama {
namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double PassNotes::Width::median() const { return median_of(ns); }

double PassNotes::median() const {
  std::vector<double> all;
  for (const auto& [rows, width] : widths_) all.insert(all.end(), width.ns.begin(), width.ns.end());
  return median_of(std::move(all));
}

void PassNotes::add(const Outcome& outcome, const PassReport& report) {
  sums_.add(outcome);
  reliability_.record(outcome);
  const double ns = report.time ? static_cast<double>(report.time->count()) : 0;
  sums_.add(position_, report.committed, ns);
  position_ += report.committed;
  session_.push_back({ns, report.committed});
  if (!report.time) return;
  Width& width = widths_[report.sent.rows];
  width.ns.push_back(ns);
  width.context += report.sent.context;
}

void CompareNotes::begin_session(const Request& request) {
  now_.clear();
  runs_[0] = runs_[1] = 0;
  plain_.begin_session();
  drafted_.begin_session();
  records_ = recorded_.size() < most_recorded || std::find(asked_.begin(), asked_.end(), request.id) != asked_.end();
  if (!records_) return;
  texts_.push_back({request.id, request.category, {}});
  recorded_.push_back({repetitions_.size(), &texts_.back(), {}, true});
}

Watch CompareNotes::watch(std::size_t lane) {
  Watch watch;
  if (lane > 1) return watch;
  PassNotes& notes = lane == 0 ? plain_ : drafted_;
  notes.begin();
  const bool records = lane == 1 && records_ && runs_[1] == 0;
  if (records) recorder_.began(texts_.back());
  watch.on_pass = [this, &notes, records](const Outcome& outcome, const PassReport& report) {
    notes.add(outcome, report);
    if (!records) return;
    recorder_.tested(outcome);
    recorder_.passed({report.sent, report.committed, 0, nullptr});
  };
  return watch;
}

void CompareNotes::ran(std::size_t lane, const RequestRun& run) {
  if (lane > 1) return;
  const std::size_t repetition = runs_[lane]++;
  if (now_.size() <= repetition) now_.resize(repetition + 1);
  TimedSession& into = now_[repetition];
  for (const TurnRun& turn : run.turns) {
    (lane == 0 ? into.plain_tokens : into.tokens) += turn.output.size();
    (lane == 0 ? into.plain_decoding : into.decoding) += turn.decoding;
    if (lane == 1 && records_ && repetition == 0) texts_.back().turns.push_back({turn.prompt, turn.output});
  }
}

void CompareNotes::end_session() {
  double plain = 0;
  std::size_t tokens = 0;
  for (const PassNotes::Timed& pass : plain_.session()) {
    plain += pass.ns;
    tokens += pass.committed;
  }
  // The repetitions follow each other. A run of passes that spans two of them is still a run of passes.
  replay::LossWindow window;
  if (plain > 0)
    for (const PassNotes::Timed& pass : drafted_.session())
      window.add(pass.ns * static_cast<double>(tokens) / plain, pass.committed);
  worst_losses_.push_back(window.worst());
  repetitions_.push_back(now_);
}

}  // namespace reprise::llama
