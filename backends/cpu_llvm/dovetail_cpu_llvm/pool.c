/* The threads that share a launch.

   A launching thread publishes a job: it raises the generation. Workers spin on the generation for a
   short time, then sleep on a condition variable. A worker raises `inside` before it reads `open`,
   so the launching thread waits only for workers that compute, never for one that still has to wake.
   To wake a worker takes longer than a small launch. A small launch is shared by the workers that
   are awake; it wakes sleepers only if many small launches followed each other. There is one job at
   a time: a second thread that launches meanwhile runs its tiles alone. Tiles are independent, so no
   result depends on the thread that takes a tile.

   The system may put a woken worker on the core of the launching thread, behind that thread. So
   sleepers are kept off that core until they are awake.

   On a busy machine a worker may lose its core within a tile, and the launching thread then waits
   for the time slice of another process. After such a wait launches run alone for `BACKOFF_FACTOR`
   times as long, so that the waits are a small part of the time.

   Each thread first takes the chunks of its own range, which is the same in every launch of a shape:
   what it wrote is still in its core's cache. Then it waits for a moment, and takes what is left of
   the other ranges.

   A cache line goes to another core and back in 0.1 us, or in 0.5 us between sockets. So the pool
   measures this round trip now and then. While the cores are far apart, only launches whose
   `operations` are odd are shared (`weight` in pool.py). */

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* for sched_getcpu */
#endif
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    LINE = 128,                     /* bytes between what different threads write */
    THREADS_MAX = 1024,
    WAKE_OPERATIONS_MIN = 1000000,  /* scalar operations of a launch that wakes sleepers */
    OWED_OPERATIONS_MAX = 10000000, /* of small launches that follow each other within ... */
    OWED_GAP_NS_MAX = 100000,
    WORKER_SPINS_MAX = 14000,       /* about 0.2 ms: longer than Python takes between two launches */
    LAUNCHER_SPINS_MAX = 3500,      /* about 50 us before the launching thread yields its core */
    BACKOFF_FACTOR = 16,
    FAIR_WAIT_FACTOR = 2,           /* a wait of so many times the time of the last chunks is fair */
    RANGE_CHUNKS = 32,              /* that a thread takes one by one, if its range has as many tiles */
    STEAL_SPINS = 64,               /* about 1 us before a thread takes from another thread's range */
    PROBE_INTERVAL_NS = 50000000,
    PROBE_ROUNDS = 8,               /* the shortest counts */
    PROBE_SPINS_MAX = 10000,        /* about 0.15 ms: a sleeper has to wake before it answers */
    FAR_NS = 300,                   /* a longer round trip: the cores are far apart ... */
    NEAR_NS = 200                   /* ... until one is not longer than this */
};

/* The system: a mutex, a condition variable, a clock; on Linux also the cores of threads. */
#if defined(_WIN32)
#include <windows.h>
typedef SRWLOCK mutex_type;
typedef CONDITION_VARIABLE condition_type;
#define MUTEX_INIT(m) InitializeSRWLock(m)
#define CONDITION_INIT(c) InitializeConditionVariable(c)
#define LOCK(m) AcquireSRWLockExclusive(m)
#define UNLOCK(m) ReleaseSRWLockExclusive(m)
#define WAIT(c, m) SleepConditionVariableSRW(c, m, INFINITE, 0)
#define WAKE_ALL(c) WakeAllConditionVariable(c)
#define YIELD() SwitchToThread()
#else
#include <pthread.h>
#include <sched.h>
#include <time.h>
typedef pthread_mutex_t mutex_type;
typedef pthread_cond_t condition_type;
#define MUTEX_INIT(m) pthread_mutex_init(m, NULL)
#define CONDITION_INIT(c) pthread_cond_init(c, NULL)
#define LOCK(m) pthread_mutex_lock(m)
#define UNLOCK(m) pthread_mutex_unlock(m)
#define WAIT(c, m) pthread_cond_wait(c, m)
#define WAKE_ALL(c) pthread_cond_broadcast(c)
#define YIELD() sched_yield()
#endif

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#define HAS_AFFINITY 1
#else
#define HAS_AFFINITY 0
#endif

#if defined(_MSC_VER)
#define PAUSE() YieldProcessor()
#elif defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE() ((void)0)
#endif

typedef _Atomic int64_t word;
typedef void tile_function(void *arguments, int64_t begin, int64_t end);

#define READ(w) atomic_load_explicit(&(w), memory_order_relaxed)
#define WRITE(w, value) atomic_store_explicit(&(w), value, memory_order_relaxed)
#define ACQUIRE(w) atomic_load_explicit(&(w), memory_order_acquire)
#define RELEASE(w, value) atomic_store_explicit(&(w), value, memory_order_release)

/* What belongs to one thread of a launch. Worker i has seat i, the launching thread the last. */
struct seat {
    _Alignas(LINE) word next; /* the first tile of its range that no thread has taken */
    word thread;              /* the worker's number in the system; 0: it has not started */
    word moved;               /* 1: the worker is kept off a core */
};

struct pool {
    _Alignas(LINE) word generation;
    _Alignas(LINE) word sleepers;
    _Alignas(LINE) word busy;   /* 1: a thread is the launching one */
    _Alignas(LINE) word inside; /* workers that may take tiles */
    _Alignas(LINE) word open;   /* 1: the job has tiles for workers that come now */
    tile_function *function;    /* of the job, with the next three */
    void *arguments;
    int64_t tiles, threads;
    word workers;
    word last, owed; /* small launches that woke no worker: when (ns), and their operations */
    word until;      /* when launches are shared again (ns); 0: they are */
    word probed, distance; /* when the round trip was measured (ns), and its time (ns) */
    word is_far;
    _Alignas(LINE) mutex_type mutex;
    condition_type condition;
    _Alignas(LINE) word ping;
    _Alignas(LINE) word pong;
#if HAS_AFFINITY
    _Alignas(LINE) word launcher; /* the core of the launching thread */
    cpu_set_t cores;              /* that the process may use */
#endif
    struct seat seats[THREADS_MAX];
};

static int64_t now(void)
{
#if defined(_WIN32)
    LARGE_INTEGER count, frequency;
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    int64_t seconds = count.QuadPart / frequency.QuadPart;
    int64_t part = count.QuadPart % frequency.QuadPart;
    return seconds * 1000000000 + part * 1000000000 / frequency.QuadPart;
#else
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
#endif
}

#if HAS_AFFINITY
static void find_cores(struct pool *pool)
{
    sched_getaffinity(0, sizeof pool->cores, &pool->cores);
}

static void record_worker(struct seat *seat)
{
    WRITE(seat->thread, syscall(SYS_gettid));
}

static void record_launcher_core(struct pool *pool)
{
    int64_t core = sched_getcpu();
    if (READ(pool->launcher) != core) /* which rarely changes: the caches of other cores keep it */
        WRITE(pool->launcher, core);
}

/* Keep a thread (0: the calling one) off a core, until `sched_setaffinity` to all cores. */
static void keep_off(struct pool *pool, int64_t thread, int64_t core)
{
    cpu_set_t others = pool->cores;
    CPU_CLR((int)core, &others);
    sched_setaffinity((pid_t)thread, sizeof others, &others); /* fails if there is no other core */
}

/* Move the calling worker off the launching thread's core. Left there, the two would share the core
   for as long as the launches go on. Then let the worker run on every core again. */
static void leave_launcher_core(struct pool *pool, struct seat *seat)
{
    int64_t moved = ACQUIRE(seat->moved), core = sched_getcpu();
    if (core >= 0 && core < CPU_SETSIZE && core == READ(pool->launcher))
        keep_off(pool, 0, core);
    else if (!moved)
        return;
    WRITE(seat->moved, 0);
    sched_setaffinity(0, sizeof pool->cores, &pool->cores);
}

/* Keep sleepers off the launching thread's core before they are woken. */
static void keep_sleepers_off(struct pool *pool)
{
    int64_t core = READ(pool->launcher), workers = READ(pool->workers);
    if (core < 0 || core >= CPU_SETSIZE)
        return;
    for (struct seat *seat = pool->seats; seat < pool->seats + workers; seat++) {
        int64_t thread = READ(seat->thread);
        if (thread) {
            keep_off(pool, thread, core);
            RELEASE(seat->moved, 1); /* after the move: a worker that reads 1 is off the core */
        }
    }
}
#else
#define find_cores(pool) ((void)(pool))
#define record_worker(seat) ((void)(seat))
#define record_launcher_core(pool) ((void)(pool))
#define leave_launcher_core(pool, seat) ((void)(pool), (void)(seat))
#define keep_sleepers_off(pool) ((void)(pool))
#endif

static int64_t tiles_per_thread(int64_t tiles, int64_t threads)
{
    return (int64_t)((uint64_t)(tiles + threads - 1) / (uint64_t)threads);
}

static int64_t tiles_per_chunk(int64_t range)
{
    return range / RANGE_CHUNKS + 1;
}

/* Wait for a moment; return 1 if the owner of a range takes the last of it meanwhile. */
static int is_taken_soon(word *next, int64_t end)
{
    for (int spins = 0; spins <= STEAL_SPINS; spins++) {
        if (READ(*next) >= end)
            return 1;
        PAUSE();
    }
    return 0;
}

/* Take chunks of the open job until none is left, those of the range `id` first. */
static void take_chunks(struct pool *pool, int64_t id)
{
    tile_function *function = pool->function;
    void *arguments = pool->arguments;
    int64_t tiles = pool->tiles, threads = pool->threads;
    int64_t range = tiles_per_thread(tiles, threads), chunk = tiles_per_chunk(range);
    for (int64_t k = 0; k < threads; k++) {
        int64_t which = (int64_t)((uint64_t)(id + k) % (uint64_t)threads);
        int64_t first = which * range, end = first + range < tiles ? first + range : tiles;
        word *next = &pool->seats[which].next;
        if (k > 0 && is_taken_soon(next, end))
            continue; /* what one thread takes from another, both have to fetch */
        for (;;) {
            int64_t begin = atomic_fetch_add_explicit(next, chunk, memory_order_relaxed);
            if (begin >= end)
                break;
            function(arguments, begin, begin + chunk < end ? begin + chunk : end);
        }
    }
}

/* Sleep until the generation is no longer `seen`; return the new one. */
static int64_t sleep_until_job(struct pool *pool, int64_t seen)
{
    int64_t generation;
    LOCK(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while ((generation = atomic_load(&pool->generation)) == seen)
        WAIT(&pool->condition, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    UNLOCK(&pool->mutex);
    return generation;
}

/* Run worker `id` in the calling thread, for ever. */
static void pool_work(struct pool *pool, int64_t id)
{
    struct seat *seat = &pool->seats[id];
    record_worker(seat);
    for (int64_t seen = 0;;) {
        int64_t generation;
        int spins = 0;
        while ((generation = ACQUIRE(pool->generation)) == seen) {
            PAUSE();
            if (++spins == WORKER_SPINS_MAX) {
                leave_launcher_core(pool, seat); /* a worker does not sleep while kept off a core */
                generation = sleep_until_job(pool, seen);
                break;
            }
        }
        seen = generation;
        leave_launcher_core(pool, seat);
        atomic_fetch_add(&pool->inside, 1);
        if (atomic_load(&pool->open) && id < READ(pool->workers))
            take_chunks(pool, id);
        atomic_fetch_sub(&pool->inside, 1);
    }
}

/* Return 1 if the launches that run alone after a long wait are over. */
static int is_backoff_over(struct pool *pool, int64_t until)
{
    if (now() < until)
        return 0;
    WRITE(pool->until, 0);
    return 1;
}

/* Record that the launching thread waited from `idle` on for a launch that began at `begun`, unless
   the wait may be the time of the chunks that other threads had just taken. */
static void record_wait(struct pool *pool, int64_t begun, int64_t idle)
{
    int64_t end = now(), wait = end - idle, tiles = pool->tiles, threads = pool->threads;
    int64_t last_tiles = tiles_per_chunk(tiles / threads) * threads;
    if ((uint64_t)(wait * tiles) >= (uint64_t)((idle - begun) * last_tiles * FAIR_WAIT_FACTOR))
        WRITE(pool->until, end + wait * BACKOFF_FACTOR);
}

/* Return 1 if this small launch and those right before it are together worth a wake-up. */
static int is_wake_worth_it(struct pool *pool, int64_t operations)
{
    int64_t time = now(), gap = time - READ(pool->last);
    int64_t owed = operations + ((uint64_t)gap < OWED_GAP_NS_MAX ? READ(pool->owed) : 0);
    int worth = owed >= OWED_OPERATIONS_MAX;
    WRITE(pool->last, time);
    WRITE(pool->owed, worth ? 0 : owed);
    return worth;
}

/* Time the round trip of a cache line to the first worker. */
static void ask(struct pool *pool)
{
    int64_t least = INT64_MAX;
    for (int64_t round = 1; round <= PROBE_ROUNDS; round++) {
        int64_t sent = now();
        RELEASE(pool->ping, round);
        for (int spins = 0; ACQUIRE(pool->pong) != round; spins++) {
            if (spins >= PROBE_SPINS_MAX)
                goto stop; /* the worker did not come in time: nothing was measured */
            PAUSE();
        }
        int64_t time = now() - sent;
        least = time < least ? time : least;
    }
    WRITE(pool->distance, least);
    WRITE(pool->is_far, least > (READ(pool->is_far) ? NEAR_NS : FAR_NS));
stop:
    RELEASE(pool->ping, PROBE_ROUNDS + 1);
}

static void answer(struct pool *pool)
{
    int64_t last = 0;
    for (int spins = 0; spins <= PROBE_SPINS_MAX; spins++) {
        int64_t asked = ACQUIRE(pool->ping);
        if (asked == last) {
            PAUSE();
            continue;
        }
        RELEASE(pool->pong, asked);
        if (asked > PROBE_ROUNDS)
            return;
        last = asked, spins = 0;
    }
}

/* A job of one tile for each thread: the launching thread has the last and asks, the first worker
   answers. If one thread got several tiles, nothing is measured. */
static void probe(void *arguments, int64_t begin, int64_t end)
{
    struct pool *pool = arguments;
    if (end - begin != 1)
        return;
    if (begin == READ(pool->workers))
        ask(pool);
    else if (begin == 0)
        answer(pool);
}

/* Return 1 if the round trip has to be measured now; the caller does so. */
static int is_probe_due(struct pool *pool, int64_t time)
{
    if (time - READ(pool->probed) <= PROBE_INTERVAL_NS)
        return 0;
    WRITE(pool->probed, time);
    return 1;
}

static void pool_share(struct pool *, tile_function *, void *, int64_t, int64_t);

static void measure(struct pool *pool)
{
    WRITE(pool->ping, 0);
    WRITE(pool->pong, 0);
    pool_share(pool, probe, pool, READ(pool->workers) + 1, WAKE_OPERATIONS_MIN | 1);
}

enum sharing { ALONE, WITH_AWAKE, WITH_ALL };

static enum sharing choose_sharing(struct pool *pool, int64_t workers, int64_t operations)
{
    for (;;) {
        int64_t until = READ(pool->until);
        if (until && !is_backoff_over(pool, until))
            return ALONE;
        if (!READ(pool->is_far) || operations & 1)
            break;
        if (!is_probe_due(pool, now()))
            return ALONE;
        measure(pool);
    }
    if (operations >= WAKE_OPERATIONS_MIN)
        return WITH_ALL;
    if (READ(pool->sleepers) < workers)
        return WITH_AWAKE;
    return is_wake_worth_it(pool, operations) ? WITH_ALL : ALONE;
}

/* Call `function` for all tiles, in several threads if that is worth it. `operations`: as `weight`
   in pool.py returns them; odd if the launch is shared also while the cores are far apart. */
static void pool_share(struct pool *pool, tile_function *function, void *arguments, int64_t tiles,
                       int64_t operations)
{
    int64_t begun, workers = READ(pool->workers);
    enum sharing sharing;
    for (;;) {
        int64_t idle = 0;
        sharing = workers ? choose_sharing(pool, workers, operations) : ALONE;
        if (sharing == ALONE || !atomic_compare_exchange_strong(&pool->busy, &idle, 1)) {
            function(arguments, 0, tiles);
            return;
        }
        record_launcher_core(pool);
        begun = now();
        if (!is_probe_due(pool, begun))
            break;
        RELEASE(pool->busy, 0);
        measure(pool);
    }

    pool->function = function;
    pool->arguments = arguments;
    pool->tiles = tiles;
    pool->threads = workers + 1;
    int64_t range = tiles_per_thread(tiles, workers + 1);
    for (int64_t i = 0; i <= workers; i++)
        WRITE(pool->seats[i].next, i * range);
    atomic_store(&pool->open, 1);
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleepers) && sharing == WITH_ALL) {
        keep_sleepers_off(pool);
        LOCK(&pool->mutex);
        WAKE_ALL(&pool->condition);
        UNLOCK(&pool->mutex);
    }
    take_chunks(pool, workers);
    atomic_store(&pool->open, 0);

    for (int spins = 0; atomic_load(&pool->inside); spins++) {
        PAUSE();
        if (spins >= LAUNCHER_SPINS_MAX) {
            int64_t idle = now();
            do
                YIELD();
            while (atomic_load(&pool->inside));
            record_wait(pool, begun, idle);
            break;
        }
    }
    RELEASE(pool->busy, 0);
}

/* Set how many workers take part from the next launch on. */
static void pool_resize(struct pool *pool, int64_t workers)
{
    WRITE(pool->workers, workers);
}

/* Initialize a pool that no thread uses: a new one, or that of the parent after a fork. */
static void pool_init(struct pool *pool, int64_t workers)
{
    memset((void *)pool, 0, sizeof *pool);
    MUTEX_INIT(&pool->mutex);
    CONDITION_INIT(&pool->condition);
    find_cores(pool);
    pool_resize(pool, workers);
}
