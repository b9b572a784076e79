// Compares a program that is mapped over two plays' inputs with the plays.
#include <algorithm>
#include <cstring>

#include "differences.hpp"
#include "oracles.hpp"
#include "same_bits.hpp"
#include "xtape/ops.hpp"
#include "xtape/vmap.hpp"

namespace xtape::fuzz {

namespace {
/// Two arrays along a new first axis.
Array stacked(const ArrayView& first, const ArrayView& second) {
  Shape shape = first.shape();
  shape.insert(0, 2);
  Array both(first.dtype(), shape);
  const std::size_t bytes = both.bytes() / 2;
  if (bytes == 0) return both;
  std::memcpy(both.data(), Array(first).data(), bytes);
  std::memcpy(static_cast<std::byte*>(both.data()) + bytes, Array(second).data(), bytes);
  return both;
}

Array example(const Array& both, std::size_t k) {
  Shape shape = both.shape();
  shape.erase(0);
  Array one(both.dtype(), shape);
  if (one.bytes() > 0)
    std::memcpy(one.data(), static_cast<const std::byte*>(both.data()) + k * one.bytes(), one.bytes());
  return one;
}
}  // namespace

Check mapped_as_alone() {
  return {"mapped as alone", [](Trial& trial) -> Result {
            Subject subject(trial.recipe().mode, Floats::as_written);
            trial.recipe().record(subject);
            if (trial.recipe().mode == Mode::predict || !subject.carries.empty() || subject.inputs.empty())
              return std::nullopt;
            Tape program = subject.tape;
            std::vector<ValueId> results;
            for (const Var& output : subject.outputs) results.push_back(output.id());
            program.set_results(results);
            Tape tape = program.blank();
            const auto first = subject.feeds(0), second = subject.feeds(1);
            std::vector<Array> arrays;
            std::vector<Feed> feeds;
            arrays.reserve(first.size());
            Vars inputs;
            for (const ValueId& id : program.inputs()) {
              const auto is_fed = [&](const Feed& feed) { return feed.var.id() == id; };
              const auto at =
                  static_cast<std::size_t>(std::find_if(first.begin(), first.end(), is_fed) - first.begin());
              arrays.push_back(stacked(first[at].values, second[at].values));
              inputs.push_back(
                  tape.input("in" + std::to_string(inputs.size()), arrays.back().shape(), arrays.back().dtype()));
              feeds.emplace_back(inputs.back(), arrays.back());
            }
            Vars mapped;
            try {
              mapped = vmap([&](const Vars& each) { return inline_body(tape, program, each); }, inputs,
                            {.randomness = Randomness::same});
            } catch (const Error& error) {
              // categorical has no expansion, by which all examples could draw the same numbers
              if (std::string(error.what()).find("cannot draw the same") != std::string::npos) return std::nullopt;
              throw;
            }
            PlayerOptions options;
            options.threads = 1;
            options.seed = 7;
            options.arena = trial.arena();
            Player player(tape, mapped, options);
            const Played& alone = trial.played(reference());
            for (std::size_t play = 0; play < 2; ++play) {
              player.play(feeds, play);
              for (std::size_t k = 0; k < mapped.size(); ++k) {
                const Array found = example(Array(player.view(mapped[k])), play);
                const bool single = found.dtype() == Dtype::float32;
                const auto difference = furthest(found, alone.values[play][k], single ? 2e-6 : 1e-13);
                if (!difference) continue;
                if (is_floating(found.dtype()) && difference->relative <= tolerance_of(trial, play, k)) continue;
                return "output " + std::to_string(k) + " of example " + std::to_string(play) + ": " +
                       difference->described("mapped", "alone");
              }
            }
            return std::nullopt;
          }};
}

}  // namespace xtape::fuzz
