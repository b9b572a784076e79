// Files of arrays that are damaged or truncated, or have very many arrays.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/bytes/encodings.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
struct DamagedFile {
  std::string path = (std::filesystem::temp_directory_path() / ("xtape-damaged-" + std::to_string(getpid()))).string();
  ~DamagedFile() { std::filesystem::remove(path); }
  void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
  std::string read() const {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  std::string error() const {
    try {
      load_arrays(path);
    } catch (const FileError& error) {
      return error.what();
    }
    return "";
  }
};

/// The header of a file, and the byte at which its elements begin.
std::pair<std::string, std::size_t> header_in(const std::string& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return {bytes.substr(8, length), 8 + length};
}

std::string with_header(const std::string& header, const std::string& elements) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + elements;
}
}  // namespace

TEST_CASE("a flipped bit in an array is noticed on loading, and the error names the file and the array") {
  DamagedFile scratch;
  Store store;
  store.add("weight", Array(xt::xarray<float>{{1, 2}, {3, 4}}));
  store.add("mask", Array(xt::xarray<bool>{true, false, true}));
  store.add("count", Array(xt::xarray<std::int64_t>{5}));
  save_arrays(scratch.path, store);
  const std::string whole = scratch.read();
  const std::size_t elements = header_in(whole).second;
  REQUIRE(whole.size() - elements == 16 + 3 + 8);
  for (std::size_t byte = elements; byte < whole.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[byte] = static_cast<char>(flipped[byte] ^ 1 << bit);
      scratch.write(flipped);
      const std::size_t at = byte - elements;
      const std::string name = at < 16 ? "weight" : at < 19 ? "mask" : "count";
      CHECK(scratch.error() == "'" + scratch.path + "' is damaged: array '" + name +
                                   "' does not have the checksum that was saved with it");
    }
}

TEST_CASE("a flipped bit in any piece of a large array is noticed") {
  DamagedFile scratch;
  Store store;
  Array numbers = store.add("numbers", Array(Dtype::float64, {3, 131072}));  // three pieces
  for (std::int64_t i = 0; i < numbers.count(); ++i) numbers.as<double>()[i] = static_cast<double>(i);
  save_arrays(scratch.path, store);
  const std::string whole = scratch.read();
  const std::size_t elements = header_in(whole).second;
  for (const std::size_t at : {0UL, (1UL << 20) - 1, 1UL << 20, (2UL << 20) + 12345, (3UL << 20) - 1}) {
    std::string flipped = whole;
    flipped[elements + at] = static_cast<char>(flipped[elements + at] ^ 16);
    scratch.write(flipped);
    CHECK(scratch.error().find("array 'numbers' does not have the checksum") != std::string::npos);
    CHECK_THROWS_AS(ArrayFile(scratch.path).check(0), FileError);
  }
  scratch.write(whole);
  CHECK_NOTHROW(ArrayFile(scratch.path).check(0));
  CHECK(std::memcmp(load_arrays(scratch.path).at("numbers").data(), numbers.data(), numbers.bytes()) == 0);
}

TEST_CASE("the checksum is XXH3-64 over the XXH3-64s of the pieces") {
  const std::vector<char> bytes((2 << 20) + 5, 'x');
  const std::vector<std::uint64_t> pieces = {checksum_of_piece(bytes.data(), 1 << 20),
                                             checksum_of_piece(bytes.data(), 1 << 20), checksum_of_piece("xxxxx", 5)};
  CHECK(checksum_of(bytes.data(), bytes.size()) == checksum_of_piece(pieces.data(), 24));
  CHECK(checksum_of_piece("", 0) == 0x2D06800538D394C2U);  // as published with the algorithm
  CHECK(checksum_of(nullptr, 0) == 0x2D06800538D394C2U);
}

TEST_CASE("a digest is that of the parts' lengths and bytes, for any number of threads") {
  std::string bytes((3 << 20) + 5, 'x');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 7);
  const std::string digest = digest_of({bytes});
  CHECK(digest_of({}) == "99aa06d3014798d86001c324468d497f");  // XXH3-128 of nothing, as published with the algorithm
  for (const int threads : {1, 2, 5}) CHECK(digest_of({bytes}, threads) == digest);
  DamagedFile scratch;
  scratch.write(bytes);
  CHECK(digest_of_file(scratch.path) == digest);
  const std::string_view all = bytes;
  CHECK(digest_of({all.substr(0, 1 << 20), all.substr(1 << 20)}) != digest);
  CHECK(digest_of({all, ""}) != digest);
  for (const std::size_t at : {std::size_t{0}, std::size_t{2} << 20, bytes.size() - 1}) {
    std::string changed = bytes;
    changed[at] ^= 1;
    CHECK(digest_of({changed}) != digest);
  }
}

TEST_CASE("a file without checksums is read; one with a missing or malformed checksum is refused") {
  DamagedFile scratch;
  Store store;
  store.add("a", Array(xt::xarray<float>{1}));
  store.add("b", Array(xt::xarray<float>{2}));
  save_arrays(scratch.path, store, {{"format", "pt"}});
  const std::string whole = scratch.read();
  const auto [header, elements] = header_in(whole);
  const auto changed = [&, header = header, elements = elements](const std::string& what, const std::string& by) {
    std::string text = header;
    REQUIRE(text.find(what) != std::string::npos);
    text.replace(text.find(what), what.size(), by);
    scratch.write(with_header(text, whole.substr(elements)));
    return scratch.error();
  };
  const std::size_t checksum = header.find("\"xxh3:a\":\"") + 10;
  CHECK(changed("xxh3:b", "xxh4:b").find("array 'b' has no checksum, but other arrays have one") != std::string::npos);
  CHECK(changed(header.substr(checksum, 16), "0123456789abcdeg")
            .find("the checksum of array 'a' is not 16 lower-case hexadecimal digits") != std::string::npos);
  CHECK(changed(header.substr(checksum, 16), "0123456789abcde").find("is not 16 lower-case hexadecimal digits") !=
        std::string::npos);
  CHECK(changed(header.substr(checksum, 16), "0123456789abcdef").find("array 'a' does not have the checksum") !=
        std::string::npos);
  const std::string plain = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  scratch.write(with_header(plain, whole.substr(elements, 4)));
  CHECK(load_arrays(scratch.path).at("a").to<float>() == xt::xarray<float>{1});
  CHECK_NOTHROW(ArrayFile(scratch.path).check(0));
}

TEST_CASE("a file that is truncated while it is read gives an error, not a signal") {
  DamagedFile scratch;
  Store store;
  store.add("a", Array(Dtype::float32, {1 << 20}));
  save_arrays(scratch.path, store);
  const ArrayFile file(scratch.path);
  std::filesystem::resize_file(scratch.path, std::filesystem::file_size(scratch.path) / 2);
  try {
    file.read(0);
    FAIL("half a file was read");
  } catch (const FileError& error) {
    const std::string text = error.what();
    CHECK(text.find("cannot read '" + scratch.path + "': it ends at byte ") == 0);
    CHECK(text.find(" bytes when it was opened") != std::string::npos);
  }
}

// This would take minutes if finding a name were linear in the number of names.
TEST_CASE("a header of 200,000 arrays is written and read in time linear in its length") {
#ifdef __SANITIZE_ADDRESS__
  constexpr int count = 5000;
#else
  constexpr int count = 200000;
#endif
  DamagedFile scratch;
  Store store;
  const Array one(xt::xarray<float>{1});
  for (int i = 0; i < count; ++i) store.add("model.layers." + std::to_string(i) + ".mlp.weight", Array(one));
  save_arrays(scratch.path, store);
  const ArrayFile file(scratch.path);
  REQUIRE(file.entries().size() == count);
  for (std::size_t i = 0; i < count; i += 999) CHECK(file.entries()[i].name == store[i].name);
}

TEST_CASE("an array cannot have the name of the metadata") {
  DamagedFile scratch;
  Store store;
  store.add("__metadata__", Array(xt::xarray<float>{1}));
  CHECK_THROWS_WITH_AS(save_arrays(scratch.path, store),
                       doctest::Contains("the array name '__metadata__' is reserved for the metadata"), FileError);
}
