/// Trains a recipe in one go, with a stop in the middle, and on two ranks, and compares the files.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "run_files.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"

/// Checks that the recipe learns, and that runs that stop after 4 of 8 updates, or that two ranks compute, have the
/// bits of one that does not. Returns the run that was trained in one go.
inline xtape::Run check_exact(const tiny::Directory& directory, const nlohmann::json& recipe,
                              const std::string& name = "recipe") {
  using namespace xtape;
  nlohmann::json json = recipe;
  json["batch"]["shards"] = 2;
  json["steps"] = 8;
  json["evaluate_every"] = 4;
  const std::string path = directory.write(name + ".json", json.dump());
  const std::string straight = directory / (name + "_straight"), stopped = directory / (name + "_stopped"),
                    together = directory / (name + "_together");
  CHECK(Run::create(Recipe::load(path), straight).train());
  CHECK(Run::create(Recipe::load(path, {{"steps", "4"}}), stopped).train());
  CHECK(Run::resume(stopped, {{"steps", "8"}}).train());
  testing::run_ranks({0, 1}, [&](const std::shared_ptr<Communicator>& communicator) {
    CHECK(Run::create(Recipe::load(path), together, communicator).train());
  });
  CHECK(names(straight).back() == names(together).back());
  for (const std::string& other : {stopped, together}) {
    CHECK(
        same_bits(straight + "/checkpoints/" + names(straight).back(), other + "/checkpoints/" + names(other).back()));
    CHECK(evaluations(straight).back()["validation_loss"] == evaluations(other).back()["validation_loss"]);
    CHECK(evaluations(straight).back()["tokens"] == evaluations(other).back()["tokens"]);
  }
  const auto losses = evaluations(straight);
  CHECK(losses.back()["validation_loss"] < losses.front()["validation_loss"]);
  return Run::open(straight);
}
