#include "config.h"

#include <string.h>

#include "exec/kernels.h"

extern const struct exec_kernels exec_kernels_base;
#ifdef PT_KERNELS_X86
extern const struct exec_kernels exec_kernels_avx2, exec_kernels_avx512;
#endif

const struct exec_kernels *const exec_kernels_all[] = {
#ifdef PT_KERNELS_X86
    &exec_kernels_avx512,
    &exec_kernels_avx2,
#endif
    &exec_kernels_base,
    NULL,
};

const struct exec_kernels *exec_kernels_find(const char *isa)
{
    for (size_t i = 0; exec_kernels_all[i] != NULL; i++)
        if ((isa == NULL || !strcmp(isa, exec_kernels_all[i]->isa)) &&
            exec_kernels_all[i]->supported())
            return exec_kernels_all[i];
    return NULL;
}
