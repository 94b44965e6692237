/* page_tables.h - what the kernel's page tables of a reservation take; they are measured as our
 * own memory. */
#ifndef TGI_PAGE_TABLES_H
#define TGI_PAGE_TABLES_H

#include "engine/job/job.h"

/* Page tables of a populated block: 8 bytes for each 4 KiB page, and the tables' own ends. */
static inline size_t tgi_page_table_bytes(size_t bytes)
{
    return bytes / 512 + ((size_t)64 << 10);
}
/* The most bytes that fit `left` with the tables that map them and `mapped` bytes beside. */
static inline size_t tgi_room_beside(size_t left, size_t mapped)
{
    const size_t none = tgi_page_table_bytes(mapped);
    size_t room = left > none ? (left - none) / 513 * 512 : 0;
    while (left > none && room + 1 + tgi_page_table_bytes(mapped + room + 1) <= left)
        room++;
    return room;
}
/* What that many take then; SIZE_MAX stays what it is. */
static inline size_t tgi_with_tables(size_t bytes, size_t mapped)
{
    return tgi_sat_add(bytes, tgi_page_table_bytes(tgi_sat_add(bytes, mapped)));
}

#endif
