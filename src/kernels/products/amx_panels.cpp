#include <algorithm>
#include <limits>

#include "kernels/products/amx.hpp"

#if defined(XTAPE_AMX)
#include <immintrin.h>

namespace xtape::amx {

namespace {
using Lines = __m512[panel_lines];

/// Loads 16 lines of 16 numbers, with zeros beyond the first `lines` lines and the first `numbers` numbers.
XTAPE_AMX inline void load(const float* from, std::int64_t stride, std::int64_t lines, std::int64_t numbers,
                           Lines& to) {
  lines = std::clamp<std::int64_t>(lines, 0, panel_lines);
  numbers = std::clamp<std::int64_t>(numbers, 0, panel_lines);
  const auto mask = static_cast<__mmask16>((1u << numbers) - 1);
  if (lines == panel_lines && numbers == panel_lines) {
    for (int i = 0; i < panel_lines; ++i) to[i] = _mm512_loadu_ps(from + i * stride);
    return;
  }
  for (int i = 0; i < panel_lines; ++i)
    to[i] = i < lines ? _mm512_maskz_loadu_ps(mask, from + i * stride) : _mm512_setzero_ps();
}

// Separate functions, because lambdas that are not inlined cannot pass the target's registers.
XTAPE_AMX inline __m512 low_pairs(__m512 x, __m512 y) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
XTAPE_AMX inline __m512 high_pairs(__m512 x, __m512 y) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}

/// Transposes 16 x 16 numbers in place.
XTAPE_AMX inline void transpose(Lines& lines) {
  Lines pairs;
  for (int i = 0; i < panel_lines; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(lines[i], lines[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(lines[i], lines[i + 1]);
  }
  Lines quads;  // quads[4 i + j]: element j of every group of four elements, from lines 4 i … 4 i + 3
  for (int i = 0; i < panel_lines; i += 4) {
    quads[i] = low_pairs(pairs[i], pairs[i + 2]);
    quads[i + 1] = high_pairs(pairs[i], pairs[i + 2]);
    quads[i + 2] = low_pairs(pairs[i + 1], pairs[i + 3]);
    quads[i + 3] = high_pairs(pairs[i + 1], pairs[i + 3]);
  }
  for (int j = 0; j < 4; ++j) {
    const __m512 even_low = _mm512_shuffle_f32x4(quads[j], quads[4 + j], 0x88);
    const __m512 odd_low = _mm512_shuffle_f32x4(quads[j], quads[4 + j], 0xdd);
    const __m512 even_high = _mm512_shuffle_f32x4(quads[8 + j], quads[12 + j], 0x88);
    const __m512 odd_high = _mm512_shuffle_f32x4(quads[8 + j], quads[12 + j], 0xdd);
    lines[j] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
    lines[4 + j] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
    lines[8 + j] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
    lines[12 + j] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
  }
}

/// Returns the high 16 bits of each 32-bit element. The low half of a result contains the bits of x, and the high half
/// contains the bits of y.
XTAPE_AMX inline __m512i high_halves(__m512i x, __m512i y) {
  constexpr int first_and_second_or_third = 0xea;
  return _mm512_ternarylogic_epi32(y, _mm512_set1_epi32(static_cast<int>(0xffff0000u)), _mm512_srli_epi32(x, 16),
                                   first_and_second_or_third);
}

/// Returns the bits of x with the upper half rounded to bfloat16. If the part `is_last`, ties go to even, and a NaN
/// becomes the standard NaN because its rounded bits could be those of a number.
template <bool is_last>
XTAPE_AMX inline __m512i rounded(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  if constexpr (!is_last) return _mm512_add_epi32(bits, _mm512_set1_epi32(0x8000));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  return _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_epi32(0x7fc00000));
}

/// Decomposes one step into bfloat16 parts: the nearest to the number, the nearest to the remainder, and the second
/// remainder, which fits 8 bits. Terms j and j + 16 form a pair. The unit only requires that both sides use the same
/// pairs. The last part of a NaN is NaN.
template <int parts>
XTAPE_AMX inline void split(const Lines& first, const Lines& second, __m512i* to) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int i = 0; i < panel_lines; ++i) {
    __m512 x = first[i], y = second[i];
    for (int part = 0; part < std::min(parts, 2); ++part) {
      const bool last = part == parts - 1;
      const __m512i near_x = last ? rounded<true>(x) : rounded<false>(x);
      const __m512i near_y = last ? rounded<true>(y) : rounded<false>(y);
      _mm512_store_si512(to + part * panel_lines + i, high_halves(near_x, near_y));
      x = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_and_si512(near_x, high)));
      y = _mm512_sub_ps(y, _mm512_castsi512_ps(_mm512_and_si512(near_y, high)));
    }
    if constexpr (parts == 3)
      _mm512_store_si512(to + 2 * panel_lines + i, high_halves(_mm512_castps_si512(x), _mm512_castps_si512(y)));
  }
}

/// The magnitude bounds at the end of a panel, for `least_sound`: the smallest and the largest magnitude of the numbers
/// in each lane, except 0 and NaN. If there are no such numbers, `least` is the largest float and `greatest` is 0.
struct Noted {
  alignas(64) float least[panel_lines];
  alignas(64) float greatest[panel_lines];
};
static_assert(sizeof(Noted) == noted_bytes);

inline const Noted& noted(const Panels& panels, int i) {
  return *reinterpret_cast<const Noted*>(static_cast<const char*>(panels.data) + (i + 1) * panels.stride - noted_bytes);
}

/// Packs one step of one panel. If `lines_are_rows`, the rows of a tile are the lines of the panel (left side).
/// Otherwise, the rows of a tile are the terms of the panel (right side). If `terms_run`, the terms of a line are
/// contiguous in memory.
template <bool lines_are_rows, bool terms_run, int parts>
XTAPE_AMX inline void pack_step(const Operand& from, std::int64_t lines, std::int64_t terms, void* to, Noted& noted) {
  constexpr std::int64_t half = step_terms / 2;
  Lines first, second;
  if constexpr (terms_run) {
    load(from.data, from.line, lines, terms, first);
    load(from.data + half, from.line, lines, terms - half, second);
  } else {
    load(from.data, from.term, terms, lines, first);
    load(from.data + half * from.term, from.term, terms - half, lines, second);
  }
  if constexpr (parts == 3) {
    // NaN is excluded because a signalling NaN makes the `range` instruction drop the previous magnitudes.
    constexpr int lesser_size = 0xa, greater_size = 0xb;
    __m512 least = _mm512_load_ps(noted.least), greatest = _mm512_load_ps(noted.greatest);
    for (int i = 0; i < panel_lines; ++i)
      for (const __m512& x : {first[i], second[i]}) {
        const __mmask16 counted = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_OQ);
        least = _mm512_mask_range_ps(least, counted, least, x, lesser_size);
        greatest = _mm512_mask_range_ps(greatest, counted, greatest, x, greater_size);
      }
    _mm512_store_ps(noted.least, least);
    _mm512_store_ps(noted.greatest, greatest);
  }
  if constexpr (terms_run != lines_are_rows) {
    transpose(first);
    transpose(second);
  }
  split<parts>(first, second, static_cast<__m512i*>(to));
}

template <bool lines_are_rows, bool terms_run, int parts>
XTAPE_AMX void pack(const Operand& from, std::int64_t lines, std::int64_t terms, void* panels, std::int64_t stride) {
  const auto step = [&](std::int64_t line, std::int64_t term) XTAPE_AMX {
    const Operand here{from.data + line * from.line + term * from.term, from.line, from.term};
    char* panel = static_cast<char*>(panels) + line / panel_lines * stride;
    Noted& noted = *reinterpret_cast<Noted*>(panel + stride - noted_bytes);
    if (term == 0) {
      std::fill_n(noted.least, panel_lines, std::numeric_limits<float>::max());
      std::fill_n(noted.greatest, panel_lines, 0.0f);
    }
    pack_step<lines_are_rows, terms_run, parts>(here, lines - line, terms - term,
                                                panel + term / step_terms * parts * tile_bytes, noted);
  };
  // The contiguous direction is the inner loop.
  if constexpr (terms_run) {
    for (std::int64_t line = 0; line < lines; line += panel_lines)
      for (std::int64_t term = 0; term < terms; term += step_terms) step(line, term);
  } else {
    for (std::int64_t term = 0; term < terms; term += step_terms)
      for (std::int64_t line = 0; line < lines; line += panel_lines) step(line, term);
  }
}

template <bool lines_are_rows, int parts>
void pack(const Operand& from, std::int64_t lines, std::int64_t terms, void* panels, std::int64_t stride) {
  (from.term == 1 ? pack<lines_are_rows, true, parts> : pack<lines_are_rows, false, parts>)(from, lines, terms, panels,
                                                                                            stride);
}
}  // namespace

void pack_left(const Operand& from, int parts, std::int64_t lines, std::int64_t terms, void* panels,
               std::int64_t stride) {
  (parts == 3 ? pack<true, 3> : parts == 2 ? pack<true, 2> : pack<true, 1>)(from, lines, terms, panels, stride);
}
void pack_right(const Operand& from, int parts, std::int64_t lines, std::int64_t terms, void* panels,
                std::int64_t stride) {
  (parts == 3 ? pack<false, 3> : parts == 2 ? pack<false, 2> : pack<false, 1>)(from, lines, terms, panels, stride);
}

XTAPE_AMX float least_sound(std::int64_t terms, const Panels& left, const Panels& right) {
  const auto least = [](const Panels& panels) XTAPE_AMX {
    return _mm512_reduce_min_ps(
        _mm512_min_ps(_mm512_load_ps(noted(panels, 0).least), _mm512_load_ps(noted(panels, panels.count - 1).least)));
  };
  const auto greatest = [](const Panels& panels) XTAPE_AMX {
    return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_load_ps(noted(panels, 0).greatest),
                                              _mm512_load_ps(noted(panels, panels.count - 1).greatest)));
  };
  // Parts are multiples of the unit in the last place of the smallest magnitude of their side. Products and sums are
  // multiples of the product of both units. If a and b are as large as the condition says, no nonzero part, product or
  // sum is below 2^-126.
  const float a = least(left), b = least(right);
  if (a >= 0x1p-102f && b >= 0x1p-102f && a * b >= 0x1p-78f) return 0;
  // For each of its two numbers, a term loses less than 2^-125 times the other number. The six sums of a term lose less
  // than 2^-126 each.
  const float dropped = 0x1p-124f * (greatest(left) + greatest(right) + 2);
  constexpr float half_a_unit = 0x1p-25f;
  return std::min(static_cast<float>(terms) * dropped / half_a_unit, std::numeric_limits<float>::max());
}

}  // namespace xtape::amx

#else

namespace xtape::amx {
void pack_left(const Operand&, int, std::int64_t, std::int64_t, void*, std::int64_t) {}
void pack_right(const Operand&, int, std::int64_t, std::int64_t, void*, std::int64_t) {}
float least_sound(std::int64_t, const Panels&, const Panels&) {
  return 0;
}
}  // namespace xtape::amx

#endif
