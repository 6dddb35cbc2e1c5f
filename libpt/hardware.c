/* Accelerators, links and nodes from profiles. pt-profile(5) describes the columns; every
 * row names its sources. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libpt/csv.h"
#include "libpt/hardware.h"
#include "libpt/names.h"
#include "libpt/units.h"

static const char *const precision_names[PT_N_PRECISIONS] = {
    [PT_FP32] = "fp32", [PT_TF32] = "tf32",   [PT_FP16] = "fp16",   [PT_BF16] = "bf16",
    [PT_FP8] = "fp8",   [PT_MXFP8] = "mxfp8", [PT_NVFP4] = "nvfp4",
};

const char *pt_precision_name(enum pt_precision precision)
{
    return precision_names[precision];
}

enum pt_status pt_precision_parse(const char *text, enum pt_precision *precision,
                                  struct pt_error *err)
{
    static const struct {
        const char *text;
        enum pt_precision value;
    } aliases[] = {
        { "float32", PT_FP32 },  { "float16", PT_FP16 }, { "half", PT_FP16 },
        { "bfloat16", PT_BF16 }, { "fp8-cs", PT_FP8 },   { "fp8-rowwise", PT_FP8 },
        { "fp8-mx", PT_MXFP8 },  { "fp4", PT_NVFP4 },
    };

    for (int i = 0; i < PT_N_PRECISIONS; i++) {
        if (strcasecmp(text, precision_names[i]) == 0) {
            *precision = (enum pt_precision)i;
            return PT_OK;
        }
    }
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strcasecmp(text, aliases[i].text) == 0) {
            *precision = aliases[i].value;
            return PT_OK;
        }
    }
    return pt_fail(err, PT_USAGE, NULL, 0,
                   "'%.40s' is not a precision; valid: fp32, tf32, "
                   "fp16, bf16, fp8, mxfp8, nvfp4",
                   text);
}

/* A profile file, and the row that was asked for. */
struct table {
    struct pt_csv *csv;
    size_t row;
};

static enum pt_status table_open(struct table *t, const char *dir, const char *file,
                                 struct pt_error *err)
{
    char path[PT_PROFILE_DIR_SIZE + 64];

    t->csv = NULL;
    t->row = 0;
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    return pt_csv_read(path, &t->csv, err);
}

/* The row of a key or alias; the error names the nearest keys. */
static enum pt_status table_find(struct table *t, const char *what, const char *key,
                                 struct pt_error *err)
{
    int key_column = pt_csv_column(t->csv, "key");
    int alias_column = pt_csv_column(t->csv, "aliases");
    struct pt_nearest nearest = { 0 };
    char list[256];

    for (t->row = 0; t->row < pt_csv_rows(t->csv); t->row++)
        if (pt_name_equal(key, pt_csv_field(t->csv, t->row, key_column)))
            return PT_OK;
    for (t->row = 0; t->row < pt_csv_rows(t->csv); t->row++) {
        if (pt_name_in_list(key, pt_csv_field(t->csv, t->row, alias_column)))
            return PT_OK;
        pt_nearest_offer(&nearest, key, pt_csv_field(t->csv, t->row, key_column));
    }
    return pt_fail(err, PT_USAGE, NULL, 0, "%s '%.40s' is not known; nearest: %s", what,
                   key, pt_nearest_text(&nearest, list, sizeof(list)));
}

static void text(const struct table *t, const char *column, char *out, size_t size)
{
    snprintf(out, size, "%s",
             pt_csv_field(t->csv, t->row, pt_csv_column(t->csv, column)));
}

struct number {
    const char *column;
    double *value;
    double missing, scale;
};

/* Numbers of a row, scaled to SI; negative ones are an error of the file. */
static enum pt_status numbers(const struct table *t, const struct number *list, size_t n,
                              struct pt_error *err)
{
    for (size_t i = 0; i < n; i++) {
        double value;
        enum pt_status st =
            pt_csv_number(t->csv, t->row, pt_csv_column(t->csv, list[i].column),
                          list[i].missing, &value, err);

        if (st != PT_OK)
            return st;
        if (!(value >= 0 && value <= 1e15))
            return pt_fail(err, PT_INPUT, "profile", pt_csv_line(t->csv, t->row),
                           "%s is %g; 0 to 1e15 is possible", list[i].column, value);
        *list[i].value = value * list[i].scale;
    }
    return PT_OK;
}
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static enum pt_status gpu_read(const struct table *t, struct pt_gpu *gpu,
                               struct pt_error *err)
{
    double nominal = 0, sm = 0;
    const struct number list[] = {
        { "mem_GB", &nominal, 0, 1 },
        { "torch_GiB", &gpu->mem_bytes, 0, PT_GIB },
        { "smi_GiB", &gpu->smi_bytes, 0, PT_GIB },
        { "mem_bw_GBps", &gpu->hbm_bytes_per_s, 0, PT_GB },
        { "fp32_TF", &gpu->peak_flops[PT_FP32], 0, 1e12 },
        { "tf32_TF", &gpu->peak_flops[PT_TF32], 0, 1e12 },
        { "fp16_TF", &gpu->peak_flops[PT_FP16], 0, 1e12 },
        { "bf16_TF", &gpu->peak_flops[PT_BF16], 0, 1e12 },
        { "fp8_TF", &gpu->peak_flops[PT_FP8], 0, 1e12 },
        { "fp4_TF", &gpu->peak_flops[PT_NVFP4], 0, 1e12 },
        { "sm_count", &sm, 100, 1 },
        { "h2d_GBps", &gpu->h2d_bytes_per_s, 25, PT_GB },
        { "d2h_GBps", &gpu->d2h_bytes_per_s, 25, PT_GB },
        { "link_perdir_GBps", &gpu->link_bytes_per_s, 0, PT_GB },
        { "tdp_W", &gpu->tdp_w, 0, 1 },
        { "usd_h_typ", &gpu->usd_per_hour, 0, 1 },
    };
    enum pt_status st;

    memset(gpu, 0, sizeof(*gpu));
    text(t, "key", gpu->key, sizeof(gpu->key));
    text(t, "name", gpu->name, sizeof(gpu->name));
    text(t, "arch", gpu->arch, sizeof(gpu->arch));
    text(t, "family", gpu->family, sizeof(gpu->family));
    text(t, "usd_date", gpu->usd_date, sizeof(gpu->usd_date));
    st = numbers(t, list, N_OF(list), err);
    if (st != PT_OK)
        return st;
    gpu->sm_count = sm > 65536 ? 65536 : sm < 1 ? 1 : (uint32_t)sm;
    /* Blackwell introduced block scaling; its rate is that of fp8. */
    if (gpu->peak_flops[PT_NVFP4] > 0)
        gpu->peak_flops[PT_MXFP8] = gpu->peak_flops[PT_FP8];
    if (gpu->smi_bytes <= 0)
        gpu->smi_bytes = gpu->mem_bytes > 0 ? gpu->mem_bytes : nominal * PT_GB;
    if (gpu->mem_bytes <= 0)
        gpu->mem_bytes = gpu->smi_bytes;
    if (gpu->mem_bytes <= 0 || gpu->hbm_bytes_per_s <= 0 ||
        (gpu->peak_flops[PT_FP32] <= 0 && gpu->peak_flops[PT_BF16] <= 0))
        return pt_fail(err, PT_INPUT, "profile", pt_csv_line(t->csv, t->row),
                       "%s needs memory, its bandwidth and a peak", gpu->key);
    return PT_OK;
}

enum pt_status pt_gpu_find(const char *profile_dir, const char *key, struct pt_gpu *gpu,
                           struct pt_error *err)
{
    struct table t;
    enum pt_status st = table_open(&t, profile_dir, "gpus.csv", err);

    if (st == PT_OK)
        st = table_find(&t, "GPU", key, err);
    if (st == PT_OK)
        st = gpu_read(&t, gpu, err);
    pt_csv_free(t.csv);
    return st;
}

/* What a row leaves out: all-reduce at 0.75 of the peak, all-gather as all-reduce (the
 * ring bounds both), all-to-all at 0.9 of that, a copy at 0.75 of the peak; half of the
 * bandwidth at 10 MiB and 30 us, the values of the oldest switch measured. */
static enum pt_status link_read(const struct table *t, struct pt_link *link,
                                struct pt_error *err)
{
    double peak = 0, send = 0;
    const struct number list[] = {
        { "peak_perdir_GBps", &peak, 0, PT_GB },
        { "ar_busbw_GBps", &link->allreduce_bytes_per_s, 0, PT_GB },
        { "ag_busbw_GBps", &link->allgather_bytes_per_s, 0, PT_GB },
        { "a2a_busbw_GBps", &link->alltoall_bytes_per_s, 0, PT_GB },
        { "p2p_copy_GBps", &link->p2p_bytes_per_s, 0, PT_GB },
        { "sendrecv_GBps", &send, 0, PT_GB },
        { "half_bw_msg_MiB", &link->half_bytes, 10, PT_MIB },
        { "alpha_coll_us", &link->alpha_s, 30, 1e-6 },
    };
    enum pt_status st;

    memset(link, 0, sizeof(*link));
    text(t, "key", link->key, sizeof(link->key));
    text(t, "system", link->name, sizeof(link->name));
    st = numbers(t, list, N_OF(list), err);
    if (st != PT_OK)
        return st;
    if (link->allreduce_bytes_per_s <= 0)
        link->allreduce_bytes_per_s = 0.75 * peak;
    if (link->allreduce_bytes_per_s <= 0)
        return pt_fail(err, PT_INPUT, "profile", pt_csv_line(t->csv, t->row),
                       "link %s needs a bandwidth", link->key);
    if (link->allgather_bytes_per_s <= 0)
        link->allgather_bytes_per_s = link->allreduce_bytes_per_s;
    if (link->alltoall_bytes_per_s <= 0)
        link->alltoall_bytes_per_s = 0.9 * link->allgather_bytes_per_s;
    if (send > 0)
        link->p2p_bytes_per_s = send;
    if (link->p2p_bytes_per_s <= 0)
        link->p2p_bytes_per_s = peak > 0 ? 0.75 * peak : link->allgather_bytes_per_s;
    return PT_OK;
}

enum pt_status pt_link_find(const char *profile_dir, const char *key,
                            struct pt_link *link, struct pt_error *err)
{
    struct table t;
    enum pt_status st = table_open(&t, profile_dir, "links.csv", err);

    if (st == PT_OK)
        st = table_find(&t, "link", key, err);
    if (st == PT_OK)
        st = link_read(&t, link, err);
    pt_csv_free(t.csv);
    return st;
}

double pt_cpu_adam_default(double host_bytes_per_s, uint32_t cores)
{
    double memory = 0.7 * host_bytes_per_s / 28, arithmetic = 0.1e9 * cores;

    return memory < arithmetic ? memory : arithmetic;
}

static enum pt_status node_read(const struct table *t, struct pt_cluster *c,
                                char *gpu_key, char *link_key, size_t key_size,
                                struct pt_error *err)
{
    double gpus = 0, domain = 0, cores = 0, inject = 0, adam = 0;
    char name[96], source[48];
    const struct number list[] = {
        { "gpus", &gpus, 8, 1 },
        { "domain_gpus", &domain, 8, 1 },
        { "inject_Gbps", &inject, 0, PT_GB / 8 },
        { "dram_GB", &c->host_mem_bytes, 0,
          PT_GIB }, /* memory modules come in powers of 2 */
        { "cpu_mem_bw_GBps", &c->host_mem_bytes_per_s, 200, PT_GB },
        { "cpu_cores", &cores, 32, 1 },
        { "cpu_adam_Gparam_s", &adam, 0, 1e9 },
    };
    enum pt_status st = numbers(t, list, N_OF(list), err);

    if (st != PT_OK)
        return st;
    if (gpus < 1 || gpus > 65536 || domain < 1 || domain > 65536 || inject <= 0 ||
        cores < 1 || cores > 65536 || c->host_mem_bytes <= 0)
        return pt_fail(err, PT_INPUT, "profile", pt_csv_line(t->csv, t->row),
                       "a node needs GPUs, a domain, a network rate, cores and memory");
    c->node_gpus = (uint32_t)gpus;
    c->domain_gpus = (uint32_t)domain;
    /* A domain of several hosts injects through all their adapters. */
    c->nic_bytes_per_s = inject * (domain > gpus ? domain / gpus : 1);
    c->host_cores = (uint32_t)cores;
    c->cpu_adam_params_per_s =
        adam > 0 ? adam : pt_cpu_adam_default(c->host_mem_bytes_per_s, c->host_cores);
    text(t, "network", c->network, sizeof(c->network));
    text(t, "gpu_key", gpu_key, key_size);
    text(t, "intra_link_key", link_key, key_size);
    text(t, "name", name, sizeof(name));
    text(t, "source", source, sizeof(source));
    snprintf(c->source, sizeof(c->source), "%s [%s]", name, source);
    return PT_OK;
}

static enum pt_status node_find(const char *profile_dir, const char *key,
                                const char *gpu_key, struct pt_cluster *cluster,
                                struct pt_error *err)
{
    struct table t;
    char own_gpu[32], link[32];
    enum pt_status st;

    memset(cluster, 0, sizeof(*cluster));
    st = table_open(&t, profile_dir, "nodes.csv", err);
    if (st == PT_OK)
        st = table_find(&t, "node", key, err);
    if (st == PT_OK)
        st = node_read(&t, cluster, own_gpu, link, sizeof(own_gpu), err);
    if (st == PT_OK)
        st = pt_gpu_find(profile_dir, gpu_key != NULL ? gpu_key : own_gpu, &cluster->gpu,
                         err);
    if (st == PT_OK)
        st = pt_link_find(profile_dir, link, &cluster->link, err);
    pt_csv_free(t.csv);
    return st;
}

enum pt_status pt_node_find(const char *profile_dir, const char *key,
                            struct pt_cluster *cluster, struct pt_error *err)
{
    return node_find(profile_dir, key, NULL, cluster, err);
}

enum pt_status pt_cluster_default(const char *profile_dir, const char *gpu_key,
                                  struct pt_cluster *cluster, struct pt_error *err)
{
    struct table t;
    char node[32] = "", key[32] = "";
    enum pt_status st = table_open(&t, profile_dir, "gpus.csv", err);

    if (st == PT_OK)
        st = table_find(&t, "GPU", gpu_key, err);
    if (st == PT_OK) {
        text(&t, "node", node, sizeof(node));
        text(&t, "key", key, sizeof(key));
    }
    pt_csv_free(t.csv);
    return st != PT_OK ? st : node_find(profile_dir, node, key, cluster, err);
}

const char *pt_gpu_default_for(double mem_bytes)
{
    /* Common training cards of each size, the newer of two. Nominal GiB: what people
     * type. */
    static const struct {
        double gib;
        const char *key;
    } cards[] = {
        { 16, "V100-16" },      { 24, "RTX4090" },   { 32, "V100-32" },
        { 40, "A100-40-SXM4" }, { 48, "L40S" },      { 80, "H100-80-SXM5" },
        { 94, "H100-94-NVL" },  { 96, "H20-96" },    { 141, "H200-141" },
        { 192, "B200-180" },    { 288, "B300-288" },
    };

    for (size_t i = 0; i < N_OF(cards); i++)
        if (mem_bytes <= cards[i].gib * PT_GIB)
            return cards[i].key;
    return NULL;
}
