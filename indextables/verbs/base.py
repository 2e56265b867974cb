"""What a verb is: a frozen dataclass that is written once and called three ways.

Its fields are its parameters, with their defaults and help. ``SQL`` is its grammar (see
``verbs.grammar``), ``CLI`` its name on the command line, ``METHOD`` its name on ``Table``; all
three ways are derived from the class and none of them repeats it. ``apply`` does the work on a
``Target`` and returns a typed result, whose class has the columns of its rows, and ``MUTATES`` says
whether the protocol gate stands before it. Most verbs have no ``apply`` of their own: ``DOES``
names the function that does the work, whose parameters are the verb's fields.

The modules of this package import nothing heavy, since the command line reads them to start: what
does the work is imported in ``apply``, and ``DOES`` and ``COLUMNS`` are places, not objects.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    TypeVar,
    dataclass_transform,
    get_args,
)

from indextables.config import Config, parse_int, parse_size
from indextables.errors import ConfigError, placed
from indextables.gridview import Listing

if TYPE_CHECKING:
    import pyarrow as pa

    from indextables.log.log import TransactionLog
    from indextables.maintenance.rewrite import Runner

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V", bound=type)

REGISTRY: list[type[Verb[Any]]] = []
"""Every verb."""


class Target:
    """What a verb works on: a table (or none), its settings and the Spark session (or none)."""

    def __init__(
        self,
        path: str | None = None,
        *,
        config: Config | None = None,
        storage_options: Mapping[str, Any] | None = None,
        spark: Any = None,
        log: TransactionLog | None = None,
    ) -> None:
        self.path = path
        self.config = Config() if config is None else config
        self.storage_options = storage_options
        self.spark = spark
        self.given = log

    @classmethod
    def of(cls, log: TransactionLog) -> Target:
        """A table that is open already."""
        options = log.store.options
        return cls(log.path, config=log.config, storage_options=options, log=log)

    @cached_property
    def log(self) -> TransactionLog:
        """The table's log, opened when it is first asked for."""
        from indextables.log.log import TransactionLog

        return self.given or TransactionLog.open(
            self.path or "", storage_options=self.storage_options, config=self.config
        )

    @staticmethod
    def runner(spark: Any) -> Runner | None:
        """What runs rewrites on Spark; ``None`` where they run in this process."""
        if spark is None or not hasattr(spark, "_jsparkSession"):
            return None
        from indextables.maintenance.rewrite import run_on_spark

        return run_on_spark(spark)


class Verb(Generic[R]):
    """Base of every verb; ``R`` is what it returns."""

    SQL: ClassVar[str]
    CLI: ClassVar[str]
    METHOD: ClassVar[str]
    COLUMNS: ClassVar[str] = ""
    """Where the columns are, if the result is no class of ``maintenance`` that has them."""
    DOES: ClassVar[str] = ""
    MUTATES: ClassVar[bool] = False
    BY_NAME: ClassVar[bool] = False
    """Is it ours also for a table of the catalog, where Spark would only change its catalog?"""
    NEEDS: ClassVar[Mapping[str, str]] = {}
    """What is said when a word of the grammar is missing, where the word alone says too little."""

    def apply(self, on: Target) -> R:
        """Do it: call the function ``DOES`` with the log (or the settings) and the fields."""
        mine = dataclasses.fields(self)  # type: ignore[arg-type]
        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in mine}
        if "spark" in given and given["spark"] is None:
            given["spark"] = on.spark
        if "run" in given:
            given["run"] = given["run"] or on.runner(given.pop("spark"))
        result: R = found(self.DOES)(on.log if "{table" in self.SQL else on.config, **given)
        return result

    def gate(self, on: Target) -> None:
        """May this release write the table? Asked before anything else is done."""
        from indextables.log.commit.gate import require_writable

        require_writable(on.log)

    @classmethod
    def schema(cls) -> pa.Schema:
        """The columns of its rows."""
        if cls.COLUMNS:
            return found(cls.COLUMNS)
        module, _, name = _return_type(cls).removeprefix("list[").removesuffix("]").partition(".")
        return found(f"maintenance.{module}:{name}").COLUMNS

    @classmethod
    def parameters(cls) -> Iterator[dataclasses.Field[Any]]:
        """The fields that SQL and the command line may set."""
        known = dataclasses.fields(cls)  # type: ignore[arg-type]
        return (f for f in known if not f.metadata.get("hidden"))


def found(place: str) -> Any:
    """What a module of ours holds, by ``module:name``."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"indextables.{module}"), name)


def parameter(
    *, doc: str, default: Any = dataclasses.MISSING, argument: bool = False, shell: bool = True
) -> Any:
    """A field with its help; ``argument``: not an option of the command line though it may be left
    out, ``shell``: is it there at all?"""
    facts = {"doc": doc, "argument": argument, "shell": shell}
    return dataclasses.field(default=default, metadata=facts)


def hidden(*, default: Any) -> Any:
    """A field for callers in Python only: a session, settings, a clock."""
    return dataclasses.field(default=default, metadata={"hidden": True}, repr=False)


@dataclass_transform(frozen_default=True, field_specifiers=(parameter, hidden))
def verb(cls: V) -> V:
    """Makes a class a verb and puts it into the registry."""
    dataclasses.dataclass(frozen=True)(cls)
    REGISTRY.append(cls)
    return cls


def first_words() -> list[str]:
    """The words our statements begin with."""
    return sorted({kind.SQL.split()[0] for kind in REGISTRY})


def invoke(command: Verb[R], on: Target) -> R:
    """Run a verb: the protocol gate first, where it changes a table."""
    command = _checked(command)
    if command.MUTATES:
        command.gate(on)
    with placed(on.path):
        return command.apply(on)


def _checked(command: Verb[R]) -> Verb[R]:
    """The verb with its numbers and sizes as numbers, whichever way it was called."""
    from indextables.verbs.grammar import slots

    parsers = {"int": parse_int, "hours": parse_int, "size": parse_size}
    changed: dict[str, Any] = {}
    for name, kind in slots(command.SQL).items():
        value = getattr(command, name, None)
        if kind not in parsers or value is None or type(value) is int:
            continue
        try:
            changed[name] = parsers[kind](value)
        except (ValueError, TypeError):
            raise ConfigError(
                f"{name} of {command.METHOD} cannot be {value!r}",
                hint="Give bytes, or a size such as 512M" if kind == "size" else "Give a number",
            ) from None
    return dataclasses.replace(command, **changed) if changed else command  # type: ignore[type-var]


def as_table(command: Verb[Any], result: Any) -> pa.Table:
    """The rows of a result, in the columns the verb promises."""
    import pyarrow as pa

    from indextables.maintenance.rows import as_dict

    if isinstance(result, pa.Table):
        return result
    rows = result if isinstance(result, list) else [result]
    return pa.Table.from_pylist([as_dict(row) for row in rows], schema=command.schema())


def method(made: Callable[P, Verb[R]]) -> Callable[Concatenate[Any, P], R]:
    """A verb as a method of a table: the signature of its class, the type of its result."""
    kind: type[Verb[Any]] = made  # type: ignore[assignment]

    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        found = invoke(made(*args, **kwargs), Target.of(self.log))
        return Listing(found) if isinstance(found, list) else found  # type: ignore[return-value]

    own = inspect.signature(made)
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    answer = _return_type(kind)
    call.__signature__ = own.replace(  # type: ignore[attr-defined]
        parameters=[me, *own.parameters.values()], return_annotation=answer
    )
    call.__name__, call.__qualname__, call.__doc__ = (
        kind.METHOD,
        f"Table.{kind.METHOD}",
        _help(kind),
    )
    return call


def _return_type(kind: type[Verb[Any]]) -> Any:
    """What stands in ``Verb[...]``."""
    answer = get_args(kind.__orig_bases__[0])[0]  # type: ignore[attr-defined]
    return getattr(answer, "__forward_arg__", answer)


def _help(kind: type[Verb[Any]]) -> str:
    """The description with a line for each parameter, for ``help()``."""
    lines = [f"{f.name}: {f.metadata['doc']}" for f in kind.parameters()]
    return "\n\n".join(filter(None, [inspect.cleandoc(kind.__doc__ or ""), "\n".join(lines)]))
