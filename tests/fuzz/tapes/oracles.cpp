#include "oracles.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "differences.hpp"
#include "random.hpp"
#include "same_bits.hpp"

namespace xtape::fuzz {

Check same_as_reference(const Way& other) {
  return {other.name + " as the reference", [other](Trial& trial) -> Result {
            const Played& truth = trial.played(reference());
            const Played& found = trial.played(other);
            return over_outputs(found, truth,
                                [&](std::size_t play, std::size_t k, const Array& x, const Array& y) -> Result {
                                  const bool single = x.dtype() == Dtype::float32;
                                  const auto difference = furthest(x, y, single ? 2e-6 : 1e-13);
                                  if (!difference) return std::nullopt;
                                  if (play > 0 && rounding_flips(trial)) return std::nullopt;
                                  if (is_floating(x.dtype()) && difference->relative <= tolerance_of(trial, play, k))
                                    return std::nullopt;
                                  return difference->described(other.name, "reference");
                                });
          }};
}

namespace {
Check same_bits(const Way& more, const Way& one) {
  return {more.name + ", on " + std::to_string(more.threads) + " threads as on one",
          [=](Trial& trial) { return equal_bits(trial.played(more), trial.played(one), "on more", "on one"); }};
}
}  // namespace

Check same_bits_on_threads(const Way& way, int threads) {
  Way more = way;
  more.threads = threads;
  return same_bits(more, way);
}

Check same_bits_on_simulated(int threads) {
  Way more = all_on(threads);
  more.name = "all on, simulated";
  more.simulated = true;
  return same_bits(more, all_on());
}

Check same_bits_again(const Way& way) {
  return {way.name + ", played again", [way](Trial& trial) -> Result {
            if (!trial.subject().carries.empty()) return std::nullopt;
            const Played& played = trial.played(way);
            Played first, third;
            first.values.assign(plays, played.values[0]);
            third.values.assign(plays, played.values[2]);
            return equal_bits(third, first, "again", "at first");
          }};
}

namespace {
Way in_least_memory() {
  Way least = all_on();
  least.name = "in the least memory";
  least.least_memory = true;
  return least;
}
}  // namespace

Check same_bits_in_least_memory() {
  return {"equal bits in the least memory", [](Trial& trial) {
            return equal_bits(trial.played(in_least_memory()), trial.played(all_on()), "in the least", "with all");
          }};
}

Check same_bits_without_reuse() {
  Way without = all_on();
  without.name = "without reuse";
  without.passes.reuse = false;
  return {"equal bits without reuse", [without](Trial& trial) {
            return equal_bits(trial.played(without), trial.played(all_on()), "without reuse", "with it");
          }};
}

Check types_as_recorded() {
  return {"types as recorded", [](Trial& trial) -> Result {
            const Subject& subject = trial.subject();
            const Played& played = trial.played(all_on());
            for (std::size_t k = 0; k < subject.outputs.size(); ++k) {
              const Array& array = played.values[0][k];
              const ValueType type{array.dtype(), array.shape()};
              if (type != subject.outputs[k].type())
                return "output " + std::to_string(k) + " is " + to_string(type) + ", recorded as " +
                       to_string(subject.outputs[k].type());
            }
            return std::nullopt;
          }};
}

Check buffers_apart(bool least_memory) {
  const Way way = least_memory ? in_least_memory() : all_on();
  return {"no two live buffers overlap, " + way.name, [way](Trial& trial) -> Result {
            const Plan& plan = trial.played(way).plan;
            std::vector<Plan::Buffer> arena;
            for (const Plan::Buffer& buffer : plan.buffers)
              if (buffer.kind == "arena" && buffer.bytes > 0) arena.push_back(buffer);
            for (std::size_t i = 0; i < arena.size(); ++i) {
              const Plan::Buffer& a = arena[i];
              if (a.offset % 64 != 0 || a.offset + a.bytes > plan.arena_bytes)
                return a.name + " lies outside the arena";
              for (std::size_t k = 0; k < i; ++k) {
                const Plan::Buffer& b = arena[k];
                const bool in_time = a.first <= b.last && b.first <= a.last;
                const bool in_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
                if (in_time && in_space) return a.name + " and " + b.name + " overlap";
              }
            }
            return std::nullopt;
          }};
}

namespace {
/// float64 numbers, with infinities in place of those that float32 cannot hold.
Array in_range_of_single(Array array) {
  for (std::int64_t i = 0; i < array.count(); ++i)
    if (double& x = array.as<double>()[i]; std::abs(x) > std::numeric_limits<float>::max())
      x = std::copysign(HUGE_VAL, x);
  return array;
}
}  // namespace

Check single_as_twofold(const Way& way) {
  Way single = way;
  single.floats = Floats::single;
  return {way.name + ", float32 as float64", [single](Trial& trial) -> Result {
            if (!comparable_widths(trial)) return std::nullopt;
            const Played& truth = trial.played(reference(Floats::twofold));
            const Played& found = trial.played(single);
            // Rounding across a kink makes one play disagree; an error disagrees in both plays.
            Result failed[2];
            for (std::size_t play = 0; play < 2; ++play)
              for (std::size_t k = 0; k < found.values[play].size() && !failed[play]; ++k) {
                const Array x = as_doubles(found.values[play][k]);
                const Array y = in_range_of_single(as_doubles(truth.values[play][k]));
                const double noise = noise_of(trial, play, k);
                const auto difference = furthest(x, y, 2e-4 + 300 * noise);
                if (difference)
                  failed[play] = "output " + std::to_string(k) + ": " + difference->described("float32", "float64");
              }
            return failed[0] && failed[1] ? failed[0] : std::nullopt;
          }};
}

std::vector<Check> all_checks() {
  std::vector<Check> checks = {types_as_recorded(),       buffers_apart(),           same_as_reference(all_on()),
                               same_bits_again(all_on()), same_bits_without_reuse(), same_bits_in_least_memory(),
                               buffers_apart(true),       finite_differences(),      adjoint(),
                               same_as_definition(),      same_after_saving(1),      same_after_saving(3),
                               mapped_as_alone(),         sparse_as_dense()};
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    for (const Check& check : {nested(seed), by_constants(seed), nested_by_constants(seed)}) checks.push_back(check);
  for (const int threads : {2, 3}) checks.push_back(same_bits_on_threads(all_on(), threads));
  checks.push_back(same_bits_on_simulated(64));
  for (const Way& way : other_ways()) {
    checks.push_back(same_as_reference(way));
    checks.push_back(same_bits_again(way));
    for (const int threads : {2, 3}) checks.push_back(same_bits_on_threads(way, threads));
    checks.push_back(single_as_twofold(way));
  }
  checks.push_back(single_as_twofold(all_on()));
  return checks;
}

std::vector<Check> checks_for(std::uint64_t seed) {
  Random random(seed ^ 0xC0FFEE);
  const int threads = random.one_in(2) ? 2 : 3;
  std::vector<Check> checks = {types_as_recorded(), buffers_apart(), same_as_reference(all_on()),
                               same_bits_again(all_on()), same_bits_on_threads(all_on(), threads)};
  const Way way = random.pick(other_ways());
  checks.push_back(same_as_reference(way));
  switch (random.below(16)) {
    case 0:
      checks.push_back(same_bits_on_threads(way, threads));
      break;
    case 1:
      checks.push_back(same_bits_without_reuse());
      checks.push_back(same_bits_in_least_memory());
      checks.push_back(buffers_apart(true));
      break;
    case 2:
      checks.push_back(single_as_twofold(way));
      break;
    case 3:
      checks.push_back(single_as_twofold(all_on()));
      break;
    case 4:
    case 5:
      checks.push_back(finite_differences());
      break;
    case 6:
      checks.push_back(adjoint());
      checks.push_back(sparse_as_dense());
      break;
    case 7:
      checks.push_back(same_as_definition());
      break;
    case 8:
      checks.push_back(same_after_saving(threads));
      break;
    case 9:
    case 10:
      checks.push_back(mapped_as_alone());
      break;
    case 11:
    case 12:
      checks.push_back(nested(seed));
      break;
    case 13:
      checks.push_back(by_constants(seed));
      break;
    case 14:
      checks.push_back(nested_by_constants(seed));
      break;
    default:
      checks.push_back(same_as_reference(random.pick(other_ways())));
      break;
  }
  return checks;
}

std::optional<Failure> first_failure(const Recipe& recipe, const std::vector<Check>& checks) {
  Trial trial(recipe);
  for (const Check& check : checks) {
    try {
      if (const Result what = check.run(trial)) return Failure{check.name, *what};
    } catch (const std::exception& error) {
      return Failure{check.name, std::string("throws: ") + error.what()};
    }
  }
  return std::nullopt;
}

}  // namespace xtape::fuzz
