#include "xtape/safetensors.hpp"

#include <exception>
#include <map>
#include <mutex>
#include <optional>

#include "base/arrays/lengths.hpp"
#include "base/arrays/safetensors_header.hpp"
#include "base/bytes/encodings.hpp"
#include "base/system/files.hpp"
#include "base/system/folder_file.hpp"
#include "base/threads/threads.hpp"

namespace xtape {

namespace {
/// Keeps the first exception of any thread in a parallel region. The thread that opened the region rethrows it.
class Failure {
 public:
  template <class Work>
  void catch_of(const Work& work) {
    try {
      work();
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};
}  // namespace

struct ArrayFile::Data {
  std::string path;
  std::shared_ptr<const FolderFile> outer;  // not null if the path leads into a file of another format
  std::optional<OpenFile> file;
  SafetensorsHeader header;
  std::vector<Entry> entries;
  std::mutex mutex;
  std::map<const MappedFile*, std::shared_ptr<std::byte>> mappings;  // of this ArrayFile alone, made when needed

  explicit Data(const std::string& name) : path(name) {
    if (const PathInside inside = path_inside(name); inside.file != nullptr) {
      path = inside.path;
      outer = inside.file;
      entries = outer->arrays();
      return;
    }
    header = read_header(file.emplace(name), path);
    for (const Described& each : header.arrays)
      entries.push_back({each.name, each.stored->dtype, each.shape, each.order});
  }

  /// Reads an array piece by piece on all threads into `whole`, or into scratch memory if `whole` is null. Calls
  /// take(index of the first element, the stored bytes, number of elements) for each piece. Then verifies the checksum.
  template <class Take>
  void read_pieces(const Described& array, std::byte* whole, const Take& take) const {
    const auto element = static_cast<std::int64_t>(array.stored->bytes);
    const std::int64_t count = static_cast<std::int64_t>(array.last - array.first) / element;
    const std::int64_t piece = checksum_piece / element;
    std::vector<std::uint64_t> checksums(static_cast<std::size_t>(ceiling(count, piece)));
    Failure failure;
    parallel_for(thread_count(), count, piece, [&](std::int64_t begin, std::int64_t finish) {
      failure.catch_of([&] {
        const auto most = static_cast<std::size_t>(std::min(piece, finish - begin) * element);
        const std::unique_ptr<std::byte[]> scratch(whole == nullptr ? new std::byte[most] : nullptr);
        for (std::int64_t at = begin; at < finish; at += piece) {
          std::byte* bytes = whole == nullptr ? scratch.get() : whole + at * element;
          const std::int64_t elements = std::min(piece, finish - at);
          const auto size = static_cast<std::size_t>(elements * element);
          file->read(header.elements + array.first + static_cast<std::uint64_t>(at * element), bytes, size);
          if (array.checksum) checksums[at / piece] = checksum_of_piece(bytes, size);
          take(at, bytes, elements);
        }
      });
    });
    failure.rethrow();
    if (array.checksum && *array.checksum != checksum_of_pieces(checksums))
      throw FileError("'" + path + "' is damaged: array '" + array.name +
                      "' does not have the checksum that was saved with it");
  }

  /// Returns the array in its mapping, or an empty array.
  Array mapped(std::size_t entry, bool make) {
    const FolderFile::Place place = outer == nullptr ? FolderFile::Place() : outer->place(entry);
    if (place.file == nullptr) return {};
    const std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<std::byte>& mapping = mappings[place.file];
    if (!mapping && make) mapping = place.file->writable();
    if (!mapping) return {};
    return {std::shared_ptr<std::byte>(mapping, mapping.get() + place.byte), entries[entry].dtype,
            entries[entry].shape};
  }

  const Described& array(std::size_t entry) const {
    check_entry(entry);
    return header.arrays[entry];
  }
  void check_entry(std::size_t entry) const {
    if (entry >= entries.size())
      throw Error("'" + path + "' has no array " + std::to_string(entry) + ": it has " +
                  std::to_string(entries.size()));
  }
};

ArrayFile::ArrayFile(const std::string& path) : data_(std::make_unique<Data>(path)) {}

const std::string& ArrayFile::path() const {
  return data_->path;
}
const std::vector<ArrayFile::Entry>& ArrayFile::entries() const {
  return data_->entries;
}

const Named<std::string>& ArrayFile::metadata() const {
  return data_->header.metadata;
}

Array ArrayFile::read(std::size_t entry) const {
  data_->check_entry(entry);
  Array array(entries()[entry].dtype, entries()[entry].shape);
  read(entry, array);
  return array;
}

void ArrayFile::read(std::size_t entry, Array& into) const {
  data_->check_entry(entry);
  const Entry& wanted = entries()[entry];
  const Conversion widen = widening(wanted.dtype, into.dtype());
  if ((into.dtype() != wanted.dtype && widen == nullptr) || into.shape() != wanted.shape)
    throw ShapeError("'" + wanted.name + "' of '" + data_->path + "' is " + name_of(wanted.dtype) + " " +
                     to_string(wanted.shape) + ", and cannot be read into " + name_of(into.dtype()) + " " +
                     to_string(into.shape()));
  if (!into) throw Error("'" + wanted.name + "' of '" + data_->path + "' cannot be read into an empty array");
  if (data_->outer != nullptr) {
    const Array mapped = data_->mapped(entry, false);
    return mapped && mapped.data() == into.data() ? data_->outer->check(entry, into) : data_->outer->read(entry, into);
  }
  const Described& described = data_->array(entry);
  auto* to = static_cast<std::byte*>(into.data());
  const Conversion convert = widen != nullptr ? widen : described.stored->convert;
  if (convert == nullptr) return data_->read_pieces(described, to, [](auto...) {});
  const auto element = static_cast<std::int64_t>(size_of(into.dtype()));
  data_->read_pieces(described, nullptr, [&](std::int64_t at, const std::byte* bytes, std::int64_t count) {
    convert(bytes, to + at * element, count);
  });
}

Array ArrayFile::mapped(std::size_t entry) const {
  data_->check_entry(entry);
  return data_->mapped(entry, true);
}

void ArrayFile::check(std::size_t entry) const {
  data_->check_entry(entry);
  if (data_->outer != nullptr) return;
  const Described& described = data_->array(entry);
  if (described.checksum) data_->read_pieces(described, nullptr, [](auto...) {});
}

Store load_arrays(const std::string& path) {
  const ArrayFile file(path);
  Store store;
  for (std::size_t i = 0; i < file.entries().size(); ++i) store.add(file.entries()[i].name, file.read(i));
  return store;
}

struct ArrayWriter::Data {
  std::string path;
  std::vector<ArrayFile::Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::uint64_t> checksums;  // the known checksums of the arrays
  std::size_t written = 0;               // number of arrays
  bool committed = false;
  ReplacedFile file;

  Data(std::string name, std::vector<ArrayFile::Entry> arrays, std::vector<std::pair<std::string, std::string>> words)
      : path(std::move(name)),
        entries(std::move(arrays)),
        metadata(std::move(words)),
        checksums(entries.size()),
        file(path) {
    const std::string header = bytes_of_header();
    file.write(header.data(), header.size());
  }

  std::string bytes_of_header() const {
    const std::string header = header_of(entries, checksums, metadata, path);
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> 8 * i);
    return length + header;
  }
};

ArrayWriter::ArrayWriter(const std::string& path, const std::vector<ArrayFile::Entry>& entries,
                         const std::vector<std::pair<std::string, std::string>>& metadata)
    : data_(std::make_unique<Data>(path, entries, metadata)) {}

void ArrayWriter::write(const ArrayView& values) {
  if (data_->written == data_->entries.size())
    throw Error("all " + std::to_string(data_->written) + " arrays have been written");
  const ArrayFile::Entry& entry = data_->entries[data_->written];
  if (values.dtype() != entry.dtype)
    throw DtypeError("'" + entry.name + "' is " + name_of(entry.dtype) + ", not " + name_of(values.dtype()));
  if (values.shape() != entry.shape)
    throw ShapeError("'" + entry.name + "' has shape " + to_string(entry.shape) + ", not " + to_string(values.shape()));
  const auto size = static_cast<std::size_t>(checked_bytes(entry.dtype, entry.shape));
  if (values.data() == nullptr && size > 0)
    throw Error("cannot write '" + data_->path + "': array '" + entry.name + "' is empty: it has no memory");
  const Array copy = values.layout().contiguous() ? Array() : Array(values);
  const void* bytes =
      copy ? copy.data() : static_cast<const std::byte*>(values.data()) + bytes_of(entry.dtype, values.layout().offset);
  data_->checksums[data_->written++] = checksum_of(bytes, size);
  data_->file.write(bytes, size);
}

void ArrayWriter::commit() {
  if (!data_->file.is_open()) throw Error("'" + data_->path + "' has been committed already");
  if (data_->written != data_->entries.size())
    throw Error("only " + std::to_string(data_->written) + " of the " + std::to_string(data_->entries.size()) +
                " arrays of '" + data_->path + "' have been written");
  if (data_->committed) throw Error("'" + data_->path + "' has been committed already");
  const std::string header = data_->bytes_of_header();
  data_->file.rewrite(header.data(), header.size());
  data_->file.commit();
  data_->committed = true;
}

void save_arrays(const std::string& path, const Store& store,
                 const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::vector<ArrayFile::Entry> entries;
  for (const Store::Entry& entry : store) entries.push_back({entry.name, entry.value.dtype(), entry.value.shape()});
  ArrayWriter writer(path, entries, metadata);
  for (const Store::Entry& entry : store) writer.write(entry.value);
  writer.commit();
}

}  // namespace xtape
