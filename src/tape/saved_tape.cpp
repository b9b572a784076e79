// The folder of a saved tape.
#include "base/files/durable.hpp"
#include "base/files/files.hpp"
#include "tape/tape_json.hpp"

namespace xtape {

bool is_saved_tape(const std::string& path) {
  return is_plain_file(path_in(path, tape_file));
}

void write_saved_tape(const std::string& folder, const TapeText& written) {
  std::vector<ArrayFile::Entry> entries;
  for (const auto& [name, array] : written.arrays) entries.push_back({name, array.dtype(), array.shape()});
  ArrayWriter arrays(path_in(folder, arrays_file), entries);
  for (const auto& each : written.arrays) arrays.write(each.second);
  arrays.commit();
  write_file(path_in(folder, tape_file), written.text);
}

void Tape::save(const std::string& path, const NamedVars& outputs) const {
  if (path_exists(path)) {
    const std::string what = "cannot save the tape: '" + path + "' exists and ";
    if (!is_saved_tape(path)) throw FileError(what + "is not a saved tape");
    if (const std::string other = other_name_in(path, {tape_file, arrays_file}); !other.empty())
      throw FileError(what + "also has '" + other + "'");
  }
  const TapeText written = text_of(*this, outputs);
  write_folder(path, [&](const std::string& beside) { write_saved_tape(beside, written); });
}

SavedTape Tape::load(const std::string& path, const Store& weights, const OpTable* ops) {
  if (!is_saved_tape(path)) throw FileError("'" + path + "' is not a saved tape: a folder with " + tape_file);
  const std::string file = path_in(path, tape_file);
  const ArrayFile arrays(path_in(path, arrays_file));
  return read_tape(JsonNode(read_file(file), file, JsonErrors::file), arrays, weights, ops);
}

}  // namespace xtape
