#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>

#include "base/files/files.hpp"
#include "cli/pictures.hpp"
#include "data/tokenizers/utf8.hpp"

namespace xtape::cli {

namespace {

/// Returns the character at byte `at`, or the replacement that is shown for it. Advances `at` past the character.
char32_t shown_character(const std::string& text, std::size_t& at) {
  const std::size_t place = at;
  char32_t character = replacement_character;
  try {
    character = next_character(text, at);
  } catch (const Error&) {
    at = place + 1;
  }
  if (character < 0x20) return 0x2400 + character;
  if (character == 0x7F) return 0x2421;
  const bool refused = (character >= 0x80 && character < 0xA0) || character == 0xFFFE || character == 0xFFFF;
  return refused ? replacement_character : character;
}

/// Returns `text` in apostrophes, with the characters of `doubled` written twice. Between apostrophes, gnuplot
/// interprets only the apostrophe itself.
std::string quoted(const std::string& text, const std::string& doubled) {
  std::string string = "'";
  for (std::size_t at = 0; at < text.size();) {
    const char32_t character = shown_character(text, at);
    if (character < 0x80 && doubled.find(static_cast<char>(character)) != std::string::npos)
      string += static_cast<char>(character);
    append_character(string, character);
  }
  return string + "'";
}

/// A temporary file without a name. It serves as a standard stream of the child process. With files instead of pipes,
/// neither process must wait for the other.
class Scratch {
 public:
  Scratch() : file_(std::tmpfile(), &std::fclose) {
    if (!file_) fail();
  }
  explicit Scratch(const std::string& text) : Scratch() {
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0) fail();
    std::rewind(file_.get());
  }
  int descriptor() const { return fileno(file_.get()); }
  std::string text() const {
    std::rewind(file_.get());
    std::string all;
    char bytes[1 << 16];
    for (std::size_t count; (count = std::fread(bytes, 1, sizeof bytes, file_.get())) > 0;) all.append(bytes, count);
    return all;
  }

 private:
  [[noreturn]] static void fail() {
    throw WorkFailed(std::string("cannot write a temporary file: ") + std::strerror(errno));
  }
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// Runs gnuplot from the PATH without the user's settings. Returns whether its exit code is 0.
bool run_gnuplot(const Scratch& in, const Scratch& out, const Scratch& err) {
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_adddup2(&streams, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&streams, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&streams, err.descriptor(), STDERR_FILENO);
  char name[] = "gnuplot";
  char own_settings[] = "--default-settings";
  char* words[] = {name, own_settings, nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, name, &streams, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&streams);
  if (failed == ENOENT) throw WorkFailed("drawing needs gnuplot, which is not installed: apt-get install gnuplot-nox");
  if (failed != 0) throw WorkFailed(std::string("cannot run gnuplot: ") + std::strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string gnuplot_string(const std::string& text) {
  return quoted(text, "'");
}

std::string gnuplot_tic(const std::string& text) {
  return quoted(text, "'%");
}

std::string gnuplot_number(double number) {
  return formatted("%.8g", number);
}

double text_width(const std::string& text) {
  constexpr double narrow = 0.6, wide = 1;  // wide: East Asian scripts, from U+2E80
  double width = 0;
  for (std::size_t at = 0; at < text.size();) width += shown_character(text, at) < 0x2E80 ? narrow : wide;
  return width;
}

void add_picture(CLI::App& command, std::string& path, const std::string& preset) {
  command.add_option("--out", path, "The picture to write: FILE.svg (default: " + preset + ")")
      ->check([](const std::string& file) {
        return file.ends_with(".svg") ? "" : "pictures are SVG files: the name must end in .svg, not '" + file + "'";
      });
}

std::string picture_path(const std::string& path, const std::string& preset) {
  if (!path.empty()) return path;
  std::cout << preset << '\n';
  return preset;
}

void draw_svg(const std::string& script, int width, int height, const std::string& path) {
  const Scratch in("set encoding utf8\nset terminal svg size " + std::to_string(width) + "," + std::to_string(height) +
                   " noenhanced font 'sans-serif,13' background rgb '#ffffff'\n" + script);
  const Scratch out, err;
  const bool ended_well = run_gnuplot(in, out, err);
  const std::string drawn = out.text();
  if (!ended_well || drawn.find("</svg>") == std::string::npos)
    throw WorkFailed("gnuplot could not draw the picture:\n" + err.text());
  ReplacedFile picture(path);
  picture.write(drawn.data(), drawn.size());
  picture.commit();
}

}  // namespace xtape::cli
