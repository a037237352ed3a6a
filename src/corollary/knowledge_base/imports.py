"""Find the documents that `owl:imports` name; the network is used only if a caller asks for it.

They are looked for in the import map, then in catalogs (`catalog-v001.xml`, as Protégé writes them)
beside the importing files, then among the other files beside these: by the IRI of their ontology,
or by the name that ends the imported IRI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import numpy as np

from corollary.core.dictionary import Dictionary
from corollary.core.log import LOGGER
from corollary.errors import UNREADABLE, CorollaryError, InvalidInput, OperationFailed, require_type
from corollary.rdf.files import format_of, opened
from corollary.rdf.triples import Triples
from corollary.rdf.vocabulary import IMPORTS

CATALOG = "catalog-v001.xml"
_HEAD = 1 << 16  # bytes of a file that are searched for the IRI of its ontology
_BESIDE = 500  # files of a folder that are looked at
_REMOTE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+://")
_ONTOLOGY = re.compile(
    r"<(?:\w+:)?Ontology\b[^>]*?\b(?:about|ontologyIRI)\s*=\s*[\"']([^\"']+)[\"']"
    r"|\bOntology\s*[(:]\s*<([^<>]+)>"
    r"|<([^<>\s]+)>\s*(?:a|rdf:type|<[^<>]*#type>)\s+(?:owl:Ontology\b|<[^<>]*owl#Ontology>)"
)

ImportMap = Mapping[str, str | Path]


class Imports:
    """Resolves the imports of one load."""

    def __init__(self, import_map: ImportMap | None = None, *, fetches: bool = False) -> None:
        require_type(import_map or {}, Mapping, "an import map", "a dictionary from IRIs to paths")
        self._map = {iri: Path(path) for iri, path in (import_map or {}).items()}
        self._folders: dict[Path, dict[str, Path]] = {}
        self.resolved: set[str] = set()
        self._fetches = fetches
        self._folders_of_web = ExitStack()
        self._asked_for: set[str] = set()

    def close(self) -> None:
        """Delete the documents that were fetched."""
        self._folders_of_web.close()

    def documents(
        self, named: Sequence[Path], imported: Callable[[], Iterable[str]]
    ) -> Iterator[list[Path]]:
        """Yield the documents to read next, until none imports another one.

        `imported` returns the IRIs that the documents read so far import.
        """
        known = {path.resolve() for path in named}
        pending = list(named)
        while pending:
            iris = [iri for iri in imported() if iri not in self.resolved]
            found = dict.fromkeys(path.resolve() for path in self.find(iris, [*named, *known]))
            pending = [path for path in found if path not in known]
            known.update(pending)
            if pending:
                yield pending

    def find(self, imported: Iterable[str], beside: Iterable[Path]) -> list[Path]:
        """List the files of imported IRIs that are found; `resolved` collects the IRIs."""
        folders = dict.fromkeys(path.resolve().parent for path in beside)
        found = []
        for iri in imported:
            if iri in self.resolved:
                continue
            path = self._map.get(iri) or next(
                (known[iri] for known in map(self._known, folders) if iri in known),
                None,
            )
            if path is None:
                path = next(filter(None, (self._named(iri, folder) for folder in folders)), None)
            if path is None and self._fetches and iri not in self._asked_for:
                path = self._fetch(iri)
            if path is not None:
                if not path.exists():
                    raise InvalidInput(
                        "E301", f"there is no file {path} for {iri}", UNREADABLE, file=str(path)
                    )
                self.resolved.add(iri)
                found.append(path)
        return found

    def _fetch(self, iri: str) -> Path | None:
        """Download a document; None, which is a warning, if the web does not have it."""
        from corollary.knowledge_base.remote_files import download  # loads HTTP

        self._asked_for.add(iri)
        if not iri.startswith(("http://", "https://")):
            return None
        folder = TemporaryDirectory(prefix="corollary-import-")
        try:
            return download(iri, Path(self._folders_of_web.enter_context(folder)))
        except OperationFailed as error:
            LOGGER.warning("%s", error.message)
            return None

    def _known(self, folder: Path) -> dict[str, Path]:
        """The documents of a folder by IRI; its catalog comes first."""
        if folder not in self._folders:
            known = {iri: path for path in _beside(folder) for iri in ontologies_in(path)}
            if (catalog := folder / CATALOG).is_file():
                known |= read_catalog(catalog)
            self._folders[folder] = known
        return self._folders[folder]

    def _named(self, iri: str, folder: Path) -> Path | None:
        """The file whose name ends the IRI, with or without its suffix."""
        name = unquote(urlsplit(iri).path).rstrip("/").rpartition("/")[2]
        candidates = (p for p in _beside(folder) if name and (p.name == name or p.stem == name))
        return next(candidates, None)


def _beside(folder: Path) -> Iterator[Path]:
    paths = sorted(folder.iterdir())[:_BESIDE] if folder.is_dir() else []
    return (path for path in paths if format_of(path) is not None and path.is_file())


def ontologies_in(path: Path) -> set[str]:
    """Find the IRIs of the ontologies that a file begins with.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pets.ttl"
    >>> _ = file.write_text("<http://example.org/pets> a owl:Ontology .")
    >>> ontologies_in(file)
    {'http://example.org/pets'}
    """
    try:
        with opened(path) as stream:
            text = b""
            while len(text) < _HEAD and (piece := stream.read(_HEAD)):
                text += piece
    except CorollaryError:
        return set()  # a file that nothing needs may be damaged
    found = _ONTOLOGY.findall(text[:_HEAD].decode(errors="replace"))
    return {iri for groups in found for iri in groups if iri}


def imported_by(triples: Triples, dictionary: Dictionary) -> list[str]:
    """The IRIs that documents import.

    >>> dictionary = Dictionary()
    >>> imported_by(Triples.of(np.zeros((0, 3), np.uint32)), dictionary)
    []
    """
    predicate = dictionary.find(IMPORTS)
    if predicate is None:
        return []
    objects = np.unique(triples.object[triples.predicate == predicate])
    return [text[1:-1] for text in dictionary.texts(objects).to_pylist() if text.startswith("<")]


def read_catalog(path: Path) -> dict[str, Path]:
    """Read the local documents of an XML catalog by IRI.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "catalog-v001.xml"
    >>> _ = file.write_text('<catalog><uri name="urn:a" uri="a.ttl"/></catalog>')
    >>> [path.name for path in read_catalog(file).values()]
    ['a.ttl']
    """
    try:
        data = path.read_bytes()
        if b"<!ENTITY" in data.upper():
            raise InvalidInput(
                "E323", f"the catalog {path} declares an entity", "leave it out", file=str(path)
            )
        root = ElementTree.fromstring(data)
    except OSError as error:
        raise InvalidInput(
            "E301", f"cannot read {path}: {error.strerror}", UNREADABLE, file=str(path)
        ) from None
    except ElementTree.ParseError as error:
        line, column = error.position
        raise InvalidInput(
            "E362",
            f"{path} is no XML catalog: {error.msg.partition(':')[0]}",
            "correct it, or delete it",
            file=str(path),
            line=line,
            column=column + 1,
        ) from None
    found: dict[str, Path] = {}
    for element in root.iter():
        if str(element.tag).rpartition("}")[2] != "uri":
            continue
        name, uri = element.get("name"), element.get("uri")
        if name and uri and not _REMOTE.match(uri):
            local = unquote(urlsplit(uri).path if uri.startswith("file:") else uri)
            found.setdefault(name, path.parent / local)
    return found


def import_map_of(options: Iterable[str]) -> dict[str, str | Path]:
    """Read the values of `--import-map`: `IRI=FILE`, or a catalog.

    >>> import_map_of(["http://example.org/pets=pets.ttl"])
    {'http://example.org/pets': 'pets.ttl'}
    """
    found: dict[str, str | Path] = {}
    for option in options:
        iri, equals, file = option.rpartition("=")
        if equals and iri and file:
            found[iri] = file
        else:
            found |= read_catalog(Path(option))
    return found
