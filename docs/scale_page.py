"""Tables and facts of ``scale.md``: what many series cost on cores, on clusters of Ray and on a GPU."""

from typing import Any

from stored_rows import of_commits, percent, stored

from sparcets_paper.table import Table


def scale_tables() -> str:
    """Return what is measured of many series: costs, facts, what an archive takes; what is not stored is left out."""
    rows = {row["part"]: row for row in stored("scale.jsonl")}
    one, two, both = (rows.get(name) for name in ("one core", "two cores", "overhead"))
    rates = [("one core", one["rate"], 1)] if one else []
    for engine, name in (("local", "two processes"), ("ray", "two workers of Ray")) if both else ():
        rate = both["queries"] * len(both[f"{engine}_s"]) / sum(both[f"{engine}_s"])
        rates.append((f"two cores, {name}", rate, 2))
    shared = [row for part, row in rows.items() if part.startswith("gpu")]
    number = {1: "one process", 4: "four processes", 12: "twelve processes"}
    rates += [(f"one {row['device']}, {number[row['workers']]}", row["rate"], 0) for row in shared]
    cells = [
        (what, f"{rate:,.0f}", f"{1e6 / rate:,.0f}", f"{1e6 / rate * cores / 3600:.2f}" if cores else "")
        for what, rate, cores in rates
    ]
    columns = ("on", "series per second", "seconds per million", "core-hours per million")
    lines = [of_commits(columns, cells, list(rows.values())), ""]
    lines += [f"- {fact}" for part, row in rows.items() if (fact := scale_fact(part, row))]
    if one:
        lines.append(
            f"- **Of the time of one core**, {percent(one['explain_share'])} is `explain`; the rest reads and writes."
        )
    if one and two:
        lines.append(
            f"- **Starting processes** counts where there are few series: for {one['queries']:,}, two processes take "
            f"{two['two_s']:.0f} s and one takes {two['one_s']:.0f} s, {two['gain']:.2f} times as much."
        )
    if one and (driver := rows.get("driver")):
        shard = 838 * one["core_s"] / one["queries"]
        lines += [
            f"- **One driver** hands out {driver['per_second']:,.0f} pieces of work per second on Ray. A shard takes a "
            f"core {shard:.1f} s, so that one driver keeps about {driver['per_second'] * shard:,.0f} cores busy."
        ]
    if one:
        lines += ["", archive_table(one, max(row["rate"] for row in shared))]
    return "\n".join(lines)


def archive_table(row: dict[str, Any], gpu_rate: float) -> str:
    """Return what 10⁸ series take, on a core by a measured row, and on a GPU."""
    hours = 1e8 / row["rate"] / 3600
    cells = (
        ("core-hours", f"{hours:,.0f}"),
        ("minutes on 10 nodes of 16 cores, if it were linear so far", f"{60 * hours / 160:,.0f}"),
        ("hours on one H200, from Parquet to Parquet", f"{1e8 / gpu_rate / 3600:,.1f}"),
        ("series on disk", f"{row['bytes_in'] / 1e4:,.2f} TB"),
        ("answers on disk", f"{row['bytes_out'] / 1e4:,.2f} TB"),
        ("shards", f"{1e8 / 838:,.0f}"),
    )
    return Table("", ("10⁸ series of 50 × 50, one pass each", "take"), cells, "").to_markdown()


def scale_fact(part: str, row: dict[str, Any]) -> str:
    """Return a measured fact in words."""
    if part == "overhead":
        local, ray = (" and ".join(f"{s:.0f}" for s in row[f"{name}_s"]) for name in ("local", "ray"))
        return (
            f"**Ray against processes** on the same two cores, {row['queries']:,} series, in turn: {local} s by "
            f"processes, {ray} s by Ray, {100 * (row['ratio'] - 1):+.0f} %; {same_bytes(row)} ({row['machine']})."
        )
    if part == "three nodes, one killed":
        driver, worker = ("{} and {} MiB".format(*row[f"{name}_mib"]) for name in ("driver", "worker"))
        return (
            f"**Three nodes of Ray, one killed half-way**, {row['queries']:,} series: {row['lost']} lost, "
            f"{row['twice']} twice, {row['errors']} errors; {same_bytes(row)}. Largest memory until a tenth was done, "
            f"and until all were: driver {driver}, a worker {worker}."
        )
    if part == "memory":
        return (
            f"**Memory in use** by one process, without what the allocator keeps for later: {row['mib'][0]} MiB after "
            f"the first tenth of {row['queries']:,} series, {row['mib'][-1]} MiB after the last."
        )
    if part == "benchmark":
        return (
            f"**A benchmark of {row['cells']} cells** on three nodes, {row['killed']} workers killed: {row['rows']} "
            f"rows, {row['errors']} errors, {row['twice']} twice."
        )
    return ""


def same_bytes(row: dict[str, Any]) -> str:
    return f"the answers are {'' if row['same_bytes'] else 'not '}the same bytes as by processes"
