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

namespace xtape::gguf {

namespace {
Dtype dtype_of_format(const BlockFormat& format, const TensorRule* rule) {
  const std::string name = format.name;
  if (rule != nullptr && rule->plus != 0) return Dtype::float32;
  return name == "F16" ? Dtype::float16 : name == "BF16" ? Dtype::bfloat16 : Dtype::float32;
}

class Folder : public FolderFile {
 public:
  explicit Folder(const std::string& path) : file_(open_file(path)) {
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
    if (into.dtype() == Dtype::float32) return read_rows<float>(entry, into.as<float>());
    if (into.dtype() == entries_[entry].dtype)
      return read_rows<std::uint16_t>(entry, static_cast<std::uint16_t*>(into.data()));
    Array wide(Dtype::float32, into.shape());
    read_rows<float>(entry, wide.as<float>());
    convert_floats(wide, into);
  }

 private:
  /// Where the rows of an array are in the file.
  struct Place {
    std::size_t tensor;
    std::int64_t first_row, rows, columns;  // rows of the file
    std::vector<std::int64_t> order;        // the array's row of each of the file's rows; empty if they are the same
    const TensorRule* rule;
  };

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
      entries_.push_back(
          {name, dtype_of_format(*file_->formats[tensor], rule), transposed ? Shape{shape[1], shape[0]} : shape});
      places_.push_back({tensor, i * rows, rows, columns, order, rule});
    }
  }

  /// Writes rows first … last of the file to `to`, in the order of the array.
  template <class T>
  std::int64_t copy_rows(const Place& place, std::int64_t first, std::int64_t last, T* to) const {
    const BlockFormat& format = *file_->formats[place.tensor];
    const auto fetch = [&](std::int64_t row, std::int64_t rows, T* target) {
      const std::int64_t begin = (place.first_row + row) * place.columns, count = rows * place.columns;
      if constexpr (std::is_same_v<T, float>) {
        return decode(*file_, place.tensor, begin / format.elements, count / format.elements, target);
      } else {
        std::memcpy(target, file_->elements[place.tensor].data() + begin * format.bytes,
                    static_cast<std::size_t>(count * format.bytes));
        return std::int64_t{-1};
      }
    };
    if (place.order.empty()) return fetch(first, last - first, to + first * place.columns);
    std::int64_t bad = -1;
    for (std::int64_t row = first; row < last; ++row)
      bad = std::max(bad, fetch(row, 1, to + place.order[static_cast<std::size_t>(row)] * place.columns));
    return bad;
  }

  template <class T>
  void read_rows(std::size_t entry, T* to) const {
    const Place& place = places_[entry];
    const bool transposed = place.rule != nullptr && place.rule->transposed && place.columns > 1;
    std::vector<T> other(transposed ? static_cast<std::size_t>(place.rows * place.columns) : 0);
    T* target = transposed ? other.data() : to;
    // Vectors in blocks are rows of single numbers: whole blocks are decoded at once.
    const std::int64_t elements = file_->formats[place.tensor]->elements, group = place.columns == 1 ? elements : 1;
    constexpr std::int64_t grain = 1 << 15;
    std::atomic<std::int64_t> bad = -1;
    parallel_for(thread_count(), place.rows / group, std::max<std::int64_t>(1, grain / (place.columns * group)),
                 [&](std::int64_t begin, std::int64_t end) {
                   const std::int64_t found = copy_rows(place, begin * group, end * group, target);
                   if (found >= 0) bad = found;
                 });
    if (bad >= 0) fail_block(*file_, place.tensor, bad);
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
}

}  // namespace xtape
