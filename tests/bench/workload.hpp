/// The workloads of the benchmarks: models, sizes and random data.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "xtape/model.hpp"
#include "xtape/optim.hpp"

namespace bench {

struct Workload {
  std::string name;
  std::string definition;
  std::vector<std::pair<std::string, std::string>> hyper;
  xtape::NamedSizes sizes;
  std::int64_t vocabulary;
  std::vector<std::string> tables;  ///< Lookup tables, which do not count in 6 x parameters x tokens.
  bool decodes = false;             ///< Generates in a context of its size t instead of training.
};

std::vector<Workload> all_workloads();
Workload workload_named(const std::string& name);  ///< One of them, or mamba2-64, mamba2-256.
xtape::Model make_model(const Workload& workload);
xtape::Array random_tokens(const xtape::Shape& shape, std::int64_t vocabulary, std::mt19937_64& generator);
long peak_mebibytes();  ///< Of this process so far.
xtape::OptimizerOptions adamw();

}  // namespace bench
