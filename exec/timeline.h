/* The last step as a trace, in the simulator's format. */
#ifndef PT_EXEC_TIMELINE_H
#define PT_EXEC_TIMELINE_H

#include "exec/shared.h"
#include "libpt/plan.h"

/* After all ranks have ended well. Time 0 is the first instruction of any rank. */
enum pt_status exec_timeline(const char *path, const struct pt_plan *plan,
                             const struct exec_shared *shared, struct pt_error *err);

#endif
