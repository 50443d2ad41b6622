// SPDX-License-Identifier: Apache-2.0
// llama.cpp with reprise: reads a prompt, writes the model's text. A Speculator drafts from the text so far,
// LlamaVerifier runs the drafts, and generate() is the loop. With --plain nothing is drafted: the text is the same, in
// more passes.
#include <llama.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <reprise/reprise.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "llama_verifier.hpp"

namespace {

using reprise::Token;
using reprise::TokenSpan;

constexpr std::string_view help = R"(usage: llama_cpp [OPTION]... FILE.gguf PROMPT

Continues PROMPT with the model, always choosing the likeliest token. Writes the
counts to standard error.

  --max-tokens N   of the answer (default 128)
  --plain          no drafts: one token per pass
  --help
)";

struct Arguments {
  std::string model, prompt;
  std::size_t max_tokens = 128;
  bool plain = false;
};

struct Free {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_context* context) const { llama_free(context); }
};

// Prints the reason and returns the exit status.
int refuse(const std::string& sentence) { return std::fprintf(stderr, "llama_cpp: %s\n", sentence.c_str()), 2; }
int fail(std::string_view sentence) {
  return std::fprintf(stderr, "llama_cpp: %.*s\n", int(sentence.size()), sentence.data()), 1;
}

// Returns the error message, or an empty string if the arguments are valid.
std::string read(int argc, char** argv, Arguments& into) {
  std::vector<std::string> texts;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--plain") {
      into.plain = true;
    } else if (argument == "--max-tokens") {
      const std::string_view value = ++i < argc ? argv[i] : "";
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into.max_tokens);
      if (error != std::errc() || end != value.data() + value.size() || into.max_tokens == 0)
        return "--max-tokens needs a whole number above 0; see --help";
    } else if (argument.substr(0, 2) == "--") {
      return "there is no option " + std::string(argument) + "; see --help";
    } else {
      texts.emplace_back(argument);
    }
  }
  if (texts.size() != 2 || texts[1].empty()) return "give the path of a GGUF file and a prompt; see --help";
  into.model = texts[0], into.prompt = texts[1];
  return {};
}

std::vector<Token> tokens_of(const llama_vocab* vocabulary, const std::string& text) {
  std::vector<Token> tokens(text.size() + 8);  // each token covers at least one byte; special tokens may be added
  const auto count = llama_tokenize(vocabulary, text.data(), int(text.size()), tokens.data(), int(tokens.size()),
                                    /*add_special=*/true, /*parse_special=*/true);
  tokens.resize(count < 0 ? 0 : std::size_t(count));
  return tokens;
}

void print(const llama_vocab* vocabulary, TokenSpan tokens) {
  for (const Token token : tokens) {
    char piece[256];  // longer texts are left out
    const auto size = llama_token_to_piece(vocabulary, token, piece, sizeof piece, 0, /*special=*/false);
    if (size > 0) std::fwrite(piece, 1, std::size_t(size), stdout);
  }
  std::fflush(stdout);
}

// `Session` is a Speculator or any other session.
template <class Session>
int generate(Session session, reprise::llama::LlamaVerifier& verifier, const llama_vocab* vocabulary,
             const std::vector<Token>& prompt, std::size_t max_tokens) {
  reprise::Limits limits{.max_tokens = max_tokens};
  for (Token token = 0; token < llama_vocab_n_tokens(vocabulary); ++token)
    if (llama_vocab_is_eog(vocabulary, token)) limits.eos.push_back(token);

  // The verifier runs the whole prompt except its last token, which is the anchor of the first pass.
  if (const auto done = verifier.prefill(TokenSpan(prompt).first(prompt.size() - 1)); !done)
    return fail(done.error().message);
  const auto generated = reprise::generate(session, verifier, prompt, limits, [&](TokenSpan tokens) {
    print(vocabulary, tokens);
    return true;  // false would stop
  });
  std::puts("");
  if (!generated) return fail(generated.error().message);
  const reprise::Statistics& counted = generated->statistics;
  std::fprintf(stderr, "%zu tokens in %llu passes\n", generated->tokens.size(),
               static_cast<unsigned long long>(counted.passes));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--help") return std::fputs(help.data(), stdout), 0;
  Arguments arguments;
  if (const std::string sentence = read(argc, argv, arguments); !sentence.empty()) return refuse(sentence);

  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  ggml_backend_load_all();
  llama_backend_init();
  const std::unique_ptr<llama_model, Free> model(
      llama_model_load_from_file(arguments.model.c_str(), llama_model_default_params()));
  if (!model) return refuse(arguments.model + ": llama.cpp cannot load it; give a GGUF file of a model");
  const llama_vocab* const vocabulary = llama_model_get_vocab(model.get());
  const std::vector<Token> prompt = tokens_of(vocabulary, arguments.prompt);
  if (prompt.empty()) return refuse("the prompt has no tokens; give another one");
  llama_context_params params = llama_context_default_params();
  params.n_ctx = std::uint32_t(prompt.size() + arguments.max_tokens + 32);  // room for the last drafts
  const std::unique_ptr<llama_context, Free> context(llama_init_from_model(model.get(), params));
  if (!context) return refuse(arguments.model + ": llama.cpp cannot create a context; free some memory");

  auto verifier = reprise::llama::LlamaVerifier::make(context.get(), {});
  if (!verifier) return refuse(std::string(verifier.error().message));
  if (arguments.plain)
    return generate(reprise::Session(reprise::NoDrafter()), *verifier, vocabulary, prompt, arguments.max_tokens);
  return generate(reprise::Speculator(), *verifier, vocabulary, prompt, arguments.max_tokens);
}
