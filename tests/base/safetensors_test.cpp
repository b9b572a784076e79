#include "xtape/safetensors.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// A temporary file, deleted by the destructor.
struct Scratch {
  std::string path =
      (std::filesystem::temp_directory_path() / ("xtape-" + std::to_string(getpid()) + ".safetensors")).string();
  ~Scratch() { std::filesystem::remove(path); }
  void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
  std::string read() const {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
};

/// The bytes of a file with this header and these elements, preceded by `length` or by the header's length.
std::string file_of(const std::string& header, const std::string& elements, std::uint64_t length = 0) {
  if (length == 0) length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + elements;
}

std::string error_of(const Scratch& scratch) {
  try {
    load_arrays(scratch.path);
  } catch (const FileError& error) {
    std::string text = error.what();
    const std::string start = "'" + scratch.path + "' is not a whole safetensors file: ";
    return text.rfind(start, 0) == 0 ? text.substr(start.size()) : text;
  }
  return "";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}
}  // namespace

TEST_CASE("arrays of every dtype are saved and loaded unchanged") {
  Scratch scratch;
  Store store;
  store.add("h.0.weight", Array(xt::xarray<float>{{1, 2, 3}, {4, 5, 6}}));
  store.add("precise", Array(xt::xarray<double>{0.1, -1e300}));
  store.add("tokens", Array(xt::xarray<std::int64_t>{-1, std::int64_t{1} << 40}));
  store.add("small", Array(xt::xarray<std::int32_t>{7}));
  store.add("mask", Array(xt::xarray<bool>{true, false, true}));
  store.add("scalar", Array(Dtype::float32, {}));
  store.add("empty", Array(Dtype::float32, {0, 4}));
  save_arrays(scratch.path, store, {{"format", "pt"}});
  const Store loaded = load_arrays(scratch.path);
  REQUIRE(loaded.size() == store.size());
  for (const Store::Entry& entry : store) {
    const Array& array = loaded.at(entry.name);
    CHECK(array.dtype() == entry.value.dtype());
    CHECK(array.shape() == entry.value.shape());
    CHECK(std::memcmp(array.data(), entry.value.data(), array.bytes()) == 0);
  }
}

TEST_CASE("halves can be read as wider floats, not as each other") {
  Scratch scratch;
  const auto check = [&](const char* type, const std::vector<std::uint16_t>& bits, Dtype dtype, Dtype other) {
    scratch.write(file_of(one(type, "[2]", "[0,4]"), std::string(reinterpret_cast<const char*>(bits.data()), 4)));
    Array wide(Dtype::float32, {2}), wider(Dtype::float64, {2}), wrong(other, {2});
    const ArrayFile file(scratch.path);
    CHECK(file.entries()[0].dtype == dtype);
    file.read(0, wide);
    file.read(0, wider);
    CHECK(wide.to<float>() == xt::xarray<float>{1, -3});
    CHECK(wider.to<double>() == xt::xarray<double>{1, -3});
    CHECK_THROWS_AS(file.read(0, wrong), ShapeError);
  };
  check("\"F16\"", {0x3C00, 0xC200}, Dtype::float16, Dtype::bfloat16);
  check("\"BF16\"", {0x3F80, 0xC040}, Dtype::bfloat16, Dtype::float16);
}

TEST_CASE("halves and int8 keep their dtype, and are written as they are") {
  Scratch scratch;
  Store store;
  store.add("b", Array(xt::xarray<bfloat16>{bfloat16(1), bfloat16(-3), bfloat16(1e30)}));
  store.add("f", Array(xt::xarray<float16>{float16(1), float16(0x1p-24), float16(-65504)}));
  store.add("i", Array(xt::xarray<std::int8_t>{-128, 0, 127}));
  save_arrays(scratch.path, store);
  std::ostringstream bytes;
  bytes << std::ifstream(scratch.path, std::ios::binary).rdbuf();
  CHECK(bytes.str().find("\"dtype\":\"F16\"") != std::string::npos);
  const Store read = load_arrays(scratch.path);
  CHECK(read.at("b").to<bfloat16>() == store.at("b").to<bfloat16>());
  CHECK(read.at("f").to<float16>() == store.at("f").to<float16>());
  CHECK(read.at("i").to<std::int8_t>() == store.at("i").to<std::int8_t>());
  CHECK_THROWS_AS(ArrayFile(scratch.path).read(2).to<float>(), DtypeError);
}

TEST_CASE("every float16 and every bfloat16 becomes the float32 of the same value") {
  Scratch scratch;
  std::vector<std::uint16_t> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  const std::string elements(reinterpret_cast<const char*>(all.data()), 2 * all.size());
  const auto read = [&](const std::string& dtype) {
    scratch.write(file_of(one(dtype, "[65536]", "[0,131072]"), elements));
    const ArrayFile file(scratch.path);
    Array floats(Dtype::float32, {1 << 16});
    file.read(0, floats);
    return floats;
  };
  const auto bits_of = [](float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  };
  const Array halves = read("\"F16\"");
  const Array brains = read("\"BF16\"");
  int wrong = 0;
  for (const std::uint16_t bits : all) {
    const std::uint32_t sign = (bits & 0x8000U) << 16;
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    // 1.fraction * 2^(exponent - 15), subnormals 0.fraction * 2^-14; a NaN becomes quiet.
    const float size =
        std::ldexp(static_cast<float>(exponent == 0 ? fraction : fraction + 1024), exponent == 0 ? -24 : exponent - 25);
    const std::uint32_t expected =
        sign | (exponent == 31 ? 0x7F800000U | static_cast<std::uint32_t>(fraction) << 13 | (fraction > 0) << 22
                               : bits_of(size));
    wrong += bits_of(halves.as<float>()[bits]) != expected;
    wrong += bits_of(brains.as<float>()[bits]) != static_cast<std::uint32_t>(bits) << 16;
  }
  CHECK(wrong == 0);
  CHECK(halves.as<float>()[0x0001] == 0x1p-24F);  // the smallest subnormal
  CHECK(halves.as<float>()[0x83FF] == -1023 * 0x1p-24F);
  CHECK(halves.as<float>()[0x7BFF] == 65504);
  CHECK(halves.as<float>()[0xFC00] == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(halves.as<float>()[0x7E00]));
  CHECK(brains.as<float>()[0x0001] == 0x1p-133F);
  CHECK(std::isnan(brains.as<float>()[0x7FC0]));
}

TEST_CASE("the arrays of a file are read one at a time") {
  Scratch scratch;
  Store store;
  store.add("a", Array(xt::xarray<float>{1, 2}));
  store.add("b", Array(xt::xarray<std::int64_t>{{3, 4}}));
  save_arrays(scratch.path, store);
  ArrayFile opened(scratch.path);
  const ArrayFile file = std::move(opened);
  CHECK(file.path() == scratch.path);
  REQUIRE(file.entries().size() == 2);
  CHECK(file.entries()[1].name == "b");
  CHECK(file.entries()[1].dtype == Dtype::int64);
  CHECK(file.entries()[1].shape == Shape{1, 2});
  CHECK(file.read(0).to<float>() == xt::xarray<float>{1, 2});
  CHECK(file.read(1).to<std::int64_t>() == xt::xarray<std::int64_t>{{3, 4}});
}

TEST_CASE("an inconsistent file is refused with the reason") {
  Scratch scratch;
  const auto refused = [&](const std::string& bytes) {
    scratch.write(bytes);
    return error_of(scratch);
  };
  const std::string four(4, '\0');
  CHECK(refused("") == "it has 0 bytes, but a header needs at least 8");
  CHECK(refused(file_of("{}", "", ~std::uint64_t{0})) ==
        "the header length, 18446744073709551615 bytes, exceeds the 2 bytes that follow, or the limit of 100 MiB");
  CHECK(refused(file_of("{\"a\":", ""))
            .starts_with("its header, line 1, column 6: a value belongs here after the key \"a\", but the text ends"));
  CHECK(refused(file_of("[1, 2]", "")) == "its header is not a JSON object");
  CHECK(refused(file_of(R"({"a": 3})", "")) == "array 'a' has no dtype, shape and data_offsets");
  for (const std::string dtype : {"F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "F6_E2M3", "C64", "U64", "Ü", "\\u001b"}) {
    CAPTURE(dtype);
    const std::string said = refused(file_of(one("\"" + dtype + "\"", "[1]", "[0,1]"), four));
    CHECK(said.ends_with(
        "': array 'a' has the dtype \"" + dtype +
        "\", which xtape does not support: convert it to one of BF16, BOOL, F16, F32, F64, I16, I32, I64, "
        "I8, Q4_0, Q4_K, Q5_K, Q6_K, Q8_0, U16, U32, U8"));
    CHECK(said.find("whole") == std::string::npos);
  }
  CHECK(refused(file_of(one("8", "[1]", "[0,1]"), four)).ends_with("array 'a' has a dtype that is not a string"));
  CHECK(refused(file_of(one("\"F32\"", "[-1]", "[0,4]"), four)) ==
        "array 'a' has a shape that is not a list of at most 10 sizes");
  CHECK(refused(file_of(one("\"F32\"", "[1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), four)) ==
        "array 'a' has a shape that is not a list of at most 10 sizes");
  CHECK(refused(file_of(one("\"F32\"", "[1]", "[0,4,8]"), four)) ==
        "array 'a' has data_offsets that are not two integers");
  CHECK(refused(file_of(one("\"F32\"", "[1]", "[4,0]"), four)) ==
        "array 'a' has data_offsets 4 to 0, which are not a range within the 4 bytes after the header");
  CHECK(refused(file_of(one("\"F32\"", "[2]", "[0,8]"), four)) ==
        "array 'a' has data_offsets 0 to 8, which are not a range within the 4 bytes after the header");
  CHECK(refused(file_of(one("\"F32\"", "[3]", "[0,4]"), four)) ==
        "array 'a' of shape (3,) takes 12 bytes, but its data_offsets span 4");
  CHECK(refused(file_of(one("\"F32\"", "[4611686018427387904,4611686018427387904]", "[0,4]"), four)) ==
        "array 'a' has a shape that is too large");
  CHECK(refused(file_of(one("\"F32\"", "[0,4611686018427387904,4611686018427387904]", "[0,0]"), four)) ==
        "array 'a' has a shape that is too large");
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::string b = R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]})";
  CHECK(refused(file_of("{" + a + "," + b + "}", four + four)) == "arrays 'a' and 'b' overlap");
  CHECK(refused(file_of("{" + a + "," + a + "}", four))
            .starts_with("its header, line 1, column 55: the key \"a\" appears twice in one object"));
  CHECK(refused(file_of(std::string(100000, '['), "")) != "");
}

TEST_CASE("every truncation of a file, and every header with one byte changed, is read or refused without harm") {
  Scratch scratch;
  Store store;
  store.add("weight", Array(xt::xarray<float>{{1, 2}, {3, 4}}));
  store.add("bias", Array(xt::xarray<double>{5, 6}));
  save_arrays(scratch.path, store);
  const std::string whole = scratch.read();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    scratch.write(whole.substr(0, size));
    CHECK(error_of(scratch) != "");
  }
  const std::size_t header = whole.size() - 32;
  for (std::size_t i = 0; i < header; ++i)
    for (const char byte : {'\0', '9', '"', '[', '\xff'}) {
      std::string changed = whole;
      changed[i] = byte;
      scratch.write(changed);
      CHECK_NOTHROW(error_of(scratch));
    }
}

TEST_CASE("saving replaces a file atomically and leaves no other file") {
  Scratch scratch;
  Store store;
  store.add("a", Array(xt::xarray<float>{1}));
  save_arrays(scratch.path, store);
  save_arrays(scratch.path, store);
  CHECK(load_arrays(scratch.path).at("a").to<float>() == xt::xarray<float>{1});
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(scratch.path).parent_path()))
    CHECK(entry.path().string().rfind(scratch.path + ".writing", 0) == std::string::npos);
  CHECK_THROWS_AS(save_arrays("/no such directory/a", store), FileError);
  CHECK_THROWS_AS(load_arrays("/no such directory/a"), FileError);
}

TEST_CASE("the texts of the metadata are read back, without the checksums") {
  const Scratch scratch;
  save_arrays(scratch.path, {{"a", Array(xt::xarray<float>{1, 2})}}, {{"labels", "one\ntwo \u00e9"}, {"scale", "3"}});
  const Named<std::string> metadata = ArrayFile(scratch.path).metadata();
  CHECK(metadata.names() == std::vector<std::string>{"labels", "scale"});
  CHECK(metadata.at("labels") == "one\ntwo \u00e9");
  scratch.write(file_of(R"({"__metadata__": {"n": 3, "t": "x"}})", ""));
  CHECK(ArrayFile(scratch.path).metadata().names() == std::vector<std::string>{"t"});
  scratch.write(file_of("{}", ""));
  CHECK(ArrayFile(scratch.path).metadata().empty());
}

TEST_CASE("an array of a file is read into an existing array of the same dtype and shape") {
  const std::string path = std::filesystem::temp_directory_path() / ("xtape_into_" + std::to_string(getpid()));
  Store store;
  Array numbers = store.add("numbers", Array(Dtype::float32, {700, 900}));  // more than one thread reads at once
  for (std::int64_t i = 0; i < numbers.count(); ++i) numbers.as<float>()[i] = static_cast<float>(i % 1013) - 500.5F;
  save_arrays(path, store);
  const ArrayFile file(path);
  Array into(Dtype::float32, {700, 900});
  file.read(0, into);
  CHECK(std::memcmp(into.data(), numbers.data(), numbers.bytes()) == 0);
  Array other(Dtype::float64, {700, 900});
  CHECK_THROWS_AS(file.read(0, other), ShapeError);
  Array turned(Dtype::float32, {900, 700});
  CHECK_THROWS_AS(file.read(0, turned), ShapeError);
  std::filesystem::remove(path);
}

TEST_CASE("a file is written array by array, and equals one that is saved at once") {
  const Scratch scratch;
  Store store;
  store.add("a", Array(xt::xarray<float>{{1, 2, 3}, {4, 5, 6}}));
  store.add("b", Array(xt::xarray<double>{7}));
  const std::vector<ArrayFile::Entry> entries = {{"a", Dtype::float32, {2, 3}}, {"b", Dtype::float64, {1}}};
  save_arrays(scratch.path, store, {{"format", "pt"}});
  const std::string whole = scratch.read();
  scratch.write("the old file");
  {
    ArrayWriter writer(scratch.path, entries, {{"format", "pt"}});
    const xt::xarray<float> transposed = {{1, 4}, {2, 5}, {3, 6}};
    const ArrayView strided(transposed.data(), Dtype::float32, Layout{{2, 3}, {1, 2}});
    CHECK_THROWS_WITH_AS(writer.write(store.at("b")), "'a' is float32, not float64", DtypeError);
    CHECK_THROWS_WITH_AS(writer.write(Array(Dtype::float32, {3, 2})), "'a' has shape (2, 3), not (3, 2)", ShapeError);
    writer.write(strided);
    CHECK_THROWS_AS(writer.commit(), Error);
    CHECK(scratch.read() == "the old file");
    writer.write(store.at("b"));
    CHECK_THROWS_WITH_AS(writer.write(store.at("b")), "all 2 arrays have been written", Error);
    writer.commit();
    CHECK_THROWS_WITH_AS(writer.commit(), doctest::Contains("has been committed already"), Error);
  }
  CHECK(scratch.read() == whole);
  { const ArrayWriter abandoned(scratch.path, entries); }
  CHECK(scratch.read() == whole);
}
