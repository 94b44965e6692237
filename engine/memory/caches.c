/* caches.c - see caches.h. */
#include "engine/memory/caches.h"

#include "engine/base/mem.h"
#include "engine/base/pool.h"
#include "engine/memory/monitor.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    int n;
    struct {
        const char *name;
        tgi_cache_empty_fn empty;
        void *user;
    } row[TGI_MAX_CACHES];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

int tgi_cache_register(const char *name, tgi_cache_empty_fn empty, void *user)
{
    int done = 0;
    pthread_mutex_lock(&table.lock);
    if (table.n < TGI_MAX_CACHES) {
        table.row[table.n].name = name;
        table.row[table.n].empty = empty;
        table.row[table.n++].user = user;
        done = 1;
    }
    pthread_mutex_unlock(&table.lock);
    return done;
}

void tgi_cache_unregister(tgi_cache_empty_fn empty, void *user)
{
    pthread_mutex_lock(&table.lock);
    for (int i = 0; i < table.n; i++)
        if (table.row[i].empty == empty && table.row[i].user == user) {
            table.row[i] = table.row[--table.n];
            break;
        }
    pthread_mutex_unlock(&table.lock);
}

/* Host memory that was given back is counted by what the system takes off this process, since
 * malloc does not say; other threads may allocate meanwhile, so it is never less than nothing.
 * What pools of devices gave is counted by them. */
static uint64_t trim(void)
{
    uint64_t of_devices;
    const uint64_t before = tgi_mem_measured();
    tgi_pools_empty_cache(&of_devices);
    tgi_mem_trim();
    const uint64_t after = tgi_mem_measured();
    return of_devices + (before > after ? before - after : 0);
}

uint64_t tgi_caches_clear(void)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&table.lock);
    for (int i = 0; i < table.n; i++)
        bytes += table.row[i].empty(table.row[i].user);
    pthread_mutex_unlock(&table.lock);
    return bytes + trim();
}
