// The factors of Llama 3's rotary scaling, which GGUF files have as a tensor.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "gguf/family.hpp"
#include "kernels/table/kernels.hpp"
#include "model/hugging_face/folder.hpp"

namespace xtape::gguf {

namespace {
double number_at(const Json& config, const std::string& key, double missing) {
  const Json* value = model::find_key(config, key);
  return value != nullptr && value->is_number() ? value->get<double>() : missing;
}

double rotary_width(const Json& config) {
  return number_at(config, "head_dim",
                   number_at(config, "hidden_size", 0) / number_at(config, "num_attention_heads", 1));
}

/// Returns the turns of each rotary pair in one position.
std::vector<double> rotary_frequencies(const Json& config) {
  const double width = rotary_width(config);
  const double theta = number_at(config, rope + std::string("rope_theta"), 10000);
  std::vector<double> turns;
  for (double i = 0; i < width / 2; ++i)
    turns.push_back(kernels().numbers.pow(theta, -2 * i / width) / (2 * std::numbers::pi));
  return turns;
}

/// Returns how many times slower each pair turns with Llama 3's scaling.
std::vector<float> llama3_factors(const Json& config) {
  const auto at = [&](const char* key, double missing) { return number_at(config, rope + std::string(key), missing); };
  const double factor = at("factor", 1), low = at("low_freq_factor", 1), high = at("high_freq_factor", 4),
               first = at("original_max_position_embeddings", number_at(config, "max_position_embeddings", 8192));
  std::vector<float> factors;
  for (const double turns : rotary_frequencies(config)) {
    const double kept = std::clamp((turns * first - low) / (high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / (kept + (1 - kept) / factor)));
  }
  return factors;
}
}  // namespace

std::vector<float> Family::rotary_factors(const Json& config) const {
  const Json* type = model::find_key(config, rope + std::string("rope_type"));
  return factors_.empty() || type == nullptr || *type != "llama3" ? std::vector<float>() : llama3_factors(config);
}

/// Finds the parameters of Llama 3's scaling from its factors. The largest factor is `factor`. With the usual
/// thresholds of 1 and 4 turns, a factor between 1 and the largest gives the number of positions.
void Family::read_factors(const FileData& file, Json& config) const {
  const std::size_t tensor = *file.find_tensor(factors_);
  std::vector<float> given(static_cast<std::size_t>(count_of(file.tensors[tensor].shape)));
  if (file.formats[tensor]->elements != 1 || rotary_width(config) != 2.0 * static_cast<double>(given.size()))
    file.fail("tensor '" + factors_ + "' must have a float for each two elements of a head, not " +
              std::to_string(given.size()));
  const std::vector<double> turns = rotary_frequencies(config);
  decode(file, tensor, 0, std::ssize(given), given.data());
  const double largest = *std::ranges::max_element(given);
  if (largest == 1 && *std::ranges::min_element(given) == 1) return;
  const Json* said = file.find(key_of("rope.scaling.original_context_length"));
  double positions = said != nullptr && said->is_number() ? said->get<double>() : 8192;
  double least = 1, most = 1e12;  // where no factor lies between, the number is only limited
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] <= 1.0001) least = std::max(least, std::ceil(4 / turns[i]));
    if (given[i] >= largest * 0.9999) most = std::min(most, std::floor(1 / turns[i]));
  }
  positions = std::min(std::max(positions, least), most);
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i] > 1.0001 && given[i] < largest * 0.9999) {
      positions = std::round((1 + 3 * (1 / double(given[i]) - 1 / largest) / (1 - 1 / largest)) / turns[i]);
      break;
    }
  const auto set = [&](const char* key, const Json& value) { model::set_key(config, rope + std::string(key), value); };
  set("rope_type", "llama3");
  set("factor", largest);
  set("low_freq_factor", 1.0);
  set("high_freq_factor", 4.0);
  set("original_max_position_embeddings",
      positions < 1e12 ? Json(static_cast<std::int64_t>(positions)) : Json(positions));
  const std::vector<float> wanted = llama3_factors(config);
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!(std::abs(given[i] - wanted[i]) <= 1e-4F * std::abs(wanted[i])))
      file.fail("tensor '" + factors_ + "' has the factor " + std::to_string(given[i]) + " for rotary pair " +
                std::to_string(i) + ": only factors of Llama 3's scaling are supported, and these would have " +
                std::to_string(wanted[i]));
}

}  // namespace xtape::gguf
