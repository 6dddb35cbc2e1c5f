#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/heap.h"
#include "planner/top.h"

enum pt_status planner_top_init(struct planner_top *top, uint32_t most,
                                struct pt_error *err)
{
    *top = (struct planner_top){ .most = most > 0 ? most : 1 };
    top->entry = calloc((size_t)top->most + 1, sizeof(*top->entry));
    return top->entry != NULL ? PT_OK : pt_fail(err, PT_SYSTEM, NULL, 0, "out of memory");
}

void planner_top_fini(struct planner_top *top)
{
    for (uint32_t i = 0; i < top->n; i++)
        pt_split_fini(&top->entry[i].split);
    free(top->entry);
    *top = (struct planner_top){ 0 };
}

enum pt_status planner_split_copy(struct pt_split *to, const struct pt_split *from,
                                  struct pt_error *err)
{
    enum pt_status st = pt_split_init(to, from->pp, from->vpp, err);

    if (st != PT_OK)
        return st;
    memcpy(to->chunk, from->chunk, (size_t)from->pp * from->vpp * sizeof(*to->chunk));
    memcpy(to->offload_frac, from->offload_frac, from->pp * sizeof(*to->offload_frac));
    return PT_OK;
}

/* Times that differ by rounding are equal: the order is of the rounded ones, so it is
 * total. */
static double rounded(double s)
{
    int exponent;
    double mantissa = frexp(s, &exponent);

    return ldexp(rint(mantissa * 1e9), exponent);
}

static bool better(const struct planner_entry *a, const struct planner_entry *b)
{
    double x = rounded(a->step_s), y = rounded(b->step_s);

    return x != y ? x < y : planner_prefer(&a->layout, &b->layout) < 0;
}

/* Removes an earlier split of the same layout; false when it is as good. */
static bool drop_worse(struct planner_top *top, const struct pt_layout *solved,
                       double step_s)
{
    for (uint32_t i = 0; i < top->n; i++) {
        if (planner_prefer(&top->entry[i].solved, solved) != 0)
            continue;
        if (top->entry[i].step_s <= step_s)
            return false;
        pt_split_fini(&top->entry[i].split);
        top->n--;
        memmove(&top->entry[i], &top->entry[i + 1], (top->n - i) * sizeof(*top->entry));
        return true;
    }
    return true;
}

enum pt_status planner_top_add(struct planner_top *top, const struct pt_layout *layout,
                               const struct pt_layout *solved,
                               const struct pt_split *split, double step_s,
                               struct pt_error *err)
{
    struct planner_entry e = { .layout = *layout, .solved = *solved, .step_s = step_s };
    enum pt_status st;
    uint32_t at;

    if (!drop_worse(top, solved, step_s))
        return PT_OK;
    if (top->n == top->most && !better(&e, &top->entry[top->n - 1]))
        return PT_OK;
    st = planner_split_copy(&e.split, split, err);
    if (st != PT_OK)
        return st;
    for (at = top->n; at > 0 && better(&e, &top->entry[at - 1]); at--)
        top->entry[at] = top->entry[at - 1];
    top->entry[at] = e;
    if (++top->n > top->most)
        pt_split_fini(&top->entry[--top->n].split);
    return PT_OK;
}

double planner_top_cutoff(const struct planner_top *top)
{
    return top->n < top->most ? HUGE_VAL : top->entry[top->n - 1].step_s * (1.0 + 2e-9);
}
