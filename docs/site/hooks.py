"""Hooks of MkDocs: pages that lie in the root of the repository, and results and examples that pages link to.

The README is the first page, and the changelog, the notes for contributors and the security policy are pages too: each
is written once. Links between them are rewritten to the places they have in the site.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
RESULTS = "results/reproduction"
EXAMPLES = "examples"
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )(?!https?:|mailto:|#)([^)#\s]+)", re.MULTILINE)  # in the text, or by a name


def on_files(files: Files, *, config: Any) -> Files:
    """Add what lies outside of ``docs``."""
    for source, page in PAGES.items():
        text = LINK.sub(lambda link: link[1] + _from_root(link[2]), (ROOT / source).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    results = (file for file in (ROOT / RESULTS).rglob("*") if file.suffix in (".png", ".csv"))
    examples = (*(ROOT / EXAMPLES).glob("*.py"), *(ROOT / EXAMPLES).glob("notebooks/*.ipynb"))
    for file in sorted((*results, *examples)):
        files.append(File.generated(config, file.relative_to(ROOT).as_posix(), abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, **given: Any) -> str:
    """Point links to stored results and to examples into the site."""
    return markdown.replace(f"](../{RESULTS}/", f"]({RESULTS}/").replace(f"](../../{EXAMPLES}/", f"](../{EXAMPLES}/")


def on_post_page(output: str, **given: Any) -> str:
    """Name the dialog of the search, which the theme leaves without a name for screen readers."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def _from_root(target: str) -> str:
    """Return where a link of a file in the root leads to in the site."""
    inside = PurePosixPath(target)
    if target in PAGES:
        return PAGES[target]
    return inside.relative_to("docs").as_posix() if inside.parts[0] == "docs" else target
