/* The two ends of the model: token and position embedding; final norm, head and loss. */
#ifndef PT_EXEC_ENDS_H
#define PT_EXEC_ENDS_H

#include "exec/layer.h"

/* y[Ts, h] = w[token] + positions[place]; positions may be NULL. */
enum pt_status exec_embed(struct exec_env *env, const float *w, const float *positions,
                          const int32_t *tokens, float *y, struct pt_error *err);
/* Adds to g and gpos. */
enum pt_status exec_embed_grad(struct exec_env *env, float *g, float *gpos,
                               const int32_t *tokens, const float *dy,
                               struct pt_error *err);

struct exec_head {
    float *block; /* norm, mean, rstd */
    float *norm, *mean, *rstd;
    float *logits; /* [T, vocab_local]: turned into their gradient at once */
};

/* *loss: sum over this micro-batch's tokens of -log p(target), in double, the same on
 * every tensor-parallel rank. With train, head keeps what backward needs: the gradient of
 * the loss times `scale`. */
enum pt_status exec_head_forward(struct exec_env *env, const float *norm_w,
                                 const float *norm_b, const float *w, const float *x,
                                 const int32_t *targets, float scale, bool train,
                                 struct exec_head *head, double *loss,
                                 struct pt_error *err);
/* dx[Ts, h] is overwritten; the head's whole gradient is added to g, the norm's to gw,
 * gb; then releases `head`. */
enum pt_status exec_head_backward(struct exec_env *env, const float *norm_w,
                                  const float *w, const float *x, struct exec_head *head,
                                  float *gw, float *gb, float *g, float *dx,
                                  struct pt_error *err);
void exec_head_free(struct exec_env *env, struct exec_head *head);

#endif
