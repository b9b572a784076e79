// Answers GradBench's messages, one JSON object per line. GradBench's CONTRIBUTING.md describes the messages.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <xtape/team_profile.hpp>

#include "gradbench.hpp"

namespace gradbench {

namespace {
Shape shape_of(const json& values) {
  if (!values.is_array()) return {};
  Shape shape = values.empty() ? Shape() : shape_of(values[0]);
  shape.insert(0, static_cast<std::int64_t>(values.size()));
  return shape;
}

template <class T>
T* fill(T* place, const json& values) {
  if (!values.is_array()) return *place = values.get<T>(), place + 1;
  for (const json& each : values) place = fill(place, each);
  return place;
}

template <class T>
Array array_of(const json& values) {
  Array array(dtype_of<T>(), shape_of(values));
  fill(array.as<T>(), values);
  return array;
}

template <class T>
json nested(const T*& place, const Shape& shape, std::size_t axis) {
  if (axis == shape.size()) return *place++;
  json list = json::array();
  for (std::int64_t i = 0; i < shape[axis]; ++i) list.push_back(nested(place, shape, axis + 1));
  return list;
}

/// Returns the predicted time of the player's threads, and that of one thread (docs/how_to/many_cores.md).
json predicted(Player& player, Player& single, int threads, int repetitions) {
  const auto profiled = [=](Player& each, const TeamMachine& machine) {
    auto profile = std::make_unique<TeamProfile>(machine);
    each.play();
    profile->forget();
    for (int i = 0; i < repetitions; ++i) each.play();
    return profile;
  };
  const auto team = profiled(player, team_machine(threads)), one = profiled(single, TeamMachine{});
  return 1e9 * prediction(*one, *team, repetitions).seconds;
}

json evaluated(const json& message, const std::map<std::string, Functions>& evals, int threads, bool predict) {
  using Clock = std::chrono::steady_clock;
  const auto nanoseconds = [](Clock::time_point since) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since).count();
  };
  json timings = json::array();
  const json& fields = message.at("input");
  const Clock::time_point start = Clock::now();
  Input input{fields};
  const Result result = evals.at(message.at("module")).at(message.at("function"))(input);
  PlayerOptions options;
  options.threads = threads;
  Player player(input.tape, result.vars, options);
  timings.push_back({{"name", "prepare"}, {"nanoseconds", nanoseconds(start)}});

  const bool repeated = fields.is_object() && fields.contains("min_runs");
  const int runs = repeated ? fields["min_runs"].get<int>() : 1;
  const double seconds = repeated ? fields["min_seconds"].get<double>() : 0;
  double elapsed = 0;
  for (int i = 0; i < runs || elapsed < seconds; ++i) {
    const Clock::time_point before = Clock::now();
    player.play();
    const auto taken = nanoseconds(before);
    timings.push_back({{"name", "evaluate"}, {"nanoseconds", taken}});
    elapsed += 1e-9 * static_cast<double>(taken);
  }
  if (predict) {
    options.threads = 1;
    Player single(input.tape, result.vars, options);
    timings.push_back({{"name", "predict"}, {"nanoseconds", predicted(player, single, threads, std::max(1, runs))}});
  }
  std::vector<ArrayView> arrays;
  for (const Var& var : result.vars) arrays.push_back(player.view(var));
  return {{"success", true}, {"output", result.answer(arrays)}, {"timings", timings}};
}
}  // namespace

Var Input::array(const json& values, const char* name) {
  return tape.parameter(name, array_of<double>(values));
}

Var Input::indices(const json& values, const char* name) {
  return tape.parameter(name, array_of<std::int32_t>(values));
}

json listed(const ArrayView& array) {
  if (array.dtype() == Dtype::int32) {
    const auto* place = array.as<std::int32_t>();
    return nested(place, array.shape(), 0);
  }
  const auto* place = array.as<double>();
  return nested(place, array.shape(), 0);
}

Vars in_blocks(const std::function<Vars(const Vars&)>& f, const Vars& x, std::int64_t rows) {
  const std::int64_t all_rows = x[0].size(0), blocks = all_rows / rows, end = blocks * rows;
  if (blocks < 2) return f(x);
  Vars blocked, rest;
  for (const Var& each : x) {
    Shape shape = each.shape();
    shape[0] = rows;
    shape.insert(0, blocks);
    blocked.push_back(reshape(each.at(Slice(0, end)), shape));
    rest.push_back(each.at(Slice(end)));
  }
  const ScanFunction block = [&](const Vars& slices, const Vars&) { return std::pair{f(slices), Vars{}}; };
  ScanOptions options;
  options.axis = 0;
  Vars results = scan(block, blocked, {}, options).outputs;
  const Vars last = end == all_rows ? Vars() : f(rest);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Shape shape = results[i].shape();
    shape.erase(0);
    shape[0] *= blocks;
    results[i] = reshape(results[i], shape);
    if (!last.empty()) results[i] = concat({results[i], last[i]});
  }
  return results;
}

Result::Result(const Var& var)
    : vars{var}, answer([](const std::vector<ArrayView>& arrays) { return listed(arrays[0]); }) {}

Result::Result(const NamedVars& named) {
  std::vector<std::string> names;
  for (const auto& [name, var] : named) {
    names.push_back(name);
    vars.push_back(var);
  }
  answer = [names](const std::vector<ArrayView>& arrays) {
    json object;
    for (std::size_t i = 0; i < names.size(); ++i) object[names[i]] = listed(arrays[i]);
    return object;
  };
}

}  // namespace gradbench

int main(int count, char** words) {
  using namespace gradbench;
  std::ios::sync_with_stdio(false);
  const bool predict = count == 3 && std::strcmp(words[1], "--as-if-threads") == 0;
  const bool multithreaded = count == 2 && std::strcmp(words[1], "--multithreaded") == 0;
  if (count != 1 && !multithreaded && !predict)
    return std::cerr << "usage: " << words[0] << " [--multithreaded | --as-if-threads N]\n", 1;
  const int threads = predict ? std::atoi(words[2]) : multithreaded ? 0 : 1;
  if (predict && threads < 1) return std::cerr << "--as-if-threads needs a number from 1, not " << words[2] << '\n', 1;
  const std::map<std::string, Functions> evals = {
      {"ba", ba()},     {"det", det()},       {"gmm", gmm()},           {"hello", hello()},
      {"ht", ht()},     {"kmeans", kmeans()}, {"llsq", llsq()},         {"lse", lse()},
      {"lstm", lstm()}, {"ode", ode()},       {"particle", particle()}, {"saddle", saddle()}};
  for (std::string line; std::getline(std::cin, line);) {
    const json message = json::parse(line);
    const std::string kind = message.at("kind");
    json answer = json::object();
    if (kind == "start") {
      answer["tool"] = "xtape";
    } else if (kind == "define") {
      answer["success"] = evals.count(message.at("module")) == 1;
    } else if (kind == "evaluate") {
      try {
        answer = evaluated(message, evals, threads, predict);
      } catch (const std::exception& error) {
        answer = {{"success", false}, {"error", error.what()}};
      }
    }
    answer["id"] = message.at("id");
    std::cout << answer << std::endl;
    if (kind == "end") break;
  }
}
