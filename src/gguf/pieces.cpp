// The message of a sentencepiece model (sentencepiece_model.proto): pieces, and how texts are normalised.
#include <algorithm>
#include <cstring>

#include "gguf/tokenizer.hpp"

namespace xtape::gguf {

namespace {
// Fields of the messages.
struct ModelField {
  enum { pieces = 1, trainer = 2, normalizer = 3 };
};
struct PieceField {
  enum { text = 1, score = 2, type = 3 };
};
struct TrainerField {
  enum { model_type = 3, size = 4, byte_fallback = 35, unknown_piece = 45 };
};
struct NormalizerField {
  enum { name = 1, add_space = 3, fewer_spaces = 4, escape_spaces = 5 };
};
enum class Wire { varint = 0, wide = 1, bytes = 2, narrow = 5 };

void add_varint(std::string& to, std::uint64_t number) {
  for (; number >= 128; number >>= 7) to += static_cast<char>(number | 128);
  to += static_cast<char>(number);
}
void add_tag(std::string& to, int field, Wire wire) {
  add_varint(to, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}
void add_number(std::string& to, int field, std::uint64_t number) {
  add_tag(to, field, Wire::varint);
  add_varint(to, number);
}
void add_bytes(std::string& to, int field, const std::string& bytes) {
  add_tag(to, field, Wire::bytes);
  add_varint(to, bytes.size());
  to += bytes;
}

/// A field of a message: a number, or bytes.
struct Field {
  int field;
  Wire wire;
  std::uint64_t number;
  std::string_view bytes;
};

class Fields {
 public:
  Fields(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}
  bool next(Field& field) {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t tag = varint();
    field = {static_cast<int>(tag >> 3), static_cast<Wire>(tag & 7), 0, {}};
    if (field.wire == Wire::varint)
      field.number = varint();
    else if (field.wire == Wire::bytes)
      field.bytes = take(varint());
    else if (field.wire == Wire::narrow || field.wire == Wire::wide)
      field.bytes = take(field.wire == Wire::narrow ? 4 : 8);
    else
      fail();
    return true;
  }

 private:
  [[noreturn]] void fail() const { throw FileError(where_ + " is no sentencepiece model, or is damaged"); }
  std::uint64_t varint() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      number |= static_cast<std::uint64_t>(byte & 127U) << shift;
      if (byte < 128) return number;
    }
    fail();
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail();
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
};
}  // namespace

std::string sentencepiece_model(const Pieces& pieces) {
  std::string model, options, normal;
  for (std::size_t i = 0; i < pieces.texts.size(); ++i) {
    std::string message, bits(4, '\0');
    std::memcpy(bits.data(), &pieces.scores[i], 4);
    add_bytes(message, PieceField::text, pieces.texts[i]);
    add_tag(message, PieceField::score, Wire::narrow);
    message += bits;
    add_number(message, PieceField::type, static_cast<std::uint64_t>(pieces.types[i]));
    add_bytes(model, ModelField::pieces, message);
  }
  add_number(options, TrainerField::model_type, pieces.unigram ? 1 : 2);
  add_number(options, TrainerField::size, pieces.texts.size());
  add_number(options, TrainerField::byte_fallback, std::ranges::count(pieces.types, TokenType::byte) == 256 ? 1 : 0);
  const auto unknown = std::ranges::find(pieces.types, TokenType::unknown);
  if (unknown != pieces.types.end())
    add_bytes(options, TrainerField::unknown_piece,
              pieces.texts[static_cast<std::size_t>(unknown - pieces.types.begin())]);
  add_bytes(model, ModelField::trainer, options);
  add_bytes(normal, NormalizerField::name, "identity");
  add_number(normal, NormalizerField::add_space, pieces.space_first ? 1 : 0);
  add_number(normal, NormalizerField::fewer_spaces, pieces.fewer_spaces ? 1 : 0);
  add_number(normal, NormalizerField::escape_spaces, 1);
  add_bytes(model, ModelField::normalizer, normal);
  return model;
}

Pieces read_pieces_of(const std::string& model, const std::string& where) {
  Pieces pieces;
  Field field;
  pieces.unigram = true;  // the defaults of the message
  pieces.fewer_spaces = true;
  for (Fields fields(model, where); fields.next(field);) {
    Field part;
    Fields parts(field.wire == Wire::bytes ? field.bytes : std::string_view(), where);
    if (field.field == ModelField::pieces) {
      pieces.texts.emplace_back();
      pieces.scores.push_back(0);
      pieces.types.push_back(TokenType::normal);
    }
    while (parts.next(part)) {
      if (field.field == ModelField::pieces && part.field == PieceField::text) pieces.texts.back() = part.bytes;
      if (field.field == ModelField::pieces && part.field == PieceField::score && part.bytes.size() == 4)
        std::memcpy(&pieces.scores.back(), part.bytes.data(), 4);
      if (field.field == ModelField::pieces && part.field == PieceField::type && part.number >= 1 && part.number <= 6)
        pieces.types.back() = static_cast<TokenType>(part.number);
      if (field.field == ModelField::trainer && part.field == TrainerField::model_type)
        pieces.unigram = part.number == 1;
      if (field.field == ModelField::normalizer && part.field == NormalizerField::add_space)
        pieces.space_first = part.number != 0;
      if (field.field == ModelField::normalizer && part.field == NormalizerField::fewer_spaces)
        pieces.fewer_spaces = part.number != 0;
    }
  }
  return pieces;
}

}  // namespace xtape::gguf
