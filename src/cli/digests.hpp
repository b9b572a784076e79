/// Files of digests. They contain the hashes of the values of a play and the settings of the play.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "xtape/player.hpp"

namespace xtape::cli {

struct DigestFile {
  std::vector<std::pair<std::string, std::string>> play;  ///< The settings of the play: "instruction set", "avx512" …
  std::vector<Digest> digests;
};
/// Writes the digests of the player's last play. Throws FileError.
void save_digests(const std::string& path, const Player& player,
                  const std::vector<std::pair<std::string, std::string>>& play);
/// Throws FileError with file and line if the file is not a file of digests.
DigestFile load_digests(const std::string& path);

}  // namespace xtape::cli
