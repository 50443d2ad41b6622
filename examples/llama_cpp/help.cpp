// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

namespace reprise::llama {

std::string_view help_text() {
  return R"(Generates with llama.cpp, drafting from the text so far: the same answer in fewer passes.

usage: reprise-llama --model FILE.gguf INPUT [OPTION]...

INPUT, one of:
  --prompt TEXT         one turn
  --prompt-file FILE    the same, the text of a file
  --prompts FILE...     sessions, one JSON object a line: {"id", "category", "system" (may be left out),
                        "turns": ["text", ...]}
  --trace FILE...       recorded token traces; each turn generates as many tokens as were recorded

  --system TEXT         for --prompt and --prompt-file
  --raw                 the text as it is, without the model's chat template
  --max-tokens N        of each answer (default 256)
  --limit N             the first N sessions of each file

engine:
  --context N           tokens (default 4096; 0: what the model was trained with)
  --batch N             tokens of a prefill pass (default 512)
  --threads N           (default 2)
  --leaves N            drafts may be trees with up to N paths (default 1: chains)
  --verbose             llama.cpp's own log on standard error

sampling (default: always the likeliest token):
  --temperature T       above 0: draw, with --top-k N (40), --top-p P (0.95), --min-p P (0.05), --seed N (1)
  --repeat-penalty X    of the last 64 tokens that were generated, none of the prompt's (default 1: none)

drafting:
  --strategy SPEC       as in reprise-replay: name[:key=value,...]; none: plain decoding. (default ngram)
  --cost COST           what control takes passes to cost, for strategies that learn their probabilities; those of
                        the others are sent whole.
                          learned     (default) from the times of the passes
                          linear:S    1 + S x drafted tokens
                          FILE.json   measured

what else can be done:
  --compare             runs every session without drafting and with each --strategy (may be given several times), in
                        turn, and prints both speeds and whether the text is the same
    --repeat N          times, the order swapped each time (default 1)
    --epsilon E         a near tie is a difference that logits shifted by up to E explain (default 0.05)
    --cost-model CURVE  also the speedup that a replay of the very tokens predicts under this curve
  --record FILE         appends the tokens of every session as a trace; sessions that it has are left out
  --profile FILE        measures what passes cost by their rows, and writes a curve file; without INPUT
    --contexts N,...    tokens in the cache of each sequence (default 128,1024,4096)
    --sequences N,...   of a pass (default 1,2,4)
  --flips               counts how often the likeliest token depends on how many rows a pass has, over --trace

  --format FORMAT       table (default: text) or json
  --output FILE         write there instead of to standard output
  --statistics          all counts on standard error; --quiet: nothing there
  --help, --version

exit status: 0 done, or all texts identical; 1 the engine failed; 2 something given cannot be used; of --compare: 3 some
texts differ, each first at a near tie; 4 a text is wrong.
)";
}

}  // namespace reprise::llama
