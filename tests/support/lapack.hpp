/// The functions of LAPACK and BLAS that tests and benchmarks compare with, by element type. Builds of OpenBLAS may
/// lack LAPACK's C interface, so these are the Fortran symbols. Matrices are column-major, and the lengths of texts are
/// the last arguments.
#pragma once

#include <cstddef>

#define XTAPE_LAPACK(T, prefix)                                                                                        \
  extern "C" {                                                                                                         \
  void prefix##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info, std::size_t);                   \
  void prefix##trsm_(const char* side, const char* uplo, const char* transa, const char* diag, const int* m,           \
                     const int* n, const T* alpha, const T* a, const int* lda, T* b, const int* ldb, std::size_t,      \
                     std::size_t, std::size_t, std::size_t);                                                           \
  void prefix##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);                       \
  void prefix##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork, int* info); \
  void prefix##orgqr_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work,           \
                      const int* lwork, int* info);                                                                    \
  void prefix##syevd_(const char* jobz, const char* uplo, const int* n, T* a, const int* lda, T* w, T* work,           \
                      const int* lwork, int* iwork, const int* liwork, int* info, std::size_t, std::size_t);           \
  void prefix##gesdd_(const char* jobz, const int* m, const int* n, T* a, const int* lda, T* s, T* u, const int* ldu,  \
                      T* vt, const int* ldvt, T* work, const int* lwork, int* iwork, int* info, std::size_t);          \
  }                                                                                                                    \
  namespace xtape {                                                                                                    \
  template <>                                                                                                          \
  struct Lapack<T> {                                                                                                   \
    static constexpr auto potrf = prefix##potrf_;                                                                      \
    static constexpr auto getrf = prefix##getrf_;                                                                      \
    static constexpr auto geqrf = prefix##geqrf_;                                                                      \
    static constexpr auto orgqr = prefix##orgqr_;                                                                      \
    static constexpr auto syevd = prefix##syevd_;                                                                      \
    static constexpr auto gesdd = prefix##gesdd_;                                                                      \
    static constexpr auto trsm = prefix##trsm_;                                                                        \
  };                                                                                                                   \
  }

namespace xtape {
template <class T>
struct Lapack;
}
XTAPE_LAPACK(float, s)
XTAPE_LAPACK(double, d)
#undef XTAPE_LAPACK
