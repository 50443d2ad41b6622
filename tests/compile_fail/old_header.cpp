// SPDX-License-Identifier: Apache-2.0
// message: reprise/extras/rest_drafter.hpp is now reprise_methods/rest_drafter.hpp
#include "reprise/extras/rest_drafter.hpp"
