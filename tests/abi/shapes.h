/* shapes.h - see shapes.c. */
#ifndef SHAPES_H
#define SHAPES_H

void print_shapes(void);

#endif
