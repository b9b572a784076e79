#include "cli/predictions.hpp"

#include <iostream>

#include "cli/commands.hpp"

namespace xtape::cli {

namespace {
void print_fields(const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) std::cout << (i == 0 ? "" : "\t") << fields[i];
  std::cout << '\n';
}

}  // namespace

ImageShape image_shape(const Model& model) {
  const Signature& signature = model.signature("logits");
  Tape tape(Mode::eval);
  NamedSizes sizes;
  for (const std::string& size : signature.sizes) sizes.add(size, 1);
  const Shape shape = model.inputs(tape, "logits", sizes)[0].value.shape();
  if (shape.size() != 4) throw WrongInput("the function 'logits' does not read images");
  return {shape[1], shape[2], shape[3]};
}

void PredictionPrinter::print(const BatchArrays& rows) {
  const train::Predictions made = predictor_.predict(rows);
  if (names_) print_fields(made.names);
  names_ = false;
  for (const std::vector<std::string>& fields : made.rows) print_fields(fields);
  flush_results();
}

void for_images(const Model& model, const std::vector<std::string>& files, const ImagePreparation& preparation,
                const std::string& said_by, const std::function<void(const BatchArrays&)>& use) {
  const ImageShape shape = image_shape(model);
  for (std::size_t first = 0; first < files.size(); first += images_at_once) {
    Images images;
    images.shape = shape;
    for (std::size_t i = first; i < std::min(first + images_at_once, files.size()); ++i) {
      const Images read = as_wrong_input([&] { return read_image(files[i], shape.channels, preparation.resize); });
      if (read.shape != shape)
        throw WrongInput(files[i] + ", prepared as " + said_by + " says, has " + to_string(read.shape) +
                         ", and the model reads " + to_string(shape));
      images.pixels.insert(images.pixels.end(), read.pixels.begin(), read.pixels.end());
    }
    use({{model.signature("logits").inputs[0].name,
          as_wrong_input([&] { return image_array(images, preparation.numbers); })}});
  }
}

void predict_images(Run& run, const std::vector<std::string>& files, PredictionPrinter& printer) {
  if (files.empty())
    throw WrongInput(run.directory() + " is a run on images: name the files, as in xtape classify RUN IMAGE…");
  const Recipe::Data& data = run.recipe().data;
  for_images(run.model(), files, {data.resize, data.images}, "the run's recipe",
             [&](const BatchArrays& rows) { printer.print(rows); });
}

}  // namespace xtape::cli
