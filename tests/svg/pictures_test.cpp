#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <regex>
#include <string>

#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "source_root.hpp"
#include "svg/canvas.hpp"
#include "xtape/text.hpp"

using namespace xtape;
using namespace xtape::svg;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Whether all that the picture has are elements, attributes and escaped texts of elements that draw.
bool is_sound(const std::string& picture) {
  std::string left = std::regex_replace(
      picture, std::regex("</?(svg|g|rect|path|circle|text|title)( [a-z:A-Z0-9-]+='[^'<>&]*')*/?>"), "");
  left = std::regex_replace(left, std::regex("&(amp|lt|gt);"), "");
  const bool has_controls = left.find_first_of(std::string("\0\1\x1B\x7F\xFF", 5)) != std::string::npos;
  return left.find_first_of("<>&") == std::string::npos && !has_controls;
}

std::vector<std::string> labels(const Scale& scale, std::size_t most) {
  std::vector<std::string> all;
  for (const Tic& tic : scale.tics(most)) all.push_back(tic.label);
  return all;
}

/// The table of performance.md as bars. A cell is "0.39 (12.1/30.7)".
Bars bars_of_the_table() {
  Bars bars{"Time of xtape divided by the time of PyTorch 2.15", {}, {}, {}, {}};
  const std::regex cell("[^|]+(?=\\|)");
  for (const std::string& line : read_lines(source_root() + "/docs/explanation/performance.md")) {
    if (bars.series.empty() ? !line.starts_with("| workload |") : line.starts_with("|---")) continue;
    if (!line.starts_with("|")) break;
    std::vector<std::string> cells;
    for (auto at = std::sregex_iterator(line.begin(), line.end(), cell); at != std::sregex_iterator(); ++at) {
      const std::string text = at->str();
      const std::size_t first = text.find_first_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first));
    }
    if (bars.series.empty()) {
      bars.series.assign(cells.begin() + 1, cells.end());
      continue;
    }
    const std::size_t colon = cells[0].find(": ");
    Bars::Group& group =
        bars.groups.emplace_back(Bars::Group{cells[0].substr(0, colon), cells[0].substr(colon + 2), {}});
    for (std::size_t i = 1; i < cells.size(); ++i)
      group.values.push_back(cells[i].empty() ? std::optional<double>() : std::stod(cells[i]));
  }
  bars.mark = Label{{1, 0}, "PyTorch"};
  bars.note = "Shorter is faster. Training steps, and the generation of one token. Two threads, float32.";
  return bars;
}

}  // namespace

TEST_CASE("the picture of README.md is that of its table") {
  const std::string path = source_root() + "/docs/images/speed.svg", picture = drawn(bars_of_the_table());
  if (std::getenv("XTAPE_DRAW") != nullptr) write_file(path, picture);  // draws it again
  CHECK(read_file(path) == picture);
  CHECK(count(picture, ">gpt2-124m</text>") == 1);
}

TEST_CASE("numbers have the digits that tell neighbours apart") {
  CHECK(label_of(0.25, 0.05) == "0.25");
  CHECK(label_of(-0.5, 0.5) == "−0.5");
  CHECK(label_of(12000, 2000) == "12,000");
  CHECK(label_of(123456.5, 0.5) == "123,456.5");
  CHECK(label_of(1e6, 5e5) == "1.0×10⁶");
  CHECK(label_of(1.5e6, 5e5) == "1.5×10⁶");
  CHECK(label_of(2e-5, 1e-5) == "2×10⁻⁵");
  CHECK(label_of(0, 1e-9) == "0");
}

TEST_CASE("tics are round numbers") {
  using Labels = std::vector<std::string>;
  CHECK(labels(Scale({.low = 0, .high = 1}, {}), 5) == Labels{"0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(labels(Scale({.low = 0, .high = 40000}, {}), 4) == Labels{"0", "10,000", "20,000", "30,000", "40,000"});
  CHECK(labels(Scale({.log = true, .low = 1e-3, .high = 1e2}, {}), 8) ==
        Labels{"0.001", "0.01", "0.1", "1", "10", "100"});
  CHECK(labels(Scale({.log = true, .low = 1e-8, .high = 1e-5}, {}), 8) == Labels{"10⁻⁸", "10⁻⁷", "10⁻⁶", "10⁻⁵"});
  CHECK(labels(Scale({.log = true, .low = 0.9, .high = 22}, {}), 8) == Labels{"1", "2", "5", "10", "20"});
  CHECK(labels(Scale({.log = true, .low = 2, .high = 4}, {}), 4) == Labels{"2.0", "2.5", "3.0", "3.5", "4.0"});
  CHECK(Scale({.log = true, .low = 1, .high = 100}, {}).fraction(10) == doctest::Approx(0.5));
}

TEST_CASE("no range is too hard") {
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  const std::vector<double> hard = {0,   1,        -1,  std::nextafter(1.0, 2.0), most, -most, least, -least, 1e-300,
                                    NAN, HUGE_VAL, 3e15};
  for (const bool log : {false, true})
    for (const double a : hard)
      for (const double b : hard) {
        CAPTURE(a);
        CAPTURE(b);
        const Scale scale({.log = log}, {a, b});
        CHECK(scale.low() < scale.high());
        CHECK(std::isfinite(scale.fraction(scale.high())));
        const std::vector<Tic> tics = scale.tics(5);
        CHECK(tics.size() <= 12);
        for (std::size_t i = 1; i < tics.size(); ++i) CHECK(tics[i - 1].at < tics[i].at);
        CHECK(is_sound(drawn(Chart{.x = {.log = log}, .y = {.log = log}, .curves = {{{{a, b}, {b, a}}}}})));
      }
}

TEST_CASE("every length has digits") {
  CHECK(pixels(1.256) == "1.26");
  CHECK(pixels(-0.001) == "0");
  CHECK(pixels(1200) == "1200");
  CHECK(pixels(1e300) == "1000000000");
  CHECK(pixels(-HUGE_VAL) == "-1000000000");
  CHECK(pixels(NAN) == "0");
}

TEST_CASE("maps without maps, rows or columns are pictures") {
  for (const HeatMaps& maps :
       {HeatMaps{}, HeatMaps{"", "", "", {"a"}, {}, {}, {{"", {}}}}, HeatMaps{"", "", "", {}, {"a"}, {}, {{"", {}}}},
        HeatMaps{"", "", "", {"a"}, {"b"}, {}, {}}}) {
    const std::string picture = drawn(maps);
    CHECK(is_sound(picture));
    const std::regex size("<svg [^>]*width='([0-9.]+)' height='([0-9.]+)'");
    std::smatch found;
    REQUIRE(std::regex_search(picture, found, size));
    CHECK(std::stod(found[1]) < 1000);
    CHECK(std::stod(found[2]) < 1000);
  }
}

TEST_CASE("texts are shown, and are no markup") {
  const std::string hostile =
      "</title></text><script>alert(1)</script> & ' onload='x \" \x1B[31m \x01 \x7F \xFF ]]> \xEF\xBF\xBF";
  Chart chart{.title = hostile, .x = {hostile}, .y = {hostile}};
  chart.curves = {{{{1, 2}, {NAN, 1}, {3, 4}}, Style::dashed, 0, hostile}};
  chart.boxes = {{0, 1, 0, 1, 0, hostile, hostile}};
  chart.box_names = {{0, hostile}};
  chart.labels = chart.rules = {{{1, 2}, hostile}};
  chart.notes = {hostile};
  const HeatMaps maps{hostile, hostile, hostile, {hostile, hostile}, {hostile}, {}, {{hostile, {1, NAN}}}};
  const Bars bars{hostile, {hostile}, {{hostile, hostile, {1.0}}}, Label{{1, 0}, hostile}, hostile};
  for (const std::string& picture : {drawn(chart), drawn(maps), drawn(bars)}) {
    CHECK(is_sound(picture));
    CHECK(count(picture, "&lt;script&gt;alert(1)&lt;/script&gt; &amp; ' onload='x \" ␛[31m ␁ ␡ \uFFFD ]]&gt; \uFFFD") >=
          1);
  }
  CHECK(!is_sound("<svg><script></script></svg>"));
  CHECK(!is_sound("<rect onload='&'/>"));
}

TEST_CASE("a heat map has darker cells for larger weights, and one rectangle for equal neighbours") {
  const HeatMaps maps{"", "", "", {"a", "b"}, {"k", "l", "m"}, {}, {{"", {0, 0, 1, 0.5, 0.5, 0.5}}}};
  const std::string picture = drawn(maps),
                    bar_only = drawn(HeatMaps{"", "", "", {"a", "b"}, {"k", "l", "m"}, {}, {{"", {0, 0, 0, 0, 0, 0}}}});
  CHECK(count(picture, "<rect") == count(bar_only, "<rect") + 2);
  CHECK(count(picture, shade(1)) == count(bar_only, shade(1)) + 1);
  CHECK(count(picture, shade(0.5)) == count(bar_only, shade(0.5)) + 1);
  const auto brightness = [](double fraction) { return std::stoi(shade(fraction).substr(3, 2), nullptr, 16); };
  for (double fraction = 0; fraction < 0.95; fraction += 0.1) CHECK(brightness(fraction) > brightness(fraction + 0.1));
  const HeatMaps broken{"", "", "", {"a"}, {"k", "l"}, {}, {{"", {HUGE_VAL, 0.5}}}};
  CHECK(count(drawn(broken), not_finite) == 2);  // the cell, and what the colour means
  CHECK(count(picture, not_finite) == 0);
}

TEST_CASE("points that are not finite, and those that a logarithm has not, interrupt a line") {
  const std::vector<Point> points = {{1, 1}, {2, 2}, {3, 0}, {4, 3}, {5, NAN}, {6, 4}};
  const auto lines = [&](bool log) {
    const std::string picture = drawn(Chart{.y = {.log = log}, .curves = {{points}}});
    const std::size_t end = picture.find("stroke='#0072b2'"), begin = picture.rfind("d='", end);
    return count(picture.substr(begin, end - begin), "M");
  };
  CHECK(lines(false) == 2);
  CHECK(lines(true) == 3);
}
