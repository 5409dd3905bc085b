# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the page of experiments shows of each one: tables, charts, and what its numbers depend on. No number is in here: all come from results."""
import charts
from pages import table, times

BYTE_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def number(value):
    if value % 1 == 0:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1e-3 else f"{value:.3f}".rstrip("0").rstrip(".")


def expectation(one):
    if one["least"] == one["most"]:
        return number(one["least"])
    return f"{number(one['least'])} to {number(one['most'])}"


def without_sign(words):
    """-0.0 % is 0.0 %."""
    return words.removeprefix("-") if not any(c in words for c in "123456789") else words


def spread(value, form):
    """The median, and the quartiles where they are told apart from it."""
    if value is None:
        return "none"
    if not isinstance(value, dict):
        return without_sign(f"{value:{form}}")
    median, low, high = (without_sign(f"{value[key]:{form}}") for key in ("median", "q1", "q3"))
    return median if low == high == median else f"{median} [{low}, {high}]"


def median(value):
    return value["median"] if isinstance(value, dict) else value


def share(value):
    return spread(value, ".1%")


def factor(value):
    return spread(value, ".2f")


def size(value):
    unit, name = next((unit, name) for unit, name in BYTE_UNITS if value >= unit or unit == 1)
    return f"{value / unit:g} {name}"


def bandwidth(value):
    return f"{value / 1e9:g} GB/s"


def rows_of(rows, columns):
    """A table with one line for each row; a column is (head, key or function, form)."""
    body = [[form(column(row) if callable(column) else row.get(column)) for _, column, form in columns] for row in rows]
    return "\n" + table([head for head, _, _ in columns], body)


def line(rows, name, x, y):
    return charts.Line(name, sorted((row[x], median(row[y])) for row in rows if row[y] is not None))


def grid(rows, row_key, column_key, value, form, row_form=str, column_form=str):
    """A table of one value by two keys."""
    columns = list(dict.fromkeys(row[column_key] for row in rows))
    names = list(dict.fromkeys(row[row_key] for row in rows))
    cells = {(row[row_key], row[column_key]): row[value] for row in rows}
    return "\n" + table(["", *map(column_form, columns)], [[row_form(name), *(form(cells.get((name, column))) for column in columns)] for name in names])


def where(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


# E1

def savings(result):
    rows = result["rows"]
    columns = [("lengths", "lengths", str), ("greatest", "longest", str), ("saved", "saved", share), ("1 - mean / greatest", "expected", share), ("with int8", "saved_int8", share),
               ("with fp8", "saved_fp8", share), ("with int4", "saved_int4", share), ("by doubling", "saved_by_doubling", share), ("tokens copied by doubling", "copies_by_doubling", factor)]
    text = "\nBlocks of 16 tokens; tables are counted. `by doubling` is a contiguous cache that doubles when it is full, which copies what it holds each time.\n"
    text += rows_of(where(rows, block_tokens=16), columns)
    text += "\nBy tokens of a block, greatest length 4,096:\n" + grid(where(rows, longest=4096), "block_tokens", "lengths", "saved", share)
    text += "\nOf the bytes of blocks, tables take:\n" + grid(where(rows, longest=4096, lengths="U[0.2,1]"), "block_tokens", "lengths", "table_share", lambda v: spread(v, ".4%"))
    text += "\nMean over the time in which sequences grow from their prompts to the greatest length:\n"
    return text + rows_of(result["growth"], [("prompt", "prompt_share", share), ("saved", "saved", share), ("(1 - prompt) / 2", "expected", share)])


def savings_charts(result):
    rows = where(result["rows"], longest=4096)
    lines = [line(where(rows, lengths=name), name, "block_tokens", "saved") for name in dict.fromkeys(row["lengths"] for row in rows)]
    return {"kv-memory-saved.svg": charts.line_chart("Memory saved, greatest length 4,096", "tokens of a block", lines)}


# E2

def throughput(result):
    rows = where(result["rows"], arena=3.5)
    text = "\nSpeedup with an arena of 3.5 greatest lengths, by what a step costs:\n" + grid(rows, "lengths", "cost", "speedup", factor)
    text += "\nSequences in a step there, and how often one gave way:\n"
    text += rows_of(where(rows, cost="constant"), [("lengths", "lengths", str), ("with blocks", "batch_paged", factor), ("with regions", "batch_contiguous", factor), ("gave way", "preemptions", lambda v: spread(v, ".0f"))])
    text += "\nThe published number needs steps that cost the same whatever they hold. Where more sequences, or longer ones, make a step dearer, less is left of it; and nothing where regions for all fit.\n"
    end = result.get("end_to_end")
    if not end:
        return text + "\nNot run end to end: that takes quirec and quire-run.\n"
    text += "\n" + end["about"] + "\n"
    return text + rows_of(end["rows"], [("lengths", "lengths", str), ("requests", "requests", str), ("Quire, s", "ours_s", times), ("ONNX Runtime, s", "theirs_s", times), ("speedup", "speedup", factor),
                                        ("sequences in a step, Quire", "ours_batch", factor), ("ONNX Runtime", "theirs_batch", factor)])


def throughput_charts(result):
    rows = result["rows"]
    lines = [line(where(rows, lengths="U[0.2,1]", cost=cost), cost, "arena", "speedup") for cost in dict.fromkeys(row["cost"] for row in rows)]
    lengths = [line(where(rows, lengths=name, cost="constant"), name, "arena", "speedup") for name in dict.fromkeys(row["lengths"] for row in rows)]
    return {"kv-throughput-by-cost.svg": charts.line_chart("Speedup, lengths U[0.2,1]", "arena in greatest lengths", lines, 1),
            "kv-throughput-by-lengths.svg": charts.line_chart("Speedup with constant cost of a step", "arena in greatest lengths", lengths, 1)}


# E3

def first_token(result):
    text = "\n**A shared prefix**, requests one by one. A step has a fixed cost, and a prefix is whole blocks, so a little less than its share is saved:\n"
    text += rows_of(result["prefixes"], [("shared part of the prompt", "shared", share), ("ms without", "ms_without", times), ("ms with", "ms_with", times), ("saved", "saved", share)])
    text += "\n**Admission by need**, under load; `saved by admission` is against regions that were touched before, `by touching before` is what the baseline alone gains by that: memory that the system gives on " \
            "first touch costs the baseline a page fault for every 4 KiB of a region, and a comparison with it would show that and not paging.\n"
    ms = lambda v: spread(v, ".0f")  # noqa: E731
    text += rows_of(result["rows"], [("lengths", "lengths", str), ("load", "load", share), ("paged, p50 ms", "paged_p50", ms), ("regions, touched", "contiguous_touched_p50", ms), ("regions, cold", "contiguous_cold_p50", ms),
                                     ("saved by admission, p50", "saved_by_admission_p50", share), ("p95", "saved_by_admission_p95", share), ("saved by touching before, p50", "saved_by_touching_before_p50", share)])
    end = result.get("end_to_end")
    if not end:
        return text + "\nNot run end to end: that takes quirec and quire-run.\n"
    return text + "\n" + end["about"] + "\n" + rows_of(end["rows"], [("shared part of the prompt", "shared", share), ("ms without", "ms_without", times), ("ms with", "ms_with", times), ("saved", "saved", share)])


# E4

def replacement(result):
    rows, text = result["rows"], ""
    for name in dict.fromkeys(row["trace"] for row in rows):
        mine = where(rows, trace=name)
        best = [{**row, "policy": "best possible", "hit_rate": row["hit_rate_opt"]} for row in where(mine, policy="lru")]
        text += f"\nHit rate, {name}, by the share of pages in the fast tier:\n" + grid(mine + best, "policy", "budget", "hit_rate", share, column_form=share)
    text += "\nThe least share of pages in the fast tier, from which on no share costs more than 2 % of time:\n"
    text += rows_of(result["knees"], [("trace, policy, prefetch", "tiering", str), ("least share", "least_budget", share)])
    text += "\nPrefetches that come in time make the fast tier of dense attention almost unnecessary where a page loads faster than it is computed, and nothing else does. A dialogue reads all of it at each turn's prompt.\n"
    text += "\nCorrelation of hit rate and stall share over policies and budgets:\n"
    return text + rows_of(result["correlations"], [("trace", "trace", str), ("correlation", "hit_rate_and_stall", factor)])


def replacement_charts(result):
    curve = result["curve"]
    lines = [line(where(curve, tiering=name), name, "budget", "slowdown") for name in dict.fromkeys(row["tiering"] for row in curve)]
    return {"kv-two-tiers.svg": charts.line_chart("Slowdown by share of pages in the fast tier", "share of pages", lines, 0.02)}


# E5

def prefetching(result):
    rows = [row for row in where(result["rows"], bandwidth=2e9) if row["window"] in (1, 3, 5, 8)]
    columns = [("strategy", "strategy", lambda v: f"`{v}`"), ("window", "window", str), ("accuracy", "accuracy", share), ("coverage", "coverage", share), ("timeliness", "timeliness", share),
               ("pollution", "pollution", share), ("stall", "stall_share", share), ("bytes", "bytes", factor), ("time", "time", factor)]
    text = ""
    for name in dict.fromkeys(row["trace"] for row in rows):
        text += f"\n{name.capitalize()}, slow tier of 2 GB/s; bytes and time are those without prefetching times this:\n" + rows_of(where(rows, trace=name), columns)
    for name in dict.fromkeys(row["trace"] for row in rows):
        mine = where(result["rows"], trace=name, window=3)
        for title, key, form in (("Time", "time", factor), ("Coverage", "coverage", share), ("Stall", "stall_share", share), ("Bytes", "bytes", factor)):
            text += f"\n{title} by bandwidth, {name}, window 3:\n" + grid(mine, "strategy", "bandwidth", key, form, lambda v: f"`{v}`", bandwidth)
    return text + ("\nWhat a step attended to is in the fast tier already, so that hot spots of the step before name nothing to fetch. The group of layers before looks for half of the same blocks here, and "
                   "asks for all that it reads. Digests know the query itself, but no earlier than when the group begins; what they name arrives while the pages that are there are read. A bound is larger than the scores that it bounds, so that about every second page "
                   "that they fetch is not read, and takes the place of another.\n")


def prefetching_charts(result):
    rows = where(result["rows"], bandwidth=2e9)
    out = {}
    for name in dict.fromkeys(row["trace"] for row in rows):
        mine = where(rows, trace=name)
        lines = [line(where(mine, strategy=strategy), strategy, "window", "time") for strategy in dict.fromkeys(row["strategy"] for row in mine)]
        out[f"kv-prefetch-{name}.svg"] = charts.line_chart(f"Time of steps over that without prefetching, {name}, 2 GB/s", "window", lines, 1)
    named = where(rows, trace="sparse")
    lines = [line(where(named, strategy=strategy), strategy, "window", "coverage") for strategy in dict.fromkeys(row["strategy"] for row in named)]
    out["kv-prefetch-coverage.svg"] = charts.line_chart("Coverage of what is missing, sparse, 2 GB/s", "window", lines)
    return out


# E6

def block_sizes(result):
    text = "\nThe time of tables is what the runtime takes for a page that is there, beside reading the page at the speed of the fastest copy:\n"
    text += rows_of(result["rows"], [("block", "block_bytes", size), ("tokens", "block_tokens", str), ("empty slots", "empty_share", share), ("bytes of tables", "table_share", lambda v: spread(v, ".2%")),
                                     ("time of tables", "table_time_share", share), ("speed of copies", "copy_share", share), ("speed of single loads", "load_share", share)])
    text += "\nPages of several sizes, on the buddy allocator; external fragmentation after every other sequence has ended:\n"
    text += rows_of(result["sized"], [("pages", "pages", str), ("empty slots", "empty_share", share), ("pages of a sequence", "pages_of_sequence", lambda v: spread(v, ".1f")), ("external fragmentation", "external_fragmentation", share)])
    text += "\nWhat the rules choose; 0 is no opinion:\n"
    return text + rows_of(result["choices"], [("rules", "rules", str), ("block", "block_bytes", size), ("tokens", "block_tokens", str), ("decided by", "decided", str), ("by cache", "by_cache", str),
                                              ("by transfers", "by_transfer", str), ("by waste", "by_waste", str), ("by tables", "by_metadata", str)])


def block_charts(result):
    rows = [{**row, "kib": row["block_bytes"] / 1024} for row in result["rows"]]
    names = {"empty_share": "empty slots", "table_time_share": "time of tables", "copy_share": "speed of copies", "load_share": "speed of single loads"}
    return {"kv-block-sizes.svg": charts.line_chart("Block sizes: shares", "KiB of a block", [line(rows, name, "kib", key) for key, name in names.items()])}


# E7

def fragmentation(result):
    text = rows_of(result["rows"], [("pages", "pages", str), ("external fragmentation", "external_fragmentation", share), ("refused with room, a sequence", "refused_with_room", factor),
                                    ("empty slots", "empty_share", share), ("segment waste", "segment_waste", factor)])
    text += "\nIf every n-th of the blocks stays, a system that takes memory back by segments of 2 MiB gets none of it back; every free block still serves:\n"
    return text + rows_of(result["strides"], [("n", "stride", str), ("segments held for each needed", "segment_waste", factor), ("all free blocks served", "all_free_blocks_served", lambda v: "yes" if v else "no")])


# E8

def reserves(result):
    text = "\nThroughput is that without a reserve times this. The best reserve depends on what giving way costs: here all tokens of a sequence are stored again, and a prompt's row is dear beside one more sequence in a step.\n"
    return text + rows_of(result["rows"], [("lengths", "lengths", str), ("reserve", "reserve", share), ("throughput", "throughput", factor), ("gave way", "preemptions", lambda v: spread(v, ".0f")),
                                    ("prompt tokens", "prompt_tokens", lambda v: spread(v, ",.0f")), ("sequences in a step", "batch", factor)])


# E9

QUALITY = [("relative L2, spread", "relative_l2_spread", lambda v: spread(v, ".3f")), ("peaked", "relative_l2_peaked", lambda v: spread(v, ".3f")), ("cosine, peaked", "cosine_peaked", lambda v: spread(v, ".4f")),
           ("recall", "recall", share)]


def compression(result):
    text = "\nSpeeds are those of memcpy over those of the codec, for the same pages in turns.\n"
    for content, words in (("normal", "Values without structure"), ("sparse", "Values of which seven of eight are 0")):
        text += f"\n{words}:\n" + rows_of(where(result["rows"], content=content), [
            ("codec", "codec", lambda v: f"`{v}`"), ("bytes", "bytes_share", share), ("capacity", "capacity", factor), *QUALITY, ("encoding, share of memcpy", "encode_share_of_memcpy", share),
            ("decoding", "decode_share_of_memcpy", share)])
    text += "\nSparse 8:1 with the newest tokens dense; values without structure:\n"
    text += rows_of(result["dense"], [("codec", "codec", lambda v: f"`{v}`"), ("dense share r", "dense_share", share), ("bytes c", "coded_share", share), ("of these, places", "index_share", share), ("capacity", "capacity", factor), *QUALITY])
    text += "\nPruning by attention mass; a mask over the same tokens would free only blocks that happen to be empty:\n"
    return text + rows_of(result["pruned"], [("pruned", "ratio", share), ("blocks freed", "freed_blocks", share), ("by a mask", "freed_by_a_mask", share), *QUALITY])


# E10, E11

def dialogue(result):
    text = rows_of(result["rows"], [("old turns", "old_turns", str), ("bytes", "bytes", share), ("relative L2", "relative_l2", lambda v: spread(v, ".3f")), ("recall, old turns", "recall_old", share), ("recall, recent turns", "recall_recent", share)])
    return text + "\nA needle is any token, so a half of the old ones cannot be found when half of them are gone: pruning is for tokens that nobody will ask for.\n"


def document(result):
    residency = result["residency"]
    text = f"\nBytes of the fast tier: {share(residency['share'])} of {residency['documents']} documents of {residency['tokens']:,} tokens; with 819,200 bytes a token {residency['published_fast_gb']:.1f} GB of {residency['published_gb']:.1f}. " \
           f"{residency['demands']:,} pages were demanded, {residency['hits']:,} of them found, and {residency['wrong_bytes']} bytes came back otherwise than they were written.\n"
    text += "\nSteps by bandwidth of the slow tier:\n"
    text += rows_of(result["rows"], [("bandwidth", "bandwidth", bandwidth), ("dense, all fast, ms", "dense_all_fast_ms", times), ("dense, ms", "dense_ms", times), ("sparse, ms", "sparse_ms", lambda v: spread(v, ".0f")),
                                     ("speedup", "speedup", factor), ("over all fast", "speedup_over_all_fast", factor)])
    text += "\nRecall by the share of variance that keys of a page have in common and by how much the needle's logit stands out, of attention over all pages and over those that digests name:\n"
    return text + rows_of(result["recall"], [("alike", "alike", share), ("peak", "peak", number), ("all pages", "recall_dense", share), ("by digests", "recall_digest", share), ("difference", "difference", share)]) + \
        "\nA digest bounds scores by the least and the greatest value of each channel in a page. Where the keys of a page have nothing in common, all bounds are wide and alike, and needles are missed that dense attention finds.\n"


def document_charts(result):
    rows = [{**row, "gb": row["bandwidth"] / 1e9} for row in result["rows"]]
    return {"kv-document-speed.svg": charts.line_chart("Sparse steps against dense ones, fast tier of 0.375", "GB/s of the slow tier",
                                                       [line(rows, "over dense, same budget", "gb", "speedup"), line(rows, "over dense, all fast", "gb", "speedup_over_all_fast")], 1)}


# E12, E13

def faults(result):
    count = lambda v: f"{v:,.0f}"  # noqa: E731
    return rows_of(result["rows"], [("fault", "fault", str), ("rate", "rate", share), ("injected", "injected", count), ("steps", "steps", count), ("failed steps", "failed_steps", count), ("retries", "retries", count),
                                    ("pages lost", "pages_lost", count), ("tokens recomputed", "recomputed_tokens", count), ("wrong bytes", "wrong_bytes", count)])


def soak(result):
    row = result["rows"][0]
    return f"\n{row['seconds']:g} seconds, {row['operations']:,} operations, {row['steps']:,} steps (of which {row['refused']:,} found no room), {row['allocations']:,} blocks handed out, {row['demands']:,} pages demanded. " \
           f"Resident memory grew by {row['growth_bytes'] / 1024:.0f} KiB after the first quarter. At the end {row['left_sequences']} sequences and {row['left_blocks']} blocks were left, and the counters " \
           f"{'added up' if row['exact'] else '**did not add up**'}; {row['wrong_bytes']} bytes were wrong.\n"


BODIES = {"E1": savings, "E2": throughput, "E3": first_token, "E4": replacement, "E5": prefetching, "E6": block_sizes, "E7": fragmentation, "E8": reserves, "E9": compression, "E10": dialogue,
          "E11": document, "E12": faults, "E13": soak}
CHARTS = {"E1": savings_charts, "E2": throughput_charts, "E4": replacement_charts, "E5": prefetching_charts, "E6": block_charts, "E11": document_charts}
