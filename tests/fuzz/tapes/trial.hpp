/// Plays a recipe in many ways, each once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "subject.hpp"
#include "xtape/player.hpp"

namespace xtape::fuzz {

/// A way of playing.
struct Way {
  std::string name;
  Passes passes = {};
  int threads = 1;
  Floats floats = Floats::as_written;
  bool least_memory = false;  ///< With the smallest budget that is possible: PlayerOptions::memory.
  bool simulated = false;     ///< By a simulated team (TeamProfile).
};

Way all_on(int threads = 1, Floats floats = Floats::as_written);
Way reference(Floats floats = Floats::as_written);
/// The ways besides all_on and reference: without passes and without expansion; all passes with expansion; each pass
/// alone; all passes except each one.
const std::vector<Way>& other_ways();

/// The first and the second play differ in the inputs and in the random step; the third repeats the first.
constexpr std::size_t plays = 3;

/// The outputs, then the carried states, after each play; and the plan.
struct Played {
  std::vector<std::vector<Array>> values;
  Plan plan;
};

/// Plays a subject.
Played played(const Subject& subject, const Way& way, const std::shared_ptr<Arena>& arena);

class Trial {
 public:
  explicit Trial(const Recipe& recipe);

  const Subject& subject(Floats floats = Floats::as_written);
  const Played& played(const Way& way);
  const Recipe& recipe() const { return recipe_; }
  const std::shared_ptr<Arena>& arena() const { return arena_; }

 private:
  const Recipe& recipe_;
  std::shared_ptr<Arena> arena_;  ///< Shared by all ways: each finds the data of the others in it.
  std::map<Floats, std::unique_ptr<Subject>> subjects_;
  std::map<std::string, Played> played_;
};

}  // namespace xtape::fuzz
