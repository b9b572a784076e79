#include "base/messages/wording.hpp"
#include "base/threads/threads.hpp"
#include "decode/predictor_data.hpp"

namespace xtape {

namespace {
PlayerOptions playing(const Model& model, const PredictorOptions& options) {
  PlayerOptions playing = options.player ? *options.player : model.player_options();
  playing.carries.clear();
  if (playing.arena == nullptr) playing.arena = make_arena();
  return playing;
}
}  // namespace

Predictor::Data::Data(const Model& given_model, const std::string& given_function,
                      const PredictorOptions& given_options)
    : model(&given_model),
      function(given_function),
      options(given_options),
      step_key{function, Mode::predict, {}, "step"},
      fixed_players(options.players, playing(given_model, options)),
      step_players(options.players, fixed_players.options()) {
  const Signature& signature = model->signature(function);
  std::vector<std::string> names;
  for (const FunctionInput& input : signature.inputs) {
    names.push_back(input.name);
    if (input.name != options.stepped) continue;
    const auto is_size = [&](const std::string& dim) { return contains(signature.sizes, dim); };
    if (input.dtype != Dtype::int64 || input.dims.size() != 2 || !is_size(input.dims[0]) || !is_size(input.dims[1]) ||
        input.dims[0] == input.dims[1])
      throw DefinitionError("input '" + input.name + "' of " + whose() + " must be an int of two sizes [rows, tokens]");
    rows_size = input.dims[0];
    tokens_size = input.dims[1];
  }
  if (rows_size.empty())
    throw DefinitionError(whose() + " has no input '" + options.stepped + "' to be given step by step" +
                          did_you_mean(options.stepped, names));
  if (options.capacity < 1 || options.capacity > decode::most_places)
    throw Error("the capacity of caches must be at least 1 and at most " + std::to_string(decode::most_places));
  if (options.players < 1) throw Error("at least one player must be kept");
  if (options.limit < 0) throw Error("the limit of positions must be at least 1, or 0 for none");
  if (const Dtype caches = step_players.options().caches; caches != Dtype::float32 && caches != Dtype::q8_0)
    throw DtypeError(std::string("caches are stored as float32 or Q8_0, not ") + name_of(caches));
  threads = thread_count(step_players.options().threads);
}

/// Returns the named sizes of the arrays of the fixed inputs, without the number of rows.
NamedSizes Predictor::Data::sizes_of(const NamedArrays& arrays) const {
  const Signature& signature = model->signature(function);
  for (const FunctionInput& input : signature.inputs)
    if (input.name != options.stepped && contains(input.dims, tokens_size))
      throw DefinitionError("input '" + input.name + "' of " + whose() + " must not have the size '" + tokens_size +
                            "' of a step's tokens");
  NamedSizes sizes;
  for (const auto& [name, size] : model->sizes(function, arrays, {options.stepped}))
    if (name != rows_size) sizes.add(name, size);
  if (arrays.size() + 1 != signature.inputs.size())
    throw Error(whose() + " has " + std::to_string(signature.inputs.size() - 1) + " fixed inputs, got " +
                std::to_string(arrays.size()) + " arrays");
  return sizes;
}

NamedSizes Predictor::Data::with_tokens(NamedSizes sizes, std::int64_t count, std::int64_t tokens) const {
  sizes.add(rows_size, count);
  sizes.add(tokens_size, tokens);
  return sizes;
}

decode::Recording Predictor::Data::record(const NamedSizes& sizes, std::int64_t count, std::int64_t tokens,
                                          std::int64_t places) const {
  return decode::record_step(*model, function, options.stepped, with_tokens(sizes, count, tokens), places,
                             step_players.options().caches);
}

const decode::StepSplit& Predictor::Data::split_of(const decode::Recording& recording, std::int64_t count,
                                                   std::int64_t tokens, std::int64_t places) {
  if (!known_split || known_split->sizes != fixed_sizes || known_split->tokens != tokens) {
    // fewer tokens if possible, because there may be a limit
    const std::int64_t other_tokens = tokens > 1 ? tokens - 1 : 2;
    decode::Recording wider = record(fixed_sizes, count + 1, tokens, places);
    decode::StepSplit split = decode::split(recording, wider, record(fixed_sizes, count, other_tokens, places + 1));
    known_split.emplace(KnownSplit{fixed_sizes, tokens, std::move(wider), std::move(split)});
  }
  decode::require_same_ops(recording, known_split->recording);
  return known_split->split;
}

// The handle --------------------------------------------------------------------------------------------------------

Predictor::Predictor(const Model& model, const std::string& function, const PredictorOptions& options)
    : data_(std::make_unique<Data>(model, function, options)) {}

void Predictor::begin(std::int64_t rows, const NamedArrays& fixed, std::int64_t repeat) {
  data_->begin(rows, fixed, repeat);
}
void Predictor::reserve(std::int64_t places) {
  if (rows() == 0) throw Error("reserve needs a batch: call begin first");
  data_->make_room(places);
}
const ArrayView& Predictor::step(const ArrayView& tokens, const std::vector<std::int64_t>& counts) {
  const auto& known = data_->advance(tokens, counts, true);
  return data_->result = known.player.view(known.results[0].value);
}
void Predictor::read(const ArrayView& tokens, const std::vector<std::int64_t>& counts) {
  data_->advance(tokens, counts, false);
}
void Predictor::select(const std::vector<std::int32_t>& rows) {
  data_->select(rows);
}
std::int64_t Predictor::rows() const {
  return std::ssize(data_->past);
}
const std::vector<std::int64_t>& Predictor::past() const {
  return data_->past;
}
std::int64_t Predictor::capacity() const {
  return data_->capacity;
}
std::int64_t Predictor::planned() const {
  return data_->fixed_players.planned() + data_->step_players.planned();
}
int Predictor::threads() const {
  return data_->threads;
}

}  // namespace xtape
