/* The local transport: ranks on one host that share memory. */
#ifndef PT_EXEC_COMM_LOCAL_H
#define PT_EXEC_COMM_LOCAL_H

#include "exec/kernels.h"
#include "exec/shared.h"

/* The caller keeps `shared` open until close. k does the sums. */
enum pt_status exec_comm_local_open(const struct exec_shared *shared, uint32_t rank,
                                    const struct exec_kernels *k, struct exec_comm **out,
                                    struct pt_error *err);

#endif
