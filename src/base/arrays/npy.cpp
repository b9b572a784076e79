// Reads arrays in NumPy's format: a signature, the version, the length of the header, the header, and the elements. The
// header is a Python dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
#include "base/arrays/npy.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "base/arrays/safetensors_header.hpp"
#include "base/messages/wording.hpp"
#include "base/system/files.hpp"
#include "base/system/process_memory.hpp"
#include "xtape/error.hpp"
#include "xtape/npy.hpp"

namespace xtape {

namespace {
constexpr std::uint64_t longest_npy_header = 1 << 16;

/// Reads a header. It is strict: a form that numpy.save does not write is an error.
class NpyHeaderReader {
 public:
  NpyHeaderReader(const NpyBytes& bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  NpyHeader read() {
    header_.elements = read_text();
    expect("{");
    std::optional<std::string> type;
    std::optional<bool> fortran;
    std::optional<Shape> shape;
    while (!next_is("}")) {
      const std::string key = quoted();
      expect(":");
      if (key == "descr" && !type)
        type = described();
      else if (key == "fortran_order" && !fortran)
        fortran = flag();
      else if (key == "shape" && !shape)
        shape = sizes();
      else
        fail_damaged("it has the key '" + escaped(key) + "' twice, or no array has it");
      if (!next_is(",")) {
        expect("}");
        break;
      }
    }
    if (at_ != text_.size()) fail_damaged("something follows its dictionary");
    if (!type || !fortran || !shape) fail_damaged("it must have the keys descr, fortran_order and shape");
    if (*fortran && shape->size() > 1)
      fail("its elements are in Fortran order: write numpy.ascontiguousarray(x) instead of x");
    header_.stored = stored(*type);
    header_.shape = *shape;
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw FileError("cannot read '" + where_ + "': " + why); }
  [[noreturn]] void fail_damaged(const std::string& why) const { fail("its header is not one of an npy file: " + why); }

  /// Reads the text of the header. Returns the position of its end.
  std::uint64_t read_text() {
    unsigned char start[12] = {};
    const auto read = [&](std::uint64_t first, std::uint64_t last) {
      if (bytes_.size < last) fail("it has " + std::to_string(bytes_.size) + " bytes, too few for an npy file");
      bytes_.read(first, start + first, static_cast<std::size_t>(last - first));
    };
    read(0, 8);
    if (std::memcmp(start, "\x93NUMPY", 6) != 0) fail("it does not begin as an npy file does");
    const int major = start[6], minor = start[7];
    if (major < 1 || major > 3 || minor != 0)
      fail("it has version " + std::to_string(major) + "." + std::to_string(minor) +
           " of the format; 1.0, 2.0 and 3.0 are known");
    const std::uint64_t first = major == 1 ? 10 : 12;
    read(8, first);
    std::uint64_t length = 0;
    for (std::uint64_t i = first; i-- > 8;) length = length << 8 | start[i];
    if (length > bytes_.size - first || length > longest_npy_header)
      fail("its header has " + std::to_string(length) + " bytes, more than the " + std::to_string(bytes_.size - first) +
           " that follow, or more than 64 KiB");
    text_.resize(static_cast<std::size_t>(length));
    bytes_.read(first, text_.data(), text_.size());
    return first + length;
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool next_is(const char* word) {
    skip_spaces();
    const std::size_t length = std::strlen(word);
    if (text_.compare(at_, length, word) != 0) return false;
    at_ += length;
    skip_spaces();
    return true;
  }
  void expect(const char* word) {
    if (!next_is(word)) fail_damaged("byte " + std::to_string(at_) + " is not '" + word + "'");
  }

  std::string quoted() {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end = text_.find(quote, at_ + 1);
    if ((quote != '\'' && quote != '"') || end == std::string::npos)
      fail_damaged("byte " + std::to_string(at_) + " does not begin a text in quotes");
    const std::string found = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return found;
  }
  std::string described() {
    if (next_is("[")) fail("its elements are records: write each field as an array of its own");
    return quoted();
  }
  bool flag() {
    if (next_is("True")) return true;
    if (!next_is("False")) fail_damaged("fortran_order must be True or False");
    return false;
  }
  Shape sizes() {
    Shape shape;
    expect("(");
    while (!next_is(")")) {
      std::int64_t size = -1;
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail_damaged("a size of its shape is no number from 0 to 2^63 - 1");
      at_ += static_cast<std::size_t>(end - begin);
      if (shape.size() == Shape::max_rank)
        fail("it has more than " + std::to_string(Shape::max_rank) + " axes, which no array can have");
      shape.push_back(size);
      if (next_is(",")) continue;
      if (shape.size() < 2) fail_damaged("a shape of one axis has a comma, as in (3,)");
      expect(")");
      break;
    }
    return shape;
  }

  /// Returns the element type that NumPy calls "<f4", "|u1" …
  const Stored* stored(const std::string& name) const {
    if (name.size() > 1 && name[0] == '>')
      fail("its elements, '" + escaped(name) +
           "', are big-endian: write them with "
           "x.astype(x.dtype.newbyteorder('<'))");
    static constexpr std::pair<const char*, const char*> names[] = {
        {"<f4", "F32"}, {"<f8", "F64"}, {"<f2", "F16"}, {"<i8", "I64"}, {"<i4", "I32"}, {"<i2", "I16"},
        {"|i1", "I8"},  {"<u4", "U32"}, {"<u2", "U16"}, {"|u1", "U8"},  {"|b1", "BOOL"}};
    for (const auto& [ours, theirs] : names)
      if (name == ours) return stored_type(theirs);
    fail("its elements are of NumPy's type '" + escaped(name) +
         "'; floats of 2, 4 and 8 bytes, integers of up to 8 (unsigned: 4) and bool can be read");
  }

  const NpyBytes& bytes_;
  const std::string& where_;
  std::string text_;
  std::size_t at_ = 0;
  NpyHeader header_;
};
}  // namespace

NpyHeader read_npy_header(const NpyBytes& bytes, const std::string& where) {
  const auto fail = [&](const std::string& why) { throw FileError("cannot read '" + where + "': " + why); };
  NpyHeader header = NpyHeaderReader(bytes, where).read();
  const std::uint64_t left = bytes.size - header.elements;
  std::int64_t wanted = static_cast<std::int64_t>(header.stored->bytes);
  try {
    // checks the size of the array in bytes; its elements are at least as wide as the elements in the file
    checked_bytes(header.stored->dtype, header.shape);
    wanted *= count_of(header.shape);
  } catch (const ShapeError&) {
    fail("no array can have its shape, " + to_string(header.shape));
  }
  if (left != static_cast<std::uint64_t>(wanted))
    fail("its elements of shape " + to_string(header.shape) + " take " + std::to_string(wanted) + " bytes, but " +
         std::to_string(left) + " follow the header");
  return header;
}

Array read_npy(const NpyBytes& bytes, const std::string& where) {
  const NpyHeader header = read_npy_header(bytes, where);
  require_memory_left(static_cast<std::size_t>(checked_bytes(header.stored->dtype, header.shape)), "'" + where + "'");
  Array array(header.stored->dtype, header.shape);
  auto* const to = static_cast<std::byte*>(array.data());
  if (header.stored->convert == nullptr) {
    bytes.read(header.elements, to, static_cast<std::size_t>(array.bytes()));
    return array;
  }
  constexpr std::int64_t piece = 1 << 16;  // number of elements that are converted at once
  const auto element = static_cast<std::int64_t>(header.stored->bytes);
  const auto wide = static_cast<std::int64_t>(size_of(array.dtype()));
  const std::unique_ptr<std::byte[]> scratch(new std::byte[static_cast<std::size_t>(piece * element)]);
  for (std::int64_t at = 0; at < array.count(); at += piece) {
    const std::int64_t count = std::min(piece, array.count() - at);
    bytes.read(header.elements + static_cast<std::uint64_t>(at * element), scratch.get(),
               static_cast<std::size_t>(count * element));
    header.stored->convert(scratch.get(), to + at * wide, count);
  }
  return array;
}

Array load_npy(const std::string& path) {
  const OpenFile file(path);
  return read_npy({file.size(), [&](std::uint64_t at, void* to, std::size_t count) { file.read(at, to, count); }},
                  path);
}

}  // namespace xtape
