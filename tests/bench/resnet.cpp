// A training step of ResNet-20 (models/resnet.json) on 32 images of 32 x 32 pixels, float32: the loss, the gradients,
// SGD with momentum and the running statistics. Prints the least milliseconds and the peak of the resident memory in
// MiB. `xtape profile cifar10_resnet` shows where the time goes.
//
// usage: resnet [--threads N] [--seconds S] [--batch N] [--as-if-threads N], which compares the predicted time of N
//               threads with the measured one
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "predicted.hpp"
#include "xtape/train.hpp"

using namespace xtape;

namespace {
/// The same batch again and again.
class OneBatch : public Batches {
 public:
  explicit OneBatch(std::int64_t rows) : rows_(rows) {}
  std::int64_t rows() const override { return rows_; }
  std::int64_t columns() const override { return 1; }
  BatchArrays blank() const override {
    BatchArrays batch = {{"images", Array(Dtype::float32, {rows_, 3, 32, 32})},
                         {"label", Array(Dtype::int64, {rows_})}};
    for (std::int64_t i = 0; i < batch.at("images").count(); ++i)
      batch.at("images").as<float>()[i] = 0.02F * static_cast<float>((i * 7919) % 101 - 50);
    for (std::int64_t i = 0; i < rows_; ++i) batch.at("label").as<std::int64_t>()[i] = i % 10;
    return batch;
  }
  void training(std::uint64_t, BatchArrays&) const override {}
  std::int64_t validation_batches() const override { return 1; }
  void validation(std::int64_t, BatchArrays&) const override {}
  void validation_sample(std::uint64_t, BatchArrays&) const override {}

 private:
  std::int64_t rows_;
};
}  // namespace

int main(int count, char** words) {
  TrainerOptions options;
  options.threads = 1;
  double seconds = 5;
  std::int64_t batch = 32;
  int predicted = 0;
  for (int i = 1; i < count; ++i) {
    const auto value = [&] { return i + 1 < count ? std::atof(words[++i]) : 0.0; };
    if (std::strcmp(words[i], "--threads") == 0) options.threads = static_cast<int>(value());
    if (std::strcmp(words[i], "--seconds") == 0) seconds = value();
    if (std::strcmp(words[i], "--as-if-threads") == 0) predicted = static_cast<int>(value());
    if (std::strcmp(words[i], "--batch") == 0) batch = static_cast<std::int64_t>(value());
  }
  options.optimizer.kind = OptimizerOptions::Kind::sgd;
  options.optimizer.momentum = 0.9;
  options.optimizer.weight_decay = 1e-4;
  options.schedule.rate = 0.01;
  Model model = Model::load("resnet");
  const OneBatch batches(batch);
  if (predicted > 0) {
    bench::print_predicted("resnet", predicted, 5, [&](int threads) -> std::function<void()> {
      options.threads = threads;
      const auto of_trainer = std::make_shared<Model>(Model::load("resnet"));
      const auto trainer = std::make_shared<Trainer>(*of_trainer, batches, options);
      return [of_trainer, trainer] { trainer->update(); };
    });
    return 0;
  }
  Trainer trainer(model, batches, options);
  trainer.update();
  double best = 1e9;
  const double end = bench::seconds() + seconds;
  for (int i = 0; i < 3 || bench::seconds() < end; ++i) best = std::min(best, trainer.update().seconds);
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("resnet %.3f %.1f\n", best * 1e3, static_cast<double>(usage.ru_maxrss) / 1024);
  return 0;
}
