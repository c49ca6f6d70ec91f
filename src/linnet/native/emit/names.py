"""Names and text from Linnet sources, made safe inside generated C++."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from linnet.diagnostics.escape import escape_text
from linnet.native.support import header_texts

_KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t "
    "char16_t char32_t class compl concept const consteval constexpr constinit const_cast "
    "continue co_await co_return co_yield decltype default delete do double dynamic_cast else "
    "enum explicit export extern false float for friend goto if import inline int long module "
    "mutable namespace new noexcept not not_eq nullptr operator or or_eq override final "
    "private protected public register reinterpret_cast requires return short signed sizeof "
    "static static_assert static_cast struct switch template this thread_local throw true try "
    "typedef typeid typename union unsigned using virtual void volatile wchar_t while xor "
    "xor_eq typeof restrict main context block arena pointers inputs outputs "
    "sizes params states message capacity model size_t ptrdiff_t int8_t int16_t int32_t "
    "int64_t uint8_t uint16_t uint32_t uint64_t std linnet held Held linnet_open linnet_close "
    "linnet_bind linnet_run linnet_profile operator each fill".split()
)
# Macros in lower case of the C and C++ headers that generated code includes, on Linux, macOS, the
# BSDs and Windows: a name that is a macro's means something else wherever it stands. Names of the
# forms that other macros have, above all capitals, are changed by `safe`.
_MACROS = frozenset(
    "alloca assert errno environ offsetof static_assert stderr stdin stdout strdupa strndupa "
    "math_errhandling signbit isnan isinf isfinite isnormal issubnormal iszero issignaling "
    "iscanonical iseqsig isgreater isgreaterequal isless islessequal islessgreater isunordered "
    "fpclassify pthread_cleanup_push pthread_cleanup_pop pthread_cleanup_push_defer_np "
    "pthread_cleanup_pop_restore_np sched_priority be16toh be32toh be64toh htobe16 htobe32 htobe64 "
    "htole16 htole32 htole64 le16toh le32toh le64toh htons htonl htonll ntohs ntohl ntohll "
    "major minor makedev sigmask sa_handler sa_sigaction sv_onstack si_value w_termsig w_coredump "
    "w_retcode w_stopsig w_stopval clearerr_unlocked feof_unlocked ferror_unlocked "
    "fileno_unlocked getc_unlocked putc_unlocked getc putc setjmp sigsetjmp va_arg va_copy va_end "
    "va_start linux unix i386".split()
)
_MACRO = re.compile(
    r"L_[a-z]\w*|P_tmpdir|M_[A-Z0-9_]+(?:l|f|f[0-9]+x?)|(?:PRI|SCN)[a-z]\w*", re.ASCII
)
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_CALLED = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)\s*[(<]", re.ASCII)
_NAMED = re.compile(r"\b(?:struct|class|using|#define)\s+([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)


@cache
def reserved() -> frozenset[str]:
    """Every word that generated code's own part may use: keywords and the support header's."""
    lines = [line for text in header_texts() for line in text.splitlines()]
    code = "\n".join(line.partition("//")[0] for line in lines)
    return _KEYWORDS | _MACROS | frozenset((*_CALLED.findall(code), *_NAMED.findall(code)))


def safe(name: str) -> str:
    """`name` as an identifier that no macro or rule of C++ claims."""
    base = re.sub(r"[^A-Za-z0-9_]", "_", name)
    base = re.sub(r"__+", "_", base).strip("_")
    if not _IDENTIFIER.fullmatch(base):
        base = f"value_{base}" if base else "value"
    if len(base) > 48:
        base = base[:48].rstrip("_")
    return _no_macro(base)


def _no_macro(name: str) -> str:
    """A name that by its form may be a macro's (mostly they are in capitals), changed."""
    capitals = len(name) > 1 and name.isupper()
    return f"{name}_" if capitals or _MACRO.fullmatch(name) else name


class Names:
    """Hands out names that are unique in one scope. `outer` are names that the scope can see."""

    def __init__(self, outer: Iterable[str] = ()) -> None:
        self._taken = set(outer)
        self._next: dict[str, int] = {}

    def fresh(self, wanted: str, beside: Names | None = None) -> str:
        """`wanted`, or it with a number when it is taken or cannot be used. The name is taken in
        `beside`, a scope inside this one, too."""
        others = beside._taken if beside is not None else set()
        name = base = safe(wanted)
        stem = base.rstrip("_")
        while name in self._taken or name in reserved() or name in others:
            number = self._next.get(stem, 2)
            self._next[stem] = number + 1
            name = _no_macro(f"{stem}_{number}")  # `M_PI_2` is one again
        self._taken.add(name)
        others.add(name)
        return name

    def inner(self) -> Names:
        """A scope inside this one; what it hands out stays free outside."""
        return Names(self._taken)


def comment(text: str, limit: int = 160) -> str:
    """`text` for the rest of a `//` comment: on one line, with no backslash at its end."""
    shown = escape_text(text, limit)
    return f"{shown}." if shown.endswith("\\") else shown


def quoted(text: str) -> str:
    """A C++ string literal of ASCII letters, whatever `text` holds."""
    parts = []
    for byte in text.encode("utf-8", "replace"):
        char = chr(byte)
        plain = char.isascii() and char.isprintable() and char not in '"\\?%'
        parts.append(char if plain else f"\\{byte:03o}")
    return '"' + "".join(parts) + '"'
