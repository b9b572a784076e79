#include "agreement.hpp"

#include <nlohmann/json.hpp>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "blas_core.hpp"
#include "instruction_set.hpp"
#include "json_text.hpp"

namespace xtape::train {

namespace {
/// What decides the bits of results in addition to the model, the data and the recipe.
std::string processor() {
  return std::string(name_of(instruction_set())) + ", " + blas_description();
}

std::string without_threads(const Recipe& recipe) {
  Json json = JsonText(recipe.text, recipe.name, JsonErrors::definition).root();
  json.erase("threads");
  return json.dump();
}

/// The first difference of two texts, with a little of what surrounds it; long ones are not shown as a whole.
std::string excerpt(const std::string& text, const std::string& other) {
  constexpr std::size_t before = 20, most = 100;
  if (text.size() <= most && other.size() <= most) return text;
  const std::size_t at = static_cast<std::size_t>(
      std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first - text.begin());
  const std::size_t from = at > before ? at - before : 0;
  return (from > 0 ? "…" : "") + text.substr(from, most) + (from + most < text.size() ? "…" : "");
}
}  // namespace

void check_agreement(RankGroup& group, const std::string& what, const std::string& value) {
  const std::vector<std::string> of_rank = group.all_gather(value);
  for (int rank = 1; rank < group.size(); ++rank) {
    const std::string& other = of_rank[rank];
    if (other != of_rank[0])
      throw Error("all ranks must have the same " + what + ": " + group.name(0) + " has " + excerpt(of_rank[0], other) +
                  ", " + group.name(rank) + " has " + excerpt(other, of_rank[0]));
  }
}

void check_agreement(RankGroup& group, const Recipe& recipe) {
  if (group.size() == 1) return;
  check_agreement(group, "version of xtape", XTAPE_VERSION);
  check_agreement(group, "instruction set and BLAS kernels", processor());
  check_agreement(group, "recipe", without_threads(recipe));
}

void check_agreement(RankGroup& group, const Texts& texts) {
  if (group.size() > 1) check_agreement(group, "data", "checksum " + std::to_string(texts.checksum()));
}

void check_shards(std::int64_t shards, int ranks) {
  if (ranks > shards)
    throw Error(std::to_string(ranks) + " ranks need at least as many shards of a batch, but batch.shards is " +
                std::to_string(shards));
}

int threads_of(const RankGroup& group) {
  cpu_set_t bound;
  CPU_ZERO(&bound);
  const int here = sched_getaffinity(0, sizeof bound, &bound) == 0 ? CPU_COUNT(&bound) : omp_get_max_threads();
  const bool is_bound = here < sysconf(_SC_NPROCESSORS_ONLN);
  int near = 0;
  for (int rank = 0; rank < group.size(); ++rank) near += group.is_near(rank) ? 1 : 0;
  return std::max(1, std::min(omp_get_max_threads(), is_bound ? here : here / near));
}

}  // namespace xtape::train
