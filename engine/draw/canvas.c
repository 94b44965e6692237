/* canvas.c - the colours of plots.
 *
 * Chosen so that text has a contrast of 4.5 and lines have 3 against everything they may lie on
 * (WCAG 2.1, 1.4.3 and 1.4.11; tests/unit/test_plot.c computes them), and so that no two lines
 * differ by hue alone: the prediction is dashed and grey, the budget red and solid, what was
 * measured blue with an area below. */
#include "engine/draw/canvas.h"

static const struct {
    const char *name;
    tgi_colour colour[2];
} roles[TGI_ROLE_COUNT] = {
    [TGI_PAPER] = {"paper", {{255, 255, 255, 1}, {20, 24, 31, 1}}},
    [TGI_PHASE_A] = {"phase-a", {{247, 249, 252, 1}, {24, 29, 37, 1}}},
    [TGI_PHASE_B] = {"phase-b", {{238, 242, 248, 1}, {32, 38, 48, 1}}},
    [TGI_RIBBON_A] = {"ribbon-a", {{228, 234, 243, 1}, {38, 46, 58, 1}}},
    [TGI_RIBBON_B] = {"ribbon-b", {{211, 220, 233, 1}, {50, 60, 76, 1}}},
    [TGI_GRID] = {"grid", {{218, 224, 233, 1}, {48, 56, 69, 1}}},
    [TGI_AXIS] = {"axis", {{120, 131, 149, 1}, {128, 140, 158, 1}}},
    [TGI_INK] = {"ink", {{28, 36, 48, 1}, {232, 235, 240, 1}}},
    [TGI_MUTED] = {"muted", {{80, 90, 107, 1}, {172, 181, 195, 1}}},
    [TGI_MEASURED] = {"measured", {{11, 99, 165, 1}, {116, 184, 245, 1}}},
    [TGI_MEASURED_AREA] = {"measured-area", {{11, 99, 165, 0.25}, {72, 148, 219, 0.38}}},
    [TGI_FILE_AREA] = {"file-area", {{110, 122, 141, 0.3}, {150, 163, 184, 0.28}}},
    [TGI_BUDGET] = {"budget", {{179, 38, 30, 1}, {255, 140, 124, 1}}},
    [TGI_PREDICTED] = {"predicted", {{59, 66, 80, 1}, {208, 214, 224, 1}}},
};

tgi_colour tgi_role_colour(tgi_role role, int theme)
{
    return roles[role].colour[theme == 1];
}

const char *tgi_role_name(tgi_role role)
{
    return roles[role].name;
}
