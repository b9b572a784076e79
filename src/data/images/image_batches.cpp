#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "data/images/image_files.hpp"
#include "data/texts/shuffled_rows.hpp"
#include "data/texts/texts.hpp"
#include "xtape/images.hpp"
#include "xtape/literal.hpp"

namespace xtape {

std::string to_string(const ImageShape& shape) {
  return std::to_string(shape.channels) + (shape.channels == 1 ? " channel of " : " channels of ") +
         std::to_string(shape.height) + " x " + std::to_string(shape.width) + " (height x width)";
}

std::string Images::place(std::size_t image) const {
  if (files.size() > 1 && image < files.size()) return files[image];
  return (files.empty() ? "" : files[0] + ", ") + "image " + std::to_string(numbers(image) + 1);
}

namespace {
/// A variation of an image. Pixel (i, j) is pixel (i + down, j + right) of the original, which may be mirrored first.
struct Variation {
  bool mirrored = false;
  std::int64_t down = 0, right = 0;
};

void check_options(const ImageOptions& options, const ImageShape& shape) {
  for (const auto& [name, list] : {std::pair("mean", &options.mean), std::pair("deviation", &options.deviation)})
    if (list->size() != 1 && list->size() != static_cast<std::size_t>(shape.channels))
      throw Error(std::string("images: ") + name + " must have one number, or one for each of the " +
                  std::to_string(shape.channels) + " channels, not " + std::to_string(list->size()));
  for (const double mean : options.mean)
    if (!std::isfinite(mean)) throw Error("images: mean must be finite, got " + to_string(Literal(mean)));
  for (const double deviation : options.deviation)
    if (!(deviation > 0) || !std::isfinite(deviation))
      throw Error("images: deviation must be above 0 and finite, got " + to_string(Literal(deviation)));
  if (options.crop < 0 || options.crop > std::min(shape.height, shape.width))
    throw Error("images: crop must be 0 to " + std::to_string(std::min(shape.height, shape.width)) +
                ", the smaller side of an image, got " + std::to_string(options.crop));
}

void write_image(const Images& images, std::size_t image, const ImageOptions& options, const Variation& variation,
                 float* to) {
  const auto [channels, height, width] = images.shape;
  const std::uint8_t* from = images.pixels.data() + static_cast<std::int64_t>(image) * images.shape.pixels();
  for (std::int64_t c = 0; c < channels; ++c, from += height * width) {
    const auto of_channel = [&](const std::vector<double>& list) { return list[list.size() == 1 ? 0 : c]; };
    float numbers[256];
    for (int pixel = 0; pixel < 256; ++pixel)
      numbers[pixel] = static_cast<float>((pixel / 255.0 - of_channel(options.mean)) / of_channel(options.deviation));
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t row = i + variation.down;
        const std::int64_t column = variation.mirrored ? width - 1 - (j + variation.right) : j + variation.right;
        const bool inside = row >= 0 && row < height && column >= 0 && column < width;
        *to++ = numbers[inside ? from[row * width + column] : 0];
      }
  }
}
}  // namespace

Array image_array(const Images& images, const ImageOptions& options) {
  if (images.pixels.empty())
    return Array(Dtype::float32, {0, images.shape.channels, images.shape.height, images.shape.width});
  check_pixels(images);
  check_options(options, images.shape);
  const std::int64_t each = images.shape.pixels();
  const auto count = std::ssize(images.pixels) / std::max<std::int64_t>(1, each);
  Array array(Dtype::float32, {count, images.shape.channels, images.shape.height, images.shape.width});
  for (std::int64_t i = 0; i < count; ++i)
    write_image(images, static_cast<std::size_t>(i), options, {}, array.as<float>() + i * each);
  return array;
}

struct ImageBatches::Data {
  Images training, validation;
  ImageBatchesOptions options;
  ShuffledRows batches;

  Variation variation(std::uint64_t epoch, std::uint32_t image) const {
    const auto draw = [&](std::int64_t bound, std::uint64_t which) {
      return static_cast<std::int64_t>(draw_below(static_cast<std::uint64_t>(bound), options.seed,
                                                  streams::images + epoch, 3 * std::uint64_t{image} + which));
    };
    const std::int64_t crop = options.images.crop;
    return {options.images.flip && draw(2, 0) == 1, draw(2 * crop + 1, 1) - crop, draw(2 * crop + 1, 2) - crop};
  }
  BatchArrays shaped(std::int64_t rows) const {
    const auto [channels, height, width] = training.shape;
    return {{"images", Array(Dtype::float32, {rows, channels, height, width})}, {"label", Array(Dtype::int64, {rows})}};
  }
  /// Fills the batch with these images of a split. vary(image) returns the variation of an image.
  template <class Vary>
  void write(const Images& images, std::span<const std::uint32_t> rows, const Vary& vary, BatchArrays& batch) const {
    const auto count = std::ssize(rows);
    const Array* array = batch.find("images");
    const Shape shape = {count, images.shape.channels, images.shape.height, images.shape.width};
    if (array == nullptr || array->shape() != shape) batch = shaped(count);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      write_image(images, rows[i], options.images, vary(rows[i]),
                  batch.at("images").as<float>() + static_cast<std::int64_t>(i) * images.shape.pixels());
      batch.at("label").as<std::int64_t>()[i] = images.labels[rows[i]];
    }
  }
};

ImageBatches::ImageBatches(Images training, Images validation, const ImageBatchesOptions& options) {
  for (const auto& [name, images] : {std::pair("training", &training), std::pair("validation", &validation)}) {
    if (images->size() == 0) throw Error(std::string("the ") + name + " split has no images");
    if (images->size() > std::numeric_limits<std::uint32_t>::max())
      throw Error(std::string("the ") + name + " split has " + std::to_string(images->size()) +
                  " images, more than 2^32 - 1");
  }
  for (const Images* images : {&training, &validation}) {
    check_pixels(*images);
    if (images->pixels.size() / static_cast<std::size_t>(images->shape.pixels()) != images->size())
      throw Error(std::to_string(images->pixels.size()) + " pixels are no " + std::to_string(images->size()) +
                  " images with " + to_string(images->shape));
    for (const std::int64_t label : images->labels)
      if (label < 0 || label >= std::ssize(images->names))
        throw Error("there is no name of label " + std::to_string(label));
  }
  if (training.shape != validation.shape)
    throw Error("the images of both splits must have one shape: " + validation.place(0) + " has " +
                to_string(validation.shape) + ", " + training.place(0) + " has " + to_string(training.shape));
  if (training.names != validation.names) throw Error("the images of both splits must have the same names of labels");
  if (options.rows < 1) throw Error("a batch must have at least one image, got " + std::to_string(options.rows));
  const std::int64_t pixels = std::max<std::int64_t>(1, training.shape.pixels());
  const ShuffledRows batches(training.size(), validation.size(), options.rows, options.seed);
  if (batches.rows() > most_batch_tokens / pixels)
    throw Error("a batch of " + std::to_string(batches.rows()) + " images of " + std::to_string(pixels) +
                " numbers is too large: the limit is " + std::to_string(most_batch_tokens) + " numbers");
  check_options(options.images, training.shape);
  data_ = std::make_unique<Data>(Data{std::move(training), std::move(validation), options, batches});
}
ImageBatches::~ImageBatches() = default;

std::int64_t ImageBatches::rows() const {
  return data_->batches.rows();
}
BatchArrays ImageBatches::blank() const {
  return data_->shaped(data_->batches.largest());
}
std::int64_t ImageBatches::epoch_batches() const {
  return data_->batches.epoch_batches();
}
std::uint64_t ImageBatches::order() const {
  return data_->batches.order();
}
std::int64_t ImageBatches::validation_batches() const {
  return data_->batches.validation_batches();
}

void ImageBatches::training(std::uint64_t index, BatchArrays& batch) const {
  const std::uint64_t epoch = data_->batches.epoch_of(index);
  const auto vary = [&](std::uint32_t image) { return data_->variation(epoch, image); };
  data_->write(data_->training, data_->batches.training(index), vary, batch);
}

std::string ImageBatches::training_place(std::uint64_t index, const std::string& array, std::int64_t row) const {
  const std::span<const std::uint32_t> rows = data_->batches.training(index);
  if ((array != "images" && array != "label") || row < 0 || static_cast<std::size_t>(row) >= rows.size()) return "";
  return data_->training.place(rows[static_cast<std::size_t>(row)]);
}

void ImageBatches::validation(std::int64_t index, BatchArrays& batch) const {
  check_validation_index(index, validation_batches());
  const auto unvaried = [](std::uint32_t) { return Variation(); };
  data_->write(data_->validation, data_->batches.validation(index), unvaried, batch);
}

void ImageBatches::validation_sample(std::uint64_t index, BatchArrays& batch) const {
  validation(data_->batches.validation_sample(index), batch);
}

}  // namespace xtape
