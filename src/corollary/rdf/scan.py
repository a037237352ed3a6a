"""Compiled scanners that bound the work a document causes in the parser.

The parser library limits neither nesting nor the expansion of short names. Each scanner is a small
lexer for the structure of one syntax that runs ahead of the parser, byte by byte: it keeps its
state across blocks and stops at the first byte that exceeds a limit. It does not check
well-formedness.

A scanner takes a block and its state, a vector of integers that starts as zeros, and returns 0 or
the number of a limit (`NESTING`, …).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from corollary.core.hashing import Bytes
from corollary.core.jit import compiled

MAX_NESTING = 1000  # Turtle, TriG and RDF/XML
MAX_NESTING_JSON = 100  # the memory of the JSON-LD parser grows with the square of the depth
MAX_NAMESPACE = 4096  # bytes of a base IRI or the IRI of a prefix
MAX_ATTRIBUTES = 1000  # of an XML element; the parser compares each with all others
MAX_CONTEXTS = 16  # nested JSON-LD contexts; each copies the enclosing one
MAX_CONTEXT = 512 << 10  # bytes of a JSON-LD context
MAX_CONTEXT_WORK = 1 << 34  # bytes of the largest context × objects, if there is more than one
MAX_TOKEN = 16 << 20  # bytes of an XML text, tag or comment
MAX_EXPANSION = 100  # bytes that entities may add for each byte of the document,
EXPANSION_FROM = 64 << 20  # from this many bytes on

NESTING, NAMESPACE, ATTRIBUTES, CONTEXTS, CONTEXT, CONTEXT_WORK, TOKEN, EXPANSION = range(1, 9)

State = npt.NDArray[np.int64]
SIZE = 256  # of a state

# Turtle: the mode, the nesting, and the last bytes.
_MODE, _DEPTH, _ANGLES, _QUOTE, _RUN, _LENGTH, _DECLARES, _LAST = range(8)
(_NORMAL, _LESS, _IRI, _COMMENT, _OPEN1, _OPEN2, _SHORT, _LONG, _ESCAPED, _SKIP, _LONG_ESCAPED) = (
    range(11)
)
_BASE = int.from_bytes(b"base", "big")


def new_state() -> State:
    """Create the state at the start of a document."""
    return np.zeros(SIZE, np.int64)


@compiled
def scan_turtle(data: Bytes, state: State) -> int:
    """Scan Turtle and TriG for nested brackets and triple terms, and long namespaces."""
    mode, depth, angles = state[_MODE], state[_DEPTH], state[_ANGLES]
    quote, run, length = state[_QUOTE], state[_RUN], state[_LENGTH]
    declares, last = state[_DECLARES], state[_LAST]
    result = 0
    for at in range(len(data)):
        c = np.int64(data[at])
        if mode == _IRI:
            if c == 62 or c <= 32:  # > or a blank, which no IRI contains
                mode = _NORMAL
                last = 62
            else:
                length += 1
                if declares and length > MAX_NAMESPACE:
                    result = NAMESPACE
                    break
            continue
        if mode == _SHORT:
            if c == quote or c == 10 or c == 13:
                mode = _NORMAL
            elif c == 92:
                mode = _ESCAPED
            continue
        if mode == _LONG:
            if c == quote:
                run += 1
                if run == 3:
                    mode = _NORMAL
            else:
                run = 0
                if c == 92:
                    mode = _LONG_ESCAPED
            continue
        if mode == _COMMENT:
            if c == 10 or c == 13:
                mode = _NORMAL
            continue
        if mode == _ESCAPED:
            mode = _SHORT
            continue
        if mode == _LONG_ESCAPED:
            mode = _LONG
            continue
        if mode == _SKIP:
            mode = _NORMAL
            continue
        if mode == _OPEN1:
            if c == quote:
                mode = _OPEN2
            elif c == 92:
                mode = _ESCAPED
            elif c == 10 or c == 13:
                mode = _NORMAL
            else:
                mode = _SHORT
            continue
        if mode == _OPEN2:
            if c == quote:
                mode = _LONG
                run = 0
                continue
            mode = _NORMAL  # the string was empty
        if mode == _LESS:
            if c == 60:  # << of a triple term or a reified triple
                angles += 2
                mode = _NORMAL
                if angles > 2 * MAX_NESTING:
                    result = NESTING
                    break
                continue
            mode = _NORMAL
            if c != 62 and c > 32:
                mode = _IRI
                length = 1
            continue
        if c == 60:
            mode = _LESS
            before = last >> 8 if (last & 255) == 32 else last
            first = (before >> 32) & 255  # @base, or BASE after anything that ends a statement
            declares = (before & 255) == 58 or (
                (before & 0xFFFFFFFF) == _BASE and (first <= 46 or first == 64)
            )
        elif c == 34 or c == 39:
            mode = _OPEN1
            quote = c
        elif c == 35:
            mode = _COMMENT
            continue  # `last` stays what precedes the comment
        elif c == 92:
            mode = _SKIP
        elif c == 40 or c == 91 or c == 123:
            depth += 1
            if depth > MAX_NESTING:
                result = NESTING
                break
        elif c == 41 or c == 93 or c == 125:
            depth = max(0, depth - 1)
        elif c == 62:
            angles = max(0, angles - 1)
        if c <= 32:
            if (last & 255) != 32:
                last = ((last << 8) | 32) & 0xFFFFFFFFFFFF
        else:
            if 65 <= c <= 90:
                c += 32
            last = ((last << 8) | c) & 0xFFFFFFFFFFFF
    state[_MODE], state[_DEPTH], state[_ANGLES] = mode, depth, angles
    state[_QUOTE], state[_RUN], state[_LENGTH] = quote, run, length
    state[_DECLARES], state[_LAST] = declares, last
    return result


# XML: the mode, the open elements, and the current token.
(_XMODE, _XDEPTH, _XTOKEN, _XQUOTE, _XATTRIBUTES, _XNAME, _XVALUE, _XEND, _XLAST, _XBRACKETS,
 _XBYTES, _XADDED, XML_ENTITY, _XELEMENTS) = range(14)  # fmt: skip
_TEXT, _OPENED, _TAG, _BANG, _COMMENT_, _CDATA, _DOCTYPE, _INSTRUCTION = range(8)


@compiled
def scan_xml(data: Bytes, state: State) -> int:
    """Scan RDF/XML for nested elements, attributes, long tokens, and the expansion of entities.

    `state[XML_ENTITY]` is the length of the longest entity declared so far.
    """
    mode, depth, token = state[_XMODE], state[_XDEPTH], state[_XTOKEN]
    quote, attributes, name = state[_XQUOTE], state[_XATTRIBUTES], state[_XNAME]
    value, ends, last = state[_XVALUE], state[_XEND], state[_XLAST]
    brackets, added, entity = state[_XBRACKETS], state[_XADDED], state[XML_ENTITY]
    elements = state[_XELEMENTS]
    result = 0
    for at in range(len(data)):
        c = np.int64(data[at])
        token += 1
        if c == 38 and entity and mode <= _TAG and mode != _OPENED:  # &
            token += entity
            value += entity
            added += entity
            if added > EXPANSION_FROM and added > MAX_EXPANSION * (state[_XBYTES] + at):
                result = EXPANSION
                break
        if token > MAX_TOKEN:
            result = TOKEN
            break
        if mode == _TEXT:
            if c == 60:
                mode = _OPENED
                token = 0
        elif mode == _TAG:
            if quote:
                value += 1
                if c == quote:
                    quote = name = 0
                elif name == 3 and value > MAX_NAMESPACE:  # xmlns, xmlns:…, xml:base, xml:lang
                    result = NAMESPACE
                    break
            elif c == 34 or c == 39:
                quote = c
                value = 0
                attributes += 1
                if attributes > MAX_ATTRIBUTES:
                    result = ATTRIBUTES
                    break
            elif c == 62:
                elements = 1
                if ends:
                    depth = max(0, depth - 1)
                elif last != 47:
                    depth += 1
                    if depth > MAX_NESTING:
                        result = NESTING
                        break
                mode = _TEXT
                token = 0
            elif c <= 32:
                name = 0
            elif name >= 0 and name < 3:
                expected = 120 if name == 0 else 109 if name == 1 else 108  # x, m, l
                name = name + 1 if c == expected else -1
            last = c
        elif mode == _OPENED:
            last = c
            if c == 33:
                mode = _BANG
                brackets = 0
            elif c == 63:
                mode = _INSTRUCTION
            elif c == 62:
                mode = _TEXT
            else:
                mode = _TAG
                quote = attributes = 0
                name = -1
                ends = 1 if c == 47 else 0
        elif mode == _BANG:  # the first byte after <!
            if c == 45:
                mode = _COMMENT_
                last = 0
            elif c == 91:
                mode = _CDATA
                last = 0
            elif c == 62:
                mode = _TEXT
                token = 0
            else:
                mode = _DOCTYPE
                brackets = 1
        elif mode == _DOCTYPE:
            if c == 60:
                brackets += 1
            elif c == 62:
                brackets -= 1
                if brackets == 0:
                    mode = _TEXT
                    token = 0
        else:
            # `last` holds the two previous bytes: -->, ]]> and ?> end these.
            if c == 62 and (
                (mode == _COMMENT_ and last == 0x2D2D)
                or (mode == _CDATA and last == 0x5D5D)
                or (mode == _INSTRUCTION and (last & 255) == 63)
            ):
                mode = _TEXT
                token = 0
            last = ((last << 8) | c) & 0xFFFF
    state[_XMODE], state[_XDEPTH], state[_XTOKEN] = mode, depth, token
    state[_XQUOTE], state[_XATTRIBUTES], state[_XNAME] = quote, attributes, name
    state[_XVALUE], state[_XEND], state[_XLAST] = value, ends, last
    state[_XBRACKETS], state[_XADDED], state[_XELEMENTS] = brackets, added, elements
    state[_XBYTES] += len(data)
    return result


def is_whole_xml(state: State) -> bool:
    """Whether an element was read, and everything that was opened is closed."""
    return bool(state[_XELEMENTS] and state[_XMODE] == _TEXT and not state[_XDEPTH])


# JSON: strings, open brackets, and the contexts among them.
(_JMODE, _JDEPTH, _JLENGTH, _JMATCHES, _JESCAPED, _JKEY, _JACTIVE, _JINSIDE, _JBYTES, _JLARGEST,
 _JCONTEXTS, _JOBJECTS) = range(12)  # fmt: skip
_JSTACK = 64  # start of the flags: whether the object at a depth has a context
_PLAIN, _STRING, _BACKSLASH = range(3)
_CONTEXT_KEY = np.frombuffer(b"@context", np.uint8)


@compiled
def scan_json(data: Bytes, state: State, key: Bytes) -> int:
    """Scan JSON-LD for nested objects and arrays, and contexts, which objects copy.

    A key with an escape may be @context too.
    """
    mode, depth, length = state[_JMODE], state[_JDEPTH], state[_JLENGTH]
    matches, escaped, is_key = state[_JMATCHES], state[_JESCAPED], state[_JKEY]
    active, inside, size = state[_JACTIVE], state[_JINSIDE], state[_JBYTES]
    largest, contexts, objects = state[_JLARGEST], state[_JCONTEXTS], state[_JOBJECTS]
    result = 0
    for at in range(len(data)):
        c = np.int64(data[at])
        if inside:
            size += 1
            if size > MAX_CONTEXT:
                result = CONTEXT
                break
            largest = max(largest, size)
        if mode == _STRING:
            if c == 34:
                mode = _PLAIN
                is_key = 1 if escaped or (matches and length == 8) else 0
            else:
                if c == 92:
                    mode = _BACKSLASH
                    escaped = 1
                elif matches and (length >= 8 or c != key[length]):
                    matches = 0
                length += 1
                if inside and length > MAX_NAMESPACE:
                    result = NAMESPACE
                    break
            continue
        if mode == _BACKSLASH:
            mode = _STRING
            length += 1
            continue
        if c == 34:
            mode = _STRING
            length = escaped = 0
            matches = 1
        elif c == 58:
            if is_key and depth > 0:
                contexts += 1
                if not state[_JSTACK + depth]:
                    state[_JSTACK + depth] = 1
                    active += 1
                if active > MAX_CONTEXTS:
                    result = CONTEXTS
                    break
                if not inside:
                    inside = depth
                    size = 0
            is_key = 0
        elif c == 123 or c == 91:
            depth += 1
            if depth > MAX_NESTING_JSON:
                result = NESTING
                break
            state[_JSTACK + depth] = 0
            if c == 123:
                objects += 1
                if contexts > 1 and objects * largest > MAX_CONTEXT_WORK:
                    result = CONTEXT_WORK
                    break
        elif c == 125 or c == 93:
            if inside == depth:
                inside = 0
            if depth > 0:
                active -= state[_JSTACK + depth]
                depth -= 1
        elif c == 44 and inside == depth:
            inside = 0
    state[_JMODE], state[_JDEPTH], state[_JLENGTH] = mode, depth, length
    state[_JMATCHES], state[_JESCAPED], state[_JKEY] = matches, escaped, is_key
    state[_JACTIVE], state[_JINSIDE], state[_JBYTES] = active, inside, size
    state[_JLARGEST], state[_JCONTEXTS], state[_JOBJECTS] = largest, contexts, objects
    return result


def scan_json_ld(data: Bytes, state: State) -> int:
    """Call `scan_json` with its constant argument."""
    return int(scan_json(data, state, _CONTEXT_KEY))


def mistake(state: State) -> None:
    """Reset the nesting in Turtle: after an error the parser starts over."""
    state[_DEPTH] = state[_ANGLES] = 0
