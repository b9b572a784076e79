// preprocessor_config.json: how a published model wants images.
#include "target.hpp"
#include "xtape/images.hpp"

namespace xtape::fuzz {

void preparation(Input input) {
  write(folder() + "/" + preparation_file, std::string(input));
  const auto read = accepted([] { return read_image_preparation(folder()); });
  if (!read) return;
  const ImageResize& resize = read->resize;
  require((resize.height > 0) == (resize.width > 0), "a size has two sides");
  require(resize.height == 0 || resize.shorter == 0, "there is one size");
  Images image = {{3, 2, 3}, {}, {}, {}, {}};
  for (int i = 0; i < 18; ++i) image.pixels.push_back(static_cast<std::uint8_t>(14 * i));
  accepted([&] { return image_array(image, read->numbers); });
  if (resize.height * resize.width + resize.shorter * resize.shorter + resize.middle_height * resize.middle_width <
      100000)
    accepted([&] { return resized(image, resize); });
  write_image_preparation(*read, 3, folder());
  const ImageResize again = read_image_preparation(folder()).resize;
  require(again.height == resize.height && again.width == resize.width && again.shorter == resize.shorter &&
              again.middle_height == resize.middle_height && again.middle_width == resize.middle_width,
          "sizes are written as they are read");
}

}  // namespace xtape::fuzz
