/// What a run predicts for lines, arrays or images, printed row by row: for `predict` and `classify`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "predict.hpp"

namespace xtape::cli {

/// Prints fields separated by tabs, the names of the fields first if they are wanted.
class PredictionPrinter {
 public:
  PredictionPrinter(const train::RowPredictor& predictor, bool names) : predictor_(predictor), names_(names) {}
  /// Predicts for rows, prints a line for each, and flushes. Throws Interrupted after Ctrl-C.
  void print(const BatchArrays& rows);

 private:
  const train::RowPredictor& predictor_;
  bool names_;
};

inline constexpr std::size_t rows_at_once = 64;
inline constexpr std::size_t images_at_once = 16;

/// Calls `use` with the input of the model's function `logits` for parts of the images. Throws WrongInput if one cannot
/// be read, or has another size than the model reads.
void for_images(const Model& model, const std::vector<std::string>& files, const ImagePreparation& preparation,
                const std::function<void(const BatchArrays&)>& use);

/// For a run on images: of files of the size that the model reads.
void predict_images(Run& run, const std::vector<std::string>& files, PredictionPrinter& printer);

}  // namespace xtape::cli
