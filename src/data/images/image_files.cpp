// Reads images from files: PNG, JPEG, PNM, safetensors and .npz.
#include "data/images/image_files.hpp"

#include <algorithm>
#include <cmath>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "base/system/process_memory.hpp"
#include "data/arrays/npz.hpp"
#include "data/tables/fields.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

void fail_image(const std::string& path, const std::string& message) {
  throw FileError(path + ": " + message);
}

void check_sides(const ImageShape& shape, const std::string& path) {
  if (shape.height < 1 || shape.width < 1 || shape.height > most_side || shape.width > most_side)
    fail_image(path, "an image has 1 to " + std::to_string(most_side) + " pixels in each direction, not " +
                         std::to_string(shape.height) + " x " + std::to_string(shape.width));
  if (shape.height * shape.width > most_pixels)
    fail_image(path, "an image has at most " + std::to_string(most_pixels) + " pixels, not " +
                         std::to_string(shape.height) + " x " + std::to_string(shape.width) + " = " +
                         std::to_string(shape.height * shape.width));
}

void check_pixels(const Images& images) {
  const auto [channels, height, width] = images.shape;
  std::int64_t each = 1;
  bool whole = channels > 0 && height > 0 && width > 0;
  for (const std::int64_t size : {channels, height, width}) whole = whole && checked_multiply(each, size);
  if (!whole || std::ssize(images.pixels) % each != 0)
    throw Error(std::to_string(images.pixels.size()) + " pixels are no images with " + to_string(images.shape));
}

void check_channels(std::int64_t channels) {
  if (channels != 1 && channels != 3)
    throw Error("an image has 1 channel (grey) or 3 (red, green, blue), not " + std::to_string(channels));
}

void reserve(Interleaved& image, const std::string& path) {
  check_sides(image.shape, path);
  require_memory_left(static_cast<std::size_t>(image.shape.pixels()), "the image " + path);
  image.pixels.resize(static_cast<std::size_t>(image.shape.pixels()));
}

namespace {
/// Reads P5 (grey) and P6 (red, green, blue) with one byte per value.
Interleaved read_pnm(const std::string& path, const std::string& bytes) {
  std::size_t at = 2;
  const auto number = [&] {
    const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
    while (at < bytes.size() && (space(bytes[at]) || bytes[at] == '#'))
      at = bytes[at] == '#' ? std::min(bytes.find('\n', at), bytes.size()) : at + 1;
    std::int64_t value = -1;
    constexpr std::int64_t most = 100'000'000'000'000'000;  // stands for all larger numbers, which are errors
    for (; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9'; ++at)
      value = std::min(most, std::max<std::int64_t>(0, value) * 10 + (bytes[at] - '0'));
    return value;
  };
  if (bytes[1] != '5' && bytes[1] != '6')
    fail_image(path, std::string("a PNM image of kind P") + bytes[1] + ": only P5 and P6, the binary ones, are read");
  Interleaved image;
  image.shape.channels = bytes[1] == '5' ? 1 : 3;
  image.shape.width = number();
  image.shape.height = number();
  const std::int64_t largest = number();
  if (image.shape.width < 0 || image.shape.height < 0 || largest < 1)
    fail_image(path, "the header of the PNM image must have a width, a height and the largest value");
  check_sides(image.shape, path);
  if (largest > 255)
    fail_image(path, "the values of the PNM image must be bytes, but the largest is " + std::to_string(largest));
  at = std::min(at + 1, bytes.size());  // skips one space
  if (bytes.size() - at < static_cast<std::size_t>(image.shape.pixels()))
    fail_image(path, "the PNM image has " + std::to_string(bytes.size() - at) + " bytes of the " +
                         std::to_string(image.shape.pixels()) + " of its pixels: the file is cut off");
  reserve(image, path);
  std::uint8_t scaled[256];  // rounded; halves become the even byte, as in Pillow
  for (int value = 0; value < 256; ++value)
    scaled[value] =
        static_cast<std::uint8_t>(std::min(255.0, std::nearbyint(value / static_cast<double>(largest) * 255)));
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = scaled[static_cast<std::uint8_t>(bytes[at + i])];
  return image;
}

/// Returns the image channel by channel.
Images planar(const Interleaved& image, std::int64_t channels) {
  const std::int64_t from = image.shape.channels, pixels = image.shape.height * image.shape.width;
  const auto at = [&](std::int64_t pixel, std::int64_t channel) { return image.pixels[pixel * from + channel]; };
  Images images;
  images.shape = {channels, image.shape.height, image.shape.width};
  images.pixels.reserve(static_cast<std::size_t>(images.shape.pixels()));
  for (std::int64_t channel = 0; channel < channels; ++channel)
    for (std::int64_t i = 0; i < pixels; ++i) {
      const bool to_grey = from == 3 && channels == 1;  // ITU-R BT.601, rounded as in Pillow's mode "L"
      const int grey = to_grey ? (19595 * at(i, 0) + 38470 * at(i, 1) + 7471 * at(i, 2) + 32768) / 65536 : 0;
      images.pixels.push_back(to_grey ? static_cast<std::uint8_t>(grey) : at(i, std::min(channel, from - 1)));
    }
  return images;
}

/// The first bytes of image files of kinds that cannot be read.
constexpr std::pair<std::string_view, const char*> unread_kinds[] = {
    {"GIF8", "GIF"}, {"BM", "BMP"}, {"RIFF", "WebP"}, {{"II*\0", 4}, "TIFF"}, {{"MM\0*", 4}, "TIFF"}};

Interleaved read_any(const std::string& path, const std::string& bytes) {
  if (bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7') return read_pnm(path, bytes);
  return bytes.starts_with("\xff\xd8\xff") ? read_jpeg(path, bytes) : read_png(path, bytes);
}

/// Appends the image of a file. It must have the shape of the earlier images.
void append_file(Images& images, const std::string& path, const ImageResize& resize) {
  const std::string bytes = read_file(path);
  if (bytes.size() < 8) fail_image(path, "not a PNG, JPEG or PNM image");
  for (const auto& [first, kind] : unread_kinds)
    if (bytes.starts_with(first))
      fail_image(path,
                 std::string("a ") + kind +
                     " image, and only PNG, JPEG and PNM images are read: convert it to PNG, which keeps its pixels");
  const Images image = resized(planar(read_any(path, bytes), images.shape.channels), resize);
  if (images.files.empty()) images.shape = image.shape;
  if (images.shape != image.shape)
    fail_image(path, "the image is " + std::to_string(image.shape.height) + " x " + std::to_string(image.shape.width) +
                         " (height x width), and " + images.files[0] + " is " + std::to_string(images.shape.height) +
                         " x " + std::to_string(images.shape.width) + ": all must have one size, or be resized to one");
  images.pixels.insert(images.pixels.end(), image.pixels.begin(), image.pixels.end());
  images.files.push_back(path);
}

std::vector<std::string> sorted_names(const std::string& folder) {
  std::vector<std::string> names = names_in(folder);
  const auto hidden = [](const std::string& name) { return name[0] == '.'; };
  names.erase(std::remove_if(names.begin(), names.end(), hidden), names.end());
  std::ranges::sort(names);
  return names;
}

/// Returns whether the ending of a file's name is that of an image. This includes kinds of images that cannot be read.
/// Such a file is then an error. Otherwise it would be left out silently.
bool is_image_name(const std::string& name) {
  constexpr const char* endings =
      ".png .pgm .ppm .pnm .pbm .pam .jpg .jpeg .jpe .jfif .gif .bmp .webp .tif .tiff .avif .heic";
  return is_one_of(endings, with_ascii_in_lower_case(name.substr(std::min(name.size(), name.rfind('.')))));
}

Images read_folder(const std::string& folder, std::int64_t channels, const ImageResize& resize) {
  Images images;
  images.shape.channels = channels;
  struct File {
    double place;  // the relative position among the files of its label, 0 to 1
    std::int64_t label;
    std::string path;
  };
  std::vector<File> files;
  for (const std::string& name : sorted_names(folder)) {
    const std::string inside = path_in(folder, name);
    if (!is_folder(inside)) continue;
    try {
      check_label(name);
    } catch (const Error& error) {
      fail_image(inside, std::string("the folder's name is a label: ") + error.what());
    }
    std::vector<std::string> names = sorted_names(inside);
    names.erase(std::remove_if(names.begin(), names.end(), [](const auto& each) { return !is_image_name(each); }),
                names.end());
    if (names.empty()) throw FileError(inside + " has no images; its name would be a label");
    for (std::size_t i = 0; i < names.size(); ++i)
      files.push_back({(static_cast<double>(i) + 0.5) / static_cast<double>(names.size()), std::ssize(images.names),
                       path_in(inside, names[i])});
    images.names.push_back(name);
  }
  if (files.empty())
    throw FileError(folder +
                    " has no images: it must have a folder for each label, with .png, .jpg, .pgm, .ppm or .pnm files");
  std::ranges::stable_sort(files, [](const File& a, const File& b) { return a.place < b.place; });
  for (const File& file : files) {
    append_file(images, file.path, resize);
    images.labels.push_back(file.label);
    if (images.labels.size() > 1) continue;
    std::int64_t pixels = images.shape.pixels();
    if (!checked_multiply(pixels, std::ssize(files))) throw FileError(folder + " has images of 2^63 pixels or more");
    require_memory_left(static_cast<std::size_t>(pixels), "the images of " + folder);
    images.pixels.reserve(static_cast<std::size_t>(pixels));
  }
  return images;
}

/// Returns the elements of an array of integers. They must be at least 0 and at most `most`.
template <class To>
std::vector<To> integers(const Array& array, const std::string& what, std::int64_t most) {
  std::vector<To> values;
  const auto take = [&](const auto* elements) {
    for (std::int64_t i = 0; i < array.count(); ++i) {
      const std::int64_t value = elements[i];
      if (value < 0 || value > most)
        throw FileError(what + " has an element of " + std::to_string(value) + "; it must be 0 to " +
                        std::to_string(most));
      values.push_back(static_cast<To>(value));
    }
  };
  values.reserve(static_cast<std::size_t>(array.count()));
  if (array.dtype() == Dtype::int32)
    take(array.as<std::int32_t>());
  else if (array.dtype() == Dtype::int64)
    take(array.as<std::int64_t>());
  else
    throw FileError(what + " must be of integers (U8, uint8), not " + name_of(array.dtype()));
  return values;
}

Array read_array(const std::string& path, const std::string& name) {
  if (path.size() > 4 && path.compare(path.size() - 4, 4, ".npz") == 0) return read_npz(path, name);
  const ArrayFile file(path);
  for (std::size_t i = 0; i < file.entries().size(); ++i)
    if (file.entries()[i].name == name) return file.read(i);
  throw FileError(path + " has no array '" + name + "': a file of images has 'images' and 'labels'");
}

Images read_array_file(const std::string& path) {
  const Array pixels = read_array(path, "images"), labels = read_array(path, "labels");
  const Shape& shape = pixels.shape();
  if ((shape.size() != 3 && shape.size() != 4) || labels.shape() != Shape{shape[0]})
    throw FileError(path + ": 'images' must be [n, height, width] or [n, channels, height, width], and 'labels' [n], " +
                    "got " + to_string(shape) + " and " + to_string(labels.shape()));
  constexpr std::int64_t most_labels = 1 << 20;
  Images images;
  images.shape = {shape.size() == 4 ? shape[1] : 1, shape[shape.size() - 2], shape[shape.size() - 1]};
  images.pixels = integers<std::uint8_t>(pixels, path + ": 'images'", 255);
  images.labels = integers<std::int64_t>(labels, path + ": 'labels'", most_labels - 1);
  images.files = {path};
  if (images.labels.empty() || images.pixels.empty()) throw FileError(path + " has no images");
  for (std::int64_t i = 0; i <= *std::ranges::max_element(images.labels); ++i)
    images.names.push_back(std::to_string(i));
  return images;
}
}  // namespace

Images read_images(const std::string& path, std::int64_t channels, const ImageResize& resize) {
  check_channels(channels);
  return is_folder(path) ? read_folder(path, channels, resize) : resized(read_array_file(path), resize);
}

Images read_image(const std::string& path, std::int64_t channels, const ImageResize& resize) {
  check_channels(channels);
  Images images;
  images.shape.channels = channels;
  append_file(images, path, resize);
  return images;
}

}  // namespace xtape
