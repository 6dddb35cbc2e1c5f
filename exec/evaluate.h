/* The loss on held-out data, forward only, in the plan's own layout. */
#ifndef PT_EXEC_EVALUATE_H
#define PT_EXEC_EVALUATE_H

#include "exec/stage.h"

/* Mean over the tokens of `batches` global batches, the same samples at every call, on
 * every rank alike. Between steps; all ranks call it. */
enum pt_status exec_evaluate(struct exec_stage *s, const struct exec_data *data,
                             uint64_t batches, double *loss, struct pt_error *err);

#endif
