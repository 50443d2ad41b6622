// SPDX-License-Identifier: Apache-2.0
// message: an_order_is_not_1_to_32
#include "reprise/index/rolling_hash.hpp"

void f() { [[maybe_unused]] reprise::NgramOrders orders = {1, 33}; }
