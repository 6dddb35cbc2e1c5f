/* Transfers that share links.
 *
 * A flow is an amount of work in seconds: what it would take alone. Its rate is at most
 * 1, and on a link the rates of its flows sum to at most the link's capacity (1: as
 * priced; 0.5: degraded to half). Rates are max-min fair: raised together until a link is
 * full; then its flows are fixed and the others go on ("progressive filling", Bertsekas
 * and Gallager, Data Networks, section 6.5.2). A change touches only the flows that are
 * connected with it by links. */
#ifndef SIM_LINKS_H
#define SIM_LINKS_H

#include "libpt/error.h"
#include "sim/evq.h"

#define SIM_FLOW_LINKS 4
#define SIM_NO_LINK    UINT32_MAX

struct sim_links;
/* capacity: n_links, copied. `what` is the kind of the events that this module pushes. */
enum pt_status sim_links_new(uint32_t n_links, const double *capacity, struct sim_evq *q,
                             uint32_t what, struct sim_links **links,
                             struct pt_error *err);
void sim_links_free(struct sim_links *links);
/* Begins a flow of work_s over the links (SIM_NO_LINK: fewer). `tag` is the caller's.
 * False when memory runs out. */
bool sim_links_start(struct sim_links *links, double now_s, double work_s,
                     const uint32_t link[SIM_FLOW_LINKS], uint64_t tag);
/* To be called for an event of kind `what`: true when that flow has ended now (its tag in
 * *tag), false when the event was overtaken. *failed is set when memory runs out. */
bool sim_links_end(struct sim_links *links, const struct sim_event *ev, uint64_t *tag,
                   bool *failed);

#endif
