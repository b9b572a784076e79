// Reads ZIP archives in the form that NumPy writes. The directory at the end of an archive gives, for each file, its
// position, its packed and unpacked sizes, and its checksum.
#include "data/arrays/npz.hpp"

#include <zlib.h>

#include <cstring>

#include "base/arrays/npy.hpp"
#include "base/messages/wording.hpp"
#include "base/system/files.hpp"
#include "base/system/process_memory.hpp"

namespace xtape {

namespace {
/// A file in the archive.
struct ZipEntry {
  std::string name;
  std::uint64_t method = 0, checksum = 0, packed = 0, unpacked = 0, place = 0;
};

class ZipArchive {
 public:
  explicit ZipArchive(const std::string& path) : path_(path), file_(path) { read_directory(); }

  Array array(const std::string& name) const {
    std::string names;
    for (const ZipEntry& entry : entries_) {
      if (entry.name == name + ".npy") {
        const std::string bytes = unpacked(entry);
        const auto read = [&](std::uint64_t at, void* to, std::size_t count) { std::memcpy(to, &bytes[at], count); };
        return read_npy({bytes.size(), read}, path_ + ", " + entry.name);
      }
      names += (names.empty() ? "'" : ", '") + escaped(entry.name) + "'";
    }
    throw FileError(path_ + " has no array '" + name + "'; its files are " + (names.empty() ? "none" : names));
  }

  std::vector<std::string> names() const {
    constexpr std::size_t end = 4;  // length of ".npy"
    std::vector<std::string> names;
    for (const ZipEntry& entry : entries_)
      if (entry.name.size() > end && entry.name.compare(entry.name.size() - end, end, ".npy") == 0)
        names.push_back(entry.name.substr(0, entry.name.size() - end));
    return names;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw FileError("cannot read '" + path_ + "': " + why); }

  static std::uint64_t number(const std::string& bytes, std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  }
  std::string read(std::uint64_t at, std::uint64_t count) const {
    std::string bytes(static_cast<std::size_t>(count), '\0');
    file_.read(at, bytes.data(), bytes.size());
    return bytes;
  }

  void read_directory() {
    constexpr std::uint64_t end_size = 22, entry_size = 46, all_ones = 0xFFFFFFFF;
    const std::string end = file_.size() < end_size ? "" : read(file_.size() - end_size, end_size);
    if (end.compare(0, 4, "PK\5\6") != 0) fail("it is not a ZIP archive that NumPy has written, or it is cut off");
    const std::uint64_t size = number(end, 12, 4);
    directory_ = number(end, 16, 4);
    if (size == all_ones || directory_ == all_ones) fail("archives of 4 GiB and more are not read");
    if (directory_ + size != file_.size() - end_size) fail("the directory of the archive is not where its end says");
    const std::string bytes = read(directory_, size);
    for (std::uint64_t at = 0, next = 0; at < size; at = next) {
      if (size - at < entry_size || bytes.compare(at, 4, "PK\1\2") != 0)
        fail("the directory of the archive is damaged");
      const std::uint64_t name = number(bytes, at + 28, 2);
      next = at + entry_size + name + number(bytes, at + 30, 2) + number(bytes, at + 32, 2);
      if (next > size) fail("the directory of the archive is damaged");
      entries_.push_back({bytes.substr(at + entry_size, name), number(bytes, at + 10, 2), number(bytes, at + 16, 4),
                          number(bytes, at + 20, 4), number(bytes, at + 24, 4), number(bytes, at + 42, 4)});
      if ((number(bytes, at + 8, 2) & 1) != 0) fail("'" + escaped(entries_.back().name) + "' is encrypted");
    }
  }

  std::string unpacked(const ZipEntry& entry) const {
    constexpr std::uint64_t local_size = 30, stored = 0, deflated = 8;
    const std::string what = "'" + escaped(entry.name) + "' in it ";
    if (entry.method != stored && entry.method != deflated)
      fail(what + "is packed by method " + std::to_string(entry.method) + "; 0 (stored) and 8 (deflate) are known");
    if (entry.place + local_size > directory_) fail(what + "is not where the directory says");
    const std::string local = read(entry.place, local_size);
    const std::uint64_t first = entry.place + local_size + number(local, 26, 2) + number(local, 28, 2);
    if (local.compare(0, 4, "PK\3\4") != 0 || first + entry.packed > directory_)
      fail(what + "is not where the directory says");
    // Deflate compresses by a factor of at most 1032.
    if (entry.method == stored ? entry.packed != entry.unpacked : entry.unpacked / 1032 > entry.packed)
      fail(what + "cannot have " + std::to_string(entry.unpacked) + " bytes, packed in " +
           std::to_string(entry.packed));
    require_memory_left(static_cast<std::size_t>(entry.packed + entry.unpacked), what + "of " + path_);
    std::string bytes = read(first, entry.packed);
    if (entry.method == deflated) bytes = inflated(bytes, entry);
    if (crc32_of(bytes) != entry.checksum) fail(what + "is damaged: it does not have its checksum");
    return bytes;
  }

  std::string inflated(const std::string& packed, const ZipEntry& entry) const {
    std::string bytes(static_cast<std::size_t>(entry.unpacked), '\0');
    z_stream stream = {};
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
    stream.avail_out = static_cast<uInt>(bytes.size());
    constexpr int raw = -15;  // data without a zlib header
    if (inflateInit2(&stream, raw) != Z_OK) fail("zlib cannot begin");
    const int state = inflate(&stream, Z_FINISH);
    const bool whole = state == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
    inflateEnd(&stream);
    if (!whole) fail("'" + escaped(entry.name) + "' in it is damaged: it does not unpack to its size");
    return bytes;
  }

  std::string path_;
  OpenFile file_;
  std::uint64_t directory_ = 0;  // the position of the directory
  std::vector<ZipEntry> entries_;
};
}  // namespace

Array read_npz(const std::string& path, const std::string& name) {
  return ZipArchive(path).array(name);
}

std::vector<std::string> npz_names(const std::string& path) {
  return ZipArchive(path).names();
}

}  // namespace xtape
