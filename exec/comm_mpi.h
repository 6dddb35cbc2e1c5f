/* MPI as a wire. Absent from a build without MPI: exec_mpi_open then says so. */
#ifndef PT_EXEC_COMM_MPI_H
#define PT_EXEC_COMM_MPI_H

#include "exec/wire.h"

/* Initialises MPI; call once, before threads and BLAS. PT_USAGE without MPI. */
enum pt_status exec_mpi_open(struct exec_wire **wire, struct pt_error *err);

#endif
