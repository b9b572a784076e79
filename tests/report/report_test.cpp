// What pages show of plays: their data, as the page reads them.
#include "xtape/report.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/bytes/encodings.hpp"
#include "base/system/files.hpp"
#include "report/gathered.hpp"
#include "source_root.hpp"

using namespace xtape;
using namespace xtape::report_data;

namespace {
/// The data of a page, as data.js reads them.
Json data_of(const Report& report) {
  const std::string page = report.html(), begin = "<script id=\"data\" type=\"text/plain\">";
  const std::size_t from = page.find(begin) + begin.size();
  const std::string bytes = from_base64(page.substr(from, page.find('<', from) - from)).value();
  std::string text(std::size_t{1} << 24, '\0');
  uLongf size = text.size();
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(text.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                     bytes.size()) == Z_OK);
  return Json::parse(text.substr(0, size));
}

template <class T>
Array array_of(const std::vector<T>& elements) {
  Array array(dtype_of<T>(), {static_cast<std::int64_t>(elements.size())});
  std::copy(elements.begin(), elements.end(), array.as<T>());
  return array;
}

/// The places of a histogram that are not empty, with their counts.
std::map<std::size_t, std::int64_t> filled(const Json& picture) {
  std::map<std::size_t, std::int64_t> places;
  for (std::size_t i = 0; i < picture["bins"].size(); ++i)
    if (picture["bins"][i] != 0) places[i] = picture["bins"][i];
  return places;
}
}  // namespace

TEST_CASE("a histogram takes every range") {
  using Places = std::map<std::size_t, std::int64_t>;
  constexpr double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  CHECK(filled(picture_of(array_of<double>({-1.7e308, 0, 1.7e308, 1.7e308}))) == Places{{0, 1}, {20, 1}, {39, 2}});
  CHECK(filled(picture_of(array_of<double>({-most, -most / 2, most}))) == Places{{0, 1}, {10, 1}, {39, 1}});
  CHECK(filled(picture_of(array_of<double>({0, least, 2 * least}))) == Places{{0, 1}, {20, 1}, {39, 1}});
  CHECK(filled(picture_of(array_of<double>({NAN, HUGE_VAL, -HUGE_VAL, 3}))) == Places{{20, 1}});
  CHECK(filled(picture_of(array_of<double>({NAN}))) == Places{});
  CHECK(filled(picture_of(Array(Dtype::float32, {0, 5}))) == Places{});
  CHECK(filled(picture_of(array_of<std::int64_t>({INT64_MIN, INT64_MAX}))) == Places{{0, 1}, {39, 1}});
  const Json picture = picture_of(array_of<double>({-most, most, NAN}))["image"];
  CHECK(from_base64(picture["pixels"].get<std::string>()) == std::string("\x00\xFE\xFF", 3));
}

TEST_CASE("attention weights that are not finite are shown as such") {
  Attention attention{"self", Array(Dtype::float32, {1, 1, 1, 4}), {"text", {"a"}}, {"text", {"a", "b", "c", "d"}}};
  const float weights[] = {0, 1, NAN, INFINITY};
  std::copy(std::begin(weights), std::end(weights), attention.weights.as<float>());
  CHECK(from_base64(attention_of("a", attention)["weights"].get<std::string>()) == std::string("\x00\xFE\xFF\xFF", 4));
}

TEST_CASE("a constant has its value as a note") {
  const auto note_of = [](const auto& constant) {
    Tape tape;
    const Var value = tape.constant(constant);
    Report page("constants");
    page.add("play", {tape, {value}, {}, {}}, {.plan = false});
    const Json data = data_of(page);
    return data["strings"][data["plays"][0]["graph"]["note"][0].get<std::size_t>()].get<std::string>();
  };
  CHECK(note_of(0.25F) == "0.25");
  CHECK(note_of(array_of<double>({-1.5})) == "-1.5");
  CHECK(note_of(-HUGE_VAL) == "-inf");
  CHECK(note_of(std::int64_t{123456789012}) == "123456789012");
  CHECK(note_of(array_of<double>({1e308})) == "1e+308");
  CHECK(note_of(array_of<double>({1, 2})) == "");
}

TEST_CASE("a program's sources are shown if it asks for them") {
  static const std::string path = source_root() + "/tests/report/report_test.cpp";
  Tape tape;
  const RecordedPlay play{tape, {tape.input("x", {3}, Dtype::float32, {path.c_str(), 1})}, {}, {}};
  const auto files = [&](bool sources) {
    Report page("sources");
    page.add("play", play, {.plan = false, .sources = sources});
    std::vector<std::string> texts;
    const Json data = data_of(page);
    for (const Json& file : data["plays"][0]["files"]) texts.push_back(file["text"]);
    return texts;
  };
  CHECK(files(false) == std::vector<std::string>{});
  CHECK(files(true) == std::vector<std::string>{read_file(path)});
}
