#include "model/language/synonyms.hpp"

#include <map>
#include <utility>

#include "base/messages/wording.hpp"

namespace xtape::model {

const std::vector<Synonym>& synonyms() {
  static const std::vector<Synonym> all = {
      {"cat hstack", "PyTorch", "concat(x, y, axis=1)"},
      {"concatenate vstack", "NumPy", "concat(x, y, axis=0)"},
      {"view", "PyTorch", "reshape(x, (3, -1))"},
      {"flatten ravel", "NumPy", "reshape(x, (-1,))"},
      {"permute movedim swapaxes", "PyTorch", "transpose(x, (1, 0))"},
      {"T mT", "NumPy", "transpose(x)"},
      {"bmm mm dot", "PyTorch", "x @ y"},
      {"unsqueeze", "PyTorch", "expand_dims(x, 0)"},
      {"chunk", "PyTorch", "split(x, (1, 2), axis=1)"},
      {"unbind", "PyTorch", "unstack(x, axis=0)"},
      {"expand", "PyTorch", "broadcast_to(x, (3, 3))"},
      {"repeat", "PyTorch", "tile(x, (2, 1))"},
      {"arange", "NumPy", "iota(n)"},
      {"linspace", "NumPy", "iota(n, dtype='float') / (n - 1)"},
      {"tensor asarray", "PyTorch", "array([1, 2])"},
      {"zeros_like", "NumPy", "zeros(x.shape)"},
      {"ones_like", "NumPy", "ones(x.shape)"},
      {"rand", "PyTorch", "uniform((2, 3))"},
      {"size", "PyTorch", "x.shape"},
      {"dim ndim", "PyTorch", "x.rank"},
      {"numel", "PyTorch", "prod(x.shape)"},
      {"to type float long", "PyTorch", "cast(x, 'float')"},
      {"astype", "NumPy", "cast(x, 'float')"},
      {"detach", "PyTorch", "stop_gradient(x)"},
      {"clamp", "PyTorch", "clip(x, 0, 1)"},
      {"topk", "PyTorch", "top_k(x, 2)"},
      {"amax", "NumPy", "max(x, axis=1)"},
      {"amin", "NumPy", "min(x, axis=1)"},
      {"norm", "PyTorch", "vector_norm(x)"},
      {"nonzero", "NumPy", "nonzero_static(x, size=4)"},
      {"swish", "Keras", "silu(x)"},
      {"list tuple", "Python", "(x, y)"},
      {"reversed", "Python", "(x, y)[::-1]"},
      {"map", "Python", "[relu(a) for a in (x, y)]"},
  };
  return all;
}

std::string or_synonym(const std::string& name, const std::string& otherwise) {
  for (const Synonym& each : synonyms())
    if (is_one_of(each.names, name)) return "'" + name + "' is " + each.library + "'s name; here it is " + each.form;
  return otherwise;
}

std::string keyword_synonym(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::pair<const char*, const char*> all[] = {
      {"dim", "axis"}, {"dims", "axes"}, {"dims", "axis"}, {"keepdim", "keepdims"}, {"eps", "epsilon"}};
  for (const auto& [theirs, here] : all)
    if (name == theirs && contains(known, here)) return "'" + name + "' is PyTorch's name; here it is " + here + "=";
  return "";
}

std::string symbol_hint(const Token& token) {
  static const std::map<std::string, const char*> known = {
      {"=", "'==' compares; 'name = expression' assigns, at the beginning of a line"},
      {"is", "'==' compares"},
      {"^", "'**' is the power"},
      {"&", "'and' joins flags and bool arrays"},
      {"&&", "'and' joins flags and bool arrays"},
      {"|", "'or' joins flags and bool arrays"},
      {"||", "'or' joins flags and bool arrays"},
      {"!", "'not' negates"},
      {"~", "'not' negates"},
      {"?", "a if c else b chooses"},
      {":", "a line assigns as in 'name = expression'"},
      {";", "every line is a string of its own"},
      {"{", "a tuple is written (a, b)"},
      {"for", "[f(a) for a in tuple] applies f to each element, and scan steps along an axis"},
      {"while", "a module with \"repeat\" is applied several times, and scan steps along an axis"},
      {"lambda", "a block or a function has the lines that are used again, and its name is a value"}};
  const auto found = known.find(token.text);
  const bool named = token.kind == Token::Kind::name || token.kind == Token::Kind::symbol;
  return named && found != known.end() ? std::string(": ") + found->second : "";
}

}  // namespace xtape::model
