/// What a report gathers, as JSON. page/data.js reads it, so both change together.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>

#include "base/json/json_text.hpp"
#include "xtape/report.hpp"
#include "xtape/trace.hpp"

namespace xtape::report_data {

/// Texts that occur often. The JSON refers to them by index.
class Strings {
 public:
  std::int64_t of(const std::string& text);
  const Json& list() const { return list_; }

 private:
  Json list_ = Json::array();
  std::unordered_map<std::string, std::int64_t> index_;
};

/// The places of a tape: a row for each different site, and the texts of the files that they name.
class Sites {
 public:
  /// With `shows_program`, the files are also the sources of the program. Otherwise they are definitions only.
  Sites(Strings& strings, bool shows_program) : strings_(strings), shows_program_(shows_program) {}
  /// Returns the row of a site of a node.
  std::int64_t of(const Site& site);
  /// Returns the row of a site that is known only by its text, such as Plan::Step::site.
  std::int64_t of(const std::string& text);
  Json rows() const { return rows_; }
  Json files() const;

 private:
  struct Place {
    std::string path, file, owner;
    std::int64_t line = 0;
    bool of_program = false;  // the file is a source of a program, not a definition
  };
  std::int64_t add(const std::string& text, const Place& place);
  Strings& strings_;
  bool shows_program_;
  Json rows_ = Json::array();
  std::unordered_map<std::string, std::int64_t> index_;  // by text
  std::map<std::string, bool> files_;                    // and whether they are sources of a program
};

/// The nodes of a tape by columns. `outputs` of the play are followed by their names in `named`, if any.
Json graph_of(const RecordedPlay& play, const NamedVars& named, Strings& strings, Sites& sites);
/// A plan by columns. `seconds` are measured times of its steps, summed over `plays`.
Json plan_of(const Plan& plan, std::size_t limit, Strings& strings, Sites& sites,
             const std::vector<double>& seconds = {}, std::int64_t plays = 0);
/// At most 10 points of the memory curve, evenly spaced: bytes, seconds, steps that run again.
Json curve_of(const RecordedPlay& play);
Json values_of(const RecordedPlay& play, Strings& strings);
Json errors_of(const RecordedPlay& play, Strings& strings);
/// What each thread does in the recorded play: the events of steps by columns, with times in tenths of microseconds.
Json trace_of(const Trace& trace);
/// Throws DtypeError if the play has no input and no parameter of floats. Errors of jacobian_sparsity and
/// hessian_sparsity propagate.
Json sparsity_of(const RecordedPlay& play, Sparsity of);
Json failure_of(const Capsule& capsule);
Json attention_of(const std::string& name, const Attention& attention);
Json run_of(const std::string& directory);

/// A number as JSON, with 7 digits. Numbers that are not finite become null, as in metrics.jsonl.
Json short_number(double number);
/// The place of a finite number between two finite ends, from 0 to 1. The difference of finite numbers may not be
/// finite, that of their halves is.
double fraction_of(double number, double low, double high);
/// The byte of a number in a picture: from 0 for `low` to 254 for `high`, and 255 if it is not finite.
char byte_of(double number, double low, double high);
/// The most pixels in the pictures of one array, and about the most in those of all values of a play.
inline constexpr std::int64_t image_pixels = 1 << 16, all_pixels = 1 << 23;
/// The last two axes of an array as images of at most 32 × 64 pixels, for as many places of the axes before as `most`
/// pixels allow, but at least one.
Json image_of(const ArrayView& array, const Range& range, std::int64_t most);
/// A range, a histogram and small pictures of an array.
Json picture_of(const ArrayView& array, std::int64_t most = image_pixels);

/// Returns the page: the files of src/report/page, which are compiled into the library, with `texts` in place of the
/// words {{title}}, {{nonce}}, {{data}}.
std::string filled_page(std::map<std::string, std::string> texts);

}  // namespace xtape::report_data
