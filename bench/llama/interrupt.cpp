// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <csignal>

namespace reprise::llama {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

InterruptFlag::InterruptFlag() {
  interrupted = 0;
  before_ = std::signal(SIGINT, &note_interrupt);
}

InterruptFlag::~InterruptFlag() { std::signal(SIGINT, before_ == SIG_ERR ? SIG_DFL : before_); }

bool InterruptFlag::raised() noexcept { return interrupted != 0; }

}  // namespace reprise::llama
