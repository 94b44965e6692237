/* thread.h - threads of the library: small stacks, and no part in the program's signals, whose
 * handlers may want more room than such a stack has. */
#ifndef TGI_THREAD_H
#define TGI_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* What pthread_create says: 0, or an error number. The thread is to be joined. Signals that its
 * own instructions raise are not blocked. */
int tgi_thread_start(pthread_t *thread, size_t stack_bytes, void *(*fn)(void *arg), void *arg);

#endif
