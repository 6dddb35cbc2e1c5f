/* Tensors as NumPy files, one a tensor of the whole model, for comparisons with other
 * programs: every rank writes its own part in place. */
#ifndef PT_EXEC_DUMP_H
#define PT_EXEC_DUMP_H

#include "exec/stage.h"

/* Into dir/set/NAME.npy. grads: the step's gradients instead of the weights. All ranks
 * call it between steps; the folders are made here. */
enum pt_status exec_dump(struct exec_stage *s, const char *dir, const char *set,
                         bool grads, struct pt_error *err);

#endif
