// Saved tapes: tape.json, then arrays.safetensors.
#include "../small_plays.hpp"
#include "tape/tape_json.hpp"
#include "target.hpp"

namespace xtape::fuzz {

void tape(Input input) {
  const std::vector<std::string> texts = parts(input, 2);
  const MemoryFile file(texts[1]);
  const auto saved = accepted([&] {
    const ArrayFile arrays(file.path());
    return read_tape(JsonNode(texts[0], "tape.json", JsonErrors::file), arrays, {}, nullptr);
  });
  if (!saved) return;
  const TapeText written = text_of(saved->tape, saved->outputs);
  const std::string path = folder() + "/tape";
  saved->tape.save(path, saved->outputs);
  const SavedTape again = Tape::load(path);
  require(text_of(again.tape, again.outputs).text == written.text, "a tape that is saved and loaded is the same");
  play_if_small(saved->tape);
}

}  // namespace xtape::fuzz
