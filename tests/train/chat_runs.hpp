/// Small recipes on chats.
#pragma once

#include <doctest/doctest.h>

#include "exact_runs.hpp"
#include "source_root.hpp"

namespace chat_runs {

using namespace xtape;
using nlohmann::json;

inline const std::string chat_models = source_root() + "/models/";

inline json chat_recipe() {
  return {{"xtape", 2},
          {"name", "chats"},
          {"definition", chat_models + "gpt2.json"},
          {"hyper",
           {{"vocab_size", {{"from", "vocabulary"}}},
            {"n_positions", 64},
            {"n_embd", 16},
            {"n_layer", 1},
            {"n_head", 2},
            {"dropout_rate", 0}}},
          {"data", {{"kind", "chats"}, {"chats", "chats.jsonl"}, {"template", "chatml"}, {"held_out", 4}}},
          {"tokenizer", {{"kind", "sentencepiece"}, {"vocabulary_size", 40}}},
          {"batch", {{"size", 4}}},
          {"optimizer", {{"kind", "adam"}}},
          {"schedule", {{"kind", "constant"}, {"rate", 0.02}}},
          {"steps", 1},
          {"seed", 3}};
}

/// Installs the models of the source tree.
struct InstalledTemplates {
  InstalledTemplates() { setenv("XTAPE_MODELS", chat_models.c_str(), 1); }
  ~InstalledTemplates() { unsetenv("XTAPE_MODELS"); }
};

inline json message_of(const std::string& role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

/// Chats of one or two turns, with line `bad` at the end.
inline std::string chat_lines(const std::string& bad = "") {
  std::string text;
  for (int i = 0; i < 24; ++i) {
    json messages = {message_of("user", "say " + std::string(1, static_cast<char>('a' + i % 3))),
                     message_of("assistant", std::string(1, static_cast<char>('a' + i % 3)) + " it is")};
    if (i % 2 == 1) messages.insert(messages.end(), {message_of("user", "more"), message_of("assistant", "no more")});
    text += json{{"messages", messages}}.dump() + "\n";
  }
  return text + bad;
}

/// What Run::create says about a recipe.
inline std::string complaint(const tiny::Directory& directory, const json& recipe) {
  try {
    Run::create(Recipe::load(directory.write("bad.json", recipe.dump())), directory / "bad");
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

inline void check_complaint(const tiny::Directory& directory, const json& recipe, const std::string& words) {
  const std::string said = complaint(directory, recipe);
  CAPTURE(said);
  CHECK(said.find(words) != std::string::npos);
}

}  // namespace chat_runs
