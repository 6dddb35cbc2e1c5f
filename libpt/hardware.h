/* The machine: accelerators, fast domains, the network between them, hosts.
 * Units: bytes, bytes per second, FLOP/s, seconds; dense peaks. */
#ifndef PT_HARDWARE_H
#define PT_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpt/error.h"

/* Arithmetic of the matrix products. Weights, gradients and moments: struct pt_dtypes. */
enum pt_precision {
    PT_FP32,
    PT_TF32,
    PT_FP16,
    PT_BF16,
    PT_FP8,   /* per-tensor scaling (delayed or current) */
    PT_MXFP8, /* block scaling */
    PT_NVFP4,
    PT_N_PRECISIONS
};

struct pt_gpu {
    char key[32], name[64], arch[24];
    char family[24];  /* calibration key: parts that behave alike (A100, H100, B200, V100
                         ...) */
    double mem_bytes; /* what a framework can allocate on an empty card (torch_GiB, else
                         smi) */
    double smi_bytes; /* what nvidia-smi shows as total */
    double hbm_bytes_per_s;
    double peak_flops[PT_N_PRECISIONS]; /* 0: not supported */
    uint32_t sm_count;
    double h2d_bytes_per_s, d2h_bytes_per_s; /* pinned, one direction */
    double link_bytes_per_s;                 /* peak per direction, per GPU */
    double tdp_w, usd_per_hour;              /* 0: unknown */
    char usd_date[16];
};

/* One fast domain (NVLink, NVSwitch, PCIe). Bus bandwidths as nccl-tests define them, for
 * large messages; half_bytes is the message size that reaches half of that. */
struct pt_link {
    char key[32], name[64];
    double allreduce_bytes_per_s, allgather_bytes_per_s, alltoall_bytes_per_s,
        p2p_bytes_per_s;
    double half_bytes;
    double alpha_s; /* start-up of a collective */
};

struct pt_cluster {
    struct pt_gpu gpu;
    struct pt_link link;
    uint32_t gpus;
    uint32_t domain_gpus; /* GPUs in one fast domain */
    uint32_t node_gpus;   /* GPUs that share one host (<= domain_gpus or, NVL72, less) */
    char network[24];     /* calibration key; "" = unknown */
    double nic_bytes_per_s; /* injection of one domain, each way */
    double host_mem_bytes;  /* of one host */
    double host_mem_bytes_per_s;
    uint32_t host_cores;
    double cpu_adam_params_per_s; /* of one host; profile value, to be measured */
    double mem_limit_bytes;       /* --mem: what the user allows per GPU; 0: the card's */
    char source[160];
};

/* profiles/gpus.csv and profiles/links.csv, by key or alias, whatever the case and the
 * dashes. The error names the nearest keys. Each call reads a file: keep the result. */
enum pt_status pt_gpu_find(const char *profile_dir, const char *key, struct pt_gpu *gpu,
                           struct pt_error *err);
enum pt_status pt_link_find(const char *profile_dir, const char *key,
                            struct pt_link *link, struct pt_error *err);
/* --node: a row of profiles/nodes.csv fills everything but `gpus` and `mem_limit_bytes`.
 */
enum pt_status pt_node_find(const char *profile_dir, const char *key,
                            struct pt_cluster *cluster, struct pt_error *err);
/* --gpu alone: that card in its usual node. Everything but `gpus` and `mem_limit_bytes`.
 */
enum pt_status pt_cluster_default(const char *profile_dir, const char *gpu_key,
                                  struct pt_cluster *cluster, struct pt_error *err);
/* --mem alone: the documented default card with at least that much memory, nominally (80
 * GiB: H100 SXM); NULL when no card has it. */
const char *pt_gpu_default_for(double mem_bytes);
/* The rate of host arithmetic on Adam, parameters per second of one host: bound by memory
 * (28 bytes per parameter at 0.7 of the bandwidth) and by 0.1 Gparam/s per core. A
 * profile value, to be measured. */
double pt_cpu_adam_default(double host_bytes_per_s, uint32_t cores);

const char *pt_precision_name(enum pt_precision precision);
enum pt_status pt_precision_parse(const char *text, enum pt_precision *precision,
                                  struct pt_error *err);

/* Where the profiles are: $PT_PROFILE_DIR, else beside the program (uninstalled, or
 * installed and moved), else the installed folder. The answer may lie in buf
 * (PT_PROFILE_DIR_SIZE bytes) or be constant. */
#define PT_PROFILE_DIR_SIZE 512
const char *pt_profile_dir(char *buf, size_t size);

#endif
