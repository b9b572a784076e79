// The speed of factorisations of one matrix [n, n] on one thread, and of LAPACK (OpenBLAS) in turn, in the same run.
// Prints the microseconds of the best round, and xtape's time as a multiple of LAPACK's. Unset OPENBLAS_CORETYPE and
// OPENBLAS_L2_SIZE before, which can select slow kernels of OpenBLAS.
//
// usage: factorisations [SECONDS_EACH] [N]…
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench.hpp"
#include "dense_call.hpp"
#include "kernels/table/kernels.hpp"
#include "lapack.hpp"

namespace {

using namespace xtape;

/// Of this thread alone, because a long round rarely has the processor for itself.
double seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class T>
std::vector<T> drawn(int n, bool definite) {
  std::mt19937 random(1);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> a(static_cast<std::size_t>(n * n));
  for (T& x : a) x = uniform(random);
  if (!definite) return a;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j)
      a[static_cast<std::size_t>(i * n + j)] = a[static_cast<std::size_t>(j * n + i)] +=
          i == j ? static_cast<T>(2 * n) : T{0};
  return a;
}

/// LAPACK's function of this op, on a copy of `a` that it overwrites.
template <class T>
std::function<void()> lapack(const std::string& op, int n, const std::vector<T>& a) {
  struct State {
    std::vector<T> a, b, c, tau, work;
    std::vector<int> integers;
  };
  const auto room = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  auto state = std::make_shared<State>(State{a, a, a, std::vector<T>(static_cast<std::size_t>(n)),
                                             std::vector<T>(8 * room + 1000 * static_cast<std::size_t>(n)),
                                             std::vector<int>(static_cast<std::size_t>(20 * n))});
  return [=] {
    State& s = *state;
    std::copy(a.begin(), a.end(), s.a.begin());
    const int size = static_cast<int>(s.work.size()), integers = static_cast<int>(s.integers.size());
    int info = 0;
    const T one = 1;
    if (op == "cholesky") Lapack<T>::potrf("U", &n, s.a.data(), &n, &info, 1);
    if (op == "lu") Lapack<T>::getrf(&n, &n, s.a.data(), &n, s.integers.data(), &info);
    if (op == "triangular_solve")
      Lapack<T>::trsm("R", "U", "N", "N", &n, &n, &one, s.b.data(), &n, s.a.data(), &n, 1, 1, 1, 1);
    if (op == "qr") {
      Lapack<T>::geqrf(&n, &n, s.a.data(), &n, s.tau.data(), s.work.data(), &size, &info);
      Lapack<T>::orgqr(&n, &n, &n, s.a.data(), &n, s.tau.data(), s.work.data(), &size, &info);
    }
    if (op == "eigh")
      Lapack<T>::syevd("V", "U", &n, s.a.data(), &n, s.tau.data(), s.work.data(), &size, s.integers.data(), &integers,
                       &info, 1, 1);
    if (op == "svd")
      Lapack<T>::gesdd("S", &n, &n, s.a.data(), &n, s.tau.data(), s.b.data(), &n, s.c.data(), &n, s.work.data(), &size,
                       s.integers.data(), &info, 1);
  };
}

struct Measured {
  const char* name;
  bool definite;
  int inputs;
  std::vector<ValueType> outputs;
  Attributes attributes;
};

template <class T>
void measure(const Measured& op, std::int64_t n, double each) {
  const std::vector<T> a = drawn<T>(static_cast<int>(n), op.definite);
  const ValueType type{dtype_of<T>(), {n, n}};
  const DenseCall call(std::vector<ValueType>(static_cast<std::size_t>(op.inputs), type), op.outputs, op.attributes);
  const Kernel kernel = kernels().make(op.name, call.form());
  Array scratch(Dtype::boolean, {static_cast<std::int64_t>(kernel.scratch_bytes)});
  std::vector<Array> results;
  std::vector<void*> out;
  for (const ValueType& output : op.outputs) results.emplace_back(output.dtype, output.shape);
  for (Array& result : results) out.push_back(result.data());
  const std::vector<const void*> in(static_cast<std::size_t>(op.inputs), a.data());
  const auto own = [&] { kernel.run({in.data(), out.data(), scratch.data()}); };
  const auto peer = lapack<T>(op.name, static_cast<int>(n), a);
  double best[2] = {1e9, 1e9};
  const int repeats = n < 64 ? 100 : 1;
  for (const double end = bench::seconds() + each; bench::seconds() < end;)
    for (const int which : {0, 1}) {
      const double start = seconds();
      for (int i = 0; i < repeats; ++i) which == 0 ? own() : peer();
      best[which] = std::min(best[which], (seconds() - start) / repeats);
    }
  std::printf("%-17s %-8s %4lld %10.1f %10.1f %6.2f\n", op.name, name_of(type.dtype), static_cast<long long>(n),
              best[0] * 1e6, best[1] * 1e6, best[0] / best[1]);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  const double each = count > 1 ? std::atof(arguments[1]) : 0.3;
  std::vector<std::int64_t> sizes;
  for (int i = 2; i < count; ++i) sizes.push_back(std::atoll(arguments[i]));
  if (sizes.empty()) sizes = {8, 32, 64, 128, 256, 512};
  std::printf("%-17s %-8s %4s %10s %10s %6s\n", "op", "dtype", "n", "xtape us", "LAPACK us", "ratio");
  for (const Dtype dtype : {Dtype::float64, Dtype::float32})
    for (const std::int64_t n : sizes) {
      const ValueType matrix{dtype, {n, n}}, values{dtype, {n}}, scalar{dtype, {}}, rows{Dtype::int64, {n}};
      const Attributes check{{"check", true}};
      const std::vector<Measured> ops{
          {"cholesky", true, 1, {matrix}, check},
          {"triangular_solve",
           true,
           2,
           {matrix},
           {{"upper", false}, {"transposed", false}, {"unit_diagonal", false}, {"check", true}}},
          {"lu", false, 1, {matrix, rows, scalar}, check},
          {"qr", false, 1, {matrix, matrix}, {}},
          {"eigh", false, 1, {values, matrix}, check},
          {"svd", false, 1, {matrix, values, matrix}, check}};
      for (const Measured& op : ops)
        dtype == Dtype::float64 ? measure<double>(op, n, each) : measure<float>(op, n, each);
    }
}
