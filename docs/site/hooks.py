"""What mkdocs is told about the pages, which read well without it too."""

import re
from pathlib import Path

from mkdocs.structure.files import File

import gar_keras

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(\.\./([^)#\s]+)")
# A text and what it is linked to, on this site.
LINKED = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)\)")
RESULTS = ROOT / "results" / "README.md"


def on_files(files, config):
    """Adds the files outside of docs that pages link to, such as pictures."""
    linked = {
        path
        for page in files.documentation_pages()
        for path in LINK.findall(page.content_string)
        if path != "README.md" and (ROOT / path).is_file()
    }
    text = RESULTS.read_text(encoding="utf-8")
    linked |= {
        f"results/{path}"
        for _, path in LINKED.findall(text)
        if (RESULTS.parent / path).is_file()
    }
    for path in sorted(linked):
        files.append(
            File(path, ROOT, config.site_dir, config.use_directory_urls)
        )


def on_page_markdown(markdown, page, **_):
    """Links from the site's root; the docstrings below the list of names.

    A folder of records is no page: what leads to one loses its link.
    """
    folder = Path(page.file.abs_src_path).parent
    markdown = LINKED.sub(
        lambda m: m[1] if (folder / m[2]).is_dir() else m[0], markdown
    )
    markdown = markdown.replace("](../README.md", "](README.md")
    markdown = LINK.sub(r"](\1", markdown)
    if page.file.src_uri != "api.md":
        return markdown
    names = (
        f"::: {getattr(gar_keras, name).__module__}.{name}\n    options:\n"
        f"      heading: {name}"
        for name in sorted([*gar_keras.__all__, "GARClassifier"])
    )
    return "\n\n".join([markdown, *names])
