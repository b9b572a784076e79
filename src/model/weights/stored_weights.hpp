/// Loads weights from files. The weights may have other names there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/recording/module.hpp"
#include "xtape/model.hpp"
#include "xtape/ops.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::model {

/// An array of a file, and the weight that the array holds. The array is the whole weight or one part of it. Files may
/// hold a weight in parts, with one array for each index of its first axis.
struct StoredWeight {
  static constexpr std::int64_t whole = -1;
  std::string weight;
  const ArrayFile* file;
  std::size_t entry;
  std::int64_t part = whole;  ///< The index along the first axis.
  bool is_exact = false;      ///< Whether a different shape is an error even for a weight that may be missing.
  const ArrayFile::Entry& described() const { return file->entries()[entry]; }
};

/// Returns the shape of an array that has the shape `stored` in this order (BlockStorage).
Shape in_order(const Shape& stored, const Axes& order);
/// Returns the order (BlockStorage) of one part of a weight, or that of the whole weight. Throws DtypeError if the
/// parts are not whole blocks, because the first axis has another place.
Axes order_of_part(const std::string& weight, const Axes& order, std::int64_t part);
/// Returns the metadata that tell files the orders of these arrays (ArrayFile::Entry::order).
std::vector<std::pair<std::string, std::string>> order_metadata(const std::map<std::string, Axes>& orders);

/// Opens a safetensors file, or a file in another format for which there is a reader (set_weight_reader). The arrays of
/// the latter are read from a temporary file. Throws FileError.
std::unique_ptr<ArrayFile> open_weights(const std::string& path);

/// Maps the name of a weight and the number of a part (or `whole`) to the array.
using FoundWeights = std::map<std::pair<std::string, std::int64_t>, const StoredWeight*>;

/// The weights of a model, and the axes of those that are stored in another order (ModelContext::orders).
struct WeightsToRead {
  const Store& store;
  const std::map<std::string, Axes>& orders;
  /// Returns the shape that the definition gives a weight.
  Shape shape(const std::string& weight) const;
};

/// Whether the array is the whole weight exactly as the model stores it.
bool is_stored_as(const ArrayFile::Entry& array, const WeightsToRead& weights, const std::string& weight);

/// Returns the array or arrays of each weight of `weights` in `stored`. If a weight matches one of the patterns
/// `may_lack`, it may be missing. It may also have a different shape, and then counts as missing. Throws FileError if
/// other weights are missing, or if arrays are unexpected, present twice or of the wrong shape or dtype. The message
/// names `where` and `model`, and lists the first hundred problems. It calls arrays by their names in the files.
FoundWeights check_weights(const WeightsToRead& weights, const std::vector<StoredWeight>& stored,
                           const std::string& where, const std::string& model,
                           const std::vector<std::string>& may_lack = {});
/// Reads every weight of `weights` from its array or arrays in `stored` into the existing memory. Converts floating
/// dtypes, also to blocks. A missing weight keeps its value. Throws as check_weights does. Throws FileError if an array
/// does not match its checksum, or if numbers are out of range of the weight's dtype (bfloat16, float16 or a block
/// format). If it throws one of these errors, no weight has changed.
void read_weights(const WeightsToRead& weights, const std::vector<StoredWeight>& stored, const std::string& where,
                  const std::string& model, const std::vector<std::string>& may_lack = {});

/// Returns the weights that files store in blocks, and their dtypes.
WeightDtypes blocks_in(const std::vector<StoredWeight>& stored);

/// part_of copies the elements of index `part` along the first axis from an array. set_part writes them to an array.
Array part_of(const Array& array, std::int64_t part);
void set_part(Array& array, std::int64_t part, const Array& elements);

// Selects weights by patterns of their names.

/// Returns whether one of the patterns matches `name`. The patterns have the syntax of OptimizerGroup.
bool matches_weight(const std::string& name, const std::vector<std::string>& patterns);

/// Throws DefinitionError if a pattern matches no weight of the model. The message suggests the nearest pattern or
/// name, and names `key`, the setting that contains the patterns.
void check_weight_patterns(const Model& model, const std::string& key, const std::vector<std::string>& patterns);

// Weights stored as bfloat16, float16, int8 or in blocks.

/// Returns the name of the array with the scales of a weight stored as int8.
inline std::string scale_name(const std::string& weight) {
  return weight + ".scale";
}

/// Returns the var of a weight on `tape`, converted to the model's dtype from any storage dtype.
Var weight_on(Tape& tape, const ModelContext& context, const std::string& name);

/// Returns the weights of two or more axes that all functions of the model use only as operands of products and in
/// `take`. Each weight comes with the axes along which its scales may vary: the axes that no product sums over, or axis
/// 0 if no product sums over any axis.
std::map<std::string, Axes> narrowable_weights(const Model& model);

/// Returns the shape of the scales of a weight: its sizes along `channels`, and 1 along all other axes.
Shape shape_of_scale(const Shape& weight, const Axes& channels);

/// Converts `weight` from another float dtype to bfloat16 or float16. Returns an empty array if the conversion would
/// make a finite number infinite.
Array as_half(const Array& weight, Dtype dtype);

/// How a weight is stored in blocks.
struct BlockStorage {
  Dtype dtype;
  Axes order;  ///< All axes of the weight. Those that a product sums are the last, so that blocks lie within a sum.
};
/// Returns how a weight with these `channels` (narrowable_weights) is stored if `wanted` is the block format: as Q8_0
/// if the sums are not whole blocks of this format. Returns nothing if they are not whole blocks of Q8_0 either.
std::optional<BlockStorage> block_storage(const Shape& weight, const Axes& channels, Dtype wanted);
/// Rounds floats to blocks on all threads. `order` is that of BlockStorage, or empty. Returns an empty array if a
/// number is not finite, or beyond the range of the scales, which are float16 numbers.
Array as_blocks(const Array& weight, Dtype dtype, const Axes& order);

/// The inverse of as_blocks: float32, with the axes in the order of the definition.
Array numbers_of(const Array& blocks, const Axes& order);

/// A quantised weight. `numbers` is round(weight / scale).
struct Quantised {
  Array numbers;  ///< int8.
  Array scale;    ///< Has the weight's dtype.
};
/// Quantises `weight`. Each index of the axes `channels` has its own scale, which is the largest magnitude there / 127.
/// The scales have size 1 along all other axes. Throws Error if a number is not finite. The message names the weight.
Quantised as_int8(const std::string& name, const Array& weight, const Axes& channels);

}  // namespace xtape::model
