/// Images with labels: reading them from files, and the batches that training and evaluation read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/text.hpp"

namespace xtape {

/// The shape of an image: 1 channel is grey, 3 are red, green and blue.
struct ImageShape {
  std::int64_t channels = 3, height = 0, width = 0;
  std::int64_t pixels() const { return channels * height * width; }
};
inline bool operator==(const ImageShape& a, const ImageShape& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width;
}
inline bool operator!=(const ImageShape& a, const ImageShape& b) { return !(a == b); }
std::string to_string(const ImageShape& shape);  ///< "3 channels of 32 x 48 (height x width)".

/// Images of one shape. Their pixels are bytes, 0 (black) to 255, channel by channel, row by row.
struct Images {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  ///< The pixels of all images, one after the other.
  std::vector<std::int64_t> labels;  ///< One for each image: an index in `names`.
  std::vector<std::string> names;    ///< The names of the labels.
  /// Where the images come from: one file for each, or one for all.
  std::vector<std::string> files;
  std::size_t first = 0;  ///< If one file has all images: the number of its images before these.
  std::size_t size() const { return labels.size(); }
  std::string place(std::size_t image) const;  ///< "digits.safetensors, image 12", or the file of the image.
};

/// How values between pixels are weighed. The filter grows with the step between the pixels that it computes, so that
/// shrinking mixes all pixels.
enum class ImageFilter : std::uint8_t { lanczos, bilinear, bicubic };

/// How images come to one size, with the bytes that Pillow's Image.resize gives.
struct ImageResize {
  std::int64_t height = 0, width = 0;  ///< The size; 0: it stays as it is, unless …
  std::int64_t shorter = 0;            ///< … this is above 0: the length of the shorter side, the other in proportion.
  ImageFilter filter = ImageFilter::bilinear;
  /// Afterwards: the size of the middle part that is kept, with black where the image is smaller; 0: all.
  std::int64_t middle_height = 0, middle_width = 0;
};
/// The images with other pixels. Throws Error if a size is negative or above 65536, or only one side is given.
Images resized(const Images& images, const ImageResize& resize);

/// Reads a labelled data set. A folder has a folder for each label, whose name is that of the label, with PNG (.png)
/// and binary PNM files (.pgm, .ppm, .pnm). They are read with `channels` channels: colours become grey, or grey
/// becomes three equal channels; what is transparent has the colours of the file. Each is resized as `resize` says, and
/// all then have one size. The images of all labels are mixed evenly, each label's in the order of their names,
/// so that any first part has all labels. A safetensors file, or an .npz file of NumPy of less than 4 GiB, has the
/// arrays "images", U8 [n, height, width] or [n, channels, height, width], and "labels", of integers [n] from 0;
/// `channels` has no effect. Throws FileError, with the file and, for an image of another size, both sizes; Error if
/// channels is neither 1 nor 3.
Images read_images(const std::string& path, std::int64_t channels = 3, const ImageResize& resize = {});
/// Reads one PNG or PNM file; the image has no label.
Images read_image(const std::string& path, std::int64_t channels = 3, const ImageResize& resize = {});

/// How pixels become numbers, and how training varies images.
struct ImageOptions {
  /// A number is (pixel / 255 - mean) / deviation, with one of each for all channels, or for each channel.
  std::vector<double> mean = {0}, deviation = {1};
  bool flip = false;     ///< Training mirrors images, left to right, with probability 1/2.
  /// Training moves images by up to so many pixels in each direction; what is uncovered is black.
  std::int64_t crop = 0;
};
/// The numbers of all images, float32 [n, channels, height, width]. Throws Error if mean and deviation do not fit.
Array image_array(const Images& images, const ImageOptions& options);

/// How a published model wants images.
struct ImagePreparation {
  ImageResize resize;
  ImageOptions numbers;
};
/// The file in the folder of a model that says so.
inline constexpr const char* preparation_file = "preprocessor_config.json";
/// Reads preprocessor_config.json in a folder of a model, as transformers does. Throws FileError if there is none, and
/// DefinitionError, with file and line, if it asks for more than ImagePreparation can say.
ImagePreparation read_image_preparation(const std::string& folder);
/// Writes preprocessor_config.json of a model that reads `channels` channels.
void write_image_preparation(const ImagePreparation& preparation, std::int64_t channels, const std::string& folder);

struct ImageBatchesOptions {
  std::int64_t rows = 64;  ///< The most images of a batch.
  std::uint64_t seed = 0;  ///< Determines the data order and the variation.
  ImageOptions images = {};
};

/// Batches of images: "images", float32 [b, channels, height, width], and "label", int64 [b]. An epoch has all images
/// once, in batches whose sizes differ by one at most. How an image is varied depends on the seed, the epoch and the
/// image.
class ImageBatches : public Batches {
 public:
  /// Throws Error if a split has no image, the splits differ in shape or labels, or an option is out of range.
  ImageBatches(Images training, Images validation, const ImageBatchesOptions& options);
  ~ImageBatches() override;
  std::int64_t rows() const override;
  std::int64_t columns() const override { return 1; }
  BatchArrays blank() const override;
  std::int64_t epoch_batches() const override;
  void training(std::uint64_t index, BatchArrays& batch) const override;
  std::string training_place(std::uint64_t index, const std::string& array, std::int64_t row) const override;
  std::int64_t validation_batches() const override;
  void validation(std::int64_t index, BatchArrays& batch) const override;
  void validation_sample(std::uint64_t index, BatchArrays& batch) const override;

 private:
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
