// SPDX-License-Identifier: Apache-2.0
#include "reprise/index/suffix_array.hpp"

#include "index_bench.hpp"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  reprise::bench::register_index<reprise::SuffixArrayIndex>("suffix_array");
  benchmark::RunSpecifiedBenchmarks();
}
