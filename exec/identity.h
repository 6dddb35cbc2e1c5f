/* Do all ranks run the same program on the same plan and data? And where are they. */
#ifndef PT_EXEC_IDENTITY_H
#define PT_EXEC_IDENTITY_H

#include <stdio.h>

#include "exec/comm.h"

struct exec_identity { /* travels as it is: no pointers, a multiple of 8 bytes */
    char binary[72], plan[72], data[72], options[72]; /* SHA-256, hexadecimal */
    char host[64], address[128], isa[16], blas[96], cpu[64];
};

/* Of this rank: hashes of its own program file, of the plan's file and of the text that
 * says what else training depends on. address: where the transport reaches it; may be "".
 */
enum pt_status exec_identity_init(struct exec_identity *id, const char *plan_path,
                                  const char *data_hash, const char *options,
                                  const char *address, const char *isa,
                                  struct pt_error *err);
/* Exchanges: all[size], in rank order. Uses the beginning of the rank's arena. */
enum pt_status exec_identity_exchange(struct exec_comm *comm,
                                      const struct exec_identity *mine,
                                      struct exec_identity *all, struct pt_error *err);
/* PT_USAGE names the first rank and field that differ from rank 0's. */
enum pt_status exec_identity_compare(const struct exec_identity *all, uint32_t size,
                                     struct pt_error *err);
/* Hosts with their ranks, devices, libraries, how they reach each other. */
void exec_identity_print(FILE *f, const struct exec_identity *all, uint32_t size,
                         const char *transport);

#endif
