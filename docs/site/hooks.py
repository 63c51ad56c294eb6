"""What mkdocs is told about the pages, which read well without it too."""

import os
import pydoc
import re
from html import unescape
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File
from mkdocs.structure.toc import get_toc

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RESULTS = ROOT / "results"
# A text and what it is linked to, on this site.
LINKED = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
# A heading of the list of pages, or a page in it.
LISTED = re.compile(r"^(.+):\n\n\| page |^\| \[(.+)\]\((.+\.md)\)", re.M)
# What a notebook is linked to, on this site.
FROM_NOTEBOOK = re.compile(r'href="([^":#]+)\.(?:md|ipynb)(?=["#])')
FOLDER_OF_RECORDS = re.compile(r'href="(\.\./results/[^".]+?)/?"')
# A formula of a notebook, on lines of its own or in one; what has none in it.
FORMULA = re.compile(
    r"<(pre|code|script|style)\b.*?</\1>|\$\$(.+?)\$\$|\$([^$]+)\$", re.S
)
HEADING = re.compile(r'<h(\d) id="([^"]+)">(.*?)<a class="anchor-link"', re.S)
# What users call, or write, of the classes on the page of the API.
MEMBERS = {
    "GraphActivityRegularization": (
        "coefficients",
        "class_prior",
        "set_coefficients",
        "reset_shares",
    ),
    "GraphActivityRegularizer": ("loss",),
    "GARClassifier": ("fit", "predict", "predict_proba", "score"),
    "methods.Term": (
        "loss",
        "network",
        "check",
        "setup",
        "build",
        "callbacks",
    ),
}


def on_config(config):
    """The menu: home, the pages in the order of docs/README.md, notebooks."""
    config.nav = [{"Home": "README.md"}]
    pages = []
    for heading, title, page in LISTED.findall(_read(DOCS / "README.md")):
        if heading:
            pages = []
            config.nav.append({heading: pages})
        else:
            pages.append({title.replace("`", ""): page})
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    paths = [_place_on_site(path) for path in notebooks]
    config.nav.append({"Notebooks": ["notebooks/README.md", *paths]})
    return config


# Before the plugin that shows notebooks.
@event_priority(100)
def on_files(files, config):
    """Adds the files outside of docs that pages link to, such as pictures."""
    to_read = [ROOT / "README.md", *DOCS.glob("*.md")]
    to_read += sorted((ROOT / "notebooks").glob("*.ipynb"))
    linked = set(to_read)
    while to_read:
        page = to_read.pop()
        # The README of a folder of records leads to its files, not to pages.
        if RESULTS not in page.parent.parents:
            found = set(_linked_from(page)) - linked
            linked |= found
            to_read += found
    for path in sorted(linked):
        if path != ROOT / "README.md" and DOCS not in path.parents:
            place = _place_on_site(path)
            files.append(
                File(place, ROOT, config.site_dir, config.use_directory_urls)
            )


def on_page_markdown(markdown, page, files, **_):
    """The README as home; the docstrings below the list of names."""
    path = Path(page.file.abs_src_path)
    if path.suffix == ".ipynb":
        return markdown
    # Records are found from the figures, and not among the pages.
    page.meta["search"] = {"exclude": RESULTS in path.parents}
    text = _with_links_of_site(markdown, path, page.file.src_uri, files)
    if path == DOCS / "README.md":
        readme = ROOT / "README.md"
        home = _with_links_of_site(_read(readme), readme, "README.md", files)
        return f"{home}\n#{text}"
    if path == DOCS / "api.md":
        cells = re.findall(r"^\| (`.+?) \|", markdown, re.M)
        names = re.findall(r"`([\w.]+)`", " ".join(cells))
        return "\n\n".join([text, *map(_docstring, names)])
    return text


def on_page_content(html, page, **_):
    """The links, headings and formulas of a notebook, which mkdocs leaves."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    html = FROM_NOTEBOOK.sub(r'href="\1.html', html)
    html = FOLDER_OF_RECORDS.sub(r'href="\1/index.html"', html)
    html = html.replace("README.html", "index.html")
    html = html.replace('href="../docs/', 'href="../')
    page.toc = _headings(html)
    return FORMULA.sub(_as_mathml, html)


def _read(path):
    return path.read_text(encoding="utf-8")


def _linked_from(page):
    """The files that a page leads to."""
    if page.suffix not in (".md", ".ipynb"):
        return []
    links = [link for _, link, _ in LINKED.findall(_read(page))]
    paths = [_page_or_file(page.parent / link) for link in links]
    return [path for path in paths if path.is_file()]


def _page_or_file(path):
    """What a link leads to: for a folder its README, if there is one."""
    readme = path.resolve() / "README.md"
    return readme if readme.is_file() else path.resolve()


def _place_on_site(path):
    """Where a file of the repository is on the site."""
    top = DOCS if DOCS in path.parents else ROOT
    return path.relative_to(top).as_posix()


def _with_links_of_site(text, path, page, files):
    """The text of a file with links as they are on the site.

    What leads to a record that is not there loses its link.
    """

    def on_site(match):
        shown, link, anchor = match.groups(default="")
        target = _page_or_file(path.parent / link)
        place = _place_on_site(target)
        if target.exists() and files.get_file_from_path(place) is None:
            return shown
        place = os.path.relpath(place, os.path.dirname(page))
        return f"[{shown}]({Path(place).as_posix()}{anchor})"

    return LINKED.sub(on_site, text)


def _headings(page):
    """The table of contents of a page in HTML."""
    top = []
    for level, anchor, text in HEADING.findall(page):
        found = {"level": int(level), "id": anchor, "children": []}
        found["name"] = re.sub("<.*?>", "", text)
        siblings = top
        while siblings and siblings[-1]["level"] < found["level"]:
            siblings = siblings[-1]["children"]
        siblings.append(found)
    return get_toc(top)


def _as_mathml(match):
    """A formula as browsers show it; what has none in it stays as it is."""
    _, alone, inline = match.groups()
    if alone:
        formula = convert(unescape(alone), display="block")
        return f'<span class="wide-formula">{formula}</span>'
    return convert(unescape(inline)) if inline else match[0]


def _docstring(name):
    members = MEMBERS.get(name, ())
    for member in members:
        # One that is gone stops the build.
        getattr(pydoc.locate(f"gar_keras.{name}"), member)
    return (
        f"::: gar_keras.{name}\n    options:\n      heading: gar_keras.{name}\n"
        f"      members: {list(members)}"
    )
