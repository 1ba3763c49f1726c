/* Runs the blocks of a launch, one thread at a time, until one of them does what a device would not forgive.

   Threads of a kernel that cooperates are fibers: each runs until it waits at a barrier or a shuffle, and goes on when
   all that it waits for have come. In what order the others run is drawn from the launch's seed, as no kernel may
   depend on it. A barrier that some threads do not come to, and a shuffle with a missing lane, are found because
   nobody can run any more. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <pthread.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

typedef struct { unsigned x, y, z; } dim3;
struct emu_entry {
  const char *name;
  void (*call)(void **);
  unsigned count;
  const unsigned *sizes, *aims;
};
struct emu_unit {
  struct emu_entry *entries;
  dim3 *thread, *block, *block_dim, *grid_dim;
  char *shared, *shared_end;
  int (**barrier)(int);
  unsigned long long (**warp)(int, int, unsigned, unsigned, int, unsigned long long);
};

enum { WARP = 32, THREADS = 1024, STACK = 1 << 16, ALTERNATE = 1 << 16, SLOT = 16 };
enum { FINE, BAD_ADDRESS, BAD_COOPERATION, TRAP }; /* what `emu_run` returns */
enum { READY, AT_BARRIER, AT_WARP, DONE };
enum { SYNC, IDX, UP, DOWN, XOR, BALLOT };

struct fiber {
#ifdef __x86_64__
  void *at; /* the stack pointer, while others run */
#else
  ucontext_t at;
#endif
  dim3 index;
  int state, site, kind, width;
  unsigned mask, operand;
  unsigned long long bits, answer;
};

static struct fiber fibers[THREADS], *running;
static char *stacks;
static struct emu_unit *unit;
static struct emu_entry *entry;
static void **arguments;
static char *message;
static int room;
static sigjmp_buf escape;
static pthread_t runner;
static struct sigaction before[3];
static const int signals[3] = {SIGSEGV, SIGBUS, SIGFPE};

/* --- filling memory with what nobody can mistake for zeros: a NaN in every float type, a large int */
void emu_poison(void *start, size_t size) {
  const uint32_t word = 0xFFC5A5A5u;
  for (size_t i = 0; i < size; ++i) ((unsigned char *)start)[i] = word >> 8 * (i & 3);
}

/* --- switching between fibers */
#ifdef __x86_64__
typedef void *place;
void emu_switch(void **save, void *load);
__asm__(
    ".text\n.globl emu_switch\n.type emu_switch,@function\nemu_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
    ".size emu_switch,.-emu_switch\n");
#define SWITCH(save, load) emu_switch(&(save), load)
static void prepare(struct fiber *f, char *stack, void (*body)(void)) {
  void **top = (void **)(stack + STACK);
  *--top = NULL; /* keeps the alignment that a call would leave */
  *--top = (void *)body;
  for (int i = 0; i < 6; ++i) *--top = NULL;
  f->at = top;
}
#else
typedef ucontext_t place;
#define SWITCH(save, load) swapcontext(&(save), &(load))
static void prepare(struct fiber *f, char *stack, void (*body)(void)) {
  getcontext(&f->at);
  f->at.uc_stack.ss_sp = stack, f->at.uc_stack.ss_size = STACK, f->at.uc_link = NULL;
  makecontext(&f->at, body, 0);
}
#endif
static place scheduler;

static void fiber_body(void) {
  entry->call(arguments);
  running->state = DONE;
  SWITCH(running->at, scheduler);
}

static void resume(struct fiber *f) {
  running = f;
  *unit->thread = f->index;
  SWITCH(scheduler, f->at);
}

static int barrier(int site) {
  running->state = AT_BARRIER, running->site = site;
  SWITCH(running->at, scheduler);
  return 0;
}

static unsigned long long warp(
    int site, int kind, unsigned mask, unsigned operand, int width, unsigned long long bits) {
  struct fiber *f = running;
  f->state = AT_WARP, f->site = site, f->kind = kind, f->mask = mask;
  f->operand = operand, f->width = width, f->bits = bits;
  SWITCH(f->at, scheduler);
  return f->answer;
}

/* --- letting go of those that wait */
static int complain(const struct fiber *f, const char *what) {
  const dim3 *b = unit->block, t = f->index;
  snprintf(message, room, "%s: %s: thread (%u, %u, %u) of block (%u, %u, %u)", entry->name, what,
           t.x, t.y, t.z, b->x, b->y, b->z);
  return BAD_COOPERATION;
}

static int source_lane(const struct fiber *f, int lane) {
  const int first = lane & ~(f->width - 1), last = first | (f->width - 1), n = (int)f->operand;
  switch (f->kind) {
    case IDX: return first | (n & (f->width - 1));
    case UP: return lane - n < first ? lane : lane - n;
    case DOWN: return lane + n > last ? lane : lane + n;
    default: return (lane ^ n) > last ? lane : lane ^ n;
  }
}

/* Answers all lanes of a mask that have come to the same place; 1 if they went on, -1 after a complaint. */
static int release_mask(struct fiber *lanes, int size, const struct fiber *f) {
  unsigned long long ballot = 0;
  for (int lane = 0; lane < WARP; ++lane) {
    if (!(f->mask >> lane & 1)) continue;
    if (lane >= size) continue; /* a warp at the block's end has no such lane */
    const struct fiber *other = lanes + lane;
    if (other->state != AT_WARP || other->site != f->site || other->mask != f->mask) return 0;
    ballot |= other->bits << lane;
  }
  for (int lane = 0; lane < size; ++lane) {
    struct fiber *other = lanes + lane;
    if (!(f->mask >> lane & 1)) continue;
    other->answer = ballot;
    if (f->kind == SYNC || f->kind == BALLOT) continue;
    const int from = source_lane(other, lane);
    if (from >= size || !(f->mask >> from & 1))
      return complain(other, "a shuffle reads a lane that takes no part"), -1;
    other->answer = lanes[from].bits;
  }
  const unsigned mask = f->mask;
  for (int lane = 0; lane < size; ++lane)
    if (mask >> lane & 1) lanes[lane].state = READY;
  return 1;
}

/* The i-th of `size` threads or warps, in an order that the seed chooses. */
static int shuffled(int i, int size, unsigned seed) {
  const int from = (i + (seed >> 1 & 31)) % size;
  return seed & 1 ? size - 1 - from : from;
}

/* Runs a warp until all of its lanes are at the block's barrier, or have ended. */
static int run_warp(struct fiber *lanes, int size, unsigned seed) {
  for (;;) {
    for (int i = 0; i < size; ++i) {
      struct fiber *f = lanes + shuffled(i, size, seed);
      if (f->state == READY) resume(f);
    }
    const struct fiber *waiting = NULL;
    int released = 0;
    for (int i = 0; i < size && !released; ++i) {
      struct fiber *f = lanes + i;
      if (f->state != AT_WARP) continue;
      waiting = f;
      if (!(f->mask >> i & 1)) return complain(f, "a lane is not in its own mask");
      if (f->width < 1 || f->width > WARP || f->width & (f->width - 1))
        return complain(f, "the width of a shuffle is no power of 2");
      released = release_mask(lanes, size, f);
      if (released < 0) return BAD_COOPERATION;
    }
    if (!released && waiting)
      return complain(waiting, "a lane in the mask does not come to this shuffle or __syncwarp");
    if (!released) return FINE;
  }
}

static int run_block(int size, uint64_t seed) {
  for (int phase = 0;; ++phase) {
    const unsigned now = (unsigned)(seed >> (phase & 15));
    const int warps = (size + WARP - 1) / WARP;
    for (int i = 0; i < warps; ++i) {
      const int first = WARP * shuffled(i, warps, now);
      const int lanes = size - first < WARP ? size - first : WARP;
      const int result = run_warp(fibers + first, lanes, now >> 6);
      if (result) return result;
    }
    const struct fiber *waiting = NULL;
    int done = 0;
    for (int i = 0; i < size; ++i) {
      if (fibers[i].state == DONE) {
        ++done;
      } else if (waiting && fibers[i].site != waiting->site) {
        return complain(fibers + i, "divergent barrier: threads wait at different __syncthreads");
      } else {
        waiting = fibers + i;
      }
    }
    if (!waiting) return FINE;
    if (done) return complain(waiting, "divergent barrier: others have ended without it");
    for (int i = 0; i < size; ++i) fibers[i].state = READY;
  }
}

static dim3 index_in(dim3 of, uint64_t i) {
  return (dim3){i % of.x, i / of.x % of.y, i / of.x / of.y};
}

static int run_blocks(dim3 grid, dim3 block, int cooperates, uint64_t seed) {
  const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z, size = block.x * block.y * block.z;
  const int last_first = seed >> 40 & 1;
  for (uint64_t b = 0; b < blocks; ++b) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    *unit->block = index_in(grid, last_first ? blocks - 1 - b : b);
    emu_poison(unit->shared, unit->shared_end - unit->shared);
    const int backwards = seed >> 62 & 1;
    for (uint64_t i = 0; i < size; ++i) {
      const dim3 index = index_in(block, backwards && !cooperates ? size - 1 - i : i);
      if (!cooperates) {
        *unit->thread = index;
        entry->call(arguments);
        continue;
      }
      fibers[i].index = index, fibers[i].state = READY;
      prepare(fibers + i, stacks + i * 2 * STACK + STACK, fiber_body);
    }
    const int result = cooperates ? run_block((int)size, seed >> 24) : FINE;
    if (result) return result;
  }
  return FINE;
}

/* --- faults: a wild pointer ends the launch, not the process */
static void on_signal(int number, siginfo_t *info, void *context) {
  (void)context;
  if (!pthread_equal(pthread_self(), runner)) { /* not ours: as if we were not here */
    for (int i = 0; i < 3; ++i) sigaction(signals[i], before + i, NULL);
    return;
  }
  const int trap = number == SIGFPE;
  snprintf(message, room, trap ? "%s: an integer division by zero" : "%s: address %p is not mapped",
           entry->name, info->si_addr);
  siglongjmp(escape, trap ? TRAP : BAD_ADDRESS);
}

/* Copies parameters into slots of 16 bytes each. */
void emu_pack(const struct emu_entry *e, void **parameters, char *slots) {
  for (unsigned i = 0; i < e->count; ++i) memcpy(slots + i * SLOT, parameters[i], e->sizes[i]);
}

void emu_link(struct emu_unit *u) { *u->barrier = barrier, *u->warp = warp; }

int emu_run(struct emu_unit *u, struct emu_entry *e, char *slots, const unsigned *sizes,
            int cooperates, uint64_t seed, char *text, int text_size) {
  static char alternate[ALTERNATE];
  const dim3 grid = {sizes[0], sizes[1], sizes[2]}, block = {sizes[3], sizes[4], sizes[5]};
  if (!stacks) { /* each above a page-sized hole that catches an overflow */
    const size_t size = (size_t)THREADS * 2 * STACK;
    stacks = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; i < THREADS; ++i)
      mprotect(stacks + i * 2 * STACK + STACK, STACK, PROT_READ | PROT_WRITE);
  }
  void *pointers[e->count + 1];
  for (unsigned i = 0; i < e->count; ++i) pointers[i] = slots + i * SLOT;
  unit = u, entry = e, arguments = pointers, message = text, room = text_size;
  *u->block_dim = block, *u->grid_dim = grid;

  stack_t other = {.ss_sp = alternate, .ss_size = ALTERNATE}, was;
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  runner = pthread_self();
  sigaltstack(&other, &was);
  for (int i = 0; i < 3; ++i) sigaction(signals[i], &action, before + i);
#ifdef __SSE__
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(0x1F80); /* round to nearest, denormals kept, no traps */
#endif
  volatile int result = sigsetjmp(escape, 1);
  if (!result) result = run_blocks(grid, block, cooperates, seed);
#ifdef __SSE__
  _mm_setcsr(mode);
#endif
  for (int i = 0; i < 3; ++i) sigaction(signals[i], before + i, NULL);
  sigaltstack(&was, NULL);
  return result;
}

/* --- device memory: a range of addresses of its own, of which freed ones are never used again */
void *emu_reserve(size_t size) {
  void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* Makes whole pages at `start` memory, poisoned. Pages are private copies of one poisoned file, made when they are
   written: to fill them all would take longer than most tests. */
int emu_commit(void *start, size_t size) {
  enum { FILE_SIZE = 1 << 24 };
  static int file = -1;
  if (file < 0) {
    file = memfd_create("poison", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, FILE_SIZE)) return 1;
    void *all = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (all == MAP_FAILED) return 1;
    emu_poison(all, FILE_SIZE);
    munmap(all, FILE_SIZE);
  }
  for (size_t at = 0; at < size; at += FILE_SIZE) {
    const size_t now = size - at < FILE_SIZE ? size - at : FILE_SIZE;
    const int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    if (mmap((char *)start + at, now, PROT_READ | PROT_WRITE, flags, file, 0) == MAP_FAILED) return 1;
  }
  return 0;
}

void emu_release(void *start, size_t size) {
  mmap(start, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
