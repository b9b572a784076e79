// Arrays in NumPy's format, as numpy.save writes them and otherwise.
#include "xtape/npy.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "source_root.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// A temporary file, deleted by the destructor.
struct NpyFile {
  std::string path = (std::filesystem::temp_directory_path() / ("xtape-" + std::to_string(getpid()) + ".npy")).string();
  ~NpyFile() { std::filesystem::remove(path); }
  Array read(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary) << bytes;
    return load_npy(path);
  }
  /// Why the bytes are refused, without the beginning that names the file.
  std::string error(const std::string& bytes) const {
    try {
      read(bytes);
    } catch (const FileError& error) {
      const std::string text = error.what(), start = "cannot read '" + path + "': ";
      return text.rfind(start, 0) == 0 ? text.substr(start.size()) : "without the file: " + text;
    }
    return "";
  }
};

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (const T& value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

/// A file as numpy.save writes it: the elements begin at a multiple of 64 bytes.
std::string saved(std::string header, const std::string& elements, int version = 1) {
  const std::size_t before = version == 1 ? 10 : 12;
  header += std::string(63 - (before + header.size()) % 64, ' ') + '\n';
  std::string length(before - 8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(header.size() >> 8 * i & 255);
  return "\x93NUMPY" + std::string(1, static_cast<char>(version)) + std::string(1, '\0') + length + header + elements;
}
std::string typed(const std::string& type, const std::string& shape, const std::string& elements) {
  return saved("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }", elements);
}
}  // namespace

TEST_CASE("npy: every type of element, versions, shapes") {
  const NpyFile file;
  CHECK(file.read(typed("<f4", "(2, 2)", bytes_of<float>({1, -2, 0.5, 1e30F}))).to<float>() ==
        xt::xarray<float>{{1, -2}, {0.5, 1e30F}});
  CHECK(file.read(typed("<f8", "(2,)", bytes_of<double>({0.1, -1e300}))).to<double>() ==
        xt::xarray<double>{0.1, -1e300});
  const Array halves = file.read(typed("<f2", "(3,)", bytes_of<std::uint16_t>({0x3C00, 0xC000, 0x7C00})));
  CHECK(halves.dtype() == Dtype::float16);
  CHECK(static_cast<float>(halves.as<float16>()[1]) == -2);
  CHECK(static_cast<float>(halves.as<float16>()[2]) == std::numeric_limits<float>::infinity());
  constexpr std::int64_t large = std::int64_t{1} << 40;
  CHECK(file.read(typed("<i8", "(2,)", bytes_of<std::int64_t>({-1, large}))).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{-1, large});
  CHECK(file.read(typed("<i4", "(1,)", bytes_of<std::int32_t>({-7}))).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{-7});
  CHECK(file.read(typed("<i2", "(1,)", bytes_of<std::int16_t>({-300}))).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{-300});
  CHECK(file.read(typed("|i1", "(1,)", bytes_of<std::int8_t>({-128}))).to<std::int8_t>() ==
        xt::xarray<std::int8_t>{-128});
  CHECK(file.read(typed("|u1", "(2,)", bytes_of<std::uint8_t>({0, 255}))).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{0, 255});
  CHECK(file.read(typed("<u2", "(1,)", bytes_of<std::uint16_t>({65535}))).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{65535});
  CHECK(file.read(typed("<u4", "(1,)", bytes_of<std::uint32_t>({4294967295U}))).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{4294967295});
  CHECK(file.read(typed("|b1", "(3,)", bytes_of<bool>({true, false, true}))).to<bool>() ==
        xt::xarray<bool>{true, false, true});
  CHECK(file.read(typed("<f4", "()", bytes_of<float>({3}))).shape() == Shape{});
  CHECK(file.read(typed("<f4", "(0, 1000000000000)", "")).count() == 0);
  for (const int version : {1, 2, 3})
    CHECK(file.read(saved("{'shape': (1, 2), \"fortran_order\": False, 'descr': '<i4'}", bytes_of<std::int32_t>({4, 5}),
                          version))
              .to<std::int32_t>() == xt::xarray<std::int32_t>{{4, 5}});
  // One axis has one order.
  CHECK(file.read(saved("{'descr': '|u1', 'fortran_order': True, 'shape': (1,), }", "a")).count() == 1);
  std::string many;
  for (int i = 0; i < 200000; ++i) many += static_cast<char>(i % 251);
  const Array widened = file.read(typed("|u1", "(200000,)", many));
  for (int i = 0; i < 200000; ++i) REQUIRE(widened.as<std::int32_t>()[i] == i % 251);
}

TEST_CASE("npy: files of NumPy") {
  const auto read = [](const std::string& name) {
    return load_npy(source_root() + "/tests/golden/data/npy/" + name + ".npy");
  };
  const std::vector<double> values{1, 2, 3, 4, 5, 250};
  const auto check = [&](const std::string& name, Dtype dtype, auto zero) {
    CAPTURE(name);
    const Array array = read(name);
    REQUIRE(array.dtype() == dtype);
    REQUIRE(array.shape() == Shape{2, 3});
    for (int i = 0; i < 5; ++i) CHECK(array.as<decltype(zero)>()[i] == values[i]);
    CHECK(array.as<decltype(zero)>()[5] == (name == "int8" ? 122 : 250));
  };
  check("float16", Dtype::float16, float16());
  check("float32", Dtype::float32, 0.0F);
  check("float64", Dtype::float64, 0.0);
  check("int8", Dtype::int8, std::int8_t{0});
  for (const char* name : {"int16", "int32", "uint8", "uint16"}) check(name, Dtype::int32, std::int32_t{0});
  for (const char* name : {"int64", "uint32", "version_1", "version_2", "version_3"})
    check(name, Dtype::int64, std::int64_t{0});
  CHECK(read("bool").to<bool>() == xt::xarray<bool>{{false, false, false}, {true, true, true}});
  CHECK(read("scalar").as<float>()[0] == 2.5F);
  CHECK(read("empty").shape() == Shape{0, 4});
  for (const char* name : {"fortran", "big_endian", "complex64", "uint64", "text", "records"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(read(name), FileError);
  }
}

TEST_CASE("npy: each defect has its error") {
  const NpyFile file;
  const std::string damaged = "its header is not one of an npy file: ";
  const auto of = [&](const std::string& header) { return file.error(saved(header, "abcd")); };
  CHECK(file.error("") == "it has 0 bytes, too few for an npy file");
  CHECK(file.error("PK\x03\x04 and more") == "it does not begin as an npy file does");
  CHECK(file.error(saved("{}", "", 4)) == "it has version 4.0 of the format; 1.0, 2.0 and 3.0 are known");
  CHECK(file.error(typed("<f4", "(1,)", "abcd").substr(0, 20)) ==
        "its header has 118 bytes, more than the 10 that follow, or more than 64 KiB");
  CHECK(of("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }") ==
        "its elements are in Fortran order: write numpy.ascontiguousarray(x) instead of x");
  CHECK(of("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }") ==
        "its elements, '>f4', are big-endian: write them with x.astype(x.dtype.newbyteorder('<'))");
  for (const char* type : {"<c8", "|O", "<U1", "<u8", "<M8[s]", "f4", "\x1B"})
    CHECK(of("{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (1,), }")
              .rfind("its elements are of NumPy's type '", 0) == 0);
  CHECK(of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }") ==
        "its elements are records: write each field as an array of its own");
  CHECK(of("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }") ==
        "its elements of shape (1, 2) take 8 bytes, but 4 follow the header");
  CHECK(file.error(typed("<f4", "(1,)", "abcdefgh")) ==
        "its elements of shape (1,) take 4 bytes, but 8 follow the header");
  CHECK(of("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 2), }") ==
        "no array can have its shape, (4611686018427387904, 2)");
  CHECK(of("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), }") ==
        "it has more than 10 axes, which no array can have");
  CHECK(of("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }") ==
        damaged + "a size of its shape is no number from 0 to 2^63 - 1");
  CHECK(of("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }") ==
        damaged + "a size of its shape is no number from 0 to 2^63 - 1");
  CHECK(of("{'descr': '<f4', 'fortran_order': False, 'shape': (1), }") ==
        damaged + "a shape of one axis has a comma, as in (3,)");
  CHECK(of("{'descr': '<f4', 'fortran_order': None, 'shape': (1,), }") ==
        damaged + "fortran_order must be True or False");
  CHECK(of("{'descr': '<f4', 'shape': (1,), }") == damaged + "it must have the keys descr, fortran_order and shape");
  CHECK(of("{'descr': '<f4', 'descr': '<f4', }") == damaged + "it has the key 'descr' twice, or no array has it");
  CHECK(of("{'strides': (4,), }") == damaged + "it has the key 'strides' twice, or no array has it");
  CHECK(of("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } # more") ==
        damaged + "something follows its dictionary");
  CHECK(of("{'descr' '<f4'}") == damaged + "byte 9 is not ':'");
  CHECK(of("{descr: '<f4'}") == damaged + "byte 1 does not begin a text in quotes");
  CHECK(of("{'descr") == damaged + "byte 1 does not begin a text in quotes");
  CHECK_THROWS_AS(load_npy("/nonexistent.npy"), FileError);
}
