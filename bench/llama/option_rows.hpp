// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/options.hpp"
#include "options.hpp"

namespace reprise::llama {

/// All options of reprise-llama. The table stores values in `options`, which must outlive it.
tools::OptionTable option_table(Options& options);

}  // namespace reprise::llama
