"""Types, generic arguments, and where `<` opens a list of them."""

from __future__ import annotations

from linnet.diagnostics.span import Span
from linnet.syntax.cursor import Cursor, Failed
from linnet.syntax.tree import (
    ArrayTypeExpr,
    ErrorExpr,
    ErrorType,
    Expr,
    Field,
    GenericArg,
    NamedType,
    NameExpr,
    OptionalTypeExpr,
    PackExpr,
    Path,
    ShapeLit,
    TensorTypeExpr,
    Tuple,
    TupleTypeExpr,
    Type,
)

# What may stand after a generic argument that is a bare path, and so a type.
_AFTER_TYPE = frozenset((",", ">", ">=", ")", "]", ";", "?", "eof"))
# No generic argument list holds one of these outside brackets.
_NOT_IN_ANGLES = frozenset(
    "{ } ) ] == != <= => -> = && || : ; eof let var return static for while yield if else match in "
    "where pub const type struct enum fn op entry block param buffer state sub use module".split()
)
_TYPES = (
    NamedType,
    TensorTypeExpr,
    TupleTypeExpr,
    ArrayTypeExpr,
    OptionalTypeExpr,
    ErrorType,
)
# The level of `+` and `-`, at which the operands of `where` and dimension arithmetic are read.
ADDITIVE = 8


class TypeParser(Cursor):
    """Reads types; expressions come from the class below it."""

    angles: dict[int, int]
    brackets: dict[int, int] | None
    plain_less: bool

    def expr(self) -> Expr:
        """Any expression."""
        raise NotImplementedError

    def operators(self, floor: int, left: Expr | None = None, first: int = -1) -> Expr:
        """Operators of level `floor` and tighter, from `left` on where it is read already."""
        raise NotImplementedError

    def postfix(self, node: Expr, first: int) -> Expr:
        """Calls, subscripts and fields after `node`, which began at token `first`."""
        raise NotImplementedError

    # --- types ---

    def type_(self) -> Type:
        self.enter()
        first = self.pos
        kind = self.kinds[first]
        result: Type
        if kind == "(":
            result = self.tuple_type()
        elif kind == "[":
            result = self.array_type()
        elif kind == "name" and self.texts[first] == "Tensor" and self.kinds[first + 1] == "[":
            result = self.tensor_type()
        else:
            result = self.named_type()
        self.depth -= 1
        return self.optional(result, first)

    def optional(self, inner: Type, first: int) -> Type:
        if self.kinds[self.pos] != "?":
            return inner
        self.pos += 1
        self.grow(self.height, first)
        return OptionalTypeExpr(inner, self.since(first))

    def named_type(self) -> Type:
        first = self.pos
        path = self.path("a type")
        generics = None
        self.height = 0
        if self.kinds[self.pos] == "<":
            generics = self.generic_args()
        self.grow(self.height, first)
        return NamedType(path, generics, self.since(first))

    def tensor_type(self) -> Type:
        first = self.pos
        self.pos += 2
        dims = tuple(self.dimensions(first))
        height = self.height
        self.expect(";", " and the dtype after the dimensions")
        dtype = self.named_type()
        self.expect("]", " after the dtype")
        self.grow(max(height, self.height), first)
        if not dims:
            span = self.since(first)
            self.report("a tensor type needs at least one dimension", first, span=span)
        return TensorTypeExpr(dims, dtype, self.since(first))

    def dimensions(self, first: int) -> list[Expr]:
        dims: list[Expr] = []
        height = 0
        while self.kinds[self.pos] != ";":
            dims.append(self.item_or_pack())
            height = max(height, self.height)
            if not self.accept(","):
                break
        self.height = height
        if self.kinds[self.pos] == "]":
            help = "a tensor type is `Tensor[dimensions; dtype]`"
            raise self.unexpected("`;` and a dtype", help=help)
        return dims

    def item_or_pack(self) -> Expr:
        """An expression, or `*S`."""
        first = self.pos
        if self.kinds[first] != "*":
            return self.expr()
        self.pos += 1
        name = self.name("the name of a pack after `*`")
        self.height = 1
        return PackExpr(name, self.since(first))

    def tuple_type(self) -> Type:
        first = self.expect("(")
        items = self.listed(")", self.type_, "a type")
        self.grow(self.height, first)
        if len(items) < 2 and self.pos - first < 3:
            self.report("a tuple type has at least two types", first, span=self.since(first))
        elif len(items) == 1:
            self.report(
                "a tuple type has at least two types",
                first,
                span=self.since(first),
                help="types take no parentheses",
            )
        return TupleTypeExpr(tuple(items), self.since(first))

    def array_type(self) -> Type:
        first = self.expect("[")
        item = self.type_()
        height = self.height
        self.expect(";", " and the number of items")
        count = self.expr()
        self.expect("]", " after the number of items")
        self.grow(max(height, self.height), first)
        return ArrayTypeExpr(item, count, self.since(first))

    def type_or_error(self) -> Type:
        """A type; one that cannot be read is an `ErrorType`, and the place is not moved."""
        first, depth = self.pos, self.depth
        try:
            return self.type_()
        except Failed:
            self.depth = depth
            return ErrorType(self.since(first))

    # --- generic arguments ---

    def generic_args(self) -> tuple[GenericArg, ...]:
        """`<...>`; `height` becomes the greatest of the arguments'."""
        opening = self.expect("<")
        args: list[GenericArg] = []
        height = 0
        while not self.at_angle_end():
            args.append(self.generic_arg())
            height = max(height, self.height)
            if not self.accept(",") and not self.at_angle_end():
                raise self.unexpected(
                    "`,` or `>` after a generic argument",
                    help="put a comparison inside `<...>` in parentheses",
                )
        self.close_angle()
        self.height = height
        if not args:
            self.report("the list of generic arguments is empty", opening)
        return tuple(args)

    def generic_arg(self) -> GenericArg:
        first = self.pos
        value = self.type_or_dimension(ADDITIVE)
        return GenericArg(value, self.since(first))

    def type_or_dimension(self, floor: int) -> Type | Expr:
        """A type where the tokens parse as one, else arithmetic of level `floor` and tighter."""
        kind = self.kinds[self.pos]
        if kind == "(":
            return self.parenthesized(floor)
        if kind == "[":
            return self.bracketed(floor)
        if self.is_type_here():
            return self.type_()
        return self.operators(floor)

    def is_type_here(self) -> bool:
        """Whether a path here, generic arguments included, is a whole argument."""
        kinds, pos = self.kinds, self.pos
        if kinds[pos] not in ("name", "crate"):
            return False
        if kinds[pos + 1] == "[" and self.texts[pos] == "Tensor":
            return True
        pos += 1
        while kinds[pos] == "." and kinds[pos + 1] == "name":
            pos += 2
        if kinds[pos] == "<":
            pos = self.angle_end(pos) + 1
        return pos > 0 and kinds[pos] in _AFTER_TYPE

    def parenthesized(self, floor: int) -> Type | Expr:
        """After `(` in a generic argument: a tuple of types, or grouped arithmetic."""
        self.enter()
        first = self.pos
        self.pos += 1
        items: list[Type | Expr] = []
        heights = 0
        while self.kinds[self.pos] != ")":
            items.append(self.type_or_dimension(0))
            heights = max(heights, self.height)
            if not self.accept(",") and self.kinds[self.pos] != ")":
                raise self.unexpected("`,` or `)`")
        self.pos += 1
        self.depth -= 1
        self.height = heights
        if len(items) == 1 and self.kinds[self.pos - 2] != ",":
            return self.operators(floor, self.as_expr(items[0], first), first)
        self.grow(heights, first)
        types = tuple(item for item in items if isinstance(item, _TYPES))
        if len(types) == len(items) > 1:
            return self.optional(TupleTypeExpr(types, self.since(first)), first)
        if len(items) < 2:
            self.report("a tuple has at least two items", first, span=self.since(first))
        values = tuple(self.as_expr(item, first) for item in items)
        return self.operators(floor, Tuple(values, self.since(first)), first)

    def bracketed(self, floor: int) -> Type | Expr:
        """After `[` in a generic argument: an array type, or a shape."""
        self.enter()
        first = self.pos
        self.pos += 1
        items: list[Type | Expr] = []
        height = 0
        while self.kinds[self.pos] != "]":
            star = self.kinds[self.pos] == "*"
            items.append(self.item_or_pack() if star else self.type_or_dimension(0))
            height = max(height, self.height)
            if len(items) == 1 and self.kinds[self.pos] == ";" and isinstance(items[0], _TYPES):
                self.pos += 1
                count = self.expr()
                self.expect("]", " after the number of items")
                self.depth -= 1
                self.grow(max(height, self.height), first)
                array = ArrayTypeExpr(items[0], count, self.since(first))
                return self.optional(array, first)
            if not self.accept(",") and self.kinds[self.pos] != "]":
                raise self.unexpected("`,` or `]`")
        self.pos += 1
        self.depth -= 1
        self.grow(height, first)
        values = tuple(self.as_expr(item, first) for item in items)
        return self.operators(floor, ShapeLit(values, self.since(first)), first)

    def as_expr(self, item: Type | Expr, at: int) -> Expr:
        """An expression for what was read as a type: a path without arguments is both."""
        if not isinstance(item, _TYPES):
            return item
        if not isinstance(item, NamedType) or item.generics is not None:
            self.report("expected a dimension, found a type", at, span=item.span)
            return ErrorExpr(item.span)
        return self.path_expr(item.path)

    def path_expr(self, path: Path) -> Expr:
        first = path.parts[0]
        node: Expr = NameExpr(first, first.span)
        for part in path.parts[1:]:
            node = Field(node, part, Span(self.file, first.span.start, part.span.end))
        return node

    # --- which `<` opens a list ---

    def opens_generics(self, at: int) -> bool:
        """Whether the `<` at token `at`, after a name, opens a call's generic arguments: its
        balanced `>` is followed by `(`."""
        if self.plain_less:
            return False
        end = self.angle_end(at)
        return end >= 0 and self.kinds[end + 1] == "("

    def angle_end(self, at: int) -> int:
        """The token of the `>` that balances the `<` at `at`, or -1.

        One scan settles every `<` it meets outside brackets, and brackets are leapt over, so all
        scans of a file together are linear.
        """
        known = self.angles.get(at)
        if known is not None:
            return known
        kinds, angles = self.kinds, self.angles
        leap = self.bracket_ends()
        stack = [at]
        pos = at + 1
        while stack:
            kind = kinds[pos]
            if kind == "<":
                if pos in angles:
                    if angles[pos] < 0:
                        break
                    pos = angles[pos]
                else:
                    stack.append(pos)
            elif kind == ">" or kind == ">=":
                angles[stack.pop()] = pos
            elif kind == "(" or kind == "[":
                if pos not in leap:
                    break
                pos = leap[pos]
            elif kind in _NOT_IN_ANGLES:
                break
            pos += 1
        for start in stack:
            angles[start] = -1
        return angles[at]

    def bracket_ends(self) -> dict[int, int]:
        """For every `(` and `[` that is balanced, the token that closes it."""
        if self.brackets is None:
            self.brackets = {}
            stack: list[int] = []
            partner = {")": "(", "]": "[", "}": "{"}
            for pos, kind in enumerate(self.kinds):
                if kind in ("(", "[", "{"):
                    stack.append(pos)
                elif kind in partner:
                    if stack and self.kinds[stack[-1]] == partner[kind]:
                        opened = stack.pop()
                        self.brackets[opened] = pos
                    elif kind == "}":
                        stack.clear()
        return self.brackets
