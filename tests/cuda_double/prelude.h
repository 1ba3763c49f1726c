/* What generated CUDA C finds in place of NVRTC's built-ins, when the host's C compiler reads it. No headers: they
   would cost more time than the kernels do. */
#define bool _Bool
#define true 1
#define false 0
#define nullptr ((void *)0)
#define __global__
#define __device__
#define __host__
#define __constant__ const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("emu_shared")))
typedef __SIZE_TYPE__ size_t;
typedef struct { unsigned x, y, z; } dim3;
static dim3 threadIdx, blockIdx, blockDim, gridDim;
enum { warpSize = 32 };

/* --- cooperation: the runtime fills these in when the object is loaded */
enum { EMU_SYNC, EMU_IDX, EMU_UP, EMU_DOWN, EMU_XOR, EMU_BALLOT };
static int (*emu_barrier)(int site);
static unsigned long long (*emu_warp)(
    int site, int kind, unsigned mask, unsigned operand, int width, unsigned long long bits);
#define __syncthreads() ((void)emu_barrier(__COUNTER__))
#define __syncwarp(...) ((void)emu_warp(__COUNTER__, EMU_SYNC, (~0u, ##__VA_ARGS__), 0, 32, 0))
#define EMU_SHUFFLE(kind, mask, value, operand, width) ({ \
  __typeof__((value) + 0) emu_value = (value); unsigned long long emu_bits = 0; \
  __builtin_memcpy(&emu_bits, &emu_value, sizeof emu_value); \
  emu_bits = emu_warp(__COUNTER__, kind, mask, operand, width, emu_bits); \
  __builtin_memcpy(&emu_value, &emu_bits, sizeof emu_value); emu_value; })
#define __shfl_sync(m, v, lane, ...) EMU_SHUFFLE(EMU_IDX, m, v, lane, (32, ##__VA_ARGS__))
#define __shfl_up_sync(m, v, n, ...) EMU_SHUFFLE(EMU_UP, m, v, n, (32, ##__VA_ARGS__))
#define __shfl_down_sync(m, v, n, ...) EMU_SHUFFLE(EMU_DOWN, m, v, n, (32, ##__VA_ARGS__))
#define __shfl_xor_sync(m, v, n, ...) EMU_SHUFFLE(EMU_XOR, m, v, n, (32, ##__VA_ARGS__))
#define __ballot_sync(m, p) ((unsigned)emu_warp(__COUNTER__, EMU_BALLOT, m, 0, 32, !!(p)))
#define __any_sync(m, p) (__ballot_sync(m, p) != 0)
#define __all_sync(m, p) (__ballot_sync(m, p) == (m))
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)

/* --- atomics: only one thread runs at a time, so reading and writing is enough */
#define EMU_ATOMIC(p, next) ({ \
  __typeof__(p) emu_p = (p); const __typeof__(*(p) + 0) old = *emu_p; *emu_p = (next); old; })
#define EMU_UPDATE(p, v, next) ({ const __typeof__(*(p) + 0) emu_v = (v); EMU_ATOMIC(p, next); })
#define atomicAdd(p, v) EMU_UPDATE(p, v, old + emu_v)
#define atomicSub(p, v) EMU_UPDATE(p, v, old - emu_v)
#define atomicMin(p, v) EMU_UPDATE(p, v, emu_v < old ? emu_v : old)
#define atomicMax(p, v) EMU_UPDATE(p, v, emu_v > old ? emu_v : old)
#define atomicAnd(p, v) EMU_UPDATE(p, v, old & emu_v)
#define atomicOr(p, v) EMU_UPDATE(p, v, old | emu_v)
#define atomicXor(p, v) EMU_UPDATE(p, v, old ^ emu_v)
#define atomicExch(p, v) EMU_UPDATE(p, v, emu_v)
#define atomicCAS(p, was, v) ({ \
  const __typeof__(*(p) + 0) emu_was = (was); EMU_UPDATE(p, v, old == emu_was ? emu_v : old); })

/* --- arithmetic */
#define EMU_BITS(name, to, from) \
  static inline to name(from x) { union { from a; to b; } u = {x}; return u.b; }
EMU_BITS(__float_as_int, int, float)
EMU_BITS(__float_as_uint, unsigned, float)
EMU_BITS(__int_as_float, float, int)
EMU_BITS(__uint_as_float, float, unsigned)
EMU_BITS(__double_as_longlong, long long, double)
EMU_BITS(__longlong_as_double, double, long long)
#define fmaf __builtin_fmaf
#define fma __builtin_fma
#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt
#define truncf __builtin_truncf
#define trunc __builtin_trunc
#define floorf __builtin_floorf
#define floor __builtin_floor
#define ceilf __builtin_ceilf
#define ceil __builtin_ceil
#define rintf __builtin_rintf
#define rint __builtin_rint
#define fabsf __builtin_fabsf
#define fabs __builtin_fabs
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf_sign(x)
#define __fmaf_rn __builtin_fmaf
#define __fma_rn __builtin_fma
#define __fsqrt_rn __builtin_sqrtf
#define __dsqrt_rn __builtin_sqrt
#define EMU_RN(name, type, op) static inline type name(type a, type b) { return a op b; }
EMU_RN(__fadd_rn, float, +) EMU_RN(__fsub_rn, float, -)
EMU_RN(__fmul_rn, float, *) EMU_RN(__fdiv_rn, float, /)
EMU_RN(__dadd_rn, double, +) EMU_RN(__dsub_rn, double, -)
EMU_RN(__dmul_rn, double, *) EMU_RN(__ddiv_rn, double, /)
#define min(a, b) ({ \
  const __typeof__((a) + (b)) emu_a = (a), emu_b = (b); emu_b < emu_a ? emu_b : emu_a; })
#define max(a, b) ({ \
  const __typeof__((a) + (b)) emu_a = (a), emu_b = (b); emu_a < emu_b ? emu_b : emu_a; })
#define __clz(x) ((x) ? __builtin_clz(x) : 32)
#define __popc(x) __builtin_popcount(x)
#define __ldg(p) (*(p))

/* --- what the runtime reads */
struct emu_entry {
  const char *name;
  void (*call)(void **arguments);
  unsigned count;       /* of parameters */
  const unsigned *sizes;
  const unsigned *aims; /* the alignment of what a pointer points to; 0 for no pointer */
};
extern char __start_emu_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emu_shared[] __attribute__((weak, visibility("hidden")));
struct emu_unit {
  struct emu_entry *entries; /* up to one without a name */
  dim3 *thread, *block, *block_dim, *grid_dim;
  char *shared, *shared_end;
  int (**barrier)(int);
  unsigned long long (**warp)(int, int, unsigned, unsigned, int, unsigned long long);
};
