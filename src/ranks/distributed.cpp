#include "xtape/distributed.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>

#include "base/threads/threads.hpp"
#include "optim/optimizer.hpp"
#include "player/plan/memory.hpp"
#include "ranks/gradient_sum.hpp"
#include "ranks/rank_group.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

namespace {
template <class T>
std::string not_second_moments(const Array& array) {
  const T* values = array.as<T>();
  const T* wrong = std::find_if_not(values, values + array.count(), [](T value) { return value >= 0; });
  return wrong == values + array.count() ? ""
                                         : "has an element that is negative or NaN, number " +
                                               std::to_string(wrong - values) + ": second moments are means of squares";
}

/// The kinds of moments whose elements are means of squares.
constexpr const char* kinds_of_squares[] = {"second", "second_scales", "rows", "columns"};

/// Returns the error in the elements of an array of an optimiser's state, or "" if there is none.
std::string wrong_elements(const std::string& name, const Array& array) {
  if (name == "updates") {
    const auto* updates = array.as<std::int64_t>();
    const auto* wrong = std::find_if(updates, updates + array.count(),
                                     [](std::int64_t count) { return count < 0 || count > most_updates; });
    return wrong == updates + array.count() ? "" : "is " + std::to_string(*wrong) + " for a weight";
  }
  const std::string kind = name.substr(0, name.find('.'));
  const auto is = [&](const char* each) { return kind == each; };
  if (array.dtype() == Dtype::int8 || std::ranges::none_of(kinds_of_squares, is)) return "";
  return array.dtype() == Dtype::float64 ? not_second_moments<double>(array) : not_second_moments<float>(array);
}

/// The key of the names of the weights that `updates` counts, in its order and one in each line.
constexpr const char* counted_key = "weights";

std::string lines_of_names(const Store& weights) {
  std::string lines;
  for (const Store::Entry& weight : weights) lines += weight.name + '\n';
  return lines;
}

/// Returns the array of this name in a state's file. Throws FileError if there is none of this type, or if its elements
/// are wrong. Without a shape, any number of counts is right.
Array array_of_state(const ArrayFile& file, const std::string& name, Dtype dtype, const std::optional<Shape>& shape) {
  const auto& entries = file.entries();
  const auto found = std::ranges::find_if(entries, [&](const ArrayFile::Entry& entry) { return entry.name == name; });
  if (found == entries.end() || found->dtype != dtype || (shape ? found->shape != *shape : found->shape.size() != 1))
    throw FileError(file.path() + " does not hold '" + name + "' as " + name_of(dtype) +
                    (shape ? " " + to_string(*shape) : "") + ": it is from another optimiser or model");
  Array array = file.read(static_cast<std::size_t>(found - entries.begin()));
  if (const std::string wrong = wrong_elements(name, array); !wrong.empty())
    throw FileError(file.path() + " is not the state of an optimiser: '" + name + "' " + wrong);
  return array;
}

/// Returns the numbers of updates of `weights`. The file may have those of more weights: a training that continues may
/// freeze some. Throws FileError as array_of_state does, and if a weight is not among those of the file.
Array counts_in(const ArrayFile& file, const Store& weights) {
  const std::string* const lines = file.metadata().find(counted_key);
  const Shape shape{std::ssize(weights)};  // of a file without names, which earlier versions wrote
  Array counts = array_of_state(file, "updates", Dtype::int64, lines == nullptr ? std::optional(shape) : std::nullopt);
  if (lines == nullptr) return counts;
  std::map<std::string, std::int64_t> place;
  std::istringstream names(*lines);
  for (std::string name; std::getline(names, name);) place.emplace(name, std::ssize(place));
  Array own(Dtype::int64, shape);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto found = place.find(weights[i].name);
    if (found == place.end() || found->second >= counts.count())
      throw FileError(file.path() + " does not hold the updates of '" + weights[i].name +
                      "': the weight was frozen, or is of another model");
    own.as<std::int64_t>()[i] = std::as_const(counts).as<std::int64_t>()[found->second];
  }
  return own;
}

/// Returns all groups. The last group contains the remaining weights.
std::vector<OptimizerGroup> all_groups(const DistributedOptions& options) {
  std::vector<OptimizerGroup> groups = options.groups;
  groups.push_back({"*", options.optimizer});
  return groups;
}

const DistributedOptions& checked(const DistributedOptions& options) {
  const auto within = [](std::int64_t count, std::int64_t most, const char* what) {
    if (count < 1 || count > most)
      throw Error("an update has 1 to " + std::to_string(most) + " " + what + ", not " + std::to_string(count));
  };
  within(options.shards, ranks::most_shards, "shards");
  within(options.micro_batches, ranks::most_micro_batches, "micro-batches");
  if (options.communicator) ranks::check_shards(options.shards, options.communicator->size());
  return options;
}
}  // namespace

struct DistributedOptimizer::Data {
  Data(Model& model, const std::vector<std::string>& trained, const DistributedOptions& given)
      : options(checked(given)), group(options.communicator), weights(model, trained, group) {
    options.threads = ranks::threads_of(group, options.threads);
    if (group.size() == 1) pieces.emplace(weights.weights(), all_groups(options), options.threads, options.bits);
  }

  DistributedOptions options;
  ranks::RankGroup group;
  ranks::SharedWeights weights;
  std::optional<ranks::GradientSum> gradients;
  std::optional<Optimizer::Data> pieces;  // set by arrange() if there are several ranks
  PieceGradients of_piece;
  std::string reached;  // one byte per weight: 1 if any rank has a gradient, otherwise 0
  bool begun = false;   // whether begin() was called since the last update
  bool summed = false;  // whether the gradients were summed since begin()

  Optimizer::Data& optimizer() {
    if (!pieces) throw Error("DistributedOptimizer: arrange() must be called first");
    return *pieces;
  }
  const Optimizer::Data& optimizer() const { return const_cast<Data*>(this)->optimizer(); }
  ranks::GradientSum& arranged() {
    if (!gradients) throw Error("DistributedOptimizer: arrange() must be called first");
    return *gradients;
  }
  const ranks::GradientLayout& layout() const { return gradients->layout(); }

  /// Calls visit(kind, weight, type) for the moments of all weights, in the order of the file.
  template <class Visit>
  void for_moments(const Visit& visit) const {
    for (std::size_t kind = 0; kind < moment_kinds; ++kind)
      for (std::size_t weight = 0; weight < weights.weights().size(); ++weight)
        if (const MomentType* type = optimizer().type(kind, weight)) visit(kind, weight, *type);
  }

  /// Calls visit(address, bytes) for the moments of each piece that this rank owns.
  template <class Visit>
  void for_own_moments(const Visit& visit) const {
    for (std::size_t kind = 0; kind < moment_kinds; ++kind)
      for (std::size_t i = 0; i < optimizer().pieces().size(); ++i)
        if (const void* moment = optimizer().moment(kind, i))
          visit(moment, optimizer().moment_bytes(kind, optimizer().pieces()[i]).second);
  }

  std::string name_of_moments(std::size_t kind, std::size_t weight) const {
    return moment_names[kind] + ("." + weights.weights()[weight].name);
  }

  /// Returns the arrays of the state as entries of a file.
  std::vector<ArrayFile::Entry> entries() const {
    std::vector<ArrayFile::Entry> entries;
    for_moments([&](std::size_t kind, std::size_t i, const MomentType& type) {
      entries.push_back({name_of_moments(kind, i), type.dtype, type.shape});
    });
    entries.push_back({"updates", Dtype::int64, {static_cast<std::int64_t>(weights.weights().size())}});
    return entries;
  }

  /// Calls visit(index of the piece, its first byte, its number of bytes) for the moments of each piece of a weight.
  /// The first byte is relative to the array of the moments.
  template <class Visit>
  void for_pieces_of(std::size_t kind, std::size_t weight, const Visit& visit) const {
    const std::vector<Piece>& all = optimizer().pieces();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].weight == weight) {
        const auto [first, count] = optimizer().moment_bytes(kind, all[i]);
        visit(i, first, count);
      }
  }

  /// Gathers the moments of one weight from their owners on rank 0.
  void gather(std::size_t kind, std::size_t weight, const MomentType& type, ArrayWriter* writer) {
    std::vector<Communicator::Request> requests;
    Array whole;
    if (writer != nullptr) whole = Array(type.dtype, type.shape);
    auto* to = static_cast<std::byte*>(whole.data());
    for_pieces_of(kind, weight, [&](std::size_t index, std::size_t at, std::size_t count) {
      const int owner = layout().owner[index];
      if (owner == group.rank() && writer != nullptr)
        std::memcpy(to + at, optimizer().moment(kind, index), count);
      else if (owner == group.rank())
        requests.push_back(group.communicator().send(0, optimizer().moment(kind, index), count));
      else if (writer != nullptr)
        requests.push_back(group.communicator().receive(owner, to + at, count));
    });
    group.wait(requests);
    if (writer != nullptr) writer->write(whole);
  }
};

DistributedOptimizer::DistributedOptimizer(Model& model, const std::vector<std::string>& trained,
                                           const DistributedOptions& options)
    : data_(std::make_unique<Data>(model, trained, options)) {}

const Store& DistributedOptimizer::trained() const {
  return data_->weights.weights();
}

std::int64_t DistributedOptimizer::first_shard() const {
  return ranks::shards_of(data_->group.rank(), data_->group.size(), data_->options.shards).first;
}

std::int64_t DistributedOptimizer::last_shard() const {
  return ranks::shards_of(data_->group.rank(), data_->group.size(), data_->options.shards).last;
}

void DistributedOptimizer::arrange(const Vars& gradients) {
  Data& d = *data_;
  const Store& weights = d.weights.weights();
  if (gradients.size() != weights.size())
    throw Error("there must be a gradient, which can be empty, for each of the " + std::to_string(weights.size()) +
                " weights, not " + std::to_string(gradients.size()));
  d.gradients.emplace(weights, pieces_of(weights, all_groups(d.options)), gradients, d.options.shards,
                      d.options.micro_batches > 1, d.options.overlap, thread_count(d.options.threads), d.group);
  const ranks::GradientLayout& layout = d.layout();
  if (!d.pieces)
    d.pieces.emplace(weights, all_groups(d.options), d.options.threads, d.options.bits,
                     std::make_unique<ranks::PieceOwners>(d.group, layout.owner));
  d.of_piece.assign(layout.pieces.size(), nullptr);
}

void DistributedOptimizer::begin(std::int64_t shards) {
  if (shards < 1 || shards > data_->options.shards)
    throw Error("an update has 1 to " + std::to_string(data_->options.shards) + " shards with rows, not " +
                std::to_string(shards));
  data_->arranged().begin(shards);
  data_->begun = true;
  data_->summed = false;
}

std::function<void(std::int64_t)> DistributedOptimizer::expect(Player& player, const Vars& gradients, bool ends_shard) {
  if (!data_->begun) throw Error("DistributedOptimizer: begin() must be called before expect()");
  return data_->gradients->expect(player, gradients, ends_shard);
}

void DistributedOptimizer::add() {
  data_->arranged().add();
}

std::vector<double> DistributedOptimizer::sum(const std::vector<double>& values) {
  Data& d = *data_;
  if (!d.begun || !d.gradients->is_played())
    throw Error("DistributedOptimizer: begin() and the plays of all own shards must come before sum()");
  const auto shards_of = [&](int rank) { return static_cast<std::size_t>(d.gradients->present(rank).count()); };
  const std::size_t own = shards_of(d.group.rank());
  const std::size_t each = values.size() / std::max<std::size_t>(1, own);
  if (values.size() != each * std::max<std::size_t>(1, own))
    throw Error("got " + std::to_string(values.size()) + " values for " + std::to_string(own) + " shards");
  ranks::PackedBytes bytes;
  for (std::size_t i = 0; i < own * each; ++i) bytes.add(values[i]);
  std::vector<std::string> of_rank;
  for (int rank = 0; rank < d.group.size(); ++rank)
    of_rank.emplace_back(shards_of(rank) * each * sizeof(double) + d.gradients->reached().size(), '\0');
  of_rank[d.group.rank()] = bytes.bytes() + d.gradients->reached();
  d.group.all_gather(of_rank);
  std::vector<std::vector<double>> columns(each);
  d.reached.assign(d.gradients->reached().size(), '\0');
  for (int rank = 0; rank < d.group.size(); ++rank) {
    ranks::PackedBytes sent(std::move(of_rank[rank]));
    for (std::size_t i = 0; i < shards_of(rank) * each; ++i) columns[i % each].push_back(sent.take<double>());
    for (char& reached : d.reached) reached = static_cast<char>(reached | sent.take<char>());
  }
  d.gradients->receive();
  d.summed = true;
  std::vector<double> sums;
  for (const std::vector<double>& column : columns) sums.push_back(ranks::tree_sum(column.data(), std::ssize(column)));
  return sums;
}

double DistributedOptimizer::update(double rate, double scale, double clip, const GradientNoise& noise) {
  Data& d = *data_;
  check_numbers(rate, clip);
  if (!(noise.deviation >= 0 && std::isfinite(noise.deviation)))
    throw Error("DistributedOptimizer: the deviation of the noise must be at least 0 and finite (0: no noise), got " +
                std::to_string(noise.deviation));
  if (!d.summed) throw Error("DistributedOptimizer: sum() must be called before update()");
  d.begun = d.summed = false;
  const ranks::GradientLayout& layout = d.layout();
  parallel_for(
      thread_count(d.options.threads), std::ssize(layout.pieces), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Piece& piece = layout.pieces[i];
          const bool updated =
              layout.owner[i] == d.group.rank() && d.reached[piece.weight] != 0 && !d.optimizer().options(piece).frozen;
          void* sums = updated ? d.gradients->sum(static_cast<std::size_t>(i)) : nullptr;
          if (updated && noise.deviation != 0) ranks::add_noise(d.weights.weights(), piece, noise, sums);
          d.of_piece[i] = sums;
        }
      });
  ReachedWeights counted(d.reached.begin(), d.reached.end());
  for (const Piece& piece : layout.pieces)
    if (d.optimizer().options(piece).frozen) counted[piece.weight] = 0;
  const double norm = d.optimizer().update(d.of_piece, counted, rate, scale, clip);
  if (std::isfinite(norm)) d.weights.exchange(layout);
  return norm;
}

double DistributedOptimizer::take_waited() {
  return data_->group.take_waited();
}

std::vector<SentGradients> DistributedOptimizer::sendings() const {
  return data_->arranged().sendings();
}

std::size_t DistributedOptimizer::gradient_bytes() const {
  return data_->gradients ? data_->gradients->bytes() : 0;
}

std::size_t DistributedOptimizer::moment_bytes() const {
  std::size_t bytes = 0;
  data_->for_own_moments([&](const void*, std::size_t count) { bytes += count; });
  return bytes;
}

std::size_t DistributedOptimizer::absent_bytes() const {
  std::size_t bytes = data_->gradients ? data_->gradients->absent_bytes() : 0;
  const auto add = [&](const void* memory, std::size_t count) { bytes += count - resident_bytes(memory, count); };
  data_->for_own_moments(add);
  const Array& scratch = data_->optimizer().scratch();
  add(scratch.data(), scratch.bytes());
  return bytes;
}

const Store& DistributedOptimizer::state() const {
  return data_->optimizer().state();
}

void DistributedOptimizer::save(const std::string& path) {
  Data& d = *data_;
  if (d.group.size() == 1) {
    save_arrays(path, state(), {{counted_key, lines_of_names(d.weights.weights())}});
    return;
  }
  std::optional<ArrayWriter> writer;
  using Texts = std::vector<std::pair<std::string, std::string>>;
  if (d.group.rank() == 0) writer.emplace(path, d.entries(), Texts{{counted_key, lines_of_names(d.weights.weights())}});
  d.for_moments([&](std::size_t kind, std::size_t weight, const MomentType& type) {
    d.gather(kind, weight, type, writer ? &*writer : nullptr);
  });
  if (!writer) return;
  writer->write(d.optimizer().updates());
  writer->commit();
}

void DistributedOptimizer::check(const std::string& path) const {
  const ArrayFile file(path);
  data_->for_moments([&](std::size_t kind, std::size_t weight, const MomentType& type) {
    array_of_state(file, data_->name_of_moments(kind, weight), type.dtype, type.shape);
  });
  counts_in(file, data_->weights.weights());
}

void DistributedOptimizer::load(const std::string& path) {
  Data& d = *data_;
  check(path);
  const ArrayFile file(path);
  d.for_moments([&](std::size_t kind, std::size_t weight, const MomentType& type) {
    const Array whole = array_of_state(file, d.name_of_moments(kind, weight), type.dtype, type.shape);
    d.for_pieces_of(kind, weight, [&](std::size_t index, std::size_t at, std::size_t count) {
      if (void* moment = d.optimizer().moment(kind, index); moment != nullptr)
        std::memcpy(moment, static_cast<const std::byte*>(whole.data()) + at, count);
    });
  });
  d.optimizer().updates().assign(counts_in(file, d.weights.weights()));
  d.optimizer().forget_bounds();
}

}  // namespace xtape
