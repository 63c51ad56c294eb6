"""A study from a folder's records, with the reference's beside it."""

from pathlib import Path

from gar_keras.experiments import folders
from gar_keras.experiments import records as record_files
from gar_keras.utils import files, terminal


def reference_beside(results):
    """The records of the reference; none if `results` is the reference."""
    if folders.is_reference(results) or folders.reference() is None:
        return ()
    return record_files.read_all(folders.reference())


def show_beside_reference(study, records, results, table, markdown):
    """Prints a study and writes its Markdown.

    Below that of a user's folder, the reference's.

    Args:
        study: A `gar_keras.experiments.studies.Study`.
        records: The records to print.
        results: Folder of the records, where `study_*.md` goes.
        table: Function of a title, the study, records and their folder that
            returns what is printed.
        markdown: Function of the study, records and their folder that returns
            the text of the file; empty if none of the study has been run.
    """
    console = terminal.console()
    console.print(table(study.title, study, records, results))
    reference = reference_beside(results)
    if markdown(study, reference, folders.reference()):
        title = f"Reference: {study.title}"
        console.print(table(title, study, reference, folders.reference()))
    content = markdown(study, record_files.read_all(results), results)
    if content:
        path = Path(results) / f"study_{study.name}.md"
        files.write_atomically(path, lambda file: file.write(content))
        console.print(f"Written: {path}")
