#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/links.h"

struct flow {
    double left_s, rate, since_s;
    uint64_t tag;
    uint32_t link[SIM_FLOW_LINKS];
    uint32_t version, mark;
    bool fixed;
};

struct link {
    double capacity, left;
    uint32_t *flow; /* active ones */
    uint32_t n, cap, unfixed, mark;
};

struct sim_links {
    struct sim_evq *q;
    uint32_t what;
    struct link *link;
    uint32_t n_links;
    struct flow *flow;
    uint32_t n_flows, cap_flows;
    uint32_t *free_flow, n_free;
    uint32_t *set, n_set; /* flows of the component under change */
    uint32_t *links_set, n_links_set;
    uint32_t mark;
};

enum pt_status sim_links_new(uint32_t n_links, const double *capacity, struct sim_evq *q,
                             uint32_t what, struct sim_links **links,
                             struct pt_error *err)
{
    struct sim_links *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return pt_fail_memory(err);
    l->q = q;
    l->what = what;
    l->n_links = n_links;
    l->link = calloc(n_links ? n_links : 1, sizeof(*l->link));
    l->links_set = calloc(n_links ? n_links : 1, sizeof(*l->links_set));
    if (l->link == NULL || l->links_set == NULL) {
        sim_links_free(l);
        return pt_fail_memory(err);
    }
    for (uint32_t i = 0; i < n_links; i++)
        l->link[i].capacity = capacity[i];
    *links = l;
    return PT_OK;
}

void sim_links_free(struct sim_links *l)
{
    if (l == NULL)
        return;
    for (uint32_t i = 0; l->link != NULL && i < l->n_links; i++)
        free(l->link[i].flow);
    free(l->link);
    free(l->links_set);
    free(l->flow);
    free(l->free_flow);
    free(l->set);
    free(l);
}

static bool new_flow(struct sim_links *l, uint32_t *index)
{
    if (l->n_free > 0) {
        *index = l->free_flow[--l->n_free];
        return true;
    }
    if (l->n_flows == l->cap_flows) {
        uint32_t cap = l->cap_flows ? 2 * l->cap_flows : 64;
        struct flow *flow = realloc(l->flow, cap * sizeof(*flow));
        uint32_t *unused, *set;

        if (flow == NULL)
            return false;
        l->flow = flow;
        if ((unused = realloc(l->free_flow, cap * sizeof(*unused))) == NULL)
            return false;
        l->free_flow = unused;
        if ((set = realloc(l->set, cap * sizeof(*set))) == NULL)
            return false;
        l->set = set;
        l->cap_flows = cap;
    }
    l->flow[l->n_flows] = (struct flow){ .version = 0 };
    *index = l->n_flows++;
    return true;
}

static bool link_add(struct link *link, uint32_t flow)
{
    if (link->n == link->cap) {
        uint32_t cap = link->cap ? 2 * link->cap : 4;
        uint32_t *grown = realloc(link->flow, cap * sizeof(*grown));

        if (grown == NULL)
            return false;
        link->flow = grown;
        link->cap = cap;
    }
    link->flow[link->n++] = flow;
    return true;
}

/* Keeps the order of the others, so that results do not depend on who left first. */
static void link_remove(struct link *link, uint32_t flow)
{
    uint32_t i = 0;

    while (i < link->n && link->flow[i] != flow)
        i++;
    if (i < link->n) {
        memmove(&link->flow[i], &link->flow[i + 1],
                (link->n - i - 1) * sizeof(*link->flow));
        link->n--;
    }
}

static void visit_flow(struct sim_links *l, uint32_t f)
{
    if (l->flow[f].mark == l->mark)
        return;
    l->flow[f].mark = l->mark;
    l->set[l->n_set++] = f;
}

/* All flows connected by links with those of `link`, breadth first. */
static void component(struct sim_links *l, const uint32_t link[SIM_FLOW_LINKS])
{
    uint32_t at = 0;

    l->mark++;
    l->n_set = l->n_links_set = 0;
    for (unsigned k = 0; k < SIM_FLOW_LINKS; k++)
        for (uint32_t i = 0; link[k] != SIM_NO_LINK && i < l->link[link[k]].n; i++)
            visit_flow(l, l->link[link[k]].flow[i]);
    for (; at < l->n_set; at++)
        for (unsigned k = 0; k < SIM_FLOW_LINKS; k++) {
            uint32_t id = l->flow[l->set[at]].link[k];

            if (id == SIM_NO_LINK || l->link[id].mark == l->mark)
                continue;
            l->link[id].mark = l->mark;
            l->links_set[l->n_links_set++] = id;
            for (uint32_t i = 0; i < l->link[id].n; i++)
                visit_flow(l, l->link[id].flow[i]);
        }
}

static void fix(struct sim_links *l, struct flow *f, double rate)
{
    f->fixed = true;
    f->rate = rate;
    for (unsigned k = 0; k < SIM_FLOW_LINKS; k++)
        if (f->link[k] != SIM_NO_LINK) {
            l->link[f->link[k]].left -= rate;
            l->link[f->link[k]].unfixed--;
        }
}

/* Rates of the component by progressive filling. */
static void fill(struct sim_links *l)
{
    uint32_t left = l->n_set;

    for (uint32_t i = 0; i < l->n_links_set; i++) {
        struct link *link = &l->link[l->links_set[i]];

        link->left = link->capacity;
        link->unfixed = link->n;
    }
    for (uint32_t i = 0; i < l->n_set; i++)
        l->flow[l->set[i]].fixed = false;
    while (left > 0) {
        double share = 1;
        uint32_t full = SIM_NO_LINK;

        for (uint32_t i = 0; i < l->n_links_set; i++) {
            const struct link *link = &l->link[l->links_set[i]];

            if (link->unfixed > 0 && link->left / link->unfixed < share) {
                share = fmax(link->left, 0) / link->unfixed;
                full = l->links_set[i];
            }
        }
        for (uint32_t i = 0; i < l->n_set; i++) {
            struct flow *f = &l->flow[l->set[i]];
            bool on = full == SIM_NO_LINK;

            for (unsigned k = 0; k < SIM_FLOW_LINKS; k++)
                on = on || f->link[k] == full;
            if (on && !f->fixed) {
                fix(l, f, share);
                left--;
            }
        }
    }
}

/* Moves the component to now and gives it new rates. */
static bool rearrange(struct sim_links *l, double now_s)
{
    for (uint32_t i = 0; i < l->n_set; i++) {
        struct flow *f = &l->flow[l->set[i]];

        f->left_s = fmax(0, f->left_s - f->rate * (now_s - f->since_s));
        f->since_s = now_s;
    }
    fill(l);
    for (uint32_t i = 0; i < l->n_set; i++) {
        struct flow *f = &l->flow[l->set[i]];

        /* A rate of nothing: the link is down; the flow waits for another change. */
        f->version++;
        if (f->rate > 0 && !sim_evq_push(l->q, now_s + f->left_s / f->rate, l->what,
                                         l->set[i], f->version))
            return false;
    }
    return true;
}

bool sim_links_start(struct sim_links *l, double now_s, double work_s,
                     const uint32_t link[SIM_FLOW_LINKS], uint64_t tag)
{
    uint32_t index;
    struct flow *f;
    bool alone = true;

    if (!new_flow(l, &index))
        return false;
    f = &l->flow[index];
    f->left_s = work_s;
    f->since_s = now_s;
    f->rate = 0;
    f->tag = tag;
    f->version++;
    memcpy(f->link, link, sizeof(f->link));
    for (unsigned k = 0; k < SIM_FLOW_LINKS; k++)
        if (link[k] != SIM_NO_LINK) {
            alone = alone && l->link[link[k]].n == 0 && l->link[link[k]].capacity >= 1;
            if (!link_add(&l->link[link[k]], index))
                return false;
        }
    if (alone) {
        f->rate = 1;
        return sim_evq_push(l->q, now_s + work_s, l->what, index, f->version);
    }
    component(l, link);
    return rearrange(l, now_s);
}

bool sim_links_end(struct sim_links *l, const struct sim_event *ev, uint64_t *tag,
                   bool *failed)
{
    struct flow *f = &l->flow[ev->who];
    uint32_t link[SIM_FLOW_LINKS];
    bool alone = true;

    if (f->version != ev->version)
        return false;
    *tag = f->tag;
    f->version++;
    memcpy(link, f->link, sizeof(link));
    for (unsigned k = 0; k < SIM_FLOW_LINKS; k++)
        if (link[k] != SIM_NO_LINK) {
            link_remove(&l->link[link[k]], ev->who);
            alone = alone && l->link[link[k]].n == 0;
        }
    l->free_flow[l->n_free++] = ev->who;
    if (!alone) {
        component(l, link);
        if (!rearrange(l, ev->time_s))
            *failed = true;
    }
    return true;
}
