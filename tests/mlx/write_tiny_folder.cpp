// SPDX-License-Identifier: Apache-2.0
// Writes the folder of a small random model, for tests of programs.
#include <cstdio>

#include "tiny_folder.hpp"
#include "tiny_model.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: write_tiny_folder FOLDER\n", stderr), 2;
  const reprise::mlx::LlamaConfig config = reprise::mlx::tiny_config();
  reprise::mlx::write_folder(argv[1], config, reprise::mlx::tiny_weights(config));
  return 0;
}
