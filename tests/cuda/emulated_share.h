/* emulated_share.h - an emulated device that several processes have, each with an emulation of
 * its own: a file, named by TEGULA_EMULATED_SHARE, says who has taken how much. Without it a
 * process is alone with its device. */
#ifndef TG_EMULATED_SHARE_H
#define TG_EMULATED_SHARE_H

#include <stdint.h>

#define TG_EMULATED_HOLDERS 64 /* processes at most */

typedef struct tg_emulated_holder {
    int pid;
    uint64_t bytes;
} tg_emulated_holder;

/* This process holds so much from now on; returns what others hold. */
uint64_t tg_emulated_share_tell(uint64_t bytes);
/* Processes that live and hold something. */
int tg_emulated_share_list(tg_emulated_holder out[TG_EMULATED_HOLDERS]);

/* The number of a word of the environment variable TEGULA_EMULATED (emulated_plugin.cc); 1
 * where the word stands alone. */
int tg_emulated_word(const char *name, int otherwise);

#endif
