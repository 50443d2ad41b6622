// SPDX-License-Identifier: Apache-2.0
// message: a_width_is_0
#include "reprise/core/limits.hpp"

void f() { [[maybe_unused]] reprise::AllowedWidths widths = {0, 4}; }
