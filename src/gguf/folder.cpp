// A GGUF file as a folder of the Hugging Face Hub.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>

#include "base/arrays/elements.hpp"
#include "base/files/folder_file.hpp"
#include "base/messages/wording.hpp"
#include "base/threads/threads.hpp"
#include "gguf/family.hpp"
#include "gguf/tokenizer.hpp"
#include "gguf/write.hpp"
#include "model/hugging_face/adapter.hpp"

namespace xtape::gguf {

namespace {
/// Returns the dtype of an array. Whole rows of blocks stay as they are if there are arrays of this format.
Dtype dtype_of_format(const BlockFormat& format, const TensorRule* rule, const Shape& shape) {
  const std::string name = format.name;
  if (rule != nullptr && rule->plus != 0) return Dtype::float32;
  if (name == "F16") return Dtype::float16;
  if (name == "BF16") return Dtype::bfloat16;
  if (shape.size() >= 2 && (rule == nullptr || !rule->transposed))
    for (const Dtype dtype : {Dtype::q8_0, Dtype::q4_0, Dtype::q4_k, Dtype::q5_k, Dtype::q6_k})
      if (name == name_of(dtype)) return dtype;
  return Dtype::float32;
}

class Folder : public FolderFile {
 public:
  explicit Folder(const std::string& path) : file_(open_file(path)) {
    if (file_->is_adapter())
      file_->fail("it has adapters of a model and not the model: name the model, and --adapter " + path);
    const Family family = Family::of_file(*file_);
    Json config = family.config(*file_);
    texts_ = tokenizer_files(*file_, config);
    texts_["config.json"] = indented(config);
    for (std::size_t i = 0; i < file_->tensors.size(); ++i)
      if (!family.is_derived(file_->tensors[i].name)) add(family, config, i);
  }
  const std::map<std::string, std::string>& texts() const override { return texts_; }
  const std::string& arrays_name() const override {
    static const std::string name = "model.safetensors";
    return name;
  }
  const std::vector<ArrayFile::Entry>& arrays() const override { return entries_; }

  void read(std::size_t entry, Array& into) const override {
    if (is_block(into.dtype())) return read_rows<std::byte>(entry, static_cast<std::byte*>(into.data()));
    if (into.dtype() == Dtype::float32) return read_rows<float>(entry, into.as<float>());
    if (into.dtype() == entries_[entry].dtype)
      return read_rows<std::uint16_t>(entry, static_cast<std::uint16_t*>(into.data()));
    Array wide(Dtype::float32, into.shape());
    read_rows<float>(entry, wide.as<float>());
    convert_floats(wide, into);
  }

  Array mapped(std::size_t entry) const override {
    const Place& place = places_[entry];
    if (!is_block(entries_[entry].dtype) || !place.order.empty()) return {};
    auto* first = const_cast<std::byte*>(rows_of(place, place.first_row));
    return {std::shared_ptr<std::byte>(file_, first), entries_[entry].dtype, entries_[entry].shape};
  }

 private:
  /// Where the rows of an array are in the file.
  struct Place {
    std::size_t tensor;
    std::int64_t first_row, rows, columns;  // rows of the file
    std::vector<std::int64_t> order;        // the array's row of each of the file's rows; empty if they are the same
    const TensorRule* rule;
  };

  std::int64_t bytes_of_row(const Place& place) const {
    const BlockFormat& format = *file_->formats[place.tensor];
    return place.columns / format.elements * format.bytes;
  }
  /// The elements from this row of the tensor on.
  const std::byte* rows_of(const Place& place, std::int64_t row) const {
    return file_->elements[place.tensor].data() + row * bytes_of_row(place);
  }

  void add(const Family& family, const Json& config, std::size_t tensor) {
    const GgufFile::Tensor& described = file_->tensors[tensor];
    const Renamed renamed = family.in_folder(described.name);
    const std::string where = escaped("'" + file_->places[tensor] + "': tensor '" + described.name + "'");
    const TensorRule* rule = renamed.rule == nullptr ? nullptr : &rules_.emplace_back(*renamed.rule);
    const std::size_t part = renamed.name.find(".#.");
    Shape shape = described.shape;
    std::int64_t parts = 1;
    if (part != std::string::npos) {
      if (shape.size() < 2) throw FileError(where + " must have at least two axes, not the shape " + to_string(shape));
      parts = shape[0];
      shape.erase(0);
    }
    const std::int64_t columns = shape.empty() ? 1 : shape.size() == 1 ? 1 : shape.back();
    const std::int64_t rows = count_of(shape) / columns;
    std::vector<std::int64_t> order;
    if (rule != nullptr && !rule->rows.empty())
      order = row_order(rule->rows, shape.empty() ? 1 : shape[0], config, where);
    if (!order.empty() && (std::ssize(order) != rows || (shape.size() == 1 && file_->formats[tensor]->elements > 1)))
      throw FileError(where + " of format " + described.format + " has the shape " + to_string(described.shape) +
                      ", whose rows cannot be put in order");
    const bool transposed = rule != nullptr && rule->transposed && shape.size() == 2;
    for (std::int64_t i = 0; i < parts; ++i) {
      std::string name = renamed.name;
      if (part != std::string::npos) name.replace(part + 1, 1, std::to_string(i));
      entries_.push_back({name, dtype_of_format(*file_->formats[tensor], rule, shape),
                          transposed ? Shape{shape[1], shape[0]} : shape});
      places_.push_back({tensor, i * rows, rows, columns, order, rule});
    }
  }

  /// Writes `count` rows of the file from `row` on to `to`. Returns the last damaged block among them, or -1.
  template <class T>
  std::int64_t copy_rows(std::size_t entry, std::int64_t row, std::int64_t count, T* to) const {
    const Place& place = places_[entry];
    const BlockFormat& format = *file_->formats[place.tensor];
    const std::int64_t first = (place.first_row + row) * place.columns / format.elements,
                       blocks = count * place.columns / format.elements;
    if constexpr (std::is_same_v<T, float>) {
      return decode(*file_, place.tensor, first, blocks, to);
    } else {
      const std::byte* from = rows_of(place, place.first_row + row);
      if (static_cast<const void*>(to) != from)  // else the array is mapped
        std::memcpy(to, from, static_cast<std::size_t>(count * bytes_of_row(place)));
      const std::int64_t bad = find_damaged(entries_[entry].dtype, from, blocks);
      return bad < 0 ? bad : first + bad;
    }
  }

  template <class T>
  void read_rows(std::size_t entry, T* to) const {
    const Place& place = places_[entry];
    const bool transposed = place.rule != nullptr && place.rule->transposed && place.columns > 1;
    std::vector<T> other(transposed ? static_cast<std::size_t>(place.rows * place.columns) : 0);
    T* target = transposed ? other.data() : to;
    const std::int64_t length =
        std::is_same_v<T, float> ? place.columns : bytes_of_row(place) / std::int64_t(sizeof(T));
    // Vectors in blocks are rows of single numbers: whole blocks are decoded at once.
    const std::int64_t elements = file_->formats[place.tensor]->elements, group = place.columns == 1 ? elements : 1;
    constexpr std::int64_t grain = 1 << 15;
    std::atomic<std::int64_t> bad = -1;
    parallel_for(thread_count(), place.rows / group, std::max<std::int64_t>(1, grain / (place.columns * group)),
                 [&](std::int64_t begin, std::int64_t end) {
                   const std::int64_t step = place.order.empty() ? (end - begin) * group : 1;
                   for (std::int64_t row = begin * group; row < end * group; row += step) {
                     const std::int64_t into = place.order.empty() ? row : place.order[static_cast<std::size_t>(row)];
                     const std::int64_t found = copy_rows(entry, row, step, target + into * length);
                     if (found >= 0) bad = found;
                   }
                 });
    if (bad >= 0) fail_block(*file_, place.tensor, bad);
    if constexpr (!std::is_same_v<T, std::byte>)
      if (transposed)
        for (std::int64_t row = 0; row < place.rows; ++row)
          for (std::int64_t i = 0; i < place.columns; ++i)
            to[i * place.rows + row] = other[static_cast<std::size_t>(row * place.columns + i)];
    if constexpr (std::is_same_v<T, float>)
      if (place.rule != nullptr && place.rule->plus != 0)
        for (std::int64_t i = 0; i < place.rows * place.columns; ++i) to[i] -= static_cast<float>(place.rule->plus);
  }

  std::shared_ptr<const FileData> file_;
  std::map<std::string, std::string> texts_;
  std::vector<ArrayFile::Entry> entries_;
  std::vector<Place> places_;
  std::deque<TensorRule> rules_;
};
}  // namespace

}  // namespace xtape::gguf

namespace xtape {

void read_gguf_files() {
  set_folder_file_reader(".gguf", [](const std::string& path) -> std::shared_ptr<const FolderFile> {
    return std::make_shared<const gguf::Folder>(path);
  });
  model::set_adapter_reader(".gguf", gguf::write_adapter_folder);
}

}  // namespace xtape
