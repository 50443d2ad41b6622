// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <csignal>

namespace reprise::tools {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void note_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

void restore(int signal, void (*handler)(int)) { std::signal(signal, handler == SIG_ERR ? SIG_DFL : handler); }

}  // namespace

InterruptFlag::InterruptFlag() {
  interrupted = 0;
  interrupt_before_ = std::signal(SIGINT, &note_interrupt);
  terminate_before_ = std::signal(SIGTERM, &note_interrupt);
}

InterruptFlag::~InterruptFlag() {
  restore(SIGINT, interrupt_before_);
  restore(SIGTERM, terminate_before_);
}

bool InterruptFlag::raised() noexcept { return interrupted != 0; }

}  // namespace reprise::tools
