/* Launches from several threads at once, for the thread sanitizer. test_pool_races.py compiles it.

   Usage: pool_stress LAUNCHES. Each tile adds 1 to its own element without an atomic operation, so a
   tile that two threads run, or that the launching thread does not wait for, is a data race. The
   exit status is 1 if a tile did not run exactly once in each launch. */

#include "pool.c" /* first: it says which functions of the system it needs */

#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 3, LAUNCHERS = 3, TILES_MAX = 700 };

static struct pool pool;
static long launches;
static _Atomic long shared_tiles;

struct job {
    pthread_t launcher;
    long counts[TILES_MAX];
};

static void add_one(void *arguments, int64_t begin, int64_t end)
{
    struct job *job = arguments;
    for (int64_t i = begin; i < end; i++)
        job->counts[i]++;
    if (!pthread_equal(job->launcher, pthread_self()))
        atomic_fetch_add(&shared_tiles, end - begin);
}

static void *run_worker(void *id)
{
    pool_work(&pool, (int64_t)(intptr_t)id);
    return NULL;
}

static void *run_launches(void *seed)
{
    static const int64_t sizes[] = {1, 2, 5, 64, TILES_MAX};
    uint64_t random = (uintptr_t)seed * 2654435769u + 1;
    struct job *job = calloc(1, sizeof *job);
    long expected[TILES_MAX] = {0};
    job->launcher = pthread_self();
    for (long n = 0; n < launches; n++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int64_t tiles = sizes[(random >> 33) % 5];
        int64_t operations = (random >> 40) % 3 ? WAKE_OPERATIONS_MIN * 2 : 300000;
        pool_share(&pool, add_one, job, tiles, operations | (int64_t)(random >> 50 & 1));
        for (int64_t i = 0; i < tiles; i++)
            expected[i]++;
        switch ((random >> 52) % 16) {
        case 0: pool_resize(&pool, (int64_t)((random >> 56) % (WORKERS + 1))); break;
        case 1: WRITE(pool.until, 0); break;
        case 2: WRITE(pool.probed, 0); break;
        case 3: nanosleep(&(struct timespec){0, 1000000}, NULL); break; /* the workers fall asleep */
        }
    }
    long wrong = 0;
    for (int i = 0; i < TILES_MAX; i++)
        wrong += job->counts[i] != expected[i];
    free(job);
    return (void *)(intptr_t)wrong;
}

int main(int count, char **values)
{
    pthread_t thread, launchers[LAUNCHERS];
    long wrong = 0;
    launches = count > 1 ? atol(values[1]) : 1000;
    pool_init(&pool, WORKERS);
    for (intptr_t id = 0; id < WORKERS; id++)
        if (pthread_create(&thread, NULL, run_worker, (void *)id) || pthread_detach(thread))
            return 2;
    for (intptr_t i = 0; i < LAUNCHERS; i++)
        if (pthread_create(&launchers[i], NULL, run_launches, (void *)i))
            return 2;
    for (int i = 0; i < LAUNCHERS; i++) {
        void *found;
        pthread_join(launchers[i], &found);
        wrong += (long)(intptr_t)found;
    }
    printf("%ld wrong, %ld tiles of %d launchers' jobs ran on other threads\n", wrong,
           atomic_load(&shared_tiles), LAUNCHERS);
    return wrong != 0;
}
