// A GGUF file as a folder of the Hugging Face Hub.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>

#include "base/arrays/elements.hpp"
#include "base/messages/wording.hpp"
#include "base/system/folder_file.hpp"
#include "base/threads/threads.hpp"
#include "gguf/family.hpp"
#include "gguf/tokenizer.hpp"
#include "gguf/write.hpp"
#include "model/hugging_face/adapter.hpp"

namespace xtape::gguf {

namespace {
/// Returns the dtype of an array. Matrices stay in their blocks if there are arrays of this format.
Dtype dtype_of_format(const BlockFormat& format, const TensorRule* rule, const Shape& shape) {
  const std::string name = format.name;
  if (rule != nullptr && rule->plus != 0) return Dtype::float32;
  if (name == "F16") return Dtype::float16;
  if (name == "BF16") return Dtype::bfloat16;
  if (shape.size() >= 2)
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

  Place place(std::size_t entry) const override {
    const Rows& rows = rows_[entry];
    if (!is_block(entries_[entry].dtype) || !rows.order.empty()) return {};
    const MappedFile* file = file_->places[rows.tensor];
    return {file, static_cast<std::size_t>(bytes_from(rows, rows.first) - file->bytes().data())};
  }

  void check(std::size_t entry, const Array& elements) const override {
    const Rows& rows = rows_[entry];
    const auto* first = static_cast<const std::byte*>(elements.data());
    constexpr std::int64_t grain = 1 << 10;
    std::atomic<std::int64_t> bad = -1;
    parallel_for(thread_count(), blocks_in(rows, rows.count), grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t bytes = file_->formats[rows.tensor]->bytes;
      const std::int64_t found = find_damaged(elements.dtype(), first + begin * bytes, end - begin);
      if (found >= 0) bad = begin + found;
    });
    if (bad >= 0) fail_block(*file_, rows.tensor, blocks_in(rows, rows.first) + bad);
  }

 private:
  /// The rows of a tensor of the file that are an array.
  struct Rows {
    std::size_t tensor;
    std::int64_t first, count, columns;
    std::vector<std::int64_t> order;  // the array's row of each of the file's rows; empty if they are the same
    const TensorRule* rule;
    bool transposed;  // whether the array has them as columns
  };

  std::int64_t blocks_in(const Rows& rows, std::int64_t count) const {
    return count * rows.columns / file_->formats[rows.tensor]->elements;
  }
  /// The bytes of the tensor from row `first` on.
  const std::byte* bytes_from(const Rows& rows, std::int64_t first) const {
    return file_->elements[rows.tensor].data() + blocks_in(rows, first) * file_->formats[rows.tensor]->bytes;
  }

  void add(const Family& family, const Json& config, std::size_t tensor) {
    const GgufFile::Tensor& described = file_->tensors[tensor];
    const Renamed renamed = family.in_folder(described.name);
    const std::string where = escaped("'" + file_->places[tensor]->path() + "': tensor '" + described.name + "'");
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
    ArrayFile::Entry entry{"", dtype_of_format(*file_->formats[tensor], rule, shape), shape};
    const bool turned = rule != nullptr && rule->transposed && shape.size() == 2, in_blocks = is_block(entry.dtype);
    if (in_blocks)  // blocks lie along the rows of the file, so the rows stay as they are
      for (std::int64_t i = 0; i < std::ssize(shape); ++i) entry.order.push_back(turned ? 1 - i : i);
    else if (turned)
      entry.shape = {shape[1], shape[0]};
    for (std::int64_t i = 0; i < parts; ++i) {
      entry.name = renamed.name;
      if (part != std::string::npos) entry.name.replace(part + 1, 1, std::to_string(i));
      entries_.push_back(entry);
      rows_.push_back({tensor, i * rows, rows, columns, order, rule, turned && !in_blocks});
    }
  }

  /// Writes `count` rows of the array from `row` on to `to`. Returns the last damaged block among them, or -1.
  template <class T>
  std::int64_t copy_rows(std::size_t entry, std::int64_t row, std::int64_t count, T* to) const {
    const Rows& rows = rows_[entry];
    const std::int64_t first = blocks_in(rows, rows.first + row), blocks = blocks_in(rows, count);
    if constexpr (std::is_same_v<T, float>) {
      return decode(*file_, rows.tensor, first, blocks, to);
    } else {
      const std::byte* from = bytes_from(rows, rows.first + row);
      std::memcpy(to, from, static_cast<std::size_t>(blocks * file_->formats[rows.tensor]->bytes));
      const std::int64_t bad = find_damaged(entries_[entry].dtype, from, blocks);
      return bad < 0 ? bad : first + bad;
    }
  }

  template <class T>
  void read_rows(std::size_t entry, T* to) const {
    const Rows& rows = rows_[entry];
    std::vector<T> other(rows.transposed ? static_cast<std::size_t>(rows.count * rows.columns) : 0);
    T* target = rows.transposed ? other.data() : to;
    const BlockFormat& format = *file_->formats[rows.tensor];
    const std::int64_t length = std::is_same_v<T, float>
                                    ? rows.columns
                                    : rows.columns * format.bytes / (format.elements * std::int64_t(sizeof(T)));
    // Vectors in blocks are rows of single numbers: whole blocks are decoded at once.
    const std::int64_t group = rows.columns == 1 ? format.elements : 1;
    constexpr std::int64_t grain = 1 << 15;
    std::atomic<std::int64_t> bad = -1;
    parallel_for(thread_count(), rows.count / group, std::max<std::int64_t>(1, grain / (rows.columns * group)),
                 [&](std::int64_t begin, std::int64_t end) {
                   const std::int64_t step = rows.order.empty() ? (end - begin) * group : 1;
                   for (std::int64_t row = begin * group; row < end * group; row += step) {
                     const std::int64_t into = rows.order.empty() ? row : rows.order[static_cast<std::size_t>(row)];
                     const std::int64_t found = copy_rows(entry, row, step, target + into * length);
                     if (found >= 0) bad = found;
                   }
                 });
    if (bad >= 0) fail_block(*file_, rows.tensor, bad);
    if (rows.transposed)
      for (std::int64_t row = 0; row < rows.count; ++row)
        for (std::int64_t i = 0; i < rows.columns; ++i)
          to[i * rows.count + row] = other[static_cast<std::size_t>(row * rows.columns + i)];
    if constexpr (std::is_same_v<T, float>)
      if (rows.rule != nullptr && rows.rule->plus != 0)
        for (std::int64_t i = 0; i < rows.count * rows.columns; ++i) to[i] -= static_cast<float>(rows.rule->plus);
  }

  std::shared_ptr<const FileData> file_;
  std::map<std::string, std::string> texts_;
  std::vector<ArrayFile::Entry> entries_;
  std::vector<Rows> rows_;
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
