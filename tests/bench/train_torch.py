#!/usr/bin/env python3
"""GPT-2's 124M shape in PyTorch, one thread, fp32: seconds of a training step, to stand beside
ptexec's. Exits 77 where PyTorch is missing."""
import importlib.util
import os
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("pt", here + "/../exec/pytorch.py")
pt = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pt)
torch = pt.torch
pt.SEQ, pt.LAYERS, pt.HEADS = 1024, 12, 12
H, V = 768, 50257


def weights():
    def m(*shape):
        return (torch.randn(*shape) * 0.02).requires_grad_()

    def v(n, x):
        return torch.full((n,), float(x), requires_grad=True)

    w = {"embedding.weight": m(V, H), "positions.weight": m(pt.SEQ, H), "norm.weight": v(H, 1),
         "norm.bias": v(H, 0)}
    for i in range(pt.LAYERS):
        p = f"layers.{i}."
        for n in ("norm1", "norm2"):
            w[p + n + ".weight"], w[p + n + ".bias"] = v(H, 1), v(H, 0)
        for n in ("attention.q", "attention.k", "attention.v", "attention.proj"):
            w[p + n + ".weight"], w[p + n + ".bias"] = m(H, H), v(H, 0)
        w[p + "mlp.fc1.weight"], w[p + "mlp.fc1.bias"] = m(4 * H, H), v(4 * H, 0)
        w[p + "mlp.fc2.weight"], w[p + "mlp.fc2.bias"] = m(H, 4 * H), v(H, 0)
    return w


def main():
    torch.set_num_threads(1)
    w = weights()
    adam = torch.optim.AdamW(w.values(), lr=1e-4)
    tokens = torch.randint(0, V, (1, pt.SEQ + 1))
    best = float("inf")
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        wall, cpu = time.time(), time.process_time()
        loss = pt.loss_of(w, tokens[:, :-1], tokens[:, 1:], False)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
        adam.step()
        cpu = time.process_time() - cpu
        best = min(best, cpu)
        print(f"PyTorch {torch.__version__}: {time.time() - wall:.2f} s, {cpu:.2f} s of CPU, "
              f"loss {loss.item():.3f}", flush=True)
    print(f"PyTorch: {pt.SEQ / best:.1f} tokens a second of CPU")


main()
