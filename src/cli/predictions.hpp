/// Prints the predictions of a run for lines, arrays or images row by row. Shared by `predict` and `classify`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/predict/predict.hpp"

namespace xtape::cli {

/// Prints fields separated by tabs. If requested, prints the names of the fields first.
class PredictionPrinter {
 public:
  PredictionPrinter(const train::RowPredictor& predictor, bool names) : predictor_(predictor), names_(names) {}
  /// Predicts for rows, prints a line for each row, and flushes. Throws Interrupted after Ctrl-C.
  void print(const BatchArrays& rows);

 private:
  const train::RowPredictor& predictor_;
  bool names_;
};

inline constexpr std::size_t rows_at_once = 64;
inline constexpr std::size_t images_at_once = 16;

/// Returns the shape of the images that the function `logits` of the model reads. Throws WrongInput if it reads none.
ImageShape image_shape(const Model& model);

/// Calls `use` with inputs of the model's function `logits`, one part of the images at a time. `said_by` names the
/// origin of the preparation in messages. Throws WrongInput if an image cannot be read, or if the prepared image does
/// not have the size that the model reads.
void for_images(const Model& model, const std::vector<std::string>& files, const ImagePreparation& preparation,
                const std::string& said_by, const std::function<void(const BatchArrays&)>& use);

/// For a run on images, predicts for files. The images must have the size that the model reads.
void predict_images(Run& run, const std::vector<std::string>& files, PredictionPrinter& printer);

}  // namespace xtape::cli
