// SPDX-License-Identifier: Apache-2.0
// message: private
#include "reprise/reprise.hpp"

reprise::PromptLookupDrafter<> drafter(reprise::presets::vllm());
