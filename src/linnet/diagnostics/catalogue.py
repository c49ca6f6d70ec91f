"""Every diagnostic code and what it means, in one table that docs and tests read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """A code and, in a few words, when it is reported."""

    code: str
    meaning: str

    @property
    def area(self) -> str:
        """The heading the code belongs under."""
        return _AREAS[self.code[:2]]


_AREAS = {
    "E1": "lexing, parsing, names and modules",
    "E2": "types and shapes",
    "E3": "index notation",
    "E4": "block members",
    "E5": "packages, bindings, weights and models",
    "W1": "lints",
}

_TABLE = (
    ("E1001", "a character that can start no token, or bytes that are not UTF-8 text"),
    ("E1002", "a block comment that is never closed"),
    ("E1003", "a string that is not closed, or an escape that does not exist"),
    ("E1004", "a reserved word used as a name"),
    ("E1005", "a number that is malformed or out of range"),
    ("E1101", "a token that cannot stand here"),
    ("E1102", "a file that does not start with its `module` line"),
    ("E1103", "syntax reserved for later versions, or nesting deeper than the limit"),
    ("E1201", "a name that nothing declares"),
    ("E1202", "a module that does not exist or cannot be read"),
    ("E1203", "an item or method that is not `pub` used from another module"),
    ("E1204", "two items of one name in a module or block"),
    ("E1205", "two members, parameters, generics or fields of one name"),
    ("E1206", "modules that import each other in a cycle"),
    ("E1207", "a declaration that takes a name of the prelude"),
    ("E1208", "a name of the wrong kind, such as a function where a type is needed"),
    ("E2101", "a value of another type than its place asks for"),
    ("E2102", "wrong arguments: too many, too few, or an unknown name"),
    ("E2103", "two dtypes that differ where they must be one"),
    ("E2104", "an operator or function that this type does not have"),
    ("E2105", "a literal that does not fit its dtype"),
    ("E2106", "a call of something that is not a function"),
    ("E2107", "a field or method that does not exist"),
    ("E2108", "an assignment to what is neither `var` nor `state`"),
    ("E2109", "an assignment that changes the type"),
    ("E2110", "a generic that cannot be inferred"),
    ("E2111", "wrong generic arguments"),
    ("E2112", "a dtype that its generic's kind does not allow"),
    ("E2113", "`none` where nothing says which optional it is"),
    ("E2114", "a condition that is not a scalar `bool`"),
    ("E2115", "branches whose types differ"),
    ("E2116", "`&&`, `||` or `!` on something that is not a scalar `bool`"),
    ("E2117", "a pattern that cannot match its value"),
    ("E2118", "a `match` that leaves a case out"),
    ("E2119", "recursion"),
    ("E2120", "a `return` that is missing or stands where none may"),
    ("E2121", "`static for` over something that is not static"),
    ("E2122", "a const, alias or struct defined by itself"),
    ("E2123", "something other than a compile-time integer where one is needed"),
    ("E2201", "one index, two extents"),
    ("E2202", "a tensor of another shape than its place asks for"),
    ("E2203", "a reshape whose element counts are not provably equal"),
    ("E2204", "the wrong number of indices"),
    ("E2205", "a divisor that is not provably positive"),
    ("E2206", "a `where` condition that is not proved at a call or `sub`"),
    ("E2207", "a broadcast that is not proved"),
    ("E2208", "a dimension that is provably negative"),
    ("E2209", "a slice bound that is not proved to be in range"),
    ("E2210", "an axis that does not exist"),
    ("E3101", "an index that no output and no reduction binds"),
    ("E3102", "a reduction index that stands at no axis"),
    ("E3103", "an output index that stands at no axis, so it has no extent"),
    ("E3104", "an expression that index notation does not allow"),
    ("E3105", "an index listed twice"),
    ("E3106", "a pack where a plain index is needed, or the reverse"),
    ("E4101", "a member of a type it cannot have"),
    ("E4102", "a value given to a `param`: its values come from a checkpoint"),
    ("E5001", "a `linnet.toml` that is missing or broken"),
    ("E5002", "a weight file or folder that cannot be opened, or of a kind that is not read"),
    ("E5003", "a weight file that is truncated, damaged or hostile"),
    ("E5004", "a shard index that is wrong, or leads out of its folder"),
    ("E5005", "a bindings file that is malformed"),
    ("E5006", "a binding of a parameter that the model does not have"),
    ("E5007", "a parameter without a binding"),
    ("E5008", "a checkpoint that lacks a tensor which a parameter is bound to"),
    ("E5009", "a tensor whose shape differs from its parameter's"),
    ("E5010", "a tensor whose dtype differs from its parameter's"),
    ("E5011", "a GGUF file whose architecture or quantisation is not supported"),
    ("E5012", "a pickle file, which is never read"),
    ("E5013", "a value of a weights mapping that is no array"),
    ("E5020", "a `nest.toml` that is missing or broken"),
    ("E5021", "a model card that does not exist"),
    ("E5022", "weights or a card that could not be fetched"),
    ("E5023", "fetched data that is not what the card says it is"),
    ("E5024", "a tokenizer that is missing, damaged or of an unknown kind"),
    ("E5025", "a chat template that failed or asked for too much"),
    ("E5026", "a prompt or a sampling setting that cannot be used"),
    ("E5027", "a backend that does not exist or is not installed"),
    ("E5028", "a model folder that lacks something it must have"),
    ("E5301", "a computation that a backend has no exact way to do"),
    ("W1001", "an import that nothing uses"),
    ("W1002", "a local that nothing uses"),
    ("W1003", "a member that nothing uses"),
)

CATALOGUE: dict[str, CodeInfo] = {code: CodeInfo(code, meaning) for code, meaning in _TABLE}
