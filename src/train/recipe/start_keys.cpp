// The keys of `start`, the weights with which a run begins.
#include <algorithm>

#include "train/recipe/recipe_parts.hpp"

namespace xtape::train {

namespace {
void check_star(const Section& section, const std::string& key, const std::string& pattern) {
  if (pattern.empty() || std::ranges::count(pattern, '*') > 1)
    section.fail(key, "must be a name, or a pattern with one *, not \"" + pattern + "\"");
}

template <class Member>
Key<WeightSource>::Read pattern_of(Member member) {
  return [member](Section& section, const std::string& name, WeightSource& source) {
    section.read(name, source.*member);
    check_star(section, name, source.*member);
  };
}

void read_checkpoint(Section& section, const std::string& name, WeightSource& source) {
  if (!section.has(name)) return;
  const Json& value = section.value(name);
  try {
    source.checkpoint = CheckpointChoice::parse(value.is_string() ? value.get<std::string>() : value.dump());
  } catch (const Error& error) {
    section.fail(name, std::string("is wrong: ") + error.what());
  }
  if (source.checkpoint.kind == CheckpointChoice::Kind::average) section.fail(name, "must be a single checkpoint");
}

void read_rename(Section& section, const std::string& name, WeightSource& source) {
  if (!section.has(name)) return;
  const Section pairs = section.section(name);
  for (const auto& [from, to] : pairs.json().items()) {
    if (!to.is_string()) pairs.fail(from, "must be a name or a pattern, not " + to.dump());
    check_star(pairs, from, from);
    check_star(pairs, from, to.get<std::string>());
    source.rename.emplace_back(from, to.get<std::string>());
  }
}
}  // namespace

const Keys<WeightSource> start_keys = {
    {{{"from", &WeightSource::from, "a run, a safetensors or ONNX file, or a folder with safetensors files", a_path,
       needed},
      {"checkpoint", R"(`"last"`, `"best"`, integer)", "`\"last\"`", "of a run: the checkpoint", read_checkpoint},
      {"rename", "section", "", "patterns of the names of arrays, each with its name in place of it", read_rename},
      {"take", "string", "`\"*\"`", "a pattern of the arrays that are read", pattern_of(&WeightSource::take)},
      {"into", "string", "`\"*\"`", "the weights that they become", pattern_of(&WeightSource::into)}}}};

}  // namespace xtape::train
