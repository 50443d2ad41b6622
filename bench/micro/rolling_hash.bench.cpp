// SPDX-License-Identifier: Apache-2.0
#include "reprise/index/rolling_hash.hpp"

#include "index_bench.hpp"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  reprise::bench::register_index<reprise::RollingHashIndex>("rolling_hash");
  benchmark::RunSpecifiedBenchmarks();
}
