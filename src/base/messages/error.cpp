#include "xtape/error.hpp"

#include "base/messages/wording.hpp"
#include "xtape/array.hpp"

namespace xtape {

struct Error::Facts {
  std::string text;  ///< The whole message. If empty, std::runtime_error has the message.
  std::string op, file;
  std::int32_t line = 0;
  std::vector<Shape> shapes;
  bool located = false;
};

Error::Error(const std::string& message) : std::runtime_error(escaped(message)) {}

const char* Error::what() const noexcept {
  return facts_ && !facts_->text.empty() ? facts_->text.c_str() : std::runtime_error::what();
}

namespace {
const std::string no_name;
const std::vector<Shape> no_shapes;
}  // namespace

const std::string& Error::op() const {
  return facts_ ? facts_->op : no_name;
}
const std::string& Error::file() const {
  return facts_ ? facts_->file : no_name;
}
std::int32_t Error::line() const {
  return facts_ ? facts_->line : 0;
}
const std::vector<Shape>& Error::shapes() const {
  return facts_ ? facts_->shapes : no_shapes;
}

/// Returns the facts of this error, which the caller may change. Copies of an error share their facts, so this function
/// first makes a separate copy of shared facts.
Error::Facts& Error::facts() {
  if (!facts_ || facts_.use_count() > 1) facts_ = facts_ ? std::make_shared<Facts>(*facts_) : std::make_shared<Facts>();
  return *facts_;
}

void Error::prepend(const std::string& name) {
  std::string text = escaped(name) + ": " + what();
  facts().text = std::move(text);
}

void Error::name_op(const std::string& op) {
  if (facts_ && facts_->located) return;
  if (std::string(what()).compare(0, op.size() + 1, op + ":") != 0) prepend(op);
  facts().op = op;
}

void Error::name_location(const std::string& location, const std::string& file, std::int32_t line) {
  if (location.empty() || (facts_ && facts_->located)) return;
  prepend(location);
  set_place(file, line);
}

void Error::set_place(const std::string& file, std::int32_t line) {
  Facts& known = facts();
  known.located = true;
  known.file = file;
  known.line = line;
}

void Error::set_shapes(const std::vector<Shape>& shapes) {
  if (!facts_ || !facts_->located) facts().shapes = shapes;
}

}  // namespace xtape
