/// Images with labels: reading from files, and batches for training and evaluation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/text.hpp"

namespace xtape {

/// The shape of an image. 1 channel is grey; 3 channels are red, green and blue.
struct ImageShape {
  std::int64_t channels = 3, height = 0, width = 0;
  std::int64_t pixels() const { return channels * height * width; }
};
inline bool operator==(const ImageShape& a, const ImageShape& b) {
  return a.channels == b.channels && a.height == b.height && a.width == b.width;
}
inline bool operator!=(const ImageShape& a, const ImageShape& b) {
  return !(a == b);
}
std::string to_string(const ImageShape& shape);  ///< "3 channels of 32 x 48 (height x width)".

/// Images of one shape. Their pixels are bytes, 0 (black) to 255, channel by channel, row by row.
struct Images {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  ///< The pixels of all images in order.
  std::vector<std::int64_t> labels;  ///< For each image, an index in `names`.
  std::vector<std::string> names;    ///< The names of the labels.
  /// The files of the images: either one file per image, or a single file.
  std::vector<std::string> files;
  RowNumbers numbers = {};  ///< If a single file contains all images, the numbers of these.
  std::size_t size() const { return labels.size(); }
  std::string place(std::size_t image) const;  ///< "digits.safetensors, image 12", or the file of the image.
};

/// The filter for interpolating pixels. If the new image is smaller, the filter is wider, so all pixels of the original
/// contribute.
enum class ImageFilter : std::uint8_t { lanczos, bilinear, bicubic };

/// Options of resizing images. The resized images have the same bytes as those of Image.resize in Pillow 13.
struct ImageResize {
  std::int64_t height = 0, width = 0;  ///< The new size. 0 keeps the size, unless `shorter` is set.
  std::int64_t shorter = 0;  ///< If above 0, the new length of the shorter side. The other side keeps the proportion.
  ImageFilter filter = ImageFilter::bilinear;
  /// The size of the central crop after resizing. Smaller images are padded with black. 0: no crop.
  std::int64_t middle_height = 0, middle_width = 0;
};
/// Returns the resized images. Throws Error if a size is negative or above 65536, or only one of two sides is given.
Images resized(const Images& images, const ImageResize& resize);

/// Reads a labelled data set from a folder or a file.
///
/// A folder contains a folder for each label, named like the label, with PNG, JPEG and binary PNM files (.pgm, .ppm,
/// .pnm). A file with the extension of another image format is an error. The images are read with `channels` channels.
/// Colours become grey, or grey becomes three equal channels. Transparent pixels have the colours of the file. The Exif
/// orientation of a PNG or JPEG file turns the image. `resize` applies to each image, and then all images must have the
/// same size. The images of all labels are mixed evenly, so that both parts of a split contain all labels. The images
/// of a label keep the order of their names.
///
/// A safetensors file, or an .npz file of NumPy of less than 4 GiB, contains the arrays "images", U8 [n, height, width]
/// or [n, channels, height, width], and "labels", integers [n] from 0. `channels` has no effect.
///
/// Throws FileError with the name of the file if a file cannot be read or is not as described. If two images differ in
/// size, the message contains both sizes. Throws Error if `channels` is neither 1 nor 3.
Images read_images(const std::string& path, std::int64_t channels = 3, const ImageResize& resize = {});
/// Reads one PNG, JPEG or PNM file. The image has no label.
Images read_image(const std::string& path, std::int64_t channels = 3, const ImageResize& resize = {});

/// The conversion of pixels to numbers, and the augmentation of training images.
struct ImageOptions {
  /// A pixel becomes the number (pixel / 255 - mean) / deviation. Both lists have one value for all channels, or one
  /// per channel.
  std::vector<double> mean = {0}, deviation = {1};
  bool flip = false;  ///< Whether training flips images left to right with probability 1/2.
  /// Training shifts images by up to this many pixels in each direction. Uncovered pixels are black.
  std::int64_t crop = 0;
};
/// Returns the numbers of all images, float32 [n, channels, height, width]. Throws Error if mean and deviation do not
/// fit the channels.
Array image_array(const Images& images, const ImageOptions& options);

/// The image preprocessing of a published model.
struct ImagePreparation {
  ImageResize resize;
  ImageOptions numbers;
};
/// The name of the preprocessing file in the folder of a model.
inline constexpr const char* preparation_file = "preprocessor_config.json";
/// Reads preprocessor_config.json in the folder of a model that reads `channels` channels, like transformers. Throws
/// FileError if there is no such file, and DefinitionError with file and line if ImagePreparation does not support an
/// entry. Throws Error if `channels` is neither 1 nor 3.
ImagePreparation read_image_preparation(const std::string& folder, std::int64_t channels = 3);
/// Writes preprocessor_config.json for a model that reads `channels` channels.
void write_image_preparation(const ImagePreparation& preparation, std::int64_t channels, const std::string& folder);

struct ImageBatchesOptions {
  std::int64_t rows = 64;  ///< The most images of a batch.
  std::uint64_t seed = 0;  ///< Determines the data order and the augmentation.
  ImageOptions images = {};
};

/// Batches of images: "images", float32 [b, channels, height, width], and "label", int64 [b]. An epoch contains each
/// image once. The sizes of its batches differ by at most one. The seed, the epoch and the image determine the
/// augmentation.
class ImageBatches : public Batches {
 public:
  /// Throws Error if a split has no image, the splits differ in shape or labels, or an option is out of range.
  ImageBatches(Images training, Images validation, const ImageBatchesOptions& options);
  ~ImageBatches() override;
  std::int64_t rows() const override;
  std::int64_t columns() const override { return 1; }
  BatchArrays blank() const override;
  std::int64_t epoch_batches() const override;
  std::uint64_t order() const override;
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
