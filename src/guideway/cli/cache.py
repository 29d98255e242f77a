"""`guideway cache`: shows, verifies and clears the disk cache (`disk.py`)."""

from __future__ import annotations

import datetime
from typing import Annotated

import typer

from guideway import disk
from guideway.errors import CacheError

__all__ = ["app"]

app = typer.Typer(help="The compile cache on disk: show, verify, clear.", no_args_is_help=True)


def _cache() -> disk.DiskCache:
    found = disk.cache()
    if found is None:
        raise CacheError("there is no cache on disk: GUIDEWAY_CACHE_DIR is empty, or GUIDEWAY_CACHE is 0")
    return found


@app.command()
def show(
    files: Annotated[bool, typer.Option("--files", help="List every entry, least recently used first.")] = False,
) -> None:
    """Show the location of the cache, and its entries and bytes by kind."""
    found = _cache()
    entries = found.entries()
    used = sum(entry.size for entry in entries)
    typer.echo(f"{found.root}: {len(entries)} entries, {used:,} of {found.budget_bytes:,} bytes")
    for kind in sorted({entry.kind for entry in entries}):
        sizes = [entry.size for entry in entries if entry.kind == kind]
        typer.echo(f"  {kind}: {len(sizes)} entries, {sum(sizes):,} bytes")
    for entry in entries if files else ():
        used_at = datetime.datetime.fromtimestamp(entry.used).isoformat(" ", "seconds")
        typer.echo(f"{used_at}  {entry.size:>12,}  {entry.kind}  {entry.key}")


@app.command()
def verify() -> None:
    """Check every entry. Damaged ones are removed (exit code 1); they are computed again when needed."""
    whole, damaged = _cache().verify()
    typer.echo(f"{whole} entries are valid, {len(damaged)} were damaged and removed")
    for name in damaged:
        typer.echo(f"  {name}")
    if damaged:
        raise typer.Exit(1)


@app.command()
def clear() -> None:
    """Remove all entries, also those of other versions of the cache format, and temporary files of the cache.

    Other files in the folder are kept.
    """
    found = _cache()
    typer.echo(f"{found.root}: {found.clear()} entries removed")
