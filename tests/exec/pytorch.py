#!/usr/bin/env python3
"""The same model as PyTorch: gradients of step 1 and the losses of 20 steps.

Reads the tensors that `ptexec --dump` writes, trains the same batches in PyTorch with its own
operators and AdamW, and compares. Exits 77 where PyTorch is missing."""
import csv
import glob
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError:
    system = "/usr/bin/python3"  # Debian's package is for this one
    if os.path.realpath(sys.executable) != os.path.realpath(system) and os.path.exists(system):
        os.execv(system, [system] + sys.argv)
    print("PyTorch is not here")
    sys.exit(77)

BUILD = os.environ.get("top_builddir", ".")
SOURCE = os.environ.get("top_srcdir", ".")
STEPS, SEQ, BATCH, LR, SEED = 20, 32, 8, 1e-3, 11
LAYERS, HEADS, HIDDEN = 3, 4, 64


def u64(x):
    return x & 0xFFFFFFFFFFFFFFFF


def mix(z):
    z = u64((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9)
    z = u64((z ^ (z >> 27)) * 0x94D049BB133111EB)
    return z ^ (z >> 31)


def rng(seed, stream, counter):
    key = mix(u64(seed + 0x9E3779B97F4A7C15 * (stream + 1)))
    return mix(mix(u64(key + 0x9E3779B97F4A7C15 * (counter + 1))) ^ key)


def permute(seed, stream, n, i):
    half = 1
    while half < 32 and (1 << (2 * half)) < n:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = i >> half, i & mask
        for r in range(6):
            left, right = right, left ^ (rng(seed, stream, r << 32 | right) & mask)
        i = left << half | right
        if i < n:
            return i


def batch(text, step):
    n = (len(text) - 1) // SEQ
    rows = []
    for k in range((step - 1) * BATCH, step * BATCH):
        at = permute(SEED, 0x64617461 + k // n, n, k % n) * SEQ
        rows.append(list(text[at:at + SEQ + 1]))
    t = torch.tensor(rows, dtype=torch.long)
    return t[:, :-1], t[:, 1:]


def load(folder):
    return {os.path.basename(f)[:-4]: torch.tensor(np.load(f))
            for f in glob.glob(folder + "/*.npy")}


def rms(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w


def rope(x):
    half = x.shape[-1] // 2
    a = torch.outer(torch.arange(x.shape[-2]).double(),
                    10000.0 ** (-torch.arange(half).double() / half))
    c, s = a.cos().float(), a.sin().float()
    p, q = x[..., :half], x[..., half:]
    return torch.cat((p * c - q * s, q * c + p * s), -1)


def attention(w, pre, x, llama):
    b, s, h = x.shape
    heads = []
    for name in "qkv":
        y = F.linear(x, w[f"{pre}.{name}.weight"], w.get(f"{pre}.{name}.bias"))
        heads.append(y.view(b, s, -1, h // HEADS).transpose(1, 2))
    q, k, v = heads
    if llama:
        q, k = rope(q), rope(k)
        k = k.repeat_interleave(HEADS // k.shape[1], 1)
        v = v.repeat_interleave(HEADS // v.shape[1], 1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(h // HEADS)
    scores = scores.masked_fill(torch.ones(s, s).triu(1).bool(), float("-inf"))
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, h)
    return F.linear(y, w[f"{pre}.proj.weight"], w.get(f"{pre}.proj.bias"))


def loss_of(w, tokens, targets, llama):
    def norm(x, name):
        if llama:
            return rms(x, w[name + ".weight"])
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-5)

    x = w["embedding.weight"][tokens]
    if not llama:
        x = x + w["positions.weight"][:SEQ]
    for i in range(LAYERS):
        p = f"layers.{i}."
        x = x + attention(w, p + "attention", norm(x, p + "norm1"), llama)
        y = norm(x, p + "norm2")
        if llama:
            y = F.silu(F.linear(y, w[p + "mlp.gate.weight"])) * F.linear(y, w[p + "mlp.up.weight"])
        else:
            u = F.linear(y, w[p + "mlp.fc1.weight"], w[p + "mlp.fc1.bias"])
            y = 0.5 * u * (1 + torch.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u ** 3)))
        x = x + F.linear(y, w[p + "mlp.fc2.weight"], w.get(p + "mlp.fc2.bias"))
    logits = F.linear(norm(x, "norm"), w.get("head.weight", w["embedding.weight"]))
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def compare(llama, tmp, path, text, layout):
    name = f"{tmp}/{'llama' if llama else 'gpt2'}"
    words = [f"layers={LAYERS}", f"hidden={HIDDEN}", f"heads={HEADS}", f"seq={SEQ}",
             f"gbs={BATCH}"] + (["style=llama"] if llama else []) + layout
    subprocess.run([f"{BUILD}/tests/exec/mkplan", name + ".json"] + words, check=True)
    subprocess.run([f"{BUILD}/ptexec", name + ".json", "--data", "text:" + path, "--steps",
                    str(STEPS), "--seed", str(SEED), "--lr", str(LR), "--warmup", "0",
                    "--lr-schedule", "constant", "-q", "--metrics", name + ".csv", "--dump",
                    name], check=True)
    w = {k: v.requires_grad_() for k, v in load(name + "/initial").items()}
    grads = load(name + "/grad1")
    with open(name + ".csv") as f:
        ours = [float(r["loss"]) for r in csv.DictReader(f)]
    matrices = [v for v in w.values() if v.dim() == 2]
    rest = [v for v in w.values() if v.dim() == 1]
    adam = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                              {"params": rest, "weight_decay": 0.0}], lr=LR, betas=(0.9, 0.95),
                             eps=1e-8)
    worst_grad, worst_loss = 0.0, 0.0
    for step in range(1, STEPS + 1):
        loss = loss_of(w, *batch(text, step), llama)
        adam.zero_grad()
        loss.backward()
        if step == 1:
            total = math.sqrt(sum(v.grad.pow(2).sum().item() for v in w.values()))
            for k, v in w.items():
                if k.endswith("attention.k.bias"):
                    continue  # zero in exact arithmetic
                e = (grads[k] - v.grad).norm().item() / max(v.grad.norm().item(), 1e-6 * total)
                worst_grad = max(worst_grad, e)
                if e > 1e-4:
                    print(f"{name}: {k}: gradient off by {e:.1e}")
        torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
        adam.step()
        worst_loss = max(worst_loss, abs(loss.item() - ours[step - 1]) / loss.item())
    print(f"{os.path.basename(name)} {' '.join(layout) or 'one rank'}: {len(w)} gradients within "
          f"{worst_grad:.1e}, {STEPS} losses within {worst_loss:.1e}, "
          f"{ours[0]:.4f} -> {ours[-1]:.4f}")
    return worst_grad <= 1e-4 and worst_loss <= 1e-4 and set(w) == set(grads)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as tmp:
        text = b"".join(open(f, "rb").read() for f in sorted(glob.glob(SOURCE + "/exec/*.c")))
        path = tmp + "/text"
        with open(path, "wb") as f:
            f.write(text)
        ok = True
        for llama in (False, True):
            for layout in ([], ["tp=2", "sp=1", "dp=2", "zero=2"]):
                ok &= compare(llama, tmp, path, text, layout)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
