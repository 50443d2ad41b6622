#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Distils a draft model of two narrow layers from a Llama, with text that this Llama wrote itself. Runs on a CPU.

Needs torch, transformers and numpy; `export --gguf` also needs gguf. See README.md for the commands and figures.
"""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import argparse
import itertools
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import texts
import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.masking_utils import eager_mask

KINDS = 16  # of the likeliest tokens that are stored of each position
Rows = list[dict[str, np.ndarray]]


def progress(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class RoomyLayer(DynamicLayer):
    """A layer of a cache that grows in steps: one that grows by a token copies all tokens in each pass."""

    room: Any = ()
    count = 0

    def update(self, keys: Any, values: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        if not self.is_initialized:
            self.lazy_initialization(keys, values)
        begin, self.count = self.count, self.count + keys.shape[2]
        if not self.room or self.room[0].shape[2] < self.count:
            larger = [each.new_empty(*each.shape[:2], self.count + 192, each.shape[3]) for each in (keys, values)]
            for new, old in zip(larger, self.room):
                new[:, :, :begin] = old[:, :, :begin]
            self.room = larger
        for kept, new in zip(self.room, (keys, values)):
            kept[:, :, begin : self.count] = new
        self.keys, self.values = (each[:, :, : self.count] for each in self.room)
        return self.keys, self.values

    def batch_select_indices(self, indices: Any) -> None:
        self.room = [each[indices] for each in self.room]


def grouped(
    module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float = 1.0, **_: Any
) -> tuple[Any, None]:
    """Attention that does not copy the keys and values for each query head of a group."""
    count, heads, length, size = query.shape
    groups = key.shape[1]
    scores = (query * scaling).reshape(count, groups, -1, size) @ key.transpose(2, 3)
    scores = scores.view(count, groups, heads // groups, length, -1)
    if mask is not None:
        scores = scores + mask[:, :, None]
    out = scores.softmax(-1).view(count, groups, -1, key.shape[2]) @ value
    return out.view(count, heads, length, size).transpose(1, 2).contiguous(), None


AttentionInterface.register("grouped", grouped)
AttentionMaskInterface.register("grouped", eager_mask)


class Target:
    """The model to imitate."""

    def __init__(self, folder: str) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        load = transformers.AutoModelForCausalLM.from_pretrained
        self.model = load(folder, dtype=torch.float32, attn_implementation="grouped").eval()
        self.end = self.tokenizer.eos_token_id

    def likeliest(self, hidden: Any) -> tuple[Any, Any, Any]:
        """Returns the logits of the last position, and the likeliest tokens of all positions with probabilities."""
        ids, probabilities = [], []
        for row in hidden.flip(1).transpose(0, 1).flatten(0, 1).split(max(256, len(hidden))):
            logits = self.model.lm_head(row)
            if not ids:
                last = logits[: len(hidden)].clone()
            top = logits.topk(KINDS)
            ids.append(top.indices.to(torch.int32))
            probabilities.append((top.values - logits.logsumexp(-1, keepdim=True)).exp().half())
        shape = (hidden.shape[1], len(hidden), KINDS)
        return last, *(torch.cat(each).view(shape).flip(0).transpose(0, 1).numpy() for each in (ids, probabilities))

    @torch.inference_mode()
    def write(self, prompts: list[str], most: int, heats: list[float], labelled: bool = True) -> Rows:
        """Continues each prompt by at most `most` tokens, at its temperature (0: greedy).

        Returns the ids of each text, the number of prompt tokens, and the likeliest next tokens of each position.
        """
        encoded = [self.tokenizer(prompt, add_special_tokens=False).input_ids for prompt in prompts]
        longest = max(map(len, encoded))
        ids = torch.tensor([[self.end] * (longest - len(each)) + each for each in encoded])
        mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in encoded])
        heat = torch.tensor(heats)[:, None]
        rows = [{"ids": [*each], "top": [], "share": []} for each in encoded]
        live, fresh, cache = list(range(len(rows))), ids, DynamicCache(config=self.model.config)
        cache.layers = [RoomyLayer() for _ in cache.layers]
        for step in range(most):
            positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -fresh.shape[1] :]
            made = self.model.model(
                input_ids=fresh, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True
            )
            cache = made.past_key_values
            hidden = made.last_hidden_state if labelled or step else made.last_hidden_state[:, -1:]
            logits, top, share = self.likeliest(hidden)
            warm = (logits / heat.clamp(min=0.01)).softmax(-1)
            picks = torch.where(heat[:, 0] > 0, warm.multinomial(1)[:, 0], logits.argmax(-1)).tolist()
            for at, row in enumerate(live):
                length = len(encoded[row]) if step == 0 and labelled else 1
                rows[row]["top"].append(top[at, -length:])
                rows[row]["share"].append(share[at, -length:])
                rows[row]["ids"].append(picks[at])
            left = [at for at, pick in enumerate(picks) if pick != self.end]
            if not left:
                break
            if len(left) < len(live):
                chosen = torch.tensor(left)
                cache.batch_select_indices(chosen)
                live, mask, heat = [live[at] for at in left], mask[chosen], heat[chosen]
            fresh = torch.tensor([[picks[at]] for at in left])
            mask = torch.cat([mask, torch.ones_like(fresh)], dim=1)
        return [
            {
                "ids": np.array(row["ids"], np.int32),
                "prompt": np.array(len(each), np.int32),
                "top": np.concatenate(row["top"]),
                "share": np.concatenate(row["share"]),
            }
            for row, each in zip(rows, encoded)
        ]

    def questions(self, count: int) -> list[str]:
        """Returns questions that the model asks itself."""
        begin = texts.question_begin()
        skipped = len(self.tokenizer(begin, add_special_tokens=False).input_ids)
        made = self.write([begin] * count, 40, [1.0] * count, labelled=False)
        asked = [self.tokenizer.decode(row["ids"][skipped:], skip_special_tokens=True).strip() for row in made]
        return [each for each in asked if len(each) > 10]


def generate(options: argparse.Namespace) -> None:
    """Writes batches of text into the folder, until the time is over."""
    target, random = Target(options.model), Random(options.seed)
    torch.manual_seed(options.seed)
    known = [turn for _, turn in texts.bundled(options.prompts, held_out=False)]
    source = texts.prompts(known, texts.texts_at_hand(), texts.code_at_hand(), random)
    begin, tokens = time.monotonic(), 0
    for number in itertools.count():
        asked = target.questions(options.batch * 6 // 10)
        asked += itertools.islice((each for each in source if len(each) < 700), options.batch - len(asked))
        asked.sort(key=len)
        heats = [0.0 if random.random() < 0.5 else 0.7 for _ in asked]
        rows = target.write([texts.chat(each) for each in asked], options.answer, heats)
        file = options.out / f"text-{options.seed}-{number}.npz"
        arrays = {f"{at}-{key}": value for at, row in enumerate(rows) for key, value in row.items()}
        np.savez(file.with_suffix(".tmp.npz"), **arrays)
        file.with_suffix(".tmp.npz").rename(file)
        tokens += sum(len(row["ids"]) - int(row["prompt"]) for row in rows)
        spent = time.monotonic() - begin
        progress(f"{file}: {tokens} tokens in {spent:.0f} s, {tokens / spent:.0f} tokens/s")
        if spent > options.minutes * 60:
            return


def known_turns(folder: Path) -> Rows:
    """Returns the bundled recordings as rows: they have no probabilities, so the next token has all of it."""
    rows: Rows = []
    for ids, prompt in texts.recorded(folder):
        count = len(ids) - 1
        top = np.repeat(np.array(ids[1:], np.int32)[:, None], KINDS, axis=1)
        share = np.zeros((count, KINDS), np.float16)
        share[:, 0] = 1
        rows.append({"ids": np.array(ids, np.int32), "prompt": np.array(prompt, np.int32), "top": top, "share": share})
    return rows


def stored(folder: Path) -> tuple[Rows, Rows]:
    """Returns the rows that generate() has written: those to train on, and those to validate."""
    rows: tuple[Rows, Rows] = ([], [])
    for file in sorted(folder.glob("text-*.npz")):
        if file.name.endswith(".tmp.npz"):
            continue
        with np.load(file) as arrays:
            count = len({name.split("-")[0] for name in arrays.files})
            found = [{key: arrays[f"{at}-{key}"] for key in ("ids", "prompt", "top", "share")} for at in range(count)]
        for ours, part in zip(rows, texts.split(found, 24)):
            ours.extend(part)
    if not rows[0]:
        raise texts.InputError(f"{folder}: no text; run `distil.py generate --out {folder}` first")
    return rows


def narrow(target: Target, rows: Rows, width: int, layers: int) -> Any:
    """Returns a Llama with the target's vocabulary. Its embedding has the main directions of the target's embedding."""
    wide = target.model.config
    heads = width // 64
    config = transformers.LlamaConfig(
        vocab_size=wide.vocab_size, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=max(1, heads // 2), head_dim=64,
        max_position_embeddings=wide.max_position_embeddings, rms_norm_eps=wide.rms_norm_eps,
        tie_word_embeddings=True, bos_token_id=wide.bos_token_id, eos_token_id=wide.eos_token_id,
        pad_token_id=wide.pad_token_id, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )  # fmt: skip
    draft = transformers.LlamaForCausalLM(config).float()
    ids = np.concatenate([row["ids"] for row in rows]).astype(np.int64)
    seen = torch.from_numpy(np.bincount(ids, minlength=wide.vocab_size))
    embedding = target.model.get_input_embeddings().weight.detach()
    weights = (seen + 1.0).sqrt()[:, None]  # frequent tokens should lose less
    directions = torch.linalg.eigh(embedding.T @ (weights * embedding)).eigenvectors[:, -width:]
    draft.get_input_embeddings().weight.data = (embedding @ directions).contiguous()
    draft.model.norm.weight.data.fill_(0.2)  # else the first logits are far too sure
    return draft


class Loss:
    """The cross entropy with the stored likeliest tokens of the target."""

    def __init__(self, draft: Any, sampled: int) -> None:
        self.draft, self.sampled, self.vocabulary = draft, sampled, draft.config.vocab_size

    def __call__(self, hidden: Any, top: Any, share: Any) -> Any:
        """The loss of each position. The output has the tokens of the batch and a sample of the others alone.

        Each of the sample stands for its share of all tokens that are not in the batch, so the softmax is nearly that
        of the whole vocabulary, for a fifth of the work.
        """
        chosen, places = top.unique(return_inverse=True)
        others = torch.ones(self.vocabulary, dtype=torch.bool)
        others[chosen] = False
        others = others.nonzero()[:, 0]
        sample = others[torch.randperm(len(others))[: self.sampled]]
        weight = self.draft.get_input_embeddings().weight
        logits = hidden @ weight[torch.cat([chosen, sample])].T
        logits[:, len(chosen) :] += float(np.log(len(others) / len(sample)))
        share = share / share.sum(-1, keepdim=True)
        return logits.logsumexp(-1) - (share * logits.gather(1, places)).sum(-1)


def padded(rows: Rows) -> tuple[Any, ...]:
    """Returns ids and labels of a batch, and the weight of each position: 0 after the end of a text."""
    longest = max(len(row["top"]) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    top = torch.zeros(len(rows), longest, KINDS, dtype=torch.long)
    share, weight = torch.zeros(len(rows), longest, KINDS), torch.zeros(len(rows), longest)
    for at, row in enumerate(rows):
        count = len(row["top"])
        ids[at, :count] = torch.from_numpy(row["ids"][:count].astype(np.int64))
        top[at, :count] = torch.from_numpy(row["top"].astype(np.int64))
        share[at, :count] = torch.from_numpy(row["share"].astype(np.float32))
        weight[at, :count] = 0.3
        weight[at, int(row["prompt"]) - 1 : count] = 1
    return ids, top, share, weight


@torch.inference_mode()
def agreement(draft: Any, rows: Rows) -> float:
    """Returns in how many positions of the answers the draft's likeliest token is that of the target."""
    same = count = 0
    for at in range(0, len(rows), 8):
        ids, top, _, weight = padded(rows[at : at + 8])
        answers = weight == 1
        picks = draft.lm_head(draft.model(input_ids=ids, use_cache=False).last_hidden_state[answers]).argmax(-1)
        same += int((picks == top[answers][:, 0]).sum())
        count += len(picks)
    return same / count


def train(options: argparse.Namespace) -> None:
    """Trains a draft model until the time is over, and keeps the state with the best agreement."""
    torch.manual_seed(options.seed)
    target, random = Target(options.model), Random(options.seed)
    rows, check = stored(options.out)
    draft = narrow(target, rows, options.width, options.layers)
    loss = Loss(draft, 2048)
    embedding = draft.get_input_embeddings().weight
    layers = [each for each in draft.parameters() if each is not embedding]
    optimizer = torch.optim.AdamW(
        [{"params": [embedding], "lr": options.rate / 4}, {"params": layers}],
        lr=options.rate, betas=(0.9, 0.98), weight_decay=0.05,
    )  # fmt: skip
    rates = [group["lr"] for group in optimizer.param_groups]
    positions = sum(len(row["top"]) for row in rows)
    progress(f"{len(rows)} texts, {positions} positions, {sum(map(torch.numel, draft.parameters()))} parameters")
    begin, best, step, losses = time.monotonic(), -1.0, 0, []
    order: list[Rows] = []
    while True:
        done = (time.monotonic() - begin) / (options.minutes * 60)
        if not order:
            rows, check = stored(options.out)  # generate() may still be writing
            rows += known_turns(options.traces)
            lengths = sorted(rows, key=lambda row: len(row["top"]) + random.random() * 40)
            order = [lengths[at : at + options.batch] for at in range(0, len(lengths), options.batch)]
            random.shuffle(order)
        if done < 1:
            ids, top, share, weight = padded(order.pop())
            used = weight > 0
            hidden = draft.model(input_ids=ids, use_cache=False).last_hidden_state
            each = loss(hidden[used], top[used], share[used])
            total = (each * weight[used]).sum() / weight[used].sum()
            for group, rate in zip(optimizer.param_groups, rates):
                group["lr"] = rate * min(1, (step + 1) / 50) * (0.02 + 0.98 * (1 + np.cos(np.pi * done)) / 2)
            optimizer.zero_grad(set_to_none=True)
            total.backward()
            torch.nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
            optimizer.step()
            losses.append(total.item())
            step += 1
        if done >= 1 or step % options.every == 0:
            found = agreement(draft, check)
            progress(f"step {step}, {done:.0%}: loss {np.mean(losses):.3f}, {found:.1%} of the target's tokens")
            losses.clear()
            if found > best:
                best = found
                kept = {"width": options.width, "layers": options.layers, "state": draft.state_dict()}
                torch.save(kept, options.out / "draft.pt")
        if done >= 1:
            return


def trained(folder: Path, target: Target) -> Any:
    """Returns the draft model that train() has stored."""
    file = folder / "draft.pt"
    if not file.exists():
        raise texts.InputError(f"{file}: no draft model; run `distil.py train --out {folder}` first")
    kept = torch.load(file)
    draft = narrow(target, stored(folder)[0][:1], kept["width"], kept["layers"])
    draft.load_state_dict(kept["state"])
    return draft.eval()


@torch.inference_mode()
def measure(options: argparse.Namespace) -> None:
    """Prints how many drafted tokens the target accepts, on prompts that no training text came from.

    A token of a draft counts only if all before it were right, and then the draft model has seen the target's own text.
    So one pass over this text shows the draft that begins at each position.
    """
    target = Target(options.model)
    draft = trained(options.out, target)
    prompts = [each for each in texts.bundled(options.prompts, held_out=True) if each[0] in options.category]
    lengths: dict[str, list[tuple[int, int]]] = {}
    for at in range(0, len(prompts), 16):
        part = prompts[at : at + 16]
        rows = target.write([texts.chat(turn) for _, turn in part], options.answer, [0.0] * len(part), labelled=False)
        for (category, _), row in zip(part, rows):
            ids, begin = torch.from_numpy(row["ids"]).long(), int(row["prompt"])
            picks = draft(input_ids=ids[None], use_cache=False).logits[0, begin - 1 : -1].argmax(-1).tolist()
            written = ids[begin:].tolist()
            for first in range(len(written)):
                ours, theirs = (each[first : first + options.depth] for each in (picks, written))
                lengths.setdefault(category, []).append((len(ours), texts.agreed(ours, theirs)))
    lengths["all"] = [each for found in lengths.values() for each in found]
    print("| text | tokens |" + "".join(f" {depth + 1} |" for depth in range(options.depth)))
    print("|---|---|" + "---|" * options.depth)
    for category, found in lengths.items():
        shares = "".join(f" {share:.0%} |" for share in texts.by_position(found, options.depth))
        print(f"| {category} | {len(found)} |{shares}")


def export(options: argparse.Namespace) -> None:
    """Writes the draft model for transformers into a folder, and as GGUF beside it."""
    target = Target(options.model)
    draft = trained(options.out, target)
    folder, file = options.out / "hf", options.out / "draft.gguf"
    draft.save_pretrained(folder)
    target.tokenizer.save_pretrained(folder)
    progress(f"{folder}: for assistant_model of transformers")
    if options.gguf is None:
        return
    to_gguf(draft, options.gguf, file.with_suffix(".tmp"))
    file.with_suffix(".tmp").rename(file)
    progress(f"{file}: for llama.cpp, {file.stat().st_size / 1e6:.1f} MB")


def to_gguf(draft: Any, target: Path, file: Path) -> None:
    """Writes a Llama as GGUF, with the tokenizer of the target's GGUF: llama.cpp compares the vocabularies."""
    import gguf

    config = draft.config
    writer = gguf.GGUFWriter(file, "llama")
    for name, field in gguf.GGUFReader(target).fields.items():
        if name.startswith("tokenizer."):
            inner = field.types[1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], inner)
    writer.add_name("draft model of two narrow layers")
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in draft.state_dict().items():
        if name == "lm_head.weight":  # the embedding is the head, too
            continue
        for kind, heads in (("q", config.num_attention_heads), ("k", config.num_key_value_heads)):
            if name.endswith(f"{kind}_proj.weight"):  # llama.cpp rotates neighbours, transformers the two halves
                tensor = tensor.view(heads, 2, -1, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)
        values, kind = tensor.float().numpy(), gguf.GGMLQuantizationType.Q8_0
        if values.ndim == 1:
            kind = gguf.GGMLQuantizationType.F32
        writer.add_tensor(names.get_name(name, (".weight",)), gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    one = commands.add_parser("generate", help="let the target write text")
    one.set_defaults(run=generate)
    one.add_argument("--minutes", type=float, default=15)
    one.add_argument("--batch", type=int, default=64)
    one.add_argument("--answer", type=int, default=160)
    two = commands.add_parser("train", help="train a draft model with this text")
    two.set_defaults(run=train)
    two.add_argument("--minutes", type=float, default=30)
    two.add_argument("--batch", type=int, default=8)
    two.add_argument("--rate", type=float, default=2e-3)
    two.add_argument("--traces", type=Path, default=texts.ROOT / "bench/traces", help="recordings of the target")
    two.add_argument("--width", type=int, default=256)
    two.add_argument("--layers", type=int, default=2)
    two.add_argument("--every", type=int, default=100, help="steps between two measurements")
    three = commands.add_parser("measure", help="print the accepted tokens by position")
    three.set_defaults(run=measure)
    three.add_argument("--answer", type=int, default=128)
    three.add_argument("--depth", type=int, default=5)
    three.add_argument("--category", nargs="+", default=["chat", "code-edit", "prose", "summary"])
    four = commands.add_parser("export", help="write the draft model for transformers, and for llama.cpp")
    four.set_defaults(run=export)
    four.add_argument("--gguf", type=Path, help="the target as GGUF, for its tokenizer; without it, no GGUF is written")
    for each in (one, three):
        each.add_argument("--prompts", type=Path, default=texts.ROOT / "bench/prompts")
    for each in (one, two, three, four):
        each.add_argument("--model", required=True)
        each.add_argument("--out", type=Path, required=True)
        each.add_argument("--seed", type=int, default=1)
        each.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        options.run(options)
    except texts.InputError as failed:
        print(f"distil.py: {failed}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
