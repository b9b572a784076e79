// JSON text, as in all files.
#include <nlohmann/json.hpp>

#include "base/json/json_text.hpp"
#include "target.hpp"
#include "xtape/xtensor.hpp"

namespace xtape::fuzz {

namespace {
void visit(const JsonText& text, std::size_t size, const Json& value, std::size_t depth) {
  require(depth <= JsonText::deepest, "nesting is limited");
  require(text.begin_of(value) < size && text.key_of(value) <= text.begin_of(value),
          "a value has a location in the text, after its key");
  if (value.is_structured())
    for (const Json& each : value) visit(text, size, each, depth + 1);
}
}  // namespace

void json(Input input) {
  const auto read = [](std::string text) {
    return std::make_shared<const JsonText>(text, "f", JsonErrors::definition);
  };
  const auto first = accepted([&] { return read(std::string(input)); });
  if (!first) return;
  const JsonText& text = **first;
  visit(text, input.size(), text.root(), 0);
  const std::string written = text.root().dump(2);
  const auto second = read(written);
  require(second->root() == text.root(), "JSON that is written and read is the same");
  require(second->root().dump(2) == written, "JSON that is written and read is written the same way");
}

}  // namespace xtape::fuzz
