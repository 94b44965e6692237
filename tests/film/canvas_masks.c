/* canvas_masks - where a frame lies in the larger one that outpainting makes, and its two masks.
 *
 *   canvas_masks HEIGHT WIDTH BY_HEIGHT BY_WIDTH
 *
 * A line with the canvas' height and width and the frame's first row and column, then a line of 0 and 1 for each of its rows:
 * first what is hidden, then where motions are. */
#include "engine/inpaint/extended.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_outside(const tgi_canvas *c)
{
    for (int64_t y = 0; y < c->height; y++) {
        for (int64_t x = 0; x < c->width; x++)
            putchar(y >= c->y0 && y < c->y1 && x >= c->x0 && x < c->x1 ? '0' : '1');
        putchar('\n');
    }
}

static void print_border(const tgi_canvas *c)
{
    tgi_mask_box box[4];
    const int n = tgi_canvas_border(c, box);
    for (int64_t y = 0; y < c->height; y++) {
        for (int64_t x = 0; x < c->width; x++) {
            int in = 0;
            for (int i = 0; i < n; i++)
                in += y >= box[i].y && y < box[i].y + box[i].height && x >= box[i].x &&
                      x < box[i].x + box[i].width;
            putchar('0' + in);
        }
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const tgi_canvas c = tgi_canvas_of(atoll(argv[1]), atoll(argv[2]), strtod(argv[3], NULL),
                                       strtod(argv[4], NULL));
    const tgi_canvas m = tgi_canvas_moving(&c);
    printf("%lld %lld %lld %lld\n", (long long)c.height, (long long)c.width, (long long)c.y0,
           (long long)c.x0);
    print_border(&c);
    print_outside(&m);
    return 0;
}
