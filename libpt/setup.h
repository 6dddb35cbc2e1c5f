/* Everything that is given before a layout is chosen: the reader of the cost and memory
 * models. */
#ifndef PT_SETUP_H
#define PT_SETUP_H

#include "libpt/calibration.h"
#include "libpt/hardware.h"
#include "libpt/layout.h"
#include "libpt/model.h"

struct pt_setup {
    struct pt_model model;
    struct pt_cluster cluster;
    struct pt_job job;
    struct pt_stack stack;
    struct pt_device device;
    struct pt_network network;
};

#endif
