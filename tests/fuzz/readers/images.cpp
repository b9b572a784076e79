// PNG and PNM images.
#include "xtape/images.hpp"

#include <algorithm>

#include "target.hpp"

namespace xtape::fuzz {

void images(Input input) {
  const MemoryFile file(input);
  const auto coloured = accepted([&] { return read_image(file.path(), 3); });
  const auto grey = accepted([&] { return read_image(file.path(), 1); });
  require(coloured.has_value() == grey.has_value(), "an image is read in colours if it is read in grey");
  if (!coloured) return;
  const std::size_t pixels = grey->pixels.size();
  require(pixels == static_cast<std::size_t>(grey->shape.pixels()), "an image has the bytes of its shape");
  require(coloured->pixels.size() == 3 * pixels, "a coloured image has three channels");
  require(coloured->shape.height == grey->shape.height && coloured->shape.width == grey->shape.width,
          "channels do not change the size of an image");
  for (std::size_t i = 0; i < pixels; ++i) {
    const int red = coloured->pixels[i], green = coloured->pixels[pixels + i], blue = coloured->pixels[2 * pixels + i];
    require(grey->pixels[i] >= std::min({red, green, blue}) && grey->pixels[i] <= std::max({red, green, blue}),
            "grey is between the three colours");
  }
}

}  // namespace xtape::fuzz
